"""As much of an HTTP/1.1 server as a bridge needs: small, with a bound on all that a client can make grow.

A request is a head of at most HEAD_BYTES and a body of a told length. A client that is slower than the times below, or
that sends what is no request, loses its connection. While an answer is made nothing may come: the end of the connection
means that the client gave the call up, and cancels the work on it.
"""

from __future__ import annotations

import asyncio
import http
import json
from typing import Any, Awaitable, Callable, Dict, NamedTuple, Optional, Set

HEAD_BYTES = 16 << 10
IDLE_S = 300.0  # between two requests of a connection
HEAD_S = 10.0   # from a head's first byte to its last
BODY_S = 60.0   # for a request's body, and for an answer that is not read


class Request(NamedTuple):
    method: str
    path: str  # without its query
    headers: Dict[str, str]  # by names in lower case
    body: bytes


class Answer(NamedTuple):
    status: int
    body: bytes
    content_type: str = "application/json"


class Unfit(Exception):
    """A request that is refused: with this status and sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def of_json(value: Any, status: int = 200) -> Answer:
    """ValueError: a number of it is none that JSON can say."""
    return Answer(status, json.dumps(value, allow_nan=False, separators=(",", ":")).encode())


def refusal(status: int, text: str) -> Answer:
    """In the form that servers of OpenAI's protocol use."""
    kind = "BadRequestError" if status < 500 else "InternalServerError"
    return of_json({"error": {"message": text, "type": kind, "param": None, "code": status}}, status)


def parse_head(head: bytes) -> "tuple[str, str, Dict[str, str]]":
    """Method, path without its query, and headers. Unfit: it is none."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[1].startswith("/") or not words[2].startswith("HTTP/1."):
        raise Unfit(400, "this is no request of HTTP/1.1")
    headers: Dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if line and not colon:
            raise Unfit(400, "a header without a colon")
        headers[name.strip().lower()] = value.strip()
    return words[0], words[1].partition("?")[0], headers


class Server:
    """Answers requests by `handle`, which runs for many connections at a time, on the running event loop."""

    def __init__(self, handle: Callable[[Request], Awaitable[Answer]], body_bytes: int, connections: int) -> None:
        self._handle, self._body_bytes, self._connections_max = handle, body_bytes, connections
        self._connections: Set["asyncio.Task[Any]"] = set()
        self._server: Optional[asyncio.AbstractServer] = None

    async def start(self, host: str, port: int) -> int:
        """Returns the port. OSError: it cannot be had."""
        server = await asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES, backlog=256)
        self._server = server
        return int(server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Ends the connections and what is worked on for them."""
        if self._server is not None:
            self._server.close()
        while self._connections:  # a cancel that meets the end of what is waited for may be lost (wait_for() before 3.12)
            for task in self._connections:
                task.cancel()
            await asyncio.wait(self._connections, timeout=0.05)
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            if len(self._connections) >= self._connections_max:
                return await self._write(writer, refusal(503, "too many connections: try again later"), False)
            self._connections.add(task)
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.TimeoutError, asyncio.CancelledError):
            writer.transport.abort()  # the client, or the bridge, has gone
        finally:
            self._connections.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection goes on."""
        try:
            request = await self._read(reader, writer)
        except Unfit as unfit:
            await self._write(writer, refusal(unfit.status, str(unfit)), False)
            return False
        if request is None:
            return False
        answer = await self._work(request, reader)
        if answer is None:
            return False
        goes_on = request.headers.get("connection", "").lower() != "close"
        await self._write(writer, answer, goes_on)
        return goes_on

    async def _work(self, request: Request, reader: asyncio.StreamReader) -> Optional[Answer]:
        """None: the client has gone, or does not wait for the answer before it says more."""
        working = asyncio.ensure_future(self._handle(request))
        listening = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
            return None if listening.done() else working.result()
        finally:
            for task in (working, listening):
                task.cancel()
            await asyncio.gather(working, listening, return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Optional[Request]:
        """None: the client has no more requests."""
        first = await asyncio.wait_for(reader.read(1), IDLE_S)
        if not first:
            return None
        try:
            head = first + await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_S)
        except asyncio.LimitOverrunError:
            raise Unfit(431, f"a head of more than {HEAD_BYTES} bytes") from None
        method, path, headers = parse_head(head)
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not (length.isascii() and length.isdigit()) or len(length) > 15:
            raise Unfit(411, "a body needs its Content-Length")
        if int(length) > self._body_bytes:
            raise Unfit(413, f"a body of {length} bytes, where {self._body_bytes} are the limit")
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await asyncio.wait_for(reader.readexactly(int(length)), BODY_S)
        return Request(method, path, headers, body)

    async def _write(self, writer: asyncio.StreamWriter, answer: Answer, goes_on: bool) -> None:
        phrase = http.HTTPStatus(answer.status).phrase
        head = (f"HTTP/1.1 {answer.status} {phrase}\r\nContent-Type: {answer.content_type}\r\n"
                f"Content-Length: {len(answer.body)}\r\nConnection: {'keep-alive' if goes_on else 'close'}\r\n\r\n")
        writer.write(head.encode("latin-1") + answer.body)
        await asyncio.wait_for(writer.drain(), BODY_S)
