"""The client: requests on FRONT, and a stream read once and in order."""

import json
import os
import time

import zmq

from . import messages
from .errors import BrokerSilent, Refused, SluiceError
from .stream import Stream
from .tasks import name_groups, read_tasks
from .trajectory import read_trajectory

AGAIN_FIRST, AGAIN_LAST = 0.5, 4.0  # seconds until an unanswered request is sent again
WINDOW = 64                         # submits in the air
FRAME_BYTES_MAX = 80 << 20
QUEUE_MESSAGES = 128


def _feed_of(front):
    if front.startswith("ipc://") and front.endswith("front"):
        return front[:-len("front")] + "feed"
    host, colon, port = front.rpartition(":")
    if front.startswith("tcp://") and host != "tcp" and colon and port.isdigit() and 0 < int(port) < 65534:
        return f"{host}:{int(port) + 2}"
    raise SluiceError(f"{front!r} is no broker: say tcp://HOST:PORT or ipc:///DIRECTORY/front")


class Request:
    """One question in the air: sent, and sent again, until it is answered."""

    def __init__(self, tag, data):
        self.tag, self.data, self.again, self.send_at = tag, data, AGAIN_FIRST, 0.0

    def send_due(self, socket, now):
        """False if it could not be sent: the broker is away."""
        if now < self.send_at:
            return True
        if not socket.getsockopt(zmq.EVENTS) & zmq.POLLOUT:
            return False
        try:
            socket.send(self.data, zmq.DONTWAIT)
        except zmq.Again:
            return False
        self.send_at = now + self.again
        self.again = min(2 * self.again, AGAIN_LAST)
        return True


