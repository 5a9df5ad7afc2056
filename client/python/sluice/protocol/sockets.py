"""The sockets of one client, and the order in which they end.

libzmq ends a context only after its sockets, so whoever ends the context first waits for ever. Python's
cyclic collector is such a one: it clears weak references before it calls any __del__, and pyzmq's context
knows its sockets by weak references only. So they are never left to a collector: they are held here, and
a client's finalizer calls end(), which is safe from any thread, more than once, and in a forked child.
"""

from __future__ import annotations

import os
from typing import Any, Callable, List, Optional, Set

import zmq

FRAME_BYTES_MAX = 80 << 20
QUEUE_MESSAGES = 128

LEFT: List[Any] = []  # of the parent, in a forked child: not ours to close, nor to forget


class Sockets:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.before_close: Optional[Callable[[zmq.Socket[bytes]], None]] = None
        self._context = zmq.Context()
        self._open: Set[zmq.Socket[bytes]] = set()

    @property
    def is_ours(self) -> bool:
        """Not after a fork: its threads are the parent's."""
        return self.pid == os.getpid()

    @property
    def ended(self) -> bool:
        return self._context.closed

    def make(self, kind: int) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        self._open.add(socket)
        socket.setsockopt(zmq.LINGER, 0)
        return socket

    def make_outer(self, kind: int) -> zmq.Socket[bytes]:
        """One that connects to a broker, with what bounds its memory and its waiting."""
        socket = self.make(kind)
        for option, value in ((zmq.MAXMSGSIZE, FRAME_BYTES_MAX), (zmq.RCVHWM, QUEUE_MESSAGES),
                              (zmq.SNDHWM, QUEUE_MESSAGES), (zmq.RECONNECT_IVL, 100),
                              (zmq.RECONNECT_IVL_MAX, 2000), (zmq.TCP_KEEPALIVE, 1),
                              (zmq.TCP_KEEPALIVE_IDLE, 20), (zmq.IMMEDIATE, int(kind == zmq.DEALER))):
            socket.setsockopt(option, value)
        return socket

    def close(self, socket: zmq.Socket[bytes]) -> None:
        if socket not in self._open or not self.is_ours:
            return
        if self.before_close:
            self.before_close(socket)
        self._open.discard(socket)
        socket.close(0)

    def end(self) -> None:
        """All sockets, then their context. Idempotent."""
        if not self.is_ours:
            LEFT.append(self)
            return
        for socket in list(self._open):
            self.close(socket)
        self._context.term()
