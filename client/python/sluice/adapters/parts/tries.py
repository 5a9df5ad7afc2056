"""Rollouts that are begun again, for trainers that have no notion of one that cannot be learned from."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping

from ...trajectory import Trajectory
from ..rollouts import Rollouts


async def run_wanted(rollouts: Rollouts, task: Mapping[str, Any], samples: int, tries: int,
                     is_wanted: Callable[[Trajectory], bool]) -> List[Trajectory]:
    """`samples` trajectories of the task; each that is not wanted is replaced by another, until there were `tries`.

    Behind those that are wanted come those of the last try that are not.
    """
    wanted: List[Trajectory] = []
    rest: List[Trajectory] = []
    for _ in range(max(tries, 1)):
        told = await rollouts.run(task, samples=samples - len(wanted))
        wanted += [trajectory for trajectory in told if is_wanted(trajectory)]
        rest = [trajectory for trajectory in told if not is_wanted(trajectory)]
        if not rest:
            break
    return wanted + rest
