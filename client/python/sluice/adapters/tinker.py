"""Tinker: traces as Datums, and its sampler as an engine (docs/trainers/tinker.md)."""

from __future__ import annotations

import math
from typing import Any, Iterable, List, Optional, Tuple

import numpy as np

from ..bridge import Sampled
from ..trajectory import Trace, Trajectory
from .parts.versions import require

require("sluice.adapters.tinker", "tinker", "0.22", "0.39", "tinker")
import tinker  # noqa: E402


def datum(trace: Trace, advantage: float) -> Any:
    """The tinker.Datum of a trace for the losses importance_sampling, ppo, cispo, dro and gspo.

    Of n tokens it has n - 1 places: model_input is all but the last id, target_tokens all but the first, and logprobs
    and advantages are the targets', both 0 where the policy did not sample. ValueError: there is nothing to learn from,
    or a number that is none.
    """
    mask = trace.mask[1:] == 1
    if not mask.any():
        raise ValueError("the trace has no sampled token behind another: leave it out")
    if trace.mask[0]:
        raise ValueError("the trace's first token was sampled, where Tinker has no place for it: give the task a prompt")
    if not math.isfinite(advantage) or not np.isfinite(trace.logprobs).all():
        raise ValueError(f"an advantage of {advantage} and these log-probabilities cannot be learned from: they are not finite")
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints([int(id) for id in trace.token_ids[:-1]]),
        loss_fn_inputs={"target_tokens": tinker.TensorData.from_numpy(trace.token_ids[1:].astype(np.int64)),
                        "logprobs": tinker.TensorData.from_numpy(np.where(mask, trace.logprobs[1:], 0).astype(np.float32)),
                        "advantages": tinker.TensorData.from_numpy(np.where(mask, advantage, 0).astype(np.float32))})


def data(rollouts: Iterable[Tuple[Trajectory, float]]) -> List[Any]:
    """Datums of (trajectory, advantage) pairs, one of each trace that was sampled in.

    ValueError: a trajectory is not trainable. One without sampled tokens gives none.
    """
    told: List[Any] = []
    for trajectory, advantage in rollouts:
        if not trajectory.trainable:
            raise ValueError(f"{trajectory.rollout} is not trainable ({trajectory.outcome}: {trajectory.detail}): leave it out")
        told += [datum(trace, advantage) for trace in trajectory.traces if trace.mask.any()]
    return told


class Sampler:
    """A tinker.SamplingClient as the function of a sluice.bridge.Bridge.

    set() it to the next client after save_weights_and_get_sampling_client(); calls that were under way end with the
    client that they began with, whose version they have.
    """

    def __init__(self, client: Any, version: Optional[str] = None) -> None:
        self._client, self._version = client, version

    def set(self, client: Any, version: str) -> None:
        """What samples from now on, and the version that its turns carry."""
        self._client, self._version = client, version

    async def __call__(self, ids: List[int], sampling: "dict[str, Any]") -> Sampled:
        if sampling["min_p"]:
            raise ValueError("Tinker samples without min_p: leave sampling.min_p of the task at 0")
        client, version = self._client, self._version
        asked = tinker.SamplingParams(
            max_tokens=sampling["max_tokens"], temperature=sampling["temperature"], top_p=sampling["top_p"],
            top_k=sampling["top_k"], stop=sampling["stop_token_ids"] or None, seed=sampling.get("seed"))
        answer = await client.sample_async(prompt=tinker.ModelInput.from_ints(ids), num_samples=1, sampling_params=asked)
        sequence = answer.sequences[0]
        return Sampled(sequence.tokens, sequence.logprobs or [], sequence.stop_reason, version)

    async def score(self, ids: List[int]) -> List[float]:
        """The log-probabilities of ids[1:] as a prompt, for Bridge(score=...)."""
        return list((await self._client.compute_logprobs_async(tinker.ModelInput.from_ints(ids)))[1:])
