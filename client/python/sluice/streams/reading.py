"""A stream's trajectories, and its groups, one after the other: what iterators of Client and AsyncClient go through."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Protocol, TypeVar

from .. import arguments
from ..arguments import Path
from ..errors import Forgotten, OtherTokens
from ..groups import Gatherer, Group
from ..protocol.messages import MessageError
from ..protocol.session import FAR, Session, Steps
from ..trajectory import Trajectory, read_trajectory
from .stream import Stream

SIZE_MAX = 1024

One = TypeVar("One", covariant=True)


class Readable(Protocol[One]):
    """A Reading or a GroupReading."""

    def next(self) -> Steps[Optional[One]]: ...

    def close(self) -> None: ...


class Reading:
    def __init__(self, session: Session, stream: str, from_seq: int = 0, timeout: Optional[float] = None,
                 until_idle: bool = False, cursor: Optional[Path] = None, expect_template: Optional[str] = None,
                 expect_tokenizer: Optional[str] = None) -> None:
        self.session = session
        self.name = arguments.name("stream", stream)
        self.from_seq = arguments.number("from_seq", from_seq, 0, FAR)
        self.timeout = arguments.optional_seconds("timeout", timeout, 0)
        self.until_idle = arguments.flag("until_idle", until_idle)
        self.cursor = None if cursor is None else arguments.path("cursor", cursor)
        self.template = arguments.digest("expect_template", expect_template)
        self.tokenizer = arguments.digest("expect_tokenizer", expect_tokenizer)
        self.stream: Optional[Stream] = None
        self.begun: Optional[int] = None  # the number it began at

    def next(self, timeout: Optional[float] = None) -> Steps[Optional[Trajectory]]:
        """None: at the end; `timeout`: or earlier."""
        if self.stream is None:
            self.session.leave(self.session.reader)
            self.stream = self.session.reader = Stream(self.session, self.name, self.cursor)
        if self.begun is None:
            self.begun = yield from self.stream.begin(self.from_seq)
        fields = yield from self.stream.next(self.timeout if timeout is None else timeout, self.until_idle)
        if fields is None:
            return None
        try:
            trajectory = read_trajectory(fields)
            trajectory.expect(self.template, self.tokenizer)
        except (MessageError, OtherTokens) as why:
            why.seq = fields["seq"]
            self.stream.save()  # the next reader begins after it
            raise
        return trajectory

    @property
    def is_idle(self) -> bool:
        return self.until_idle and self.stream is not None and self.stream.is_idle()

    def close(self) -> None:
        self.session.leave(self.stream)


def _read_resume(resume: Any) -> Dict[str, Any]:
    if resume is None:
        return {"seq": 0, "done": {}}
    if (not isinstance(resume, dict) or set(resume) != {"seq", "done"} or not isinstance(resume["done"], dict) or
            not isinstance(resume["seq"], int) or resume["seq"] < 1 or
            not all(isinstance(group, str) and isinstance(seq, int) for group, seq in resume["done"].items())):
        raise arguments.refuse("resume", "the `resume` of a group", resume)
    return resume


class GroupReading:
    def __init__(self, session: Session, stream: str, resume: Optional[Dict[str, Any]] = None,
                 timeout: Optional[float] = None, until_idle: bool = False, expect_template: Optional[str] = None,
                 expect_tokenizer: Optional[str] = None) -> None:
        told = _read_resume(resume)
        self.session = session
        self.reading = Reading(session, stream, told["seq"], timeout, until_idle, None, expect_template, expect_tokenizer)
        self.gatherer = Gatherer(self.reading.name, told["done"])
        self.came: Optional[Trajectory] = None  # read, and not yet in a group
        self.heard = time.monotonic()

    def next(self) -> Steps[Optional[Group]]:
        while True:
            group = yield from self._ask_due()
            if group is None and self.came is None:
                self.came = yield from self.reading.next(self._wait())
                if self.came is None:
                    if self.reading.is_idle:
                        return self.gatherer.give_rest()
                    if self._is_over():
                        return None
            if group is None and self.came is not None:
                group = yield from self._take(self.came)
            if group is not None:
                self.session.sizes.pop(group.group, None)
                self.heard = time.monotonic()
                return group

    def close(self) -> None:
        self.reading.close()

    def _is_over(self) -> bool:
        timeout = self.reading.timeout
        return timeout is not None and time.monotonic() - self.heard >= timeout

    def _wait(self) -> Optional[float]:
        """Until the time is up, or somebody is to be asked for."""
        now = time.monotonic()
        due, timeout = self.gatherer.next_due(), self.reading.timeout
        waits = [] if due is None else [max(0.0, due - now)]
        waits += [] if timeout is None else [max(0.0, self.heard + timeout - now)]
        return min(waits, default=None)

    def _take(self, trajectory: Trajectory) -> Steps[Optional[Group]]:
        """Nothing is forgotten if it is cancelled on the way."""
        self.gatherer.begin = self.reading.begun or 1
        self.heard = time.monotonic()
        if not self.gatherer.is_new(trajectory):
            self.came = None
            return None
        size = self.gatherer.size_of(trajectory.group) or self.session.sizes.get(trajectory.group)
        if size is None:
            size = yield from self._ask_size(trajectory.group, trajectory.sample + 1)
        self.came = None
        return self.gatherer.add(trajectory, size, time.monotonic())

    # ---- asking -------------------------------------------------------------------------------------

    def _ask_size(self, group: str, least: int) -> Steps[int]:
        """How many rollouts it has, of which there are at least so many."""
        most = least
        while most < SIZE_MAX and (yield from self.session.is_known(f"{group}/{most}")):
            least, most = most + 1, min(2 * most, SIZE_MAX)
        while least < most:
            middle = (least + most) // 2
            if (yield from self.session.is_known(f"{group}/{middle}")):
                least = middle + 1
            else:
                most = middle
        return least

    def _ask_due(self) -> Steps[Optional[Group]]:
        due = self.gatherer.due(time.monotonic())
        if due is None:
            return None
        group, samples = due
        missed: List[int] = []
        for sample in samples:
            try:
                wire, fields = yield from self.session.ask("rollout.get", {"rollout": f"{group}/{sample}"})
                if wire == "trajectory" and fields["seq"] < self.gatherer.begin:
                    missed.append(sample)
            except Forgotten:
                missed.append(sample)
        return self.gatherer.miss(group, missed) if missed else None


