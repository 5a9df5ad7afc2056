"""Rollouts as sequences that trainers learn from: a prompt and a response with a reward, or token by token. Pure."""

from __future__ import annotations

from typing import Any, Dict, Hashable, List, NamedTuple, Optional, Sequence

import numpy as np

from ...advantages import Estimator, rewards_of
from ...batch import split
from ...errors import SluiceError
from ...trajectory import Trace, Trajectory
from ..tasks import is_learnable, is_scored, learnt_turns, only_trace
from .sampling import FILTERS, require_ratio, require_same


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
    last = ([one for one in trajectory.traces if one.label in ("", "main")] or trajectory.traces)[-1]
    return learnt_turns(trace)[-1].finish == "length" or (trajectory.truncated and trace is last)


def rows(trajectory: Trajectory, end: int, step_wise: bool = False, unscored: bool = False) -> List[Row]:
    """Of each trace with a sampled token; without step_wise of the only one.

    A rollout that is not learned from is one row: the token `end` behind itself, with loss mask 0. unscored: whether
    one without a reward may be, as the trainer scores it. BadArgument: it has several traces, and they are not
    step-wise.
    """
    if not (is_learnable if unscored else is_scored)(trajectory):
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


def token_rows(trajectories: Sequence[Trajectory], estimate: Estimator) -> List[Dict[str, List[Any]]]:
    """A group's traces token by token, as prime-rl's TrainingSample has them: lists as long as the trace.

    Of each trace with a sampled token: "token_ids", "mask" (bool), "logprobs", "temperatures" and "advantages", the
    last two 1 and 0 where mask is False. A rollout that is not trainable, or has no reward or sampled token, is in
    none, and in no mean. SluiceError: log-probabilities that cannot be compared, or a sampled token whose temperature is not known.
    BadArgument: a turn was sampled with a filter, and its log-probabilities are of what that left over.
    """
    told: List[Dict[str, List[Any]]] = []
    advantages = estimate(rewards_of(trajectories))
    for trajectory, advantage, has_reward in zip(trajectories, advantages.values, advantages.scored):
        for trace in trajectory.traces if has_reward else ():
            if trace.mask.any():
                told.append(_token_row(trajectory, trace, float(advantage)))
    return told


def _token_row(trajectory: Trajectory, trace: Trace, advantage: float) -> Dict[str, List[Any]]:
    require_ratio(trajectory, trace)
    for turn in trace.turns:
        if turn.sampling is not None:
            require_same(trajectory.rollout, {name: getattr(turn.sampling, name) for name in FILTERS}, FILTERS,
                         "the trainer's log-probabilities")
    mask, temperatures = trace.mask == 1, trace.temperatures()
    if np.isnan(temperatures[mask]).any():
        raise SluiceError(f"{trajectory.rollout} does not say at which temperature it was sampled, by which the "
                          "trainer computes log-probabilities")
    return {"token_ids": trace.token_ids.tolist(), "mask": mask.tolist(),
            "logprobs": trace.logprobs.tolist(), "temperatures": np.where(mask, temperatures, 1.0).tolist(),
            "advantages": np.where(mask, advantage, 0.0).tolist()}
