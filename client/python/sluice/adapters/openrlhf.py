"""OpenRLHF: an AgentExecutor whose executions are Sluice's rollouts (docs/trainers/openrlhf.md).

    # agent.py, for --train.agent_func_path
    from sluice.adapters.openrlhf import SluiceAgentExecutor

    class AgentExecutor(SluiceAgentExecutor):
        stream = "train"
"""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Optional

from ..bridge import Bridge, Sampled
from ..errors import SluiceError
from ..trajectory import Trajectory
from .parts.shared import serve
from .parts.tries import run_wanted
from .parts.sampling import require_ratio
from .parts.versions import require
from .rollouts import Rollouts, only_trace, task_of
from .tasks import learnt_turns

require("sluice.adapters.openrlhf", "openrlhf", "0.10", "0.12", "openrlhf")
from openrlhf.utils.agent import AgentExecutorBase  # noqa: E402


def is_scored(trajectory: Trajectory) -> bool:
    """Whether it may be learned from, by a reward of its own."""
    return trajectory.trainable and trajectory.reward is not None


def response(trajectory: Trajectory, prompt: Any, label: Any) -> Dict[str, Any]:
    """What execute() returns of a rollout. SluiceError: there is no reward to learn from, no sampled token,
    or log-probabilities that cannot be compared.
    """
    if not is_scored(trajectory):
        raise SluiceError(f"{trajectory.rollout} has no reward to learn from ({trajectory.outcome}: {trajectory.detail})")
    trace = only_trace(trajectory)
    require_ratio(trajectory, trace)
    ranges = [(turn.offset, turn.offset + turn.length) for turn in learnt_turns(trace)]
    if not ranges:
        raise SluiceError(f"{trajectory.rollout} has no sampled token ({trajectory.detail})")
    logs = {**trajectory.metrics, **trajectory.rewards, "turns": float(len(ranges))}
    return {"prompt": prompt, "label": label, "images": None, "mm_train_inputs": None,
            "observation_tokens": trace.token_ids.tolist(), "action_ranges": ranges,
            "rollout_log_probs": trace.logprobs.tolist(), "reward": trajectory.reward, "scores": trajectory.reward,
            "truncated": trajectory.truncated, "extra_logs": logs}


class Engine:
    """OpenRLHF's LLM actor as the function of a sluice.bridge.Bridge: vLLM's engine, asked in its own process."""

    def __init__(self, llm_engine: Any) -> None:
        self._llm_engine = llm_engine

    async def __call__(self, ids: List[int], sampling: Dict[str, Any]) -> Sampled:
        from vllm import SamplingParams

        asked = SamplingParams(**sampling, logprobs=0, skip_special_tokens=False, detokenize=False)
        output = (await self._llm_engine.generate(list(ids), asked)).outputs[0]
        sampled = list(output.token_ids)
        logprobs = [place[id].logprob for id, place in zip(sampled, output.logprobs or ())]
        return Sampled(sampled, logprobs, output.finish_reason or "abort")


class SluiceAgentExecutor(AgentExecutorBase):  # type: ignore[misc]
    """An execution is one rollout of the task that the row's label holds, as JSON.

    Its LLM actor becomes an engine of the broker's at the first one. A rollout that ends without a reward, which is not
    one of 0, is begun again, `tries` times in all; then the error names it.
    """

    stream = "openrlhf"
    broker: Optional[str] = None
    policy: Optional[str] = None  # the engines' policy; None: default
    logprobs_mode = "raw"         # as --logprobs-mode of vLLM's engine
    tries = 3

    def __init__(self) -> None:
        self._started: Optional[asyncio.Task[Rollouts]] = None
        self._bridge: Optional[Bridge] = None

    async def _start(self, llm_engine: Any, tokenizer: Any, max_length: int) -> Rollouts:
        self._bridge = Bridge(Engine(llm_engine), tokenizer=tokenizer, max_model_len=max_length,
                              logprobs_mode=self.logprobs_mode)
        await serve(self._bridge, self.broker, self.policy)
        return Rollouts(self.stream, self.broker)

    async def execute(self, prompt: Any, label: Any, sampling_params: Any, max_length: int, hf_tokenizer: Any,
                      llm_engine: Any, images: Any = None) -> Dict[str, Any]:
        if images:
            raise SluiceError("Sluice's rollouts have no images")
        task = task_of({"task": label})
        if self._started is None:
            self._started = asyncio.ensure_future(self._start(llm_engine, hf_tokenizer, max_length))
        rollouts = await asyncio.shield(self._started)
        trajectory, = await run_wanted(rollouts, task, 1, self.tries, is_scored)
        if self._bridge is not None:
            self._bridge.check()
        return response(trajectory, prompt, label)
