"""Whole groups out of single trajectories.

A stream has the rollouts of many groups in any order. A group is given out once all of its rollouts have ended. How
many it has, who submitted it knows; else the broker is asked. Where reading begins in the middle of a stream some
rollouts of a group may have ended before that: the broker is asked for those that keep a group waiting, later and
later each time, and a group that lacks them is given out as not complete.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Optional, Set, Tuple

from .trajectory import Trajectory

ASK_FIRST, ASK_LAST = 2.0, 60.0  # seconds for which a group lacks rollouts, before they are asked for


@dataclasses.dataclass(repr=False)
class Group:
    """All rollouts of one task, once they have ended."""

    group: str     # its id
    stream: str    # the stream it is in
    task: str      # its task's id
    size: int      # how many rollouts it has
    complete: bool  # whether all of them are here; False: some ended before the number where reading began
    trajectories: List[Trajectory]  # in the order of their samples
    seq: int       # all numbers up to it are in groups given out so far and may be acknowledged; 0: none
    resume: Dict[str, Any]  # what groups(resume=...) goes on after this group with; it can be written as JSON

    def __repr__(self) -> str:
        rewards = ", ".join("none" if t.reward is None else f"{t.reward:g}" for t in self.trajectories[:16])
        more = ", ..." if len(self.trajectories) > 16 else ""
        return (f"Group({self.group}, {len(self.trajectories)} of {self.size} rollouts"
                f"{'' if self.complete else ', not complete'}, rewards [{rewards}{more}])")


class Gathering:
    """One group that is not whole yet."""

    def __init__(self, size: int, now: float) -> None:
        self.size = size
        self.got: Dict[int, Trajectory] = {}
        self.missed: Set[int] = set()  # ended before reading began
        self.pause = ASK_FIRST
        self.ask_at = now + self.pause

    @property
    def lacks(self) -> List[int]:
        return [k for k in range(self.size) if k not in self.got and k not in self.missed]


class Gatherer:
    """What came, by group. Pure: it is told the time and who asks whom."""

    def __init__(self, stream: str, done: Dict[str, int]) -> None:
        self.stream = stream
        self.begin = 1                # the number where reading began
        self.next = 1                 # the number after the last one that came
        self.groups: Dict[str, Gathering] = {}
        self.done = dict(done)        # given out, and the last number of each: some are behind those still held

    def is_new(self, trajectory: Trajectory) -> bool:
        """False for one of a group that was given out before, whose numbers are read again."""
        self.next = trajectory.seq + 1
        if trajectory.group not in self.done:
            return True
        self.done[trajectory.group] = max(self.done[trajectory.group], trajectory.seq)
        return False

    def add(self, trajectory: Trajectory, size: int, now: float) -> Optional[Group]:
        gathering = self.groups.setdefault(trajectory.group, Gathering(size, now))
        gathering.got[trajectory.sample] = trajectory
        gathering.size = max(gathering.size, trajectory.sample + 1)
        gathering.ask_at = now + gathering.pause
        return self._give_whole(trajectory.group)

    def size_of(self, group: str) -> Optional[int]:
        return self.groups[group].size if group in self.groups else None

    def due(self, now: float) -> Optional[Tuple[str, List[int]]]:
        """Of one group, the samples to ask the broker for."""
        for name, gathering in self.groups.items():
            if self.begin > 1 and now >= gathering.ask_at:
                gathering.pause = min(2 * gathering.pause, ASK_LAST)
                gathering.ask_at = now + gathering.pause
                return name, gathering.lacks
        return None

    def next_due(self) -> Optional[float]:
        return min((g.ask_at for g in self.groups.values()), default=None) if self.begin > 1 else None

    def miss(self, group: str, samples: List[int]) -> Optional[Group]:
        """These ended before reading began."""
        self.groups[group].missed.update(samples)
        return self._give_whole(group)

    def give_rest(self) -> Optional[Group]:
        """At the end of a stream in which nothing runs: what was not met ended before."""
        for name, gathering in self.groups.items():
            return self.miss(name, gathering.lacks)
        return None

    def _give_whole(self, name: str) -> Optional[Group]:
        gathering = self.groups[name]
        if gathering.lacks:
            return None
        del self.groups[name]
        got = [gathering.got[k] for k in sorted(gathering.got)]
        self.done[name] = max(t.seq for t in got)
        held = [t.seq for g in self.groups.values() for t in g.got.values()]
        low = min(held, default=self.next)
        self.done = {group: seq for group, seq in self.done.items() if seq >= low}
        return Group(group=name, stream=self.stream, task=got[0].task, size=gathering.size,
                     complete=not gathering.missed, trajectories=got, seq=low - 1,
                     resume={"seq": low, "done": dict(self.done)})
