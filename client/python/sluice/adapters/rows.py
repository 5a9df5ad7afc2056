"""Rollouts as sequences that trainers learn from: a prompt, a response and a reward. Pure."""

from __future__ import annotations

from typing import Dict, Hashable, List, NamedTuple, Optional, Sequence

import numpy as np

from ..batch import split
from ..trajectory import Trace, Trajectory
from .tasks import only_trace, sampled


class Row(NamedTuple):
    """One sequence to learn from."""

    prompt_ids: List[int]
    response_ids: List[int]
    loss_mask: List[int]
    logprobs: List[float]
    stop_reason: str  # "stop", "length", or "abort": nothing is to be learned from it
    is_last: bool     # of its rollout


def _is_cut(trajectory: Trajectory, trace: Trace) -> bool:
    """Whether a limit on tokens ended it."""
    replies = [turn for turn in trace.turns if turn.role == "assistant"]
    return replies[-1].finish == "length" or (trajectory.truncated and trace is trajectory.traces[-1])


def rows(trajectory: Trajectory, end: int, step_wise: bool = False, unscored: bool = False) -> List[Row]:
    """Of each trace with a sampled token; without step_wise of the only one.

    A rollout that is not learned from is one row: the token `end` behind itself, with loss mask 0. unscored: whether
    one without a reward may be, as the trainer scores it. BadArgument: it has several traces, and they are not
    step-wise.
    """
    if not trajectory.trainable or not sampled(trajectory) or (trajectory.reward is None and not unscored):
        return [Row([end], [end], [0], [0.0], "abort", True)]
    traces = [trace for trace in trajectory.traces if trace.mask.any()] if step_wise else [only_trace(trajectory)]
    told = []
    for trace in traces:
        prompt, response, mask, logprobs = (part.tolist() for part in split(trace))
        told.append(Row(prompt, response, mask, logprobs, "length" if _is_cut(trajectory, trace) else "stop",
                        trace is traces[-1]))
    return told


def stand_ins(rewards: Sequence[Optional[float]], groups: Sequence[Hashable]) -> List[float]:
    """The rewards, and for those that are None one that moves no mean.

    That is the mean of its group's others, else that of all, else 0. Whoever has one has loss mask 0 too.
    """
    scored: Dict[Hashable, List[float]] = {}
    for reward, group in zip(rewards, groups):
        if reward is not None:
            scored.setdefault(group, []).append(reward)
    everywhere = [reward for its in scored.values() for reward in its] or [0.0]
    return [float(np.mean(scored.get(group, everywhere))) if reward is None else reward
            for reward, group in zip(rewards, groups)]
