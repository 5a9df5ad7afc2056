"""One client's talk with its broker: requests on FRONT and their answers, whoever waits for them.

Waiting is written once, for threads and for asyncio: what has to wait is a generator ("steps") that yields
a Pause, is resumed when something happened for it or the Pause is over, and returns its result. Client
polls during a Pause, AsyncClient awaits. Steps that are closed in the middle (a cancelled task) leave
nothing behind but a request that the broker may have carried out.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Generator, Iterator, List, Optional, Protocol, Sequence, Tuple, TypeVar, Union

import zmq

from ..arguments import feed_of
from ..errors import Forgotten, Refused, SluiceError, refusal
from . import messages
from .link import AGAIN, Link
from .sockets import Sockets

AGAIN_FIRST, AGAIN_LAST = 0.5, 4.0  # seconds until an unanswered request is sent again
STOPPED = 1.0                       # a wait that took so much longer was no wait: this process stood still
FAR = 2**63 - 1                     # a number that no stream reaches: asks where it stands

Fields = Dict[str, Any]
T = TypeVar("T")
Steps = Generator["Pause", None, T]


class Ear:
    """Whether anything came for those who wait."""

    def __init__(self) -> None:
        self.heard = False


class Pause:
    """Until `until`, or `ear` has heard something; earlier if the broker is away and comes back, or FEED has something."""

    __slots__ = ("until", "ear", "away", "feed")

    def __init__(self, until: float, ear: Optional[Ear] = None, away: bool = False,
                 feed: Optional[zmq.Socket[bytes]] = None) -> None:
        self.until, self.ear, self.away, self.feed = until, ear, away, feed


class Request:
    """One question in the air: sent, and sent again, until it is answered."""

    def __init__(self, tag: int, data: bytes) -> None:
        self.tag, self.data, self.again, self.send_at = tag, data, AGAIN_FIRST, 0.0
        self.ear: Optional[Ear] = None
        self.answer: Optional[Tuple[str, Fields]] = None

    def send_due(self, socket: zmq.Socket[bytes], now: float) -> bool:
        """False if it could not be sent: the broker is away."""
        if now < self.send_at:
            return True
        if not int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT:
            return False
        try:
            socket.send(self.data, zmq.DONTWAIT)
        except zmq.Again:
            return False
        self.send_at = now + self.again
        self.again = min(2 * self.again, AGAIN_LAST)
        return True


class Reader:
    """Who is offered the messages that answer no request: a Stream."""

    name: str

    def offer(self, wire: str, fields: Fields) -> None:
        raise NotImplementedError

    def expect_more(self) -> None:
        raise NotImplementedError

    def save(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Watch(Protocol):
    """Who is offered what comes with its tag and answers no request: a Watching."""

    def offer(self, wire: str, fields: Fields) -> None: ...


class Session:
    def __init__(self, sockets: Sockets, url: str, timeout: float, patience: Optional[float], key: Optional[str],
                 allow_plaintext: bool) -> None:
        self.sockets, self.url, self.timeout, self.patience = sockets, url, timeout, patience
        self.feed_url = feed_of(url)
        self.reader: Optional[Reader] = None
        self.lease: Optional[float] = None  # the shortest that was submitted with, in seconds
        self.sizes: Dict[str, int] = {}     # of groups that were submitted here and have not been read whole
        self.watches: Dict[int, Watch] = {}  # by their tags
        self._tag = 0
        self._open: Dict[int, Request] = {}
        self.link = Link(sockets, url, key, allow_plaintext)
        self.link.open()

    @property
    def front(self) -> zmq.Socket[bytes]:
        assert self.link.socket is not None
        return self.link.socket

    def check(self) -> None:
        """Whether it can be used at all, here and now."""
        if not self.sockets.is_ours:
            raise SluiceError("this client was made before a fork: make another one in this process")
        if self.sockets.ended:
            raise SluiceError("this client is closed")

    def close(self) -> None:
        self.leave(self.reader)
        self.sockets.end()

    def open_feed(self) -> zmq.Socket[bytes]:
        socket = self.sockets.make_outer(zmq.SUB)
        self.link.arm(socket)
        socket.connect(self.feed_url)
        return socket

    def leave(self, reader: Optional[Reader]) -> None:
        if reader and self.reader is reader:
            self.reader = None
            reader.close()

    # ---- requests ---------------------------------------------------------------------------------

    def make(self, wire: str, fields: Fields) -> Request:
        self._tag += 1
        return Request(self._tag, messages.encode(wire, tag=self._tag, **fields))

    def _frames(self) -> Iterator[Tuple[str, Fields]]:
        """The messages that are there now, but for what is none."""
        self.link.mend()
        while True:
            try:
                frames = self.front.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            try:
                if len(frames) == 1:
                    yield messages.decode(frames[0])
            except messages.MessageError:
                pass

    def read(self) -> None:
        """Hands out what is there, each to who waits for it."""
        for wire, fields in self._frames():
            tag = fields.get("tag", 0)
            request = None if wire == "rollout.events" else self._open.pop(tag, None)
            if request:
                request.answer = (wire, fields)
                if request.ear:
                    request.ear.heard = True
            elif tag in self.watches:
                self.watches[tag].offer(wire, fields)
            elif self.reader:
                self.reader.offer(wire, fields)

    def wait(self, requests: Sequence[Request], timeout: Optional[float] = None) -> Steps[List[Tuple[str, Fields]]]:
        """The answers, all of them."""
        ear = Ear()
        timeout = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout
        try:
            for request in requests:
                request.ear = ear
                self._open[request.tag] = request
            while True:
                now, wake, away = time.monotonic(), deadline, False
                left = [request for request in requests if request.answer is None]
                for request in left:
                    away = not request.send_due(self.front, now)
                    if away:
                        break
                    wake = min(wake, request.send_at)
                if not left:
                    return [request.answer for request in requests if request.answer]
                if now >= deadline:
                    raise self.link.silence()
                if away:
                    wake = min(wake, now + AGAIN)
                yield Pause(wake, ear, away)
                late = time.monotonic() - max(now, wake)
                deadline += late if late > STOPPED else 0
                self.read()
                if ear.heard:
                    ear.heard = False
                    deadline = time.monotonic() + timeout
        finally:
            for request in requests:
                self._open.pop(request.tag, None)

    def call_many(self, wire: str, asked: Sequence[Fields]) -> Steps[List[Union[Fields, Refused]]]:
        """An answer's fields, or the Refused, for each."""
        answers = yield from self.wait([self.make(wire, fields) for fields in asked])
        return [refusal(fields) if name == "refused" else fields for name, fields in answers]

    def ask(self, wire: str, fields: Fields) -> Steps[Tuple[str, Fields]]:
        (name, answer), = yield from self.wait([self.make(wire, fields)])
        if name == "refused":
            raise refusal(answer)
        return name, answer

    def call(self, wire: str, **fields: Any) -> Steps[Fields]:
        return (yield from self.ask(wire, fields))[1]

    def count(self, wire: str, **fields: Any) -> Steps[int]:
        """What a `done` counts."""
        return int((yield from self.call(wire, **fields))["count"])

    def is_known(self, rollout: str) -> Steps[bool]:
        """Whether the broker has it, or had it and has forgotten it."""
        try:
            yield from self.ask("rollout.get", {"rollout": rollout})
        except Forgotten:
            return True
        except Refused as why:
            if why.reason != "unknown-rollout":
                raise
            return False
        return True

    def head(self, stream: str) -> Steps[Optional[Fields]]:
        """Where a stream stands; None: the broker does not know it."""
        try:
            return (yield from self.ask("stream.fetch", {"stream": stream, "limit": 1, "from": FAR}))[1]
        except Refused as why:
            if why.reason != "unknown-stream":
                raise
            return None
