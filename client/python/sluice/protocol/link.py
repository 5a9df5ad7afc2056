"""How a client proves who it is (CURVE), and why it cannot talk to the broker.

FRONT's handshakes are listened to. One that is refused ends libzmq's attempts, so the socket is made
anew, every AGAIN seconds, and the reason is what a request that finds no answer fails with.
"""

from __future__ import annotations

import ipaddress
import os
import stat
import time
from typing import Any, Dict, Mapping, Optional

import zmq
from zmq.utils.monitor import parse_monitor_message

from ..errors import AuthRefused, BrokerSilent, SluiceError
from .sockets import Sockets

AGAIN = 0.5
BROKEN_LEAST = 3  # handshakes broken off in a row that mean something: a broker killed in one breaks it off, too
MISMATCH = 0x11000002  # ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
FILE_MAX = 4096
HEARD = (zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL |
         zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH)
ROLES = ("trainer", "admin")


def read_key(path: str) -> Dict[str, str]:
    """The lines of a key file (docs/security.md) as a dict; refused if others can read it."""
    try:
        with open(path, encoding="ascii") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(FILE_MAX + 1)
    except (OSError, UnicodeDecodeError) as why:
        raise AuthRefused(f"cannot read {path}: {why}") from None
    if not stat.S_ISREG(mode) or len(text) > FILE_MAX:
        raise AuthRefused(f"{path}: it is not a key file")
    if mode & 0o077:
        raise AuthRefused(f"{path}: it holds a secret and others may read it: chmod 600 {path}")
    key = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or words[0] not in ("role", "name", "public", "secret", "broker"):
            raise AuthRefused(f"{path}: line {number} is not of the form `word value`")
        key[words[0]] = words[1]
    for word in ("role", "name", "public", "secret", "broker"):
        if word not in key:
            raise AuthRefused(f"{path}: the line `{word}` is missing")
    for word in ("public", "secret", "broker"):
        if len(key[word]) != 40:
            raise AuthRefused(f"{path}: `{word}` is not a key: 40 characters of Z85")
    if key["role"] not in ROLES:
        raise AuthRefused(f"{path} is the key of {key['name']}, whose role is {key['role']}: "
                          "name a trainer's or an admin's key")
    return key


def is_local(url: str) -> bool:
    """Nobody but this machine's own users can listen in."""
    if url.startswith("ipc://"):
        return True
    host = url[len("tcp://"):].rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Link:
    """FRONT, and what every socket of a client needs before it connects."""

    def __init__(self, sockets: Sockets, url: str, key_path: Optional[str], allow_plaintext: bool) -> None:
        self.sockets, self.url = sockets, url
        self.key_path = key_path or os.environ.get("SLUICE_KEY") or None
        self.key = read_key(self.key_path) if self.key_path else None
        if not (self.key or allow_plaintext or is_local(url) or
                os.environ.get("SLUICE_ALLOW_PLAINTEXT") == "1"):
            raise AuthRefused(f"{url} is not on this machine and there is no key: name one with key= or "
                              "SLUICE_KEY, or set SLUICE_ALLOW_PLAINTEXT=1 if you trust the whole network")
        self.socket: Optional[zmq.Socket[bytes]] = None
        self.monitor: Optional[zmq.Socket[bytes]] = None
        self.error = ""                      # why there is no connection
        self.broken = 0                      # how many handshakes in a row ended without a word
        self.again: Optional[float] = None   # when to make the socket anew
        self.made = 0                        # how often it was: FEED, which was refused with it, is made as often

    def arm(self, socket: zmq.Socket[bytes]) -> None:
        if self.key:
            socket.curve_serverkey = self.key["broker"].encode()
            socket.curve_publickey = self.key["public"].encode()
            socket.curve_secretkey = self.key["secret"].encode()

    def open(self) -> None:
        self.socket = self.sockets.make_outer(zmq.DEALER)
        self.arm(self.socket)
        address = f"inproc://front-{self.made}"
        self.socket.monitor(address, HEARD)
        self.monitor = self.sockets.make(zmq.PAIR)
        self.monitor.connect(address)
        self.socket.connect(self.url)
        self.made += 1

    def _close(self) -> None:
        if self.socket and self.monitor:
            self.socket.disable_monitor()
            self.sockets.close(self.monitor)
            self.sockets.close(self.socket)
        self.socket = self.monitor = None

    def mend(self) -> None:
        """Hears what became of the handshakes and mends what can be. Call it in every round."""
        assert self.monitor is not None
        while int(self.monitor.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            self._hear(parse_monitor_message(self.monitor.recv_multipart(zmq.DONTWAIT)))
        if self.again is not None and time.monotonic() >= self.again:
            self.again = None
            self._close()
            self.open()

    def silence(self) -> SluiceError:
        """No answer came: why."""
        return AuthRefused(self.error) if self.error else BrokerSilent(f"no broker answers at {self.url}")

    def _hear(self, news: Mapping[str, Any]) -> None:
        event, value = news["event"], int(news["value"])
        if event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
            self.broken += 1
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.error, self.broken = "", 0
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self.error = (f"the broker at {self.url} refuses the key of {self.key['name'] if self.key else ''} "
                          f"({self.key_path}): its operator removed it, or never knew it")
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL and value == MISMATCH and self.key:
            self.error = (f"the broker at {self.url} speaks plaintext: connect without a key, or start "
                          "it with --keys")
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL and value == MISMATCH:
            self.error = f"the broker at {self.url} wants a key: name one with key= or SLUICE_KEY"
        elif event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL and self.broken < BROKEN_LEAST:
            pass
        elif not self.error and self.key:
            self.error = (f"the broker at {self.url} broke off the handshake: its key is not the one that "
                          f"{self.key_path} names, or it speaks plaintext")
        elif not self.error:
            self.error = f"the broker at {self.url} broke off the handshake: does it want a key?"
        if event in (zmq.EVENT_HANDSHAKE_FAILED_AUTH, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL):
            self.again = time.monotonic() + AGAIN
