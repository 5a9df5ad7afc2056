"""The connection to the worker: what is sent is in order, and each request's reply finds who asked."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, Dict, Union

from .wire import Frames, Lines


class Connection:
    """One per process; used on the event loop's thread alone."""

    def __init__(self, form: Union[Frames, Lines], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._form, self._reader, self._writer = form, reader, writer
        self._calls = itertools.count(1)
        self._waiting: Dict[int, Dict[int, asyncio.Future[Dict[str, Any]]]] = {}  # by job and call

    async def read(self) -> Any:
        """The next message, (wire name, fields); None at the end."""
        return await self._form.read(self._reader)

    async def send(self, wire: str, **fields: Any) -> None:
        self._writer.write(self._form.bytes_of(wire, fields))
        await self._writer.drain()

    async def ask(self, job: int, wire: str, fields: Dict[str, Any]) -> Dict[str, Any]:
        """Sends a request of a job; its handler.reply. Cancelled with the job, and at once when that is over."""
        waiting = self._waiting.get(job)
        if waiting is None:
            raise asyncio.CancelledError
        call = next(self._calls)
        future: asyncio.Future[Dict[str, Any]] = asyncio.get_running_loop().create_future()
        waiting[call] = future
        try:
            await self.send(wire, id=job, call=call, **fields)
            return await future
        finally:
            del waiting[call]

    def begin(self, job: int) -> None:
        """Its requests are taken."""
        self._waiting[job] = {}

    def end(self, job: int) -> None:
        """They are no more; who waits for a reply is cancelled."""
        for future in self._waiting.pop(job, {}).values():
            future.cancel()

    def take_reply(self, fields: Dict[str, Any]) -> None:
        future = self._waiting.get(fields["id"], {}).get(fields["call"])
        if future and not future.done():
            future.set_result(fields)
