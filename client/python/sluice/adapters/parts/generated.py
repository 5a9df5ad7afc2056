"""Rollouts as SkyRL's GeneratorOutput has them; needs nothing of SkyRL's."""

from __future__ import annotations

from typing import Any, Dict, Sequence

from ...trajectory import Trajectory
from ..tasks import is_scored
from .rows import rows, stand_ins


def generator_output(trajectories: Sequence[Trajectory], ids: Sequence[Any], end: int, step_wise: bool = False,
                     zero_cut: bool = False, mask_cut: bool = False) -> Dict[str, Any]:
    """SkyRL's GeneratorOutput, rollout_metrics apart, of rollouts and the TrajectoryID of each.

    end: an end token. step_wise, zero_cut, mask_cut: as its generator's step_wise_trajectories,
    zero_reward_on_non_stop and apply_overlong_filtering. rewards: that of a rollout is at each of its rows.
    """
    of = [rows(trajectory, end, step_wise) for trajectory in trajectories]
    rewards = [None if not is_scored(t) else 0.0 if zero_cut and its[-1].stop_reason == "length" else t.reward
               for t, its in zip(trajectories, of)]
    told = stand_ins(rewards, [id.instance_id for id in ids])
    flat = [(row, reward, id, t) for its, reward, id, t in zip(of, told, ids, trajectories) for row in its]
    return {
        "prompt_token_ids": [row.prompt_ids for row, *_ in flat],
        "response_ids": [row.response_ids for row, *_ in flat],
        "rewards": [reward for _, reward, _, _ in flat],
        "loss_masks": [[0] * len(row.loss_mask) if mask_cut and row.stop_reason == "length" else row.loss_mask
                       for row, *_ in flat],
        "stop_reasons": [row.stop_reason for row, *_ in flat],
        "rollout_metrics": None,
        "rollout_logprobs": [row.logprobs for row, *_ in flat],
        "trajectory_ids": [id for _, _, id, _ in flat],
        "trajectory_generation_times": [(t.run_ms + t.eval_ms) / 1000 for *_, t in flat],
        "rollout_expert_indices": None,
        "is_last_step": [row.is_last for row, *_ in flat] if step_wise else None,
        "env_metrics": [{**t.metrics, **t.rewards} for *_, t in flat],
    }
