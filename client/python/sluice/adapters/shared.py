"""One Rollouts for each stream of an event loop, where a trainer makes many objects that want it."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Dict, Optional, Tuple

from .rollouts import Rollouts

_of_loops: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Dict[Tuple[str, Optional[str]], Rollouts]]" = (
    weakref.WeakKeyDictionary())


def shared_rollouts(stream: str, broker: Optional[str], options: Dict[str, Any]) -> Rollouts:
    """Of the running event loop; the options are those of who comes first. It ends with the process."""
    of_loop = _of_loops.setdefault(asyncio.get_running_loop(), {})
    if (stream, broker) not in of_loop:
        of_loop[stream, broker] = Rollouts(stream, broker, **options)
    return of_loop[stream, broker]
