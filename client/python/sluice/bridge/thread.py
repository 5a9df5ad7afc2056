"""An event loop on a thread of its own, for those who have none or must not wait on theirs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Coroutine, TypeVar

T = TypeVar("T")


class LoopThread:
    """It runs until end(), or until the process ends."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, steps: Coroutine[Any, Any, T]) -> T:
        """What the steps come to, on that thread; this one waits for it."""
        return asyncio.run_coroutine_threadsafe(steps, self._loop).result()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
