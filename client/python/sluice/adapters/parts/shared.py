"""One object for each event loop, where a trainer makes many that want it, and a bridge on that loop."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Callable, Dict, Hashable, Optional, TypeVar

from ...aio import AsyncClient
from ...bridge import Bridge
from ..rollouts import Rollouts

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


async def serve(bridge: Bridge, broker: Optional[str], policy: Optional[str] = None) -> None:
    """Begins the bridge on the running event loop, and makes it an engine of the broker's."""
    await bridge.__aenter__()
    async with AsyncClient(broker) as client:
        await client.engine_add(bridge.url, policy=policy)
