"""What verl takes of a rollout: an AgentLoopOutput of each trace (docs/trainers/verl.md)."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Dict, List, Mapping, Optional

import numpy as np

from ...arguments import is_whole, shown
from ...batch import split
from ...errors import BadArgument, SluiceError
from ...trajectory import Trace, Trajectory
from ..parts.numbered import span_of
from ..parts.sampling import require_finite
from ..parts.versions import require
from ..tasks import is_learnable, part_of

require("sluice.adapters.verl", "verl", "0.9", "0.10", "verl.experimental.agent_loop")
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput  # noqa: E402

SCORED = "raw_reward"  # of reward_extra_info: the rollout has a reward of its own


@dataclasses.dataclass(frozen=True)
class Lengths:
    """What verl's configuration says of the rows that it makes."""

    prompt: int       # actor_rollout_ref.rollout.prompt_length
    response: int     # its response_length
    temperature: float = 1.0  # at which a training samples, and verl computes log-probabilities
    logprobs: bool = True     # calculate_log_probs: whether the rollouts' own are wanted
    routed: bool = False      # enable_rollout_routing_replay

    @classmethod
    def of(cls, rollout: Any) -> Lengths:
        """Of `actor_rollout_ref.rollout`."""
        return cls(rollout.prompt_length, rollout.response_length, rollout.temperature,
                   bool(rollout.calculate_log_probs), bool(rollout.get("enable_rollout_routing_replay", False)))


def task_for(task: Mapping[str, Any], sampling: Mapping[str, Any], lengths: Lengths) -> Dict[str, Any]:
    """The task with verl's sampling in place of its own, and no more context than a row has room for."""
    own = part_of(task, "sampling")
    own.update(temperature=float(sampling["temperature"]), top_p=float(sampling["top_p"]),
               top_k=max(int(sampling["top_k"]), 0))
    limits = part_of(task, "limits")
    room = lengths.prompt + lengths.response
    said = limits.get("context_tokens")
    if said is not None and not is_whole(said):
        raise BadArgument(f"the task {task.get('task')!r} has limits.context_tokens {shown(said)}, where a number is "
                          "wanted", "limits.context_tokens")
    limits["context_tokens"] = min(said or room, room)
    return {**task, "sampling": own, "limits": limits}


def outputs(trajectory: Trajectory, lengths: Lengths) -> List[AgentLoopOutput]:
    """Of each trace in which something was sampled, in their order; the reward stands in all of them.

    Where the rollout has none, its task has no evaluator, and verl scores it.

    A response that is longer than verl's rows is cut, as verl's own loops cut it, and warned of. SluiceError: there is
    nothing to learn from, a prompt is too long, or a log-probability would bias the ratio.
    """
    if not is_learnable(trajectory):
        what = "is not trainable" if not trajectory.trainable else "has no sampled token"
        raise SluiceError(f"{trajectory.rollout} {what} ({trajectory.outcome}: {trajectory.detail}): leave it out")
    return [_output(trajectory, trace, lengths) for trace in trajectory.traces if trace.mask.any()]


def _output(trajectory: Trajectory, trace: Trace, lengths: Lengths) -> AgentLoopOutput:
    ids, response, mask, logprobs = split(trace)
    if len(ids) > lengths.prompt:
        raise SluiceError(f"{trajectory.rollout} has a prompt of {len(ids)} tokens, where verl's rows have room for "
                          f"{lengths.prompt}: raise data.max_prompt_length")
    if len(response) > lengths.response:
        warnings.warn(f"{trajectory.rollout} has a response of {len(response)} tokens, and the last "
                      f"{len(response) - lengths.response} are cut off: raise data.max_response_length, or bound "
                      "limits.context_tokens of its task", stacklevel=3)
    cut = slice(0, lengths.response)
    if lengths.logprobs:
        _check_logprobs(trajectory, trace, lengths)
    return AgentLoopOutput(
        prompt_ids=ids.tolist(), response_ids=response[cut].tolist(), response_mask=mask[cut].tolist(),
        response_logprobs=logprobs[cut].tolist() if lengths.logprobs else None,
        routed_experts=_routed(trajectory, trace, len(ids) + lengths.response) if lengths.routed else None,
        reward_score=trajectory.reward, num_turns=len(trace.turns), metrics=_metrics(trajectory, trace),
        extra_fields=_fields(trajectory, trace))


def _check_logprobs(trajectory: Trajectory, trace: Trace, lengths: Lengths) -> None:
    require_finite(trajectory, trace)
    if trajectory.logprobs_mode == "raw" and lengths.temperature != 1 and \
            (trace.temperatures() == np.float32(lengths.temperature)).any():
        raise SluiceError(f"{trajectory.rollout} was sampled at temperature {lengths.temperature:g} by an engine whose "
                          "log-probabilities are those at 1, and verl's are not: sample at 1, have the engine give "
                          "processed ones (docs/engines.md), or set rollout.calculate_log_probs=False")


def _routed(trajectory: Trajectory, trace: Trace, most: int) -> Any:
    """[tokens, layers, top-k], zeros where nothing was recorded."""
    column = trace.columns.get("routed_experts")
    if column is None or column.offsets is not None:
        raise SluiceError(f"{trajectory.rollout} has no routed experts, which enable_rollout_routing_replay wants: "
                          "have the engine return them (docs/engines.md)")
    told = np.zeros((len(trace.token_ids), *column.values.shape[1:]), dtype=np.int16)
    told[column.offset:column.offset + column.rows] = column.values
    return told[:most]


def _metrics(trajectory: Trajectory, trace: Trace) -> AgentLoopMetrics:
    seconds = {"assistant": 0.0, "tool": 0.0}
    for turn in trace.turns:
        seconds[turn.role] = seconds.get(turn.role, 0.0) + turn.seconds
    return AgentLoopMetrics(generate_sequences=seconds["assistant"], tool_calls=seconds["tool"],
                            compute_score=trajectory.eval_ms / 1000)


def _fields(trajectory: Trajectory, trace: Trace) -> Dict[str, Any]:
    """The same names for each, as verl makes columns of them."""
    span: Any = span_of(set(trace.versions()[trace.mask == 1].tolist())) or (None, None)
    told: Dict[str, Any] = {"sluice_rollout": trajectory.rollout, "sluice_outcome": trajectory.outcome,
                            "min_global_steps": span[0], "max_global_steps": span[1]}
    if trajectory.reward is not None:
        raw: Optional[float] = trajectory.raw_reward
        told["reward_extra_info"] = {SCORED: trajectory.reward if raw is None else raw,
                                     "truncated": float(trajectory.truncated)}
    return told
