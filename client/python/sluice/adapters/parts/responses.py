"""A rollout as OpenAI's Responses API says it, with the tokens that NeMo RL trains on; needs nothing of NeMo's."""

from __future__ import annotations

from typing import Any, Dict, List

from ...errors import BadArgument
from ...trajectory import Trace, Trajectory, Turn
from ..tasks import learnt_turns, only_trace
from .said import texts
from .sampling import require_ratio


def _item(trajectory: Trajectory, trace: Trace, turn: Turn, number: int, text: str) -> Dict[str, Any]:
    end = turn.offset + turn.length
    return {"id": f"msg_{trajectory.rollout}_{number}", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
            "prompt_token_ids": trace.token_ids[:turn.offset].tolist(),
            "generation_token_ids": trace.token_ids[turn.offset:end].tolist(),
            "generation_log_probs": trace.logprobs[turn.offset:end].tolist()}


def output_items(trajectory: Trajectory) -> List[Dict[str, Any]]:
    """An output message for each sampled turn; the prompt of each is all of the trace before it.

    BadArgument: the rollout has several traces, which NeMo RL does not take, or no sampled token.
    """
    trace = only_trace(trajectory)
    turns = learnt_turns(trace)
    if not turns:
        raise BadArgument(f"{trajectory.rollout} has no sampled token ({trajectory.detail})", "trajectory")
    said = texts(trajectory, trace)
    return [_item(trajectory, trace, turn, number, said.get(turn.offset, "")) for number, turn in enumerate(turns)]


def response_of(trajectory: Trajectory) -> Dict[str, Any]:
    """A response with those items as its output."""
    return {"id": f"resp_{trajectory.rollout}", "object": "response", "created_at": trajectory.ended_ms / 1000,
            "model": trajectory.engine or "policy", "output": output_items(trajectory), "parallel_tool_calls": False,
            "tool_choice": "auto", "tools": []}


def verified(trajectory: Trajectory, params: Dict[str, Any]) -> Dict[str, Any]:
    """What an agent of NeMo Gym's answers to /run with these responses_create_params.

    A rollout that is not trainable, or has no reward, has mask_sample, which leaves it out of learning, whatever stands as its
    reward. BadArgument: as output_items. SluiceError: log-probabilities to learn from that cannot be compared.
    """
    is_scored = trajectory.trainable and trajectory.reward is not None
    for trace in trajectory.traces if is_scored else ():
        require_ratio(trajectory, trace)
    told = {"responses_create_params": params, "response": response_of(trajectory), "mask_sample": not is_scored,
            "reward": trajectory.reward if is_scored else 0.0, "rollout": trajectory.rollout, "outcome": trajectory.outcome,
            "truncated": trajectory.truncated}
    if not is_scored:
        told["failure_kind"] = f"sluice:{trajectory.outcome if not trajectory.trainable else 'no_reward'}"
        told["failure_reason"] = trajectory.detail
    return told
