"""How the trainer's functions are called: so many at a time, on the event loop or on threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
from typing import Any, Callable, Coroutine

THREADS = 64


def is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))


class Gate:
    """Lets `most` calls to the functions go on at a time, the others wait; plain functions run on threads."""

    def __init__(self, most: int) -> None:
        self._free = asyncio.Semaphore(most)
        self._pool = concurrent.futures.ThreadPoolExecutor(min(most, THREADS), "sluice-bridge")
        self.running = self.waiting = 0

    def guard(self, function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
        """The function, awaitable."""
        on_loop = is_async(function)

        async def call(*given: Any) -> Any:
            self.waiting += 1
            try:
                await self._free.acquire()
            finally:
                self.waiting -= 1
            return await (self._on_loop(function, given) if on_loop else self._on_thread(function, given))
        return call

    def _leave(self) -> None:
        self.running -= 1
        self._free.release()

    async def _on_loop(self, function: Callable[..., Any], given: Any) -> Any:
        self.running += 1
        try:
            return await function(*given)
        finally:
            self._leave()

    async def _on_thread(self, function: Callable[..., Any], given: Any) -> Any:
        """Who is cancelled goes; the function, which cannot be stopped, counts until it has ended."""
        self.running += 1
        working = asyncio.get_running_loop().run_in_executor(self._pool, function, *given)

        def ended(done: "asyncio.Future[Any]") -> None:
            self._leave()
            if not done.cancelled():
                done.exception()  # of a call that nobody waits for any more

        working.add_done_callback(ended)
        returned = await asyncio.shield(working)
        return await returned if inspect.isawaitable(returned) else returned

    def close(self) -> None:
        self._pool.shutdown(wait=False)
