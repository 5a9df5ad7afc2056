"""Several things at once, of which none is left behind."""

from __future__ import annotations

import asyncio
from typing import Awaitable, Iterable, List, TypeVar

T = TypeVar("T")


async def all_of(works: Iterable[Awaitable[T]]) -> List[T]:
    """What they come to, in order. Where one raises, or the caller is cancelled, the others are ended first."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
