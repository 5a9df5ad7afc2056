"""Batches that the broker makes of a stream's groups (docs/sampler.md), one after the other.

Tasks are submitted ahead from the trainer's iterator. Which of them were, the broker knows by their groups' names; so a
trainer that was killed goes on from there, and gives the tasks of the last window again, which are known if they had come.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import secrets
import socket
import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

from . import arguments
from .calls import SAMPLES_MAX, WINDOW, Submit
from .errors import BadArgument, Forgotten, Refused, SluiceError, refusal, warn
from .protocol.session import FAR, Fields, Session, Steps
from .trajectory import Trajectory, read_trajectory

GROUPS_MAX, WINDOW_MAX, AHEAD_MAX, STALENESS_MAX = 4096, 65536, 16, 1000000
OVER_SAMPLE_MAX = 100
TRAINER_BYTES = 87  # of its name; nine more make it that of one iterator
POOL_BATCHES = 4    # groups that are to be held, in batches
FETCHED = 8         # trajectories asked for at a time
WAIT = 2.0          # seconds that the broker is asked to wait: then the pool is looked after
SILENT = 60.0       # seconds without a batch between two warnings that say why


@dataclasses.dataclass(repr=False)
class SampledGroup:
    """One group of a Batch."""

    group: str      # its id
    number: int     # of its submit to the sampler, from 1
    task: str       # its task's id
    samples: int    # how many rollouts it has
    scored: int     # those of them with a reward
    mean: float     # of the raw rewards of those
    age: int        # versions that its oldest turn was behind the newest when the batch was made
    tokens: int     # sampled in it, runs that were done again included
    trajectories: List[Trajectory]  # all of them, in the order of their samples

    def __repr__(self) -> str:
        return f"SampledGroup({self.group}, mean {self.mean:g} of {self.scored} of {self.samples} rollouts)"


@dataclasses.dataclass(repr=False)
class Batch:
    """Groups to learn from; the same whenever it is asked for."""

    number: int     # from 1, without gaps
    stream: str     # the sampler's stream
    version: int    # the number of the newest version when it was made
    groups: List[SampledGroup]      # in the order of their submits
    account: Dict[str, int]         # what was counted since the batch before (docs/sampler.md)
    acceptance: float               # the share of groups that is kept of late
    dropped: List[Dict[str, Any]]   # groups that were not kept: group, number, verdict, scored, mean

    def __repr__(self) -> str:
        return f"Batch({self.number} of {self.stream}, {len(self.groups)} groups)"

    @property
    def trajectories(self) -> List[Trajectory]:
        """Of all its groups."""
        return [trajectory for group in self.groups for trajectory in group.trajectories]


def open_fields(stream: str, trainer: Optional[str], groups: int, filter: str, staleness: Optional[int],
                window: Optional[int], ahead: Optional[int], over_sample: Optional[float], early: int, surplus: str,
                replace_max: Optional[int]) -> Fields:
    """What sampler.open is sent, checked. No two iterators have one trainer's name, lest they take turns unawares."""
    if trainer is None:
        trainer = f"{socket.gethostname()[:60]}-{os.getpid()}"
    trainer = f"{arguments.text('trainer', trainer, 1, TRAINER_BYTES)}#{secrets.token_hex(4)}"
    if over_sample is not None:
        over_sample = round(arguments.real("over_sample", over_sample, 1, OVER_SAMPLE_MAX) * 1000)
    return {"stream": arguments.name("stream", stream), "trainer": trainer,
            "groups": arguments.number("groups", groups, 1, GROUPS_MAX),
            "filter": arguments.word("filter", filter, ("mixed", "none")),
            "staleness": arguments.optional_number("staleness", staleness, 0, STALENESS_MAX),
            "window": arguments.optional_number("window", window, 1, WINDOW_MAX),
            "ahead": arguments.optional_number("ahead", ahead, 0, AHEAD_MAX), "over_sample": over_sample,
            "early": arguments.number("early", early, 0, SAMPLES_MAX - 1),
            "surplus": arguments.word("surplus", surplus, ("carry", "cancel")),
            "replace_max": arguments.optional_number("replace_max", replace_max, 0, SAMPLES_MAX)}