class Client:
    """One broker. Belongs to one thread; use it as a context manager or call close().

    url: FRONT, "tcp://host:5750" or "ipc:///dir/front"; None: $SLUICE_BROKER, else this machine.
    timeout: seconds that a request waits for its answer, restarts of the broker included.
    """

    def __init__(self, url=None, timeout=10.0):
        self.url = url or os.environ.get("SLUICE_BROKER") or "tcp://127.0.0.1:5750"
        self.timeout = timeout
        self._feed_url = _feed_of(self.url)
        self._context = zmq.Context()
        self._tag = 0
        self._stream = None
        self._front = self._socket(zmq.DEALER, self.url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Idempotent."""
        self._leave_stream()
        self._front.close()
        self._context.term()

    # ---- what a trainer does ------------------------------------------------------------------

    def submit(self, tasks, stream, samples=None, group=None):
        """Submits a group of `samples` rollouts for each task; returns the groups' ids.

        tasks: dicts (docs/tasks.md), or the path of a JSONL file. samples None: each task's own.
        group: names a task's group; default as `sluice submit` does, by the task's id and a digest.
        When it returns, all are on the broker's disk. Doing it again submits nothing twice. While
        the broker is full it waits; any other refusal raises Refused, and those before it stay.
        """
        stem, texts = read_tasks(tasks)
        counts = [samples or task.get("samples", 1) for _, task in texts]
        names = ([group(task) for _, task in texts] if group else
                 name_groups(stem, texts, stream, counts))
        waiting = [dict(group=name, stream=stream, samples=count, task=text)
                   for name, count, (text, _) in zip(names, counts, texts)]
        while waiting:
            refused = []
            for at in range(0, len(waiting), WINDOW):
                window = waiting[at:at + WINDOW]
                refused += [(fields, answer) for fields, answer in
                            zip(window, self._call_many("group.submit", window))
                            if isinstance(answer, Refused)]
            for _, why in refused:
                if why.reason != "queue-full":
                    raise why
            if refused:
                time.sleep(refused[0][1].retry_after or 1.0)
            waiting = [fields for fields, _ in refused]
        return names

    def trajectories(self, stream, from_seq=0, timeout=None, until_idle=False):
        """Yields each trajectory of a stream once, in order, for ever; restarts do not matter.

        from_seq: the first number wanted; 0: the oldest that is kept. timeout: ends after so many
        seconds without one. until_idle: ends when every accepted rollout of the stream has been
        yielded. A client reads one stream at a time. Raises Refused (reason "forgotten") for a
        number that is no longer kept, and MessageError for a record that cannot be read: its
        `seq` says which; go on with from_seq after it.
        """
        self._leave_stream()
        reader = self._stream = Stream(self, self._socket(zmq.SUB, self._feed_url), stream)
        reader.begin(from_seq, self._head(stream))
        try:
            while True:
                fields = reader.next(timeout, until_idle)
                if fields is None:
                    return
                try:
                    trajectory = read_trajectory(fields)
                except messages.MessageError as why:
                    why.seq = fields["seq"]
                    raise
                yield trajectory
        finally:
            if self._stream is reader:
                self._leave_stream()

    def ack(self, stream, seq):
        """The broker may forget the stream's trajectories up to seq. Returns how many it forgot."""
        return self._call("stream.ack", stream=stream, seq=seq)["count"]

    def get(self, rollout):
        """The Trajectory of one rollout; if it has not ended, its state as a dict."""
        wire, fields = self._ask("rollout.get", rollout=rollout)
        return read_trajectory(fields) if wire == "trajectory" else fields

    def cancel(self, rollout=None, group=None, stream=None):
        """Stops one rollout, a group or a stream's; returns how many rollouts were stopped."""
        return self._call("rollout.cancel", rollout=rollout, group=group, stream=stream)["count"]

    def status(self):
        """How the broker is (docs/operations.md)."""
        return json.loads(self._call("status.get")["json"])

    def engines(self):
        """The registered engines: [{"url": ..., "live": rollouts}]."""
        return self.status().get("engines", [])

    def engine_add(self, url):
        self._call("engine.add", url=url)

    def engine_remove(self, url):
        self._call("engine.remove", url=url)

    # ---- sockets ----------------------------------------------------------------------------------

    def _socket(self, kind, url):
        socket = self._context.socket(kind)
        for option, value in ((zmq.LINGER, 0), (zmq.MAXMSGSIZE, FRAME_BYTES_MAX),
                              (zmq.RCVHWM, QUEUE_MESSAGES), (zmq.SNDHWM, QUEUE_MESSAGES),
                              (zmq.RECONNECT_IVL, 100), (zmq.RECONNECT_IVL_MAX, 2000),
                              (zmq.TCP_KEEPALIVE, 1), (zmq.TCP_KEEPALIVE_IDLE, 20),
                              (zmq.IMMEDIATE, int(kind == zmq.DEALER))):
            socket.setsockopt(option, value)
        socket.connect(url)
        return socket

    def _leave_stream(self):
        if self._stream:
            self._stream.close()
        self._stream = None

    # ---- requests ----------------------------------------------------------------------------------

    def _make(self, wire, fields):
        self._tag += 1
        return Request(self._tag, messages.encode(wire, tag=self._tag, **fields))

    def _read(self):
        """The messages that are there now, but for what is none."""
        while True:
            try:
                frames = self._front.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            try:
                if len(frames) == 1:
                    yield messages.decode(frames[0])
            except messages.MessageError:
                pass

    def _wait(self, requests):
        """Answers by tag, all of them."""
        open_tags, answers = {r.tag: r for r in requests}, {}
        deadline = time.monotonic() + self.timeout
        while open_tags:
            now, wake, away = time.monotonic(), deadline, False
            for request in open_tags.values():
                away = not request.send_due(self._front, now)
                if away:
                    break
                wake = min(wake, request.send_at)
            self._front.poll(max(0, (wake - now) * 1000), zmq.POLLIN | (zmq.POLLOUT if away else 0))
            for wire, fields in self._read():
                tag = fields.get("tag", 0)
                if tag in open_tags:
                    del open_tags[tag]
                    answers[tag] = (wire, fields)
                    deadline = time.monotonic() + self.timeout
                elif self._stream:
                    self._stream.offer(wire, fields)
            if open_tags and time.monotonic() >= deadline:
                raise BrokerSilent(f"no broker answers at {self.url}")
        return [answers[r.tag] for r in requests]

    def _call_many(self, wire, asked):
        """An answer's fields, or the Refused, for each."""
        answers = self._wait([self._make(wire, fields) for fields in asked])
        return [refusal(fields) if name == "refused" else fields for name, fields in answers]

    def _ask(self, wire, **fields):
        (name, answer), = self._wait([self._make(wire, fields)])
        if name == "refused":
            raise refusal(answer)
        return name, answer

    def _call(self, wire, **fields):
        return self._ask(wire, **fields)[1]

    def _head(self, stream):
        """Where a stream stands; an unknown one is empty."""
        try:
            return self._call("stream.fetch", stream=stream, limit=1, **{"from": 2**63 - 1})
        except Refused as why:
            if why.reason != "unknown-stream":
                raise
            return {"first": 1, "head": 0, "pending": 0, "epoch": 1}


def refusal(fields):
    return Refused(fields["text"], fields["reason"], fields.get("field"), fields.get("retry_after_ms"))
