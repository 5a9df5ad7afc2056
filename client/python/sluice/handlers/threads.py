"""Plain functions of jobs, each in a thread of its own; one that outlives its job takes no other's place."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import Any, Callable, List

Done = concurrent.futures.Future  # of what a thread returns


def _carry_out(function: Callable[[], Any], done: Done[Any]) -> None:
    try:
        done.set_result(function())
    except StopIteration as error:  # no future holds one
        done.set_exception(RuntimeError(f"StopIteration: {error}").with_traceback(error.__traceback__))
    except BaseException as error:
        done.set_exception(error)


class Threads:
    """At most `count` of jobs that go on, and as many that nobody waits for any more: Python cannot end a thread."""

    def __init__(self, count: int) -> None:
        self._count, self._free = count, asyncio.Semaphore(count)
        self._left: List[Done[Any]] = []
        self.are_full = asyncio.Event()  # so many are left behind that the process had better end

    def _leave(self, done: Done[Any]) -> None:
        self._left = [one for one in self._left if not one.done()]
        if not done.done():
            self._left.append(done)
        if len(self._left) > self._count:
            self.are_full.set()

    async def call(self, function: Callable[[], Any]) -> Any:
        async with self._free:
            done: Done[Any] = Done()
            done.set_running_or_notify_cancel()
            threading.Thread(target=_carry_out, args=(function, done), name="job", daemon=True).start()
            try:
                return await asyncio.wrap_future(done)
            finally:
                self._leave(done)