class Pool:
    """What is submitted ahead, in the order of the iterator."""

    def __init__(self, session: Session, tasks: Iterable[Mapping[str, Any]], stream: str, samples: Optional[int],
                 prefix: str, priority: Optional[int], lease: Optional[float], least: int) -> None:
        self.session, self.stream, self.samples, self.prefix = session, stream, samples, prefix
        self.priority, self.lease, self.least = priority, lease, least
        self.tasks: Iterator[Mapping[str, Any]] = iter(tasks)
        self.count = 0          # of tasks taken from the iterator
        self.held = 0           # as last heard
        self.is_over = False    # the iterator has no more
        self.submit: Optional[Submit] = None
        self.again = 0.0        # when a full broker is to be asked again

    def _own(self, submitted: int) -> Steps[int]:
        """Of the groups that were ever submitted to the sampler, how many are of this pool; at most a window off."""
        least, most = 0, submitted
        middle = most  # most likely there are no others
        while least < most:
            if (yield from self.session.is_known(f"{self.prefix}.{middle}/0")):
                least = middle
            else:
                most = middle - 1
            middle = (least + most + 1) // 2
        return least

    def begin(self, submitted: int) -> Steps[None]:
        """The last window comes again: some of it may not have been taken, where it was full or its trainer killed."""
        self.count = max(0, (yield from self._own(submitted)) - WINDOW)
        skipped = sum(1 for _ in itertools.islice(self.tasks, self.count))
        self.is_over = skipped < self.count

    def hear(self, held: int) -> None:
        self.held = held

    def lost(self, submitted: int) -> bool:
        """Whether groups were taken for others that are known: they never come into a batch."""
        return submitted < self.count and not (self.submit and self.submit.waiting)

    def _names(self, first: int) -> Iterator[str]:
        return (f"{self.prefix}.{number}" for number in itertools.count(first))

    def _take(self, most: int) -> List[Dict[str, Any]]:
        chunk = []
        for task in itertools.islice(self.tasks, most):
            if not isinstance(task, Mapping):
                raise BadArgument(f"tasks[{self.count + len(chunk)}] wants a dict (docs/tasks.md), not a "
                                  f"{type(task).__name__}", "tasks")
            chunk.append(dict(task))
        return chunk

    def fill(self) -> Steps[None]:
        """Until enough are held, no more come, or the broker is full."""
        while time.monotonic() >= self.again:
            if self.submit and self.submit.waiting:
                full = yield from self.submit._round()
                if full:
                    self.again = time.monotonic() + (full.retry_after or 0.0)
                    continue
            if self.is_over or self.held >= self.least:
                return
            chunk = self._take(min(WINDOW, self.least - self.held))
            self.is_over = not chunk
            if not chunk:
                return
            names = self._names(self.count + 1)
            self.submit = Submit(self.session, chunk, self.stream, self.samples, lambda _: next(names), self.priority,
                                 self.lease, None, None, self.count)
            for name in self.submit.names:  # nobody reads this stream by groups
                self.session.sizes.pop(name, None)
            self.count += len(chunk)
            self.held += len(chunk)


