"""One object for each event loop, where a trainer makes many that want it."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Callable, Dict, Hashable, Optional, TypeVar

from .rollouts import Rollouts

T = TypeVar("T")

_of_loops: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Dict[Hashable, Any]]" = weakref.WeakKeyDictionary()


def shared(key: Hashable, make: Callable[[], T]) -> T:
    """Of the running event loop: what `make` returned to who came with this key first. It ends with the process."""
    of_loop = _of_loops.setdefault(asyncio.get_running_loop(), {})
    if key not in of_loop:
        of_loop[key] = make()
    told: T = of_loop[key]
    return told


def shared_rollouts(stream: str, broker: Optional[str], options: Dict[str, Any]) -> Rollouts:
    """One Rollouts for each stream; the options are those of who comes first."""
    return shared((stream, broker), lambda: Rollouts(stream, broker, **options))
