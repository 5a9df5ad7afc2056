"""A gateway in tests: in front of a fleet, spoken to by plain http.client, on a thread of its own or not, or by bytes on a socket."""
import contextlib
import http.client
import json
import os
import socket
import sys
import threading

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Client, Fleet, chat, noop, sandbox, script  # noqa: E402,F401
from harness import BINARY, SLUICE, SOURCE, free_ports, wait_until  # noqa: E402,F401

GATEWAY = os.path.join(BINARY, "client", "sluice-gateway")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"{self.status} {self.body[:700]!r}"

    @property
    def json(self):
        return json.loads(self.body)


def add_gateway(fleet, *options, name="gateway"):
    """A member of the fleet; `port` is where it listens, which it keeps across restarts."""
    port = free_ports(1)
    member = fleet.add(name, [GATEWAY, "--broker", fleet.url, "--listen", str(port), "--state",
                              os.path.join(fleet.root, "state", f"{name}.ids"), *options], ready="gateway ready")
    member.port = port
    return member


def call(port, method, path, body=None, headers=None, timeout=120):
    """body: bytes, or what is said as Python's json says it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, data, dict({"Content-Type": "application/json"} if data is not None else {}, **(headers or {})))
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def ask(gateway, path, body=None, method=None, headers=None, timeout=60):
    return call(gateway.port, method or ("GET" if body is None else "POST"), path, body, headers, timeout)


class Calling(threading.Thread):
    """A call on a thread of its own; its answer, or its error, once it is joined."""

    def __init__(self, *arguments, **keywords):
        super().__init__(daemon=True)
        self.arguments, self.keywords, self.answer, self.error = arguments, keywords, None, None
        self.start()

    def run(self):
        try:
            self.answer = call(*self.arguments, **self.keywords)
        except (OSError, http.client.HTTPException) as error:
            self.error = error

    def get(self, seconds=120):
        self.join(seconds)
        assert self.answer is not None, self.error or f"no answer within {seconds} s"
        return self.answer


def say(gateway, data, timeout=10):
    """What comes back for these bytes, until the connection ends or falls silent."""
    got = b""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=timeout) as connection:
        connection.sendall(data)
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            while piece := connection.recv(65536):
                got += piece
    return got


class Events:
    """Server-sent events, one after the other: (event, id, data as JSON); with comments (None, None, its text) of each of these, too."""

    def __init__(self, gateway, path, headers=None, timeout=30, body=None, comments=False):
        self.comments = comments
        self.connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=timeout)
        self.connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body),
                                dict({} if body is None else {"Content-Type": "application/json"}, **(headers or {})))
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.connection.close()

    def __iter__(self):
        event, number, data = "message", None, []
        for line in self.answer:
            line = line.decode().rstrip("\n")
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("data: "):
                data.append(line[6:])
            elif line.startswith(":") and self.comments:
                yield None, None, line[1:]
            elif not line and data:
                yield event, number, json.loads("\n".join(data))
                event, number, data = "message", None, []
