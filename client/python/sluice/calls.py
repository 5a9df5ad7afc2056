"""What a client can ask for: each call checked, then its steps. Client and AsyncClient say what each is for."""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, List, Optional, Union

from . import arguments
from .arguments import GROUP_BYTES, LEASE_MAX, WORKER_BYTES
from .errors import BadArgument, Refused, refusal, warn
from .protocol.session import FAR, Fields, Pause, Session, Steps
from .task.tasks import Tasks, limited, name_groups, read_tasks
from .trajectory import Trajectory, read_trajectory

WINDOW = 64  # submits in the air
VERSIONS_MAX, SAMPLES_MAX, RUNS_MAX, GRACE_MAX = 1000000, 1024, 1000000, 86400
URL_BYTES, VERSION_BYTES, IMAGE_BYTES = 256, 30, 4096
STAGES, STATES = ("init", "run", "eval"), ("queued", "leased", "delayed")
OUTCOMES = ("ok", "agent", "task", "infra", "cancelled")
LISTED_MAX, OLDER_MAX = 1000, 31536000
PAUSE_LOOK = 0.05


def sleep(seconds: float) -> Steps[None]:
    yield Pause(time.monotonic() + seconds)


def _engine(url: Any) -> str:
    return arguments.text("engine" if url is None else "url", url, 8, URL_BYTES, "a base URL such as http://gpu1:8000,")


def _optional_engine(engine: Any) -> Optional[str]:
    return None if engine is None else arguments.text("engine", engine, 8, URL_BYTES, "an engine's URL,")


# ---- submit --------------------------------------------------------------------------------------------


class Submit:
    def __init__(self, session: Session, tasks: Tasks, stream: str, samples: Optional[int],
                 group: Optional[Callable[[Dict[str, Any]], str]], priority: Optional[int], lease: Optional[float],
                 versions_behind: Optional[int], on_stale: Optional[str], first: int = 0) -> None:
        """first: the place of the first task among those of which these are a part."""
        self.session = session
        self.stream = arguments.name("stream", stream)
        samples = arguments.optional_number("samples", samples, 1, SAMPLES_MAX)
        priority = arguments.optional_number("priority", priority, 0, 9)
        lease = arguments.optional_seconds("lease", lease, 1, LEASE_MAX)
        versions_behind = arguments.optional_number("versions_behind", versions_behind, 0, VERSIONS_MAX)
        if on_stale is not None:
            arguments.word("on_stale", on_stale, ("stop", "refresh", "mark"))
            if versions_behind is None:
                raise BadArgument("on_stale says what versions_behind leads to: add that", "on_stale")
        if group is not None and not callable(group):
            raise arguments.refuse("group", "a function from a task to its group's name", group)
        stem, lines = read_tasks(tasks, first)
        limits = {name: value for name, value in (("versions_behind", versions_behind), ("on_stale", on_stale))
                  if value is not None}
        lines = limited(lines, limits) if limits else lines
        counts = [samples or line.task.get("samples", 1) for line in lines]
        self.names = ([arguments.name("group", group(line.task), GROUP_BYTES) for line in lines] if group else
                      name_groups(stem, lines, self.stream, counts))
        lease_ms = None if lease is None else round(lease * 1000)
        self.waiting: List[Fields] = [
            {"group": name, "stream": self.stream, "samples": count, "task": line.text, "priority": priority,
             "lease_ms": lease_ms} for name, count, line in zip(self.names, counts, lines)]
        if lease is not None:
            session.lease = min(lease, session.lease or lease)
        session.sizes.update(zip(self.names, counts))

    def steps(self) -> Steps[List[str]]:
        took = time.monotonic()
        while self.waiting:
            before, full = len(self.waiting), (yield from self._round())
            if len(self.waiting) < before:
                took = time.monotonic()
            if full:
                pause, patience = full.retry_after or 0.0, self.session.patience
                if patience is not None and time.monotonic() - took + pause > patience:
                    raise full
                yield from sleep(pause)
        return self.names

    def _expect_more(self) -> None:
        reader = self.session.reader
        if reader and reader.name == self.stream:
            reader.expect_more()

    def _round(self) -> Steps[Optional[Refused]]:
        """Keeps those that were not taken; returns why, once the broker is full."""
        warning: Optional[str] = None
        waiting, self.waiting = self.waiting, []
        at = 0
        self._expect_more()
        try:
            while at < len(waiting):
                window = waiting[at:at + WINDOW]
                answers = yield from self.session.call_many("group.submit", window)
                at += len(window)
                refused = [(fields, answer) for fields, answer in zip(window, answers) if isinstance(answer, Refused)]
                warning = next((answer["warning"] for answer in answers
                                if not isinstance(answer, Refused) and "warning" in answer), warning)
                for _, why in refused:
                    if why.retry_after is None:
                        raise why
                if refused:
                    self.waiting = [fields for fields, _ in refused]
                    return refused[0][1]
        finally:
            self.waiting += waiting[at:]
            self._expect_more()
            if warning:
                warn(warning)
        return None


# ---- the others ----------------------------------------------------------------------------------------


def renew(session: Session, stream: str) -> Steps[int]:
    return session.count("stream.renew", stream=arguments.name("stream", stream))


def ack(session: Session, stream: str, seq: int) -> Steps[int]:
    return session.count("stream.ack", stream=arguments.name("stream", stream),
                         seq=arguments.number("seq", seq, 1, FAR))


def get(session: Session, rollout: str) -> Steps[Union[Trajectory, Dict[str, Any]]]:
    name = arguments.rollout("rollout", rollout)

    def steps() -> Steps[Union[Trajectory, Dict[str, Any]]]:
        wire, fields = yield from session.ask("rollout.get", {"rollout": name})
        return read_trajectory(fields) if wire == "trajectory" else fields
    return steps()


