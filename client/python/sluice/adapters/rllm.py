"""rLLM: a Workflow whose episodes are Sluice's rollouts (docs/trainers/rllm.md)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ..errors import SluiceError
from ..trajectory import Trace, Trajectory, Turn
from .parts.numbered import number_of
from .parts.said import conversations
from .parts.shared import shared_rollouts
from .parts.sampling import require_ratio
from .parts.versions import require
from .rollouts import task_of
from .tasks import learnt_turns

require("sluice.adapters.rllm", "rllm", "0.3.0", "0.4", "rllm.types")
from rllm.types import Episode, Step  # noqa: E402
from rllm.types import Trajectory as Steps  # noqa: E402
from rllm.workflows.workflow import TerminationReason, Workflow  # noqa: E402

REASONS = {"done": "ENV_DONE", "turns": "MAX_TURNS_EXCEEDED", "tokens": "MAX_RESPONSE_LENGTH_EXCEEDED",
           "length": "MAX_RESPONSE_LENGTH_EXCEEDED", "context": "MAX_PROMPT_LENGTH_EXCEEDED", "time": "TIMEOUT"}


def step(trace: Trace, turn: Turn, messages: List[Dict[str, str]]) -> Any:
    """A rllm.types.Step of a turn of the assistant: its prompt is all of the trace before it."""
    end = turn.offset + turn.length
    return Step(prompt_ids=trace.token_ids[:turn.offset].tolist(), response_ids=trace.token_ids[turn.offset:end].tolist(),
                logprobs=trace.logprobs[turn.offset:end].tolist(), chat_completions=messages,
                model_response=messages[-1]["content"] if messages else "", weight_version=number_of(turn.version))


def episode(trajectory: Trajectory, uid: str, task: Any, name: str = "sluice") -> Any:
    """The rllm.types.Episode of a rollout. SluiceError: it has no reward to learn from, or no sampled token."""
    if not trajectory.trainable or trajectory.reward is None:
        raise SluiceError(f"{trajectory.rollout} has no reward to learn from ({trajectory.outcome}: {trajectory.detail})")
    for trace in trajectory.traces:
        require_ratio(trajectory, trace)
    steps: List[Any] = []
    for trace in trajectory.traces:
        said = conversations(trajectory, trace)
        steps += [step(trace, turn, said.get(turn.offset, [])) for turn in learnt_turns(trace)]
    if not steps:
        raise SluiceError(f"{trajectory.rollout} has no sampled token ({trajectory.detail})")
    steps[-1].reward, steps[-1].done = trajectory.reward, True
    return Episode(id=uid, task=task, is_correct=trajectory.reward >= 1,
                   termination_reason=TerminationReason[REASONS.get(trajectory.end, "UNKNOWN")],
                   trajectories=[Steps(name=name, task=task, steps=steps, reward=trajectory.reward)],
                   metrics=dict(trajectory.metrics), metadata={"rollout": trajectory.rollout, "detail": trajectory.detail})


class SluiceWorkflow(Workflow):  # type: ignore[misc]
    """An episode is one rollout of the task that the row holds.

    workflow_args of rLLM's trainer give it `stream` and `broker`, and `rollouts`, further options of Rollouts. A rollout
    without a reward is an error, which rLLM's engine tries again as its retry_limit says; it is never one of 0.
    """

    def __init__(self, *given: Any, stream: str, broker: Optional[str] = None, rollouts: Dict[str, Any] = {},
                 **options: Any) -> None:
        super().__init__(*given, **options)
        self._stream, self._broker, self._options = stream, broker, rollouts

    async def run(self, task: Dict[str, Any], uid: str, **_: Any) -> Any:
        rollouts = shared_rollouts(self._stream, self._broker, self._options)
        return episode((await rollouts.run(task_of(task)))[0], uid, task)
