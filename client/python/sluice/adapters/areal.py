"""AReaL: a RolloutWorkflow whose episodes are Sluice's rollouts, and its engine as an engine (docs/trainers/areal.md)."""

from __future__ import annotations

import uuid
from typing import Any, Dict, List, Optional

import numpy as np
import torch

from ..bridge import Sampled
from ..trajectory import Trace, Trajectory
from .parts.numbered import number_of
from .parts.shared import shared_rollouts
from .parts.sampling import require_ratio
from .parts.versions import require
from .rollouts import only_trace, task_of
from .tasks import is_scored

require("sluice.adapters.areal", "areal", "1.0", "1.1", "areal")
from areal.api.workflow_api import RolloutWorkflow  # noqa: E402

GIVEN = -1  # AReaL's version of a token that was not sampled


def version_number(version: str) -> int:
    """Of a turn's version: the number that it ends with, of several the least.

    ValueError: it has none, so that AReaL could not tell how old the token is.
    """
    number = number_of(version)
    if number is None:
        raise ValueError(f"a token of version {version!r}: AReaL counts versions, so name them by policy_set() such that "
                         "they end with their number, step-7")
    return number


def versions(trace: Trace) -> "np.ndarray[Any, np.dtype[np.int32]]":
    """One for each token; -1 where the policy did not sample it."""
    names = trace.versions()
    numbers = {name: version_number(name) for name in set(names[trace.mask == 1])}
    return np.array([numbers[name] if sampled else GIVEN for name, sampled in zip(names, trace.mask)], dtype=np.int32)


def tensors(trajectory: Trajectory) -> Optional[Dict[str, Any]]:
    """What arun_episode() returns of a rollout: tensors of shape [1, tokens], and rewards [1].

    None, as AReaL wants of what is not learned from: it is not trainable, has no reward or no sampled token.
    ValueError: it has several traces, or a version without a number. SluiceError: log-probabilities that cannot be
    compared.
    """
    if not is_scored(trajectory):
        return None
    trace = only_trace(trajectory)
    require_ratio(trajectory, trace)
    told = {"input_ids": torch.from_numpy(trace.token_ids.astype(np.int32)),
            "loss_mask": torch.from_numpy(trace.mask.astype(np.int32)),
            "logprobs": torch.from_numpy(np.array(trace.logprobs, dtype=np.float32)),
            "versions": torch.from_numpy(versions(trace)),
            "attention_mask": torch.ones(len(trace.token_ids), dtype=torch.bool),
            "rewards": torch.tensor(trajectory.reward, dtype=torch.float32)}
    return {name: values.unsqueeze(0) for name, values in told.items()}


class SluiceWorkflow(RolloutWorkflow):  # type: ignore[misc]
    """An episode is one rollout of the row's task, on the engines that the broker knows. options: of Rollouts."""

    def __init__(self, stream: str, broker: Optional[str] = None, **options: Any) -> None:
        self._stream, self._broker, self._options = stream, broker, options

    async def arun_episode(self, engine: Any, data: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        rollouts = shared_rollouts(self._stream, self._broker, self._options)
        return tensors((await rollouts.run(task_of(data)))[0])


class Engine:
    """AReaL's inference engine as the function of a sluice.bridge.Bridge.

    Its agenerate() goes on by itself with what an update of the weights interrupts, and tells the version of each token.
    """

    def __init__(self, engine: Any, tokenizer: Any) -> None:
        self._engine, self._tokenizer = engine, tokenizer

    async def __call__(self, ids: List[int], sampling: Dict[str, Any]) -> Sampled:
        from areal.api.cli_args import GenerationHyperparameters
        from areal.api.io_struct import ModelRequest

        if sampling["min_p"]:
            raise ValueError("AReaL samples without min_p: leave sampling.min_p of the task at 0")
        asked = GenerationHyperparameters(
            n_samples=1, max_new_tokens=sampling["max_tokens"], max_tokens=len(ids) + sampling["max_tokens"],
            temperature=sampling["temperature"], greedy=sampling["temperature"] == 0, top_p=sampling["top_p"],
            top_k=sampling["top_k"] if sampling["top_k"] > 0 else int(1e8), stop_token_ids=sampling["stop_token_ids"])
        got = await self._engine.agenerate(ModelRequest(rid=uuid.uuid4().hex, input_ids=list(ids), gconfig=asked,
                                                        tokenizer=self._tokenizer))
        finish = "stop" if got.stop_reason == "tool_calls" else got.stop_reason
        return Sampled(got.output_tokens, got.output_logprobs, finish, got.output_versions)
