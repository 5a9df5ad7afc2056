"""Advantages of a group's rollouts, weights of a batch's tokens, and weights by which what was sampled off policy
counts.

Pure functions of rewards and arrays: numpy's, and those of tokens take torch's tensors as well.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, TypeVar

import numpy as np
import numpy.typing as npt

from . import arguments
from .trajectory import Trajectory

__all__ = ["Advantages", "rewards_of", "grpo", "dr_grpo", "leave_one_out", "rloo", "dapo_filter", "overlong",
           "token_weights", "tis", "icepop", "sequence_mask"]

RATIO_LOG_MAX = 20.0  # a ratio's logarithm is bounded by it: no weight is infinite

G = TypeVar("G")


@dataclasses.dataclass
class Advantages:
    """Of one group's rollouts, in their order."""

    values: npt.NDArray[np.float64]  # 0 where there is no reward
    scored: npt.NDArray[np.bool_]    # whether there is a reward: where not, nothing is to be learned (mask 0)

    @property
    def left_out(self) -> int:
        """How many have no reward."""
        return int((~self.scored).sum())


Estimator = Callable[[Sequence[Optional[float]]], Advantages]


def rewards_of(trajectories: Iterable[Trajectory], raw: bool = False) -> List[Optional[float]]:
    """Their rewards; None: without one, not trainable, or without sampled tokens. raw: before the task's shaping."""
    def has_one(t: Trajectory) -> bool:
        return t.trainable and any(trace.mask.any() for trace in t.traces)

    return [(t.raw_reward if raw else t.reward) if has_one(t) else None for t in trajectories]


def _scored(rewards: Sequence[Optional[float]]) -> Tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Those that there are, and where."""
    scored = np.array([reward is not None and not np.isnan(reward) for reward in rewards], dtype=bool)
    told = np.array([reward for reward, is_scored in zip(rewards, scored) if is_scored], dtype=np.float64)
    if not np.isfinite(told).all():
        raise arguments.refuse("rewards", "finite numbers, or None for no reward", list(rewards))
    return told, scored


def _spread(values: npt.NDArray[np.float64], scored: npt.NDArray[np.bool_]) -> Advantages:
    whole = np.zeros(len(scored), dtype=np.float64)
    whole[scored] = values
    return Advantages(whole, scored)


def grpo(rewards: Sequence[Optional[float]], epsilon: float = 1e-4, ddof: int = 1) -> Advantages:
    """(reward - mean) / (std + epsilon), of those that have a reward (arXiv 2402.03300).

    rewards: of a group; None: no reward, which is left out of mean and std. epsilon: TRL's is 1e-4, verl's 1e-6. ddof:
    std divides by their number less it; both trainers' is 1.

    One reward alone has advantage 0.
    """
    told, scored = _scored(rewards)
    if len(told) <= ddof or (told == told[0]).all():
        return _spread(np.zeros(len(told)), scored)
    return _spread((told - told.mean()) / (told.std(ddof=ddof) + epsilon), scored)


def dr_grpo(rewards: Sequence[Optional[float]]) -> Advantages:
    """reward - mean, of those that have a reward (arXiv 2503.20783): without the std, by which easy and hard tasks
    weigh more."""
    told, scored = _scored(rewards)
    return _spread(told - told.mean() if len(told) else told, scored)


def leave_one_out(rewards: Sequence[Optional[float]]) -> npt.NDArray[np.float64]:
    """Of each rollout, the mean reward of the others, of those that have one; NaN where no other has."""
    told, scored = _scored(rewards)
    others = len(told) - scored.astype(np.int64)
    total = np.zeros(len(scored), dtype=np.float64)
    total[scored] = told
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: npt.NDArray[np.float64] = np.where(others > 0, (told.sum() - total) / others, np.nan)
    return mean


def rloo(rewards: Sequence[Optional[float]]) -> Advantages:
    """reward - the mean of the others' (arXiv 2402.14740). One alone has advantage 0."""
    told, scored = _scored(rewards)
    if len(told) < 2:
        return _spread(np.zeros(len(told)), scored)
    return _spread(told - leave_one_out(rewards)[scored], scored)


