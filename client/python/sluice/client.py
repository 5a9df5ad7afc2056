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
    patience: seconds that submit waits for room while a full broker takes nothing, and that reading
    bears a broker that does not answer; None: for ever. Nothing else waits without a bound.
    key: a file of `sluice keys add`, for a broker that asks; None: $SLUICE_KEY, if set. Without a key
    a client goes beyond this machine only with allow_plaintext, or SLUICE_ALLOW_PLAINTEXT=1.
    Raises AuthRefused where the two do not come together.
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
        priority: 0 to 9, higher ones are handed out first within the stream; 5 if None. lease:
        seconds, 1 to 604,800; the rollouts are cancelled when nothing has asked for the stream for
        so long (reading it and renew() do). versions_behind: by how many versions the policy may go
        on from a rollout's first turn to the beginning of any other. on_stale: what becomes of a rollout beyond
        that: "stop", "refresh" or "mark". None: what each task says (limits.versions_behind, limits.on_stale).

        When it returns, all are on the broker's disk. Doing it again submits nothing twice. While
        the broker is full it waits as long as it is told to, and raises Full where that would be beyond
        the client's patience without one being taken. Any other refusal raises Refused at once, among
        them what can never fit ("too-large"). Groups before it stay. What will soon be refused is told by
        warnings.warn. `priority` and `lease` are not part of what a group is: of a group that the broker
        has already they change nothing.
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

        from_seq: the first number wanted; 0: the oldest that is kept. timeout: ends after so many
        seconds without one. until_idle: ends when every accepted rollout of the stream has been
        yielded, those among them that this client submits while it reads. A client reads one stream at a
        time.

        cursor: the path of a file that keeps the position; when it is there, reading goes on where
        it says and from_seq counts for nothing. It moves past a trajectory when the next one is
        asked for, or by save_cursor(). So this is at least once: after a kill -9 at most the one in
        hand comes again (after a power failure perhaps some more), and none is passed over. For
        exactly once keep `seq` in the same checkpoint as what was learned from it, and begin with
        from_seq=seq + 1.

        expect_template, expect_tokenizer: digests, "sha256:...", that each trace must have; else
        OtherTokens is raised: its `seq` says which trajectory; go on with from_seq after it.

        Raises Forgotten for a number that is no longer kept, OtherLedger when the broker has
        another ledger than before (both say from where to go on: `oldest`), BrokerSilent when no
        broker answered for the client's patience, and MessageError for a record that cannot be
        read: its `seq` says which; go on with from_seq after it.
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
        """The stream's trainer is alive: leases of its groups start anew.

        For a trainer that does not ask for trajectories for long; asking does it by itself, at least
        every 5 s. Returns how many rollouts are under a lease.
        """
        return self._call("stream.renew", stream=stream)["count"]

    def ack(self, stream, seq):
        """The broker may forget the stream's trajectories up to seq. Returns how many it forgot."""
        return self._call("stream.ack", stream=stream, seq=seq)["count"]

    def get(self, rollout):
        """The Trajectory of one rollout; if it has not ended, its state as a dict."""
        wire, fields = self._ask("rollout.get", rollout=rollout)
        return read_trajectory(fields) if wire == "trajectory" else fields

    def cancel(self, rollout=None, group=None, stream=None):
        """Stops one rollout, a group or a stream's; returns how many rollouts were stopped.

        A rollout or group that is not known is remembered for a while: should its submit still
        come, it ends cancelled.
        """
        return self._call("rollout.cancel", rollout=rollout, group=group, stream=stream)["count"]

    def status(self):
        """How the broker is (docs/operations.md); "health" is "healthy", "degraded" or "down"."""
        return json.loads(self._call("status.get")["json"])

    def engines(self):
        """The registered engines: [{"url": ..., "live": rollouts, "state": ...}] (docs/operations.md)."""
        return self.status().get("engines", [])

    def engine_add(self, url, runs_max=None, policy=None):
        """Registers an engine, or takes back one that drains.

        runs_max: at most so many rollouts there at a time; 0: no limit; None: that, or what it was.
        policy: whose engine it is, a name; None: the usual one's, "default", or what it was. Whether it serves what its
        policy's other engines do is known once a run worker has probed it: `state` of engines(), "other" if not.
        """
        self._call("engine.add", url=url, runs_max=runs_max, policy=policy)

    def engine_drain(self, url):
        """No more rollouts are placed there. Returns how many are there; ask again to wait."""
        return self._call("engine.drain", url=url)["count"]

    def engine_remove(self, url):
        """Forgets an engine at once; rollouts that use it go on."""
        self._call("engine.remove", url=url)

    def policy_set(self, version, engine=None):
        """The engine (None: each) serves this version from now on: turns it samples are marked with it."""
        self._call("policy.set", version=version, engine=engine)

    def policy_pause(self, calls="finish", engine=None, bound=600.0, wait=300.0):
        """The engine (None: each) is called no more, so that its weights may be updated.

        calls: what becomes of calls in flight, "finish", "abort" (made again after it) or "hold" (they
        stay open). Returns once nothing is in flight, but for held ones; after `wait` seconds of waiting
        for that, the pause is taken back and TimeoutError raised. It ends by itself after `bound` seconds.
        """
        deadline = time.monotonic() + wait
        while self._call("policy.pause", calls=calls, engine=engine, bound_ms=round(bound * 1000))["count"]:
            if time.monotonic() >= deadline:
                self.policy_resume(engine)
                raise TimeoutError("calls did not stop in time; the pause was taken back")
            time.sleep(0.05)

    def policy_resume(self, engine=None):
        """Ends a pause. Returns how many engines were paused; 0: none was, or its time was over."""
        return self._call("policy.resume", engine=engine)["count"]

    def drain(self, worker=None, host=None, grace=None):
        """Lets a worker, or a host's workers, finish and end; returns how many were told.

        grace: whole seconds for jobs that run, then they are given back; None: the worker's own.
        """
        return self._call("worker.drain", worker=worker, host=host, grace_s=grace)["count"]

    def backup(self, name, timeout=600.0):
        """Copies the ledger to backups/<name>.db in the broker's data directory; returns its bytes.

        It is asked for once: after BrokerSilent it may be there or not.
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
