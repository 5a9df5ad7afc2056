"""The client: requests on FRONT, trajectories from FEED, each once and in order."""
import hashlib
import json
import os
import time

import zmq

from . import trajectory, wire

DEFAULT_URL = "tcp://127.0.0.1:5750"


class Refused(Exception):
    """The broker refused a request: `reason` is its name, `field` the field at fault."""

    def __init__(self, values):
        super().__init__(values["text"])
        self.reason, self.field = values["reason"], values.get("field", "")
        self.retry_after_ms = values.get("retry_after_ms")


class BrokerSilent(Exception):
    """No broker answered in time."""


def _feed_of(url):
    if url.startswith("ipc://"):
        return os.path.dirname(url) + "/feed"
    head, port = url.rsplit(":", 1)
    return f"{head}:{int(port) + 2}"


def _group_of(stream, task, samples):
    """The same task in the same stream is the same group: submitting again changes nothing."""
    content = json.dumps([stream, task, samples], sort_keys=True).encode()
    return f"{task.get('task', 'task')}-{hashlib.sha256(content).hexdigest()[:10]}"


class Client:
    """One thread's connection to a broker.

    url: the broker's FRONT; default $SLUICE_BROKER, else tcp://127.0.0.1:5750. timeout: seconds a request may
    wait for its answer. Requests are sent again each second until then, so a restart of the broker goes unseen.
    """

    def __init__(self, url=None, timeout=10.0):
        self.url = url or os.environ.get("SLUICE_BROKER") or DEFAULT_URL
        self.timeout = timeout
        self._context = zmq.Context()
        self._front = self._socket(zmq.DEALER, self.url)
        self._tag = 0
        self._inbox = {}  # tag: messages that answer it

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._context.destroy(linger=0)

    def _socket(self, kind, url):
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 2000)
        socket.setsockopt(zmq.RCVHWM, 1000)
        socket.connect(url)
        return socket

    # ---- requests

    def _send(self, name, **values):
        self._tag += 1
        self._inbox[self._tag] = []
        frame = wire.encode(name, tag=self._tag, **values)
        self._front.send(frame)
        return self._tag, frame

    def _pump(self, seconds):
        """Reads what FRONT has, waiting at most `seconds` for the first; True if anything came."""
        if not self._front.poll(max(0, int(seconds * 1000))):
            return False
        while self._front.poll(0):
            name, values = wire.decode(self._front.recv())
            if values.get("tag") in self._inbox:
                self._inbox[values["tag"]].append((name, values))
        return True

    def _answer(self, tag, frame, last):
        """Messages answering `tag`, up to and with the first whose name is in `last`."""
        end, again = time.monotonic() + self.timeout, time.monotonic() + 1
        try:
            while True:
                got = self._inbox[tag]
                if got and got[-1][0] == "refused":
                    raise Refused(got[-1][1])
                if got and got[-1][0] in last:
                    return got
                now = time.monotonic()
                if now > end:
                    raise BrokerSilent(f"no broker answers at {self.url}: start one with 'sluice up'")
                if now > again and not got:
                    self._front.send(frame)
                    again = now + 1
                self._pump(min(end, again) - now)
        finally:
            del self._inbox[tag]

    def _request(self, name, last, **values):
        return self._answer(*self._send(name, **values), last)

    def submit(self, tasks, stream, samples=None, group=None):
        """Submits tasks (dicts, or the path of a JSONL file) and returns their group ids once all are on disk.

        samples: rollouts of each; default the task's own number. group: a function of the task that names its
        group; default the task's id and a digest of its content, so that submitting again changes nothing.
        """
        if isinstance(tasks, (str, os.PathLike)):
            with open(tasks, encoding="utf-8") as lines:
                tasks = [json.loads(line) for line in lines if line.strip()]
        groups, waiting = [], []
        for task in tasks:
            count = samples or task.get("samples", 1)
            name = group(task) if group else _group_of(stream, task, count)
            waiting.append(self._send("group.submit", group=name, stream=stream, samples=count, task=json.dumps(task)))
            groups.append(name)
            if len(waiting) >= 256:
                self._answer(*waiting.pop(0), ("group.accepted",))
        for sent in waiting:
            self._answer(*sent, ("group.accepted",))
        return groups

    def cancel(self, rollout=None, group=None, stream=None):
        """Stops one rollout, a group, or all of a stream; returns how many rollouts were stopped."""
        which = {k: v for k, v in (("rollout", rollout), ("group", group), ("stream", stream)) if v is not None}
        return self._request("rollout.cancel", ("done",), **which)[-1][1]["count"]

    def ack(self, stream, seq):
        """The broker may forget trajectories of the stream up to and with number seq."""
        self._request("stream.ack", ("done",), stream=stream, seq=seq)

    def engine_add(self, url):
        self._request("engine.add", ("done",), url=url)

    def engine_remove(self, url):
        self._request("engine.remove", ("done",), url=url)

    def status(self):
        return json.loads(self._request("status.get", ("status",))[-1][1]["json"])

    def get(self, rollout):
        """The rollout's Trajectory if it has ended, else a dict with its stage and state."""
        name, values = self._request("rollout.get", ("trajectory", "rollout.state"), rollout=rollout)[-1]
        return trajectory.from_message(values) if name == "trajectory" else values

    # ---- the stream

    def _fetch(self, stream, start):
        """Trajectories from `start` on that are kept now (some of them), and the stream's head message."""
        answer = self._request("stream.fetch", ("stream.head",), stream=stream, **{"from": start})
        return [values for name, values in answer if name == "trajectory"], answer[-1][1]

    def trajectories(self, stream, from_seq=1, timeout=None, until_idle=False):
        """Yields each trajectory of the stream once and in order, from number from_seq on.

        timeout: ends after so many seconds without one (None: never). until_idle: ends when every accepted
        rollout of the stream has been yielded. Survives restarts of the broker; a number the broker has been
        told to forget raises Refused ("forgotten").
        """
        feed = self._socket(zmq.SUB, _feed_of(self.url))
        topic = b"t/" + stream.encode()
        feed.setsockopt(zmq.SUBSCRIBE, topic)
        following = from_seq
        last_came = time.monotonic()
        must_fetch = True
        try:
            while True:
                if must_fetch:
                    try:
                        got, head = self._fetch(stream, following)
                    except BrokerSilent:
                        got, head = [], None
                    for values in got:
                        if values["seq"] == following:
                            following += 1
                            last_came = time.monotonic()
                            yield trajectory.from_message(values)
                    must_fetch = head is None or head["head"] >= following
                    if head and until_idle and head["pending"] == 0 and head["head"] < following:
                        return
                    if must_fetch:
                        continue
                if timeout is not None and time.monotonic() - last_came > timeout:
                    return
                if not feed.poll(1000):
                    must_fetch = until_idle
                    continue
                frames = feed.recv_multipart()
                if len(frames) != 2 or frames[0] != topic:
                    continue
                name, values = wire.decode(frames[1])
                if name == "trajectory" and values["seq"] == following:
                    following += 1
                    last_came = time.monotonic()
                    yield trajectory.from_message(values)
                newest = values["seq"] if name == "trajectory" else values["head"]
                idle = name == "stream.head" and values["pending"] == 0
                must_fetch = newest >= following or (until_idle and idle)
        finally:
            feed.close()
