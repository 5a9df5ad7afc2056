"""What no peer of ours would say, at each of the broker's sockets. Nothing here may be noticed by anybody else."""
import json
import os
import socket

import msgpack
import zmq

GREETING = b"\xff" + b"\0" * 8 + b"\x7f\x03\x00NULL" + b"\0" * 48  # ZMTP 3.0, no security, a client


def connect(url):
    if url.startswith("ipc://"):
        one = socket.socket(socket.AF_UNIX)
        one.settimeout(2)
        one.connect(url[6:])
        return one
    host, port = url[6:].rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=2)


def raw(url, data):
    """Bytes at a socket, and gone. Whether anybody listens does not matter."""
    try:
        with connect(url) as one:
            one.sendall(data)
    except OSError:
        pass


def noise(dice, size=4096):
    return dice.randbytes(dice.randint(1, size))


def handshake(kind):
    ready = b"\x05READY\x0bSocket-Type" + len(kind).to_bytes(4, "big") + kind
    return GREETING + b"\x04" + bytes([len(ready)]) + ready


def as_peer(url, kind, frames_of, linger_ms=200):
    """Messages from a socket of libzmq, as a peer that has got through the door would send them."""
    context = zmq.Context()
    try:
        one = context.socket(kind)
        one.setsockopt(zmq.LINGER, linger_ms)
        one.setsockopt(zmq.SNDTIMEO, 500)
        one.connect(url)
        for frames in frames_of:
            one.send_multipart(frames)
        one.close()
    except zmq.Again:
        one.close(0)
    finally:
        context.term()


def message(wire, fields):
    return msgpack.packb(wire) + msgpack.packb(fields)


LANES = ("tcp://192.0.2.1:9", "tcp://127.0.0.1;127.0.0.2:9", "tcp://eth0;127.0.0.1:9", "tcp://nobody.invalid:9",
         "tcp://127.0.0.1:0", "tcp://[::1]:9", "ipc:///run/nobody", "ipc://@nobody", "tcp://*:*")


def beat_of(dice, lane):
    """Whole, but for where it wants the broker to connect, and what it says that it holds."""
    return {"worker": f"hostile-{dice.randrange(4)}", "stage": dice.choice(("init", "run", "eval")), "slots": 1,
            "lane": lane, "host": "nowhere", "progress": 1, "draining": True, "epoch": 1,
            "jobs": [["run:g/0", dice.getrandbits(63)], ["init:g", 1]]}


def bundle(messages):
    """Several as one (common/net/bundle.h)."""
    return b"\xc1" + b"".join(len(one).to_bytes(4, "little") + one for one in messages)


def broken_bundles(dice):
    """Of broken messages: all of them, cut short, in another one, of nothing, and more than one may hold."""
    whole = bundle(frames[0] for frames in broken_messages(dice))
    return [[whole], [whole[:dice.randint(1, len(whole))]], [bundle([whole, b""])], [b"\xc1"], [b"\xc1" + noise(dice)],
            [bundle([b""] * 5000)], [whole, whole]]


def broken_messages(dice):
    """Nearly messages: cut, mistyped, of the wrong side, in too many frames, of another time."""
    whole = message("group.submit", {"tag": 1, "group": "g", "stream": "s", "samples": 1, "task": "{}"})
    return [[noise(dice)], [b""], [whole[:dice.randint(0, len(whole))]], [whole + b"\0"], [whole, whole],
            [msgpack.packb("group.submit") + b"\xdf\xff\xff\xff\xff"], [b"\x91" * 3000],
            [message("group.submit", {"tag": -1, "group": "a/b", "stream": "\0", "samples": 10**9, "task": []})],
            [message("stream.fetch", {"tag": 1, "stream": "nobody", "from": 2**64 - 1, "limit": 256})],
            [message("result.ack", {"job": "run:g/0", "token": 1})],
            [message("job.result", {"worker": "w", "job": "eval:g/0", "token": 2**63, "outcome": "ok", "ms": 1,
                                    "reward": 1.0})],
            [message("worker.beat", {"worker": "w", "stage": "run", "slots": 0, "lane": "tcp://1.2.3.4:1"})],
            *([message("worker.beat", beat_of(dice, lane))] for lane in LANES)]


def at_all(dice, front, sink, feed):
    """One round of everything."""
    for url in (front, sink, feed):
        raw(url, noise(dice))
        raw(url, GREETING)
        raw(url, GREETING + noise(dice))
        raw(url, handshake(dice.choice((b"DEALER", b"PUSH", b"SUB", b"XYZ"))) + b"\x02" + b"\x7f" + b"\xff" * 7 + noise(dice))
    as_peer(front, zmq.DEALER, broken_messages(dice) + broken_bundles(dice))
    as_peer(sink, zmq.PUSH, broken_messages(dice) + broken_bundles(dice))
    as_peer(feed, zmq.SUB, [])


class SilentReader:
    """A client that asks and asks and never reads an answer."""

    def __init__(self, front, stream):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        for option, value in ((zmq.LINGER, 0), (zmq.RCVHWM, 1), (zmq.SNDHWM, 10), (zmq.RCVBUF, 4096),
                              (zmq.SNDTIMEO, 30000)):
            self.socket.setsockopt(option, value)
        self.socket.connect(front)
        self.question = message("stream.fetch", {"tag": 1, "stream": stream, "from": 1, "limit": 256})

    def ask(self, times):
        for _ in range(times):
            self.socket.send(self.question)

    def submit(self, group, stream, task):
        """The broker takes it after all that was asked before."""
        self.socket.send(message("group.submit", {"tag": 2, "group": group, "stream": stream, "samples": 1,
                                                  "task": json.dumps(task)}))

    def close(self):
        self.socket.close(0)
        self.context.term()


def turn_bytes_over(dice, folder):
    """Damages one file under `folder`; its path, or None when there is none."""
    files = sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)
    if not files:
        return None
    path = dice.choice(files)
    with open(path, "r+b") as file:
        size = os.path.getsize(path)
        file.seek(dice.randrange(max(1, size)))
        some = file.read(16)
        file.seek(-len(some), os.SEEK_CUR)
        file.write(bytes(byte ^ 0xFF for byte in some))
    return path
