"""A gateway in tests: in front of a fleet, spoken to by plain http.client or by bytes on a socket."""
import contextlib
import http.client
import json
import os
import socket
import sys

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Client, Fleet, chat, noop, sandbox, script  # noqa: E402,F401
from harness import BINARY, SLUICE, SOURCE, free_ports, wait_until  # noqa: E402,F401

GATEWAY = os.path.join(BINARY, "client", "sluice-gateway")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"{self.status} {self.body[:500]!r}"

    @property
    def json(self):
        return json.loads(self.body)


def add_gateway(fleet, *options, name="gateway"):
    """A member of the fleet; `port` is where it listens."""
    port = free_ports(1)
    member = fleet.add(name, [GATEWAY, "--broker", fleet.url, "--listen", str(port),
                              "--state", os.path.join(fleet.root, f"{name}.ids"), *options], ready="gateway ready")
    member.port = port
    return member


def ask(gateway, path, body=None, method=None, headers=None, timeout=60):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=timeout)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method or ("GET" if data is None else "POST"), path, data,
                           dict({"Content-Type": "application/json"} if data is not None else {}, **(headers or {})))
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


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
    """Server-sent events, one after the other: (event, id, data)."""

    def __init__(self, gateway, path, headers=None, timeout=30):
        self.connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=timeout)
        self.connection.request("GET", path, headers=headers or {})
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
            elif not line and data:
                yield event, number, json.loads("\n".join(data))
                event, number, data = "message", None, []
