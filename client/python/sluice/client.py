"""The client for programs that wait: each call returns when it is done."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, TypeVar, Union

import zmq

from . import calls as _calls
from . import sampler as _sampler
from . import sessions as _sessions
from .arguments import Path, flag, optional_seconds, path, seconds
from .errors import SluiceError
from .groups import Group
from .protocol.session import Pause, Session, Steps
from .protocol.sockets import Sockets
from .sampler import Batch
from .streams.reading import GroupReading, Readable, Reading
from .streams.watching import Watching
from .task.tasks import Tasks
from .trajectory import Trajectory

T = TypeVar("T")


class Base:
    """What both clients are: a session, and a finalizer, so that one that is dropped ends as one that is closed.

    The finalizer and the session know nothing of the client. It is not called at the interpreter's exit, where another
    thread may be using the sockets: the process ends, and they with it.
    """

    def __init__(self, url: Optional[str], timeout: float, patience: Optional[float], key: Optional[Path],
                 allow_plaintext: bool) -> None:
        url = url or os.environ.get("SLUICE_BROKER") or "tcp://127.0.0.1:5750"
        seconds("timeout", timeout, 0)
        optional_seconds("patience", patience, 0)
        flag("allow_plaintext", allow_plaintext)
        key = None if key is None else os.fspath(path("key", key))
        sockets = Sockets()
        self._end = weakref.finalize(self, sockets.end)
        self._end.atexit = False
        self._session = Session(sockets, url, timeout, patience, key, allow_plaintext)

    def __repr__(self) -> str:
        closed = ", closed" if self._session.sockets.ended else ""
        return f"{type(self).__name__}({self._session.url!r}{closed})"

    @property
    def url(self) -> str:
        """FRONT."""
        return self._session.url

    @property
    def timeout(self) -> float:
        """Seconds that a request waits for its answer."""
        return self._session.timeout

    @timeout.setter
    def timeout(self, value: float) -> None:
        self._session.timeout = seconds("timeout", value, 0)

    @property
    def patience(self) -> Optional[float]:
        """Seconds that submit and reading wait."""
        return self._session.patience

    @patience.setter
    def patience(self, value: Optional[float]) -> None:
        self._session.patience = optional_seconds("patience", value, 0)


class Client(Base):
    """One broker. Belongs to one thread at a time; use it as a context manager or call close().

    url: FRONT, "tcp://host:5750" or "ipc:///dir/front"; None: $SLUICE_BROKER, else this machine.
    timeout: seconds that a request waits for its answer, restarts of the broker included.
    patience: seconds that submit waits while a full broker accepts nothing, and that reading waits
    for a broker that does not answer; None: for ever. Nothing else waits without a bound.
    key: a file of `sluice keys add`, for a broker that requires one; None: $SLUICE_KEY, if set. Without
    a key a client connects beyond this machine only with allow_plaintext, or SLUICE_ALLOW_PLAINTEXT=1.

    Raises AuthRefused if client and broker have no matching keys. A call that can never be right raises BadArgument
    at once. A client that is dropped without close() closes itself, whoever drops it.
    """

    def __init__(self, url: Optional[str] = None, timeout: float = 10.0, patience: Optional[float] = 600.0,
                 key: Optional[Path] = None, allow_plaintext: bool = False) -> None:
        super().__init__(url, timeout, patience, key, allow_plaintext)
        self._in_use = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection. Idempotent; `with Client() as client:` does it."""
        self._session.leave(self._session.reader)
        self._end()

    def submit(self, tasks: Tasks, stream: str, *, samples: Optional[int] = None,
               group: Optional[Callable[[Dict[str, Any]], str]] = None, priority: Optional[int] = None,
               lease: Optional[float] = None, versions_behind: Optional[int] = None,
               on_stale: Optional[str] = None) -> List[str]:
        """Submits a group of `samples` rollouts for each task; returns the groups' ids.

        tasks: dicts (docs/tasks.md), one dict, or the path of a JSONL file. samples: rollouts of each; None: each
        task's own. group: names a task's group, a function of the task; default as `sluice submit` does, by the
        task's id and a digest.
        priority: 0 to 9, higher ones are dispatched first within the stream; 5 if None. lease:
        seconds, 1 to 604,800; the rollouts are cancelled if no request names the stream for that
        time (reading it and renew() do). versions_behind: maximum policy versions between a rollout's
        first turn and the start of any later one; None: each task's own, limits.versions_behind. on_stale: what
        happens to a rollout beyond that: "stop", "refresh" or "mark"; None: each task's own, limits.on_stale.

        Every task is checked first. If any is none, BadTask names all such, each by its index or its line, and
        nothing is submitted. When it returns, all are on the broker's disk. It is idempotent. While the
        broker is full it waits for the broker's retry time, and raises Full if that lies beyond the client's patience
        since the last accepted group. Any other refusal raises Refused at once, including that of a
        group that can never fit ("too-large"); groups before it stay submitted. warnings.warn reports
        that the broker is nearly full. `priority` and `lease` are not part of a group's identity: they
        change nothing for a group that the broker already has.
        """
        submit = _calls.Submit(self._session, tasks, stream, samples, group, priority, lease, versions_behind, on_stale)
        return self._run(submit.steps())

    def trajectories(self, stream: str, from_seq: int = 0, timeout: Optional[float] = None, until_idle: bool = False,
                     cursor: Optional[Path] = None, expect_template: Optional[str] = None,
                     expect_tokenizer: Optional[str] = None) -> Iterator[Trajectory]:
        """Yields each trajectory of a stream once, in order, for ever; restarts do not matter.

        from_seq: the first number wanted; 0: the oldest that is kept. timeout: ends after that many
        seconds without one. until_idle: ends when every accepted rollout of the stream has been
        yielded, including those that this client submits while it reads.

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
        parsed: its `seq` names it; resume with from_seq after it. warnings.warn reports a stream that nobody
        submitted to: its name may be mistyped. A client reads one stream at a time.
        """
        return self._iterate(Reading(self._session, stream, from_seq, timeout, until_idle, cursor, expect_template,
                                     expect_tokenizer))

    def groups(self, stream: str, resume: Optional[Dict[str, Any]] = None, timeout: Optional[float] = None,
               until_idle: bool = False, expect_template: Optional[str] = None,
               expect_tokenizer: Optional[str] = None) -> Iterator[Group]:
        """Yields each group of a stream once all of its rollouts have ended: Group; restarts do not matter.

        timeout: ends after that many seconds in which no rollout ended. until_idle: ends when every accepted
        rollout of the stream has ended, as in trajectories(). expect_template, expect_tokenizer: likewise.

        resume: the `resume` of the last group that was learned from: reading goes on after it, with no group twice and
        none left out. For exactly once store it in the same checkpoint as the weights. Without it, reading
        begins at the oldest number kept.

        A group's `complete` is False if some of its rollouts had ended before the number at which reading began: those
        are not in it. Its `seq` says what may be acknowledged. Its trajectories are held in memory until its last
        rollout ends. Raises what trajectories() raises.
        """
        return self._iterate(GroupReading(self._session, stream, resume, timeout, until_idle, expect_template,
                                          expect_tokenizer))

    def sampler(self, stream: str, tasks: Iterable[Mapping[str, Any]], *, groups: int, samples: Optional[int] = None,
                filter: str = "mixed", staleness: Optional[int] = None, window: Optional[int] = None,
                ahead: Optional[int] = None, over_sample: Optional[float] = None, early: int = 0,
                surplus: str = "carry", replace_max: Optional[int] = None, after: Optional[int] = None,
                trainer: Optional[str] = None, prefix: Optional[str] = None, pool: Optional[int] = None,
                priority: Optional[int] = None, lease: Optional[float] = None,
                timeout: Optional[float] = None) -> Iterator[Batch]:
        """Yields batches of `groups` groups that the broker made of these tasks' rollouts (docs/sampler.md).

        tasks: an iterable of dicts, endless if you like; they are submitted ahead, in order, as the groups
        `prefix`.1, `prefix`.2 and so on. A trainer that starts again gives the same ones from the beginning; those that
        the broker has are skipped. samples: rollouts of each; None: each task's
        own; with filter "mixed" 2 at least. groups: of a batch, exactly.

        filter: "mixed" keeps a group only if the raw rewards of its rollouts are not all equal, "none" whatever has
        rewards. staleness: versions that a group's oldest turn may be behind the newest; None: any. window: most
        groups at work or ready; None: 8 times `groups`. ahead: batches made beyond the one asked for; None: 1, or 0
        with surplus "cancel". over_sample: groups released for each missing one, 1.0 on; None: as the share that is
        kept of late asks. early: when so many rollouts of a group have ended with one reward, the rest goes last until
        they differ; 0: never. surplus: groups at work when a batch is full are for the next ("carry"), or are
        cancelled ("cancel"). replace_max: rollouts of a group that are begun again instead of ending as infra;
        None: as many as it has.

        after: the number of the last batch in your checkpoint. With it, each batch is delivered exactly once. None: the
        current batch comes again, as it was. trainer: a name of who samples, to be read in its state; one iterator
        samples at a time, and the last one opened takes it over, whatever its name. prefix: of the groups' names; None:
        the stream's. Groups of other names may be submitted to the stream, too, and are in its batches like these.
        pool: groups to keep submitted ahead; None: 4 batches. priority, lease: as in submit(). timeout: ends after that
        many seconds without a batch; it ends, too, when no more tasks come and what is left makes no batch.

        A batch is done with once the one after it was yielded; then its trajectories may go. With `lease`, whoever
        learns longer than that between two batches calls renew() meanwhile.

        Raises Refused if the stream has rollouts of its own, if the rule makes no sense, if `after` is not of this
        sampler, or if another trainer has taken it over; Forgotten if the broker's --keep settings had trajectories of
        the batch forgotten: the next one is had with `after`. warnings.warn says why there is no batch, once a minute.
        """
        fields = _sampler.open_fields(stream, trainer, groups, filter, staleness, window, ahead, over_sample, early,
                                       surplus, replace_max)
        return self._iterate(_sampler.BatchReading(self._session, fields, tasks, samples, after, prefix, pool,
                                                   priority, lease, timeout))

    def sampler_state(self, stream: str) -> Dict[str, Any]:
        """Where a stream's sampler stands: its rule, what it holds, its counts, and why there is no batch."""
        return self._run(_sampler.state(self._session, stream))

    def sampler_close(self, stream: str, cancel: bool = False) -> int:
        """Ends a sampler: what it holds is cancelled, with `cancel` what is at work too. Returns how many rollouts were.

        The stream is an ordinary one again, with the trajectories that are still kept.
        """
        return self._run(_sampler.close(self._session, stream, cancel))

    def session(self, task: Optional[Mapping[str, Any]] = None, *, stream: str = "sessions", group: Optional[str] = None,
                wait: float = 600.0) -> _sessions.Session:
        """A rollout whose loop is yours (docs/sessions.md): `with client.session(task) as s:`, and s.url is its model.

            with client.session({"task": "count", "eval": {"kind": "posted"}}) as s:
                openai = OpenAI(base_url=s.url + "/v1", api_key="any")
                ...                                    # whatever is said there is recorded, id for id
                s.end(reward=1.0)
            trajectory = s.trajectory()

        task: a dict as for submit(); agent.kind is "session", and eval.kind "posted" where it says no other. stream: where
        the trajectory goes. group: the name of its group, of this one rollout; None: a new one. wait: seconds until a run
        worker (--sessions) must have opened it; then it is cancelled, and TimeoutError raised.

        At the end of the block it is ended, without a reward unless end() gave one; where the block raises, it is
        cancelled, and SessionLost raised where the reason was that the session is gone.
        """
        return _sessions.Session(self, task, stream, group, wait)

    def save_cursor(self) -> None:
        """Moves the cursor of the stream being read past the last trajectory that was yielded."""
        if self._session.reader:
            self._session.reader.save()

    def renew(self, stream: str) -> int:
        """Renews the leases of the stream's groups.

        For a trainer that reads no trajectories for a long time; reading renews them at least every
        5 s. Returns how many rollouts are under a lease.
        """
        return self._run(_calls.renew(self._session, stream))

    def ack(self, stream: str, seq: int) -> int:
        """Lets the broker delete the stream's trajectories up to seq. Returns how many it deleted."""
        return self._run(_calls.ack(self._session, stream, seq))

    def get(self, rollout: str) -> Union[Trajectory, Dict[str, Any]]:
        """The Trajectory of one rollout, "GROUP/NUMBER"; if it has not ended, its state as a dict."""
        return self._run(_calls.get(self._session, rollout))

    def watch(self, rollout: str, timeout: Optional[float] = None) -> Iterator[Dict[str, Any]]:
        """Yields what a rollout does while it works, as dicts: the events of docs/live.md, the last of which is "ended".

        Each has `rollout`, and what its worker says `stage`, `attempt` and `number`, too: number 1 begins that stage's
        attempt anew, as after an event "dropped". A rollout that has ended yields "ended" alone. timeout: ends after that
        many seconds without an event. Looking costs the rollout nothing, and renews no lease; restarts do not matter.

        Raises Refused for a rollout that is not known, and BrokerSilent when no broker answered for the client's patience.
        """
        return self._iterate(Watching(self._session, rollout, timeout))

    def cancel(self, rollout: Optional[str] = None, *, group: Optional[str] = None,
               stream: Optional[str] = None) -> int:
        """Stops one rollout, a group or a stream's; returns how many rollouts were stopped.

        rollout: its name, GROUP/NUMBER, or a group's, which has no slash, as in `sluice cancel`.

        The cancel of an unknown rollout or group is kept for a while: if its submit arrives later,
        it ends as cancelled.
        """
        return self._run(_calls.cancel(self._session, rollout, group, stream))

    def rollouts(self, stream: Optional[str] = None, *, group: Optional[str] = None, ended: bool = False,
                 stage: Optional[str] = None, state: Optional[str] = None, outcome: Optional[str] = None,
                 image: Optional[str] = None, engine: Optional[str] = None, older: float = 0.0,
                 limit: int = 100) -> List[Dict[str, Any]]:
        """Rollouts as dicts (docs/operations.md): those that have not ended, each stream's oldest first.

        stream, group: only those of this stream, and of this group. ended: of the stream or group those that have ended
        and are kept, the newest first; `outcome` implies it.
        stage, state: only those in this stage ("init", "run", "eval") and state ("queued", "leased", "delayed").
        outcome: only those that ended so: "ok", "agent", "task", "infra", "cancelled". image, engine: only those
        whose task names this image, those that this engine samples or sampled. older: only those that ended,
        or came to where they are, at least so many seconds ago. limit: 1 to 1000.
        """
        return self._run(_calls.rollouts(self._session, stream, group, ended, stage, state, outcome, image, engine,
                                         older, limit))

    def status(self) -> Dict[str, Any]:
        """The broker's status (docs/operations.md); "health" is "healthy", "degraded" or "down"."""
        return self._run(_calls.status(self._session))

    def metrics(self, openmetrics: bool = False) -> str:
        """The service's metrics as Prometheus reads them (docs/metrics.md): its text format 0.0.4, or OpenMetrics 1.0.

        They are of all clients together: without an admin's key, NotAllowed is raised.
        """
        return self._run(_calls.metrics(self._session, openmetrics))

    def engines(self) -> List[Dict[str, Any]]:
        """The registered engines: [{"url": ..., "live": rollouts, "state": ...}] (docs/operations.md)."""
        return self._run(_calls.engines(self._session))

    def engine_add(self, url: str, runs_max: Optional[int] = None, policy: Optional[str] = None) -> Optional[str]:
        """Registers an engine, or restores one that drains; moves one that was another policy's, and returns that one.

        runs_max: maximum concurrent rollouts there; 0: no limit; None: unchanged, at first no limit.
        policy: the name of its policy; None: unchanged, at first "default".

        Once a run worker has probed it, `state` of engines() is "other" if it serves another tokenizer or template
        than its policy's engines.
        """
        return self._run(_calls.engine_add(self._session, url, runs_max, policy))

    def engine_drain(self, url: str) -> int:
        """No more rollouts are placed there. Returns how many are there; ask again to wait."""
        return self._run(_calls.engine_drain(self._session, url))

    def engine_remove(self, url: str) -> None:
        """Removes an engine at once; rollouts that use it continue."""
        self._run(_calls.engine_remove(self._session, url))

    def policy_set(self, version: str, engine: Optional[str] = None) -> None:
        """The engine (None: each) serves this version from now on: turns it samples are marked with it."""
        self._run(_calls.policy_set(self._session, version, engine))

    def policy_pause(self, calls: str = "finish", engine: Optional[str] = None, bound: float = 600.0,
                     wait: float = 300.0) -> None:
        """Stops calls to the engine (None: each), so that its weights may be updated.

        calls: what happens to calls in flight: "finish", "abort" (retried after the pause) or "hold" (they
        stay open). bound: seconds after which the pause ends by itself. wait: seconds that calls in flight may take.

        Returns once no call is in flight, held ones excepted; after `wait` seconds without that, the pause is
        revoked and TimeoutError raised.
        """
        self._run(_calls.policy_pause(self._session, calls, engine, bound, wait))

    @contextlib.contextmanager
    def updating(self, version: str, calls: str = "finish", engine: Optional[str] = None, bound: float = 600.0,
                 wait: float = 300.0) -> Iterator[None]:
        """`with client.updating("step-120"):` around an update of weights: policy_pause(), then policy_set(version).

        The engine (None: each) is resumed whatever happens; where the block raises, it keeps its former version.
        """
        self.policy_pause(calls, engine, bound, wait)
        try:
            yield
            self.policy_set(version, engine)
        finally:
            self.policy_resume(engine)

    def policy_resume(self, engine: Optional[str] = None) -> int:
        """Ends a pause. Returns how many engines were paused; 0: none was, or the pause had expired."""
        return self._run(_calls.policy_resume(self._session, engine))

    def drain(self, worker: Optional[str] = None, host: Optional[str] = None, grace: Optional[int] = None) -> int:
        """Lets a worker, or a host's workers, finish and exit; returns how many were notified.

        grace: whole seconds for running jobs, which are then returned; None: the worker's own.
        """
        return self._run(_calls.drain(self._session, worker, host, grace))

    def backup(self, name: str, timeout: float = 600.0) -> int:
        """Copies the ledger to backups/<name>.db in the broker's data directory; returns its bytes.

        The request is not retried: after BrokerSilent the copy may or may not exist.
        """
        return self._run(_calls.backup(self._session, name, timeout))

    # ---- waiting ------------------------------------------------------------------------------------

    def _iterate(self, reading: Readable[T]) -> Iterator[T]:
        try:
            while True:
                one = self._run(reading.next())
                if one is None:
                    return
                yield one
        finally:
            reading.close()

    def _run(self, steps: Steps[T]) -> T:
        """Goes through the steps, polling where they pause."""
        self._session.check()
        if not self._in_use.acquire(blocking=False):
            raise SluiceError("this client is in use by another thread: each thread needs its own")
        try:
            pause = next(steps)
            while True:
                self._poll(pause)
                pause = steps.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            steps.close()
            self._in_use.release()

    def _poll(self, pause: Pause) -> None:
        left_ms = max(0.0, (pause.until - time.monotonic()) * 1000)
        poller = zmq.Poller()
        if pause.ear:
            poller.register(self._session.front, zmq.POLLIN | (zmq.POLLOUT if pause.away else 0))
        if pause.feed:
            poller.register(pause.feed, zmq.POLLIN)
        if pause.ear or pause.feed:
            poller.poll(int(left_ms) + 1)
        else:
            time.sleep(left_ms / 1000)
