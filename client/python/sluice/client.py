"""The client: requests on FRONT, and a stream read once and in order."""

import json
import os
import time
import warnings

import zmq

from . import messages
from .errors import OtherTokens, Refused, SluiceError, refusal
from .link import AGAIN, Link
from .stream import FAR, STOPPED, Stream
from .tasks import limited, name_groups, read_tasks
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
    patience: seconds that submit waits while a full broker accepts nothing, and that reading waits
    for a broker that does not answer; None: for ever. Nothing else waits without a bound.
    key: a file of `sluice keys add`, for a broker that requires one; None: $SLUICE_KEY, if set. Without
    a key a client connects beyond this machine only with allow_plaintext, or SLUICE_ALLOW_PLAINTEXT=1.
    Raises AuthRefused if client and broker have no matching keys.
    """

    def __init__(self, url=None, timeout=10.0, patience=600.0, key=None, allow_plaintext=False):
        self.url = url or os.environ.get("SLUICE_BROKER") or "tcp://127.0.0.1:5750"
        self.timeout = timeout
        self.patience = patience
        self._feed_url = _feed_of(self.url)
        self._context = zmq.Context()
        self._tag = 0
        self._stream = None
        self._lease = None  # the shortest that was submitted with, in seconds
        self._link = Link(self._context, self.url, key, allow_plaintext)
        self._link.open(self._socket)

    @property
    def _front(self):
        return self._link.socket

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the connection. Idempotent; `with Client() as client:` does it."""
        self._leave_stream()
        self._link.close()
        self._context.term()

    # ---- what a trainer does ------------------------------------------------------------------

    def submit(self, tasks, stream, samples=None, group=None, priority=None, lease=None, versions_behind=None,
               on_stale=None):
        """Submits a group of `samples` rollouts for each task; returns the groups' ids.

        tasks: dicts (docs/tasks.md), or the path of a JSONL file. samples None: each task's own.
        group: names a task's group; default as `sluice submit` does, by the task's id and a digest.
        priority: 0 to 9, higher ones are dispatched first within the stream; 5 if None. lease:
        seconds, 1 to 604,800; the rollouts are cancelled if no request names the stream for that
        time (reading it and renew() do). versions_behind: maximum policy versions between a rollout's
        first turn and the start of any later one. on_stale: what happens to a rollout beyond
        that: "stop", "refresh" or "mark". None: each task's own (limits.versions_behind, limits.on_stale).

        When it returns, all are on the broker's disk. It is idempotent. While the broker is full it
        waits for the broker's retry time, and raises Full if that lies beyond the client's patience
        since the last accepted group. Any other refusal raises Refused at once, including that of a
        group that can never fit ("too-large"); groups before it stay submitted. warnings.warn reports
        that the broker is nearly full. `priority` and `lease` are not part of a group's identity: they
        change nothing for a group that the broker already has.
        """
        stem, texts = read_tasks(tasks)
        limits = {name: value for name, value in (("versions_behind", versions_behind), ("on_stale", on_stale))
                  if value is not None}
        texts = [limited(text, task, limits) for text, task in texts] if limits else texts
        counts = [samples or task.get("samples", 1) for _, task in texts]
        names = ([group(task) for _, task in texts] if group else
                 name_groups(stem, texts, stream, counts))
        lease_ms = None if lease is None else round(lease * 1000)
        waiting = [dict(group=name, stream=stream, samples=count, task=text, priority=priority,
                        lease_ms=lease_ms)
                   for name, count, (text, _) in zip(names, counts, texts)]
        if lease is not None:
            self._lease = min(lease, self._lease or lease)
        took = time.monotonic()
        while waiting:
            before, (waiting, full) = len(waiting), self._submit_round(waiting, stream)
            if len(waiting) < before:
                took = time.monotonic()
            if full:
                pause = full.retry_after
                if self.patience is not None and time.monotonic() - took + pause > self.patience:
                    raise full
                time.sleep(pause)
        return names

    def _expect_more(self, stream):
        if self._stream and self._stream.name == stream:
            self._stream.expect_more()

    def _submit_round(self, waiting, stream):
        """Those that are not taken, and why, once the broker is full."""
        warning = None
        self._expect_more(stream)
        try:
            for at in range(0, len(waiting), WINDOW):
                window = waiting[at:at + WINDOW]
                answers = self._call_many("group.submit", window)
                refused = [(fields, answer) for fields, answer in zip(window, answers)
                           if isinstance(answer, Refused)]
                warning = next((answer["warning"] for answer in answers
                                if not isinstance(answer, Refused) and "warning" in answer), warning)
                for _, why in refused:
                    if why.retry_after is None:
                        raise why
                if refused:
                    return [fields for fields, _ in refused] + waiting[at + WINDOW:], refused[0][1]
        finally:
            self._expect_more(stream)
            if warning:
                warnings.warn(warning, stacklevel=3)
        return [], None

    def trajectories(self, stream, from_seq=0, timeout=None, until_idle=False, cursor=None,
                     expect_template=None, expect_tokenizer=None):
        """Yields each trajectory of a stream once, in order, for ever; restarts do not matter.

        from_seq: the first number wanted; 0: the oldest that is kept. timeout: ends after that many
        seconds without one. until_idle: ends when every accepted rollout of the stream has been
        yielded, including those that this client submits while it reads. A client reads one stream at a
        time.

        cursor: the path of a file that keeps the position; if it exists, reading resumes there
        and from_seq is ignored. It advances past a trajectory when the next one is requested, or
        by save_cursor(). Delivery is at least once: after a kill -9 at most the current one is
        redelivered (after a power failure possibly several), and none is skipped. For exactly
        once store `seq` in the same checkpoint as the weights learned from it, and resume with
        from_seq=seq + 1.

        expect_template, expect_tokenizer: digests, "sha256:...", that each trace must have; else
        OtherTokens is raised: its `seq` names the trajectory; resume with from_seq after it.

        Raises Forgotten for a number that is no longer kept, OtherLedger when the broker has
        another ledger than before (for both, resume at `oldest`), BrokerSilent when no broker
        answered for the client's patience, and MessageError for a record that cannot be
        parsed: its `seq` names it; resume with from_seq after it.
        """
        self._leave_stream()
        reader = self._stream = Stream(self, lambda: self._socket(zmq.SUB, self._feed_url), stream, cursor)
        try:
            reader.begin(from_seq)
            while True:
                fields = reader.next(timeout, until_idle)
                if fields is None:
                    return
                try:
                    trajectory = read_trajectory(fields)
                    trajectory.expect(expect_template, expect_tokenizer)
                except (messages.MessageError, OtherTokens) as why:
                    why.seq = fields["seq"]
                    reader.save()  # the next reader begins after it
                    raise
                yield trajectory
        finally:
            if self._stream is reader:
                self._leave_stream()

    def save_cursor(self):
        """Moves the cursor of the stream being read past the last trajectory that was yielded."""
        if self._stream:
            self._stream.save()

    def renew(self, stream):
        """Renews the leases of the stream's groups.

        For a trainer that reads no trajectories for a long time; reading renews them at least every
        5 s. Returns how many rollouts are under a lease.
        """
        return self._call("stream.renew", stream=stream)["count"]

    def ack(self, stream, seq):
        """Lets the broker delete the stream's trajectories up to seq. Returns how many it deleted."""
        return self._call("stream.ack", stream=stream, seq=seq)["count"]

    def get(self, rollout):
        """The Trajectory of one rollout; if it has not ended, its state as a dict."""
        wire, fields = self._ask("rollout.get", rollout=rollout)
        return read_trajectory(fields) if wire == "trajectory" else fields

    def cancel(self, rollout=None, group=None, stream=None):
        """Stops one rollout, a group or a stream's; returns how many rollouts were stopped.

        The cancel of an unknown rollout or group is kept for a while: if its submit arrives later,
        it ends as cancelled.
        """
        return self._call("rollout.cancel", rollout=rollout, group=group, stream=stream)["count"]

    def status(self):
        """The broker's status (docs/operations.md); "health" is "healthy", "degraded" or "down"."""
        return json.loads(self._call("status.get")["json"])

    def engines(self):
        """The registered engines: [{"url": ..., "live": rollouts, "state": ...}] (docs/operations.md)."""
        return self.status().get("engines", [])

    def engine_add(self, url, runs_max=None, policy=None):
        """Registers an engine, or restores one that drains.

        runs_max: maximum concurrent rollouts there; 0: no limit; None: unchanged, at first no limit.
        policy: the name of its policy; None: unchanged, at first "default". Once a run worker has probed it,
        `state` of engines() is "other" if it serves another tokenizer or template than its policy's engines.
        """
        self._call("engine.add", url=url, runs_max=runs_max, policy=policy)

    def engine_drain(self, url):
        """No more rollouts are placed there. Returns how many are there; ask again to wait."""
        return self._call("engine.drain", url=url)["count"]

    def engine_remove(self, url):
        """Removes an engine at once; rollouts that use it continue."""
        self._call("engine.remove", url=url)

    def policy_set(self, version, engine=None):
        """The engine (None: each) serves this version from now on: turns it samples are marked with it."""
        self._call("policy.set", version=version, engine=engine)

    def policy_pause(self, calls="finish", engine=None, bound=600.0, wait=300.0):
        """Stops calls to the engine (None: each), so that its weights may be updated.

        calls: what happens to calls in flight: "finish", "abort" (retried after the pause) or "hold" (they
        stay open). Returns once no call is in flight, held ones excepted; after `wait` seconds without
        that, the pause is revoked and TimeoutError raised. It ends by itself after `bound` seconds.
        """
        deadline = time.monotonic() + wait
        while self._call("policy.pause", calls=calls, engine=engine, bound_ms=round(bound * 1000))["count"]:
            if time.monotonic() >= deadline:
                self.policy_resume(engine)
                raise TimeoutError("calls did not stop in time; the pause was taken back")
            time.sleep(0.05)

    def policy_resume(self, engine=None):
        """Ends a pause. Returns how many engines were paused; 0: none was, or the pause had expired."""
        return self._call("policy.resume", engine=engine)["count"]

    def drain(self, worker=None, host=None, grace=None):
        """Lets a worker, or a host's workers, finish and exit; returns how many were notified.

        grace: whole seconds for running jobs, which are then returned; None: the worker's own.
        """
        return self._call("worker.drain", worker=worker, host=host, grace_s=grace)["count"]

    def backup(self, name, timeout=600.0):
        """Copies the ledger to backups/<name>.db in the broker's data directory; returns its bytes.

        The request is not retried: after BrokerSilent the copy may or may not exist.
        """
        request = self._make("ledger.backup", {"name": name})
        request.again = float("inf")
        (wire, answer), = self._wait([request], timeout)
        if wire == "refused":
            raise refusal(answer)
        return answer["count"]

    # ---- sockets ----------------------------------------------------------------------------------

    def _socket(self, kind, url, before_connect=None):
        socket = self._context.socket(kind)
        for option, value in ((zmq.LINGER, 0), (zmq.MAXMSGSIZE, FRAME_BYTES_MAX),
                              (zmq.RCVHWM, QUEUE_MESSAGES), (zmq.SNDHWM, QUEUE_MESSAGES),
                              (zmq.RECONNECT_IVL, 100), (zmq.RECONNECT_IVL_MAX, 2000),
                              (zmq.TCP_KEEPALIVE, 1), (zmq.TCP_KEEPALIVE_IDLE, 20),
                              (zmq.IMMEDIATE, int(kind == zmq.DEALER))):
            socket.setsockopt(option, value)
        self._link.arm(socket)
        if before_connect:
            before_connect(socket)
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
        self._link.mend()
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

    def _wait(self, requests, timeout=None):
        """Answers by tag, all of them."""
        open_tags, answers = {r.tag: r for r in requests}, {}
        timeout = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout
        while open_tags:
            now, wake, away = time.monotonic(), deadline, False
            for request in open_tags.values():
                away = not request.send_due(self._front, now)
                if away:
                    break
                wake = min(wake, request.send_at)
            if away:
                wake = min(wake, now + AGAIN)
            self._front.poll(max(0, (wake - now) * 1000), zmq.POLLIN | (zmq.POLLOUT if away else 0))
            late = time.monotonic() - max(now, wake)
            deadline += late if late > STOPPED else 0
            for wire, fields in self._read():
                tag = fields.get("tag", 0)
                if tag in open_tags:
                    del open_tags[tag]
                    answers[tag] = (wire, fields)
                    deadline = time.monotonic() + timeout
                elif self._stream:
                    self._stream.offer(wire, fields)
            if open_tags and time.monotonic() >= deadline:
                raise self._link.silence()
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

    def _head(self, stream, epoch):
        """Where a stream stands; an unknown one is empty."""
        try:
            return self._call("stream.fetch", stream=stream, limit=1, **{"from": FAR})
        except Refused as why:
            if why.reason != "unknown-stream":
                raise
            return {"first": 1, "head": 0, "pending": 0, "epoch": epoch}