class BatchReading:
    """What iterators of Client.sampler() and AsyncClient.sampler() go through."""

    def __init__(self, session: Session, fields: Fields, tasks: Iterable[Mapping[str, Any]], samples: Optional[int],
                 after: Optional[int], prefix: Optional[str], pool: Optional[int], priority: Optional[int],
                 lease: Optional[float], timeout: Optional[float]) -> None:
        if isinstance(tasks, (str, bytes, Mapping)) or not isinstance(tasks, Iterable):
            raise BadArgument(f"tasks wants an iterable of dicts, not a {type(tasks).__name__}", "tasks")
        arguments.optional_number("samples", samples, 1, SAMPLES_MAX)
        arguments.optional_number("priority", priority, 0, 9)
        arguments.optional_seconds("lease", lease, 1, arguments.LEASE_MAX)
        if samples == 1 and fields["filter"] == "mixed":
            raise BadArgument("samples is 1, and the rewards of one rollout cannot differ, so that filter \"mixed\" keeps "
                              "no group: say 2 or more, or filter=\"none\"", "samples")
        stem = fields["stream"] if prefix is None else arguments.name("prefix", prefix, arguments.GROUP_BYTES - 20)
        least = POOL_BATCHES * fields["groups"] if pool is None else arguments.number("pool", pool, 1, WINDOW_MAX)
        self.session, self.fields = session, fields
        self.stream: str = fields["stream"]
        self.after = arguments.optional_number("after", after, 0, FAR)
        self.timeout = arguments.optional_seconds("timeout", timeout, 0)
        self.pool = Pool(session, tasks, self.stream, samples, stem, priority, lease, least)
        self.number: Optional[int] = None  # of the batch to ask for

    def _begin(self) -> Steps[None]:
        state = yield from self.session.call("sampler.open", **self.fields)
        self.number = self._first(state["batch"])
        yield from self.pool.begin(state["submitted"])
        self.pool.hear(json.loads(state["json"])["held"])

    def _first(self, current: int) -> int:
        """The number of the batch to begin with, where the sampler's is `current`, 0 before its first."""
        if self.after is None:
            return max(current, 1)
        if self.after in (current - 1, current):
            return self.after + 1
        reason = "too-small" if self.after < current else "too-large"
        if not current:
            raise Refused(f"after is {self.after}, and the sampler of {self.stream} has made no batch yet: it is a new one, "
                          "since it was closed or the broker has another ledger; after=0 begins with its first", reason,
                          "after")
        raise Refused(f"after is {self.after}, and the current batch of {self.stream} is {current}, so that it can only go "
                      f"on after {current - 1} or {current}: the checkpoint is "
                      f"{'too old' if self.after < current else 'of another sampler'}; after=None begins with the current "
                      "one", reason, "after")

    def next(self) -> Steps[Optional[Batch]]:
        """None: no more tasks, and what is left makes no batch; or `timeout` is over."""
        if self.number is None:
            yield from self._begin()
        else:
            self.pool.hear((yield from state(self.session, self.stream))["held"])
        assert self.number is not None
        begun = warned = time.monotonic()
        while True:
            yield from self.pool.fill()
            wire, fields = yield from self.session.ask("sampler.next", {
                "stream": self.stream, "trainer": self.fields["trainer"], "batch": self.number,
                "wait_ms": round(min(WAIT, self.session.timeout / 2) * 1000)})
            now = time.monotonic()
            if wire == "sampler.batch":
                break
            if self._is_over(fields) or (self.timeout is not None and now - begun >= self.timeout):
                return None
            if now - warned >= SILENT:
                # With the time no two are alike: of those that are, Python shows only the first.
                warn(f"batch {self.number} of {self.stream} is not there after {now - begun:.0f} s: {fields['why']}")
                warned = now
        batch = yield from self._fetch(json.loads(fields["json"]))
        self.number += 1
        return batch

    def _is_over(self, waits: Fields) -> bool:
        self.pool.hear(waits["held"])
        if self.pool.lost(waits["submitted"]):
            raise SluiceError(f"{self.stream}: groups named {self.pool.prefix}.N were submitted before this sampler was "
                              "opened, and are in none of its batches: say another prefix, or use another stream")
        return self.pool.is_over and not waits["held"] and not waits["live"]

    def _get(self, names: Sequence[str]) -> Steps[List[Trajectory]]:
        answers = yield from self.session.wait([self.session.make("rollout.get", {"rollout": name}) for name in names])
        for wire, fields in answers:
            if wire == "refused":
                raise refusal(fields)
        return [read_trajectory(fields) for _, fields in answers]

    def _fetch(self, told: Dict[str, Any]) -> Steps[Batch]:
        names = [f"{group['group']}/{sample}" for group in told["groups"] for sample in range(group["samples"])]
        got: List[Trajectory] = []
        try:
            for at in range(0, len(names), FETCHED):
                got += yield from self._get(names[at:at + FETCHED])
        except Forgotten as why:
            number = told["batch"]
            raise Forgotten(f"batch {number} of {self.stream} is no longer whole, and stays so: {why}; go on with the next "
                            f"one, after={number}, and have the broker keep more than two batches and what is ready",
                            why.reason, "batch") from None
        left = iter(got)
        groups = []
        for group in told["groups"]:
            trajectories = list(itertools.islice(left, group["samples"]))
            groups.append(SampledGroup(task=trajectories[0].task, trajectories=trajectories, **group))
        return Batch(told["batch"], told["stream"], told["version"], groups, told["account"], told["acceptance"],
                     told["dropped"])

    def close(self) -> None:
        """Nothing: the sampler goes on without its trainer."""


def state(session: Session, stream: str) -> Steps[Dict[str, Any]]:
    name = arguments.name("stream", stream)

    def steps() -> Steps[Dict[str, Any]]:
        told: Dict[str, Any] = json.loads((yield from session.call("sampler.get", stream=name))["json"])
        return told
    return steps()


def close(session: Session, stream: str, cancel: bool) -> Steps[int]:
    return session.count("sampler.close", stream=arguments.name("stream", stream), cancel=arguments.flag("cancel", cancel))