def cancel(session: Session, rollout: Optional[str], group: Optional[str], stream: Optional[str]) -> Steps[int]:
    arguments.alternatives({"rollout": rollout, "group": group, "stream": stream})
    if isinstance(rollout, str) and "/" not in rollout:
        rollout, group = None, rollout
    return session.count("rollout.cancel",
                         rollout=None if rollout is None else arguments.rollout("rollout", rollout),
                         group=None if group is None else arguments.name("group", group, GROUP_BYTES),
                         stream=None if stream is None else arguments.name("stream", stream))


def rollouts(session: Session, stream: Optional[str], group: Optional[str], ended: bool, stage: Optional[str],
             state: Optional[str], outcome: Optional[str], image: Optional[str], engine: Optional[str],
             older: float, limit: int) -> Steps[List[Dict[str, Any]]]:
    ended = arguments.flag("ended", ended) or outcome is not None
    for field, value, words in (("stage", stage, STAGES), ("state", state, STATES), ("outcome", outcome, OUTCOMES)):
        if value is not None:
            arguments.word(field, value, words)
    if ended and stream is None and group is None:
        raise BadArgument("ended rollouts are listed by stream or group: say stream=NAME", "stream")
    if ended and (stage is not None or state is not None):
        field = "state" if stage is None else "stage"
        raise BadArgument(f"what has ended is in no stage and no state: leave {field} out", field)
    asked = {"ended": ended, "stage": stage, "state": state, "outcome": outcome,
             "stream": None if stream is None else arguments.name("stream", stream),
             "group": None if group is None else arguments.name("group", group, GROUP_BYTES),
             "image": None if image is None else arguments.text("image", image, 1, IMAGE_BYTES),
             "engine": None if engine is None else arguments.text("engine", engine, 1, URL_BYTES),
             "age_ms": round(arguments.seconds("older", older, 0, OLDER_MAX) * 1000),
             "limit": arguments.number("limit", limit, 1, LISTED_MAX)}

    def steps() -> Steps[List[Dict[str, Any]]]:
        listed: List[Dict[str, Any]] = json.loads((yield from session.call("rollout.list", **asked))["json"])["rollouts"]
        return listed
    return steps()


def status(session: Session) -> Steps[Dict[str, Any]]:
    told: Dict[str, Any] = json.loads((yield from session.call("status.get"))["json"])
    return told


def metrics(session: Session, openmetrics: bool) -> Steps[str]:
    text: str = (yield from session.call("metrics.get", openmetrics=openmetrics))["text"]
    return text


def engines(session: Session) -> Steps[List[Dict[str, Any]]]:
    listed: List[Dict[str, Any]] = (yield from status(session)).get("engines", [])
    return listed


def nothing(steps: Steps[Any]) -> Steps[None]:
    yield from steps


def engine_add(session: Session, url: str, runs_max: Optional[int], policy: Optional[str]) -> Steps[Optional[str]]:
    done = yield from session.call("engine.add", url=_engine(url),
                                   runs_max=arguments.optional_number("runs_max", runs_max, 0, RUNS_MAX),
                                   policy=None if policy is None else arguments.name("policy", policy))
    moved_from: Optional[str] = done.get("moved_from")
    return moved_from


def engine_drain(session: Session, url: str) -> Steps[int]:
    return session.count("engine.drain", url=_engine(url))


def engine_remove(session: Session, url: str) -> Steps[None]:
    return nothing(session.call("engine.remove", url=_engine(url)))


def policy_set(session: Session, version: str, engine: Optional[str]) -> Steps[None]:
    return nothing(session.call("policy.set", version=arguments.name("version", version, VERSION_BYTES),
                                engine=_optional_engine(engine)))


def policy_pause(session: Session, calls: str, engine: Optional[str], bound: float, wait: float) -> Steps[None]:
    arguments.word("calls", calls, ("finish", "abort", "hold"))
    told = {"calls": calls, "engine": _optional_engine(engine),
            "bound_ms": round(arguments.seconds("bound", bound, 1, 3600) * 1000)}
    arguments.seconds("wait", wait, 0)

    def steps() -> Steps[None]:
        deadline = time.monotonic() + wait
        while (yield from session.count("policy.pause", **told)):
            if time.monotonic() >= deadline:
                yield from policy_resume(session, engine)
                raise TimeoutError("calls did not stop in time; the pause was taken back")
            yield from sleep(PAUSE_LOOK)
    return steps()


def policy_resume(session: Session, engine: Optional[str]) -> Steps[int]:
    return session.count("policy.resume", engine=_optional_engine(engine))


def drain(session: Session, worker: Optional[str], host: Optional[str], grace: Optional[int]) -> Steps[int]:
    arguments.alternatives({"worker": worker, "host": host})
    return session.count("worker.drain",
                         worker=None if worker is None else arguments.name("worker", worker, WORKER_BYTES),
                         host=None if host is None else arguments.name("host", host, 255),
                         grace_s=arguments.optional_number("grace", grace, 0, GRACE_MAX))


def backup(session: Session, name: str, timeout: float) -> Steps[int]:
    arguments.name("name", name, GROUP_BYTES)
    arguments.seconds("timeout", timeout, 0)

    def steps() -> Steps[int]:
        request = session.make("ledger.backup", {"name": name})
        request.again = float("inf")
        (wire, answer), = yield from session.wait([request], timeout)
        if wire == "refused":
            raise refusal(answer)
        return int(answer["count"])
    return steps()