def dapo_filter(groups: Iterable[G]) -> Tuple[List[G], Dict[str, int]]:
    """The groups that tell something: of those whose raw rewards are not all equal (arXiv 2503.14476, dynamic
    sampling).

    groups: Groups, or a Batch's (`filter="mixed"` of a sampler has done it).

    Returns them, in their order, and how many
    were dropped: "equal", or "unscored", where fewer than two rollouts have a reward. The raw reward counts: a penalty
    for length makes rollouts differ that are all wrong.
    """
    kept, dropped = [], {"equal": 0, "unscored": 0}
    for group in groups:
        told, _ = _scored(rewards_of(group.trajectories, raw=True))  # type: ignore[attr-defined]
        if len(told) < 2:
            dropped["unscored"] += 1
        elif (told == told[0]).all():
            dropped["equal"] += 1
        else:
            kept.append(group)
    return kept, dropped


def overlong(tokens: int, max_tokens: int, buffer_tokens: int) -> float:
    """What to add to the reward of a rollout of so many sampled tokens, from 0 to -1 (arXiv 2503.14476, soft
    punishment).

    0 up to `max_tokens` - `buffer_tokens`, then falling to -1 at `max_tokens`, and -1 beyond.
    """
    arguments.number("buffer_tokens", buffer_tokens, 1, max_tokens)
    return float(min(0.0, max(-1.0, (max_tokens - buffer_tokens - tokens) / buffer_tokens)))


def token_weights(mask: Any, by: str = "token", length: Optional[int] = None) -> npt.NDArray[np.float32]:
    """How much each token's loss counts: sum(weights * losses) is the batch's. [rows, width], as mask.

    by: "token", each the same (DAPO: the sum over all sampled tokens by their number); "sequence", each row the same,
    and in it each token (GRPO); "constant", each 1 / (rows * length) (Dr. GRPO). length: with "constant", the most
    tokens that a rollout could sample.

    Rows that sampled nothing count as no rows. The weights of "token" and "sequence" sum to 1.
    """
    arguments.word("by", by, ("token", "sequence", "constant"))
    values = np.asarray(mask, dtype=np.float64)
    counts = values.sum(axis=-1, keepdims=True)
    rows = int((counts > 0).sum())
    if by == "constant":
        if length is None:
            raise arguments.refuse("length", 'the most tokens that a rollout could sample, with by="constant"', length)
        divisor = np.full_like(counts, rows * arguments.number("length", length, 1, 1 << 62))
    else:
        divisor = np.full_like(counts, counts.sum()) if by == "token" else counts * rows
    weights: npt.NDArray[np.float32] = (values / np.maximum(divisor, 1e-300)).astype(np.float32)
    return weights


# ---- off policy ----------------------------------------------------------------------------------------


def _log_ratio(current: Any, sampled: Any, mask: Any) -> Any:
    """Without a gradient; 0 where nothing was sampled."""
    difference = (current - sampled) * mask
    return difference.detach() if hasattr(difference, "detach") else difference


def _exp(values: Any) -> Any:
    values = values.clip(-RATIO_LOG_MAX, RATIO_LOG_MAX)
    return values.exp() if hasattr(values, "exp") else np.exp(values)


def tis(current: Any, sampled: Any, mask: Any, cap: float = 2.0) -> Any:
    """Truncated importance sampling: min(p_current / p_sampled, cap) of each token; 0 where mask is 0. A constant.

    current, sampled: log-probabilities [rows, width] of the trainer and of the rollouts, of one distribution:
    `logprobs_mode` says which. mask: 1 where sampled. cap: the largest weight.

    All three are arrays of numpy, or tensors of torch.
    """
    return _exp(_log_ratio(current, sampled, mask)).clip(None, cap) * mask


def icepop(current: Any, sampled: Any, mask: Any, low: float = 0.5, high: float = 5.0) -> Any:
    """As tis(), but the ratio itself, and 0 where it is below `low` or above `high`: such tokens are not learned
    from."""
    ratio = _exp(_log_ratio(current, sampled, mask))
    return ratio * (ratio >= low) * (ratio <= high) * mask


def sequence_mask(current: Any, sampled: Any, mask: Any, cap: float = 3.0) -> Any:
    """As tis(), but each row's ratio, the product of its tokens', and 0 for rows where that is above `cap`."""
    ratio = _exp(_log_ratio(current, sampled, mask).sum(-1)[:, None])
    return ratio * (ratio <= cap) * mask
