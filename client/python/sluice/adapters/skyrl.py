"""SkyRL: a GeneratorInterface whose trajectories are Sluice's rollouts (docs/trainers/skyrl.md).

    class Experiment(BasePPOExp):
        def get_generator(self, cfg, tokenizer, inference_engine_client):
            return SluiceGenerator(cfg.generator, tokenizer, "skyrl")
"""

from __future__ import annotations

import asyncio
import warnings
from typing import Any, Dict, List, Optional, Sequence

from ..bridge import Bridge, Sampled
from ..errors import BadArgument
from ..trajectory import Trajectory
from .parts.generated import generator_output
from .parts.sampling import asked_of, require_ratio, sampled_as
from .parts.shared import serve, shared_rollouts
from .parts.together import all_of
from .parts.versions import require
from .rollouts import Rollouts, task_of
from .tasks import is_scored

require("sluice.adapters.skyrl", "skyrl", "0.3", "0.5", "skyrl.train.generators.base")
from skyrl.train.generators.base import GeneratorInterface, TrajectoryID  # noqa: E402
from skyrl.train.generators.utils import get_rollout_metrics  # noqa: E402

HARMLESS = ("min_tokens", "skip_special_tokens", "include_stop_str_in_output", "logprobs")  # of its sampling parameters


class Engine:
    """SkyRL's inference engine client as the function of a sluice.bridge.Bridge: its router, its pauses, its LoRA.

    model: as of its generate(); None: its own. It tells no versions: SluiceGenerator says them to the broker.
    """

    def __init__(self, client: Any, model: Optional[str] = None) -> None:
        self._client, self._model = client, model

    async def __call__(self, ids: List[int], sampling: Dict[str, Any]) -> Sampled:
        asked = {"prompts": None, "prompt_token_ids": [list(ids)], "session_ids": None,
                 "sampling_params": {**sampling, "logprobs": 1, "skip_special_tokens": False}}
        got = await self._client.generate(asked, model=self._model)
        return Sampled(got["response_ids"][0], got["response_logprobs"][0], got["stop_reasons"][0])


class SluiceGenerator(GeneratorInterface):  # type: ignore[misc]
    """A prompt's n trajectories are one group of rollouts of the task that its row holds (env_extras["task"]).

    generator_cfg: SkyRL's cfg.generator. stream: this process's alone. broker: FRONT's URL; None: $SLUICE_BROKER.
    bridge: of an Engine, which is served on the trainer's event loop from the first call on; None: the broker has
    engines. sets_policy: whether the broker is told the version, "step-N" after N steps, as the trainer's step moves.
    options: further ones of Rollouts.

    A task samples as SkyRL's sampling parameters say. BadArgument: it says otherwise itself, or they say what a task
    has no field for; a rollout has several traces without generator.step_wise_trajectories. SluiceError:
    log-probabilities that cannot be learned from.
    """

    def __init__(self, generator_cfg: Any, tokenizer: Any, stream: str, broker: Optional[str] = None,
                 bridge: Optional[Bridge] = None, sets_policy: bool = True, **options: Any) -> None:
        self._cfg, self._end = generator_cfg, int(tokenizer.eos_token_id)
        self._stream, self._broker, self._options = stream, broker, options
        self._bridge, self._sets_policy = bridge, sets_policy
        self._serving: Optional[asyncio.Task[None]] = None
        self._steps = -1  # that the weights have seen, as the broker was told

    async def generate(self, input_batch: Any) -> Any:
        """SkyRL's GeneratorOutput of its GeneratorInput, in order."""
        if self._bridge is not None:
            self._serving = self._serving or asyncio.ensure_future(serve(self._bridge, self._broker))
            await asyncio.shield(self._serving)
            self._bridge.check()
        rollouts = shared_rollouts(self._stream, self._broker, self._options)
        ids = input_batch.get("trajectory_ids") or [TrajectoryID(str(k), 0) for k in range(len(input_batch["prompts"]))]
        tasks = self._tasks(input_batch)
        await self._tell_version(rollouts, input_batch.get("batch_metadata"))
        trajectories = await self._run(rollouts, tasks, ids)
        metadata = input_batch.get("batch_metadata")
        if metadata is None or metadata.training_phase == "train":
            self._check(trajectories)
        told = generator_output(trajectories, ids, self._end, self._cfg.step_wise_trajectories,
                                self._cfg.zero_reward_on_non_stop, self._cfg.apply_overlong_filtering)
        told["rollout_metrics"] = self._metrics(told, trajectories)
        return told

    def _tasks(self, input_batch: Any) -> List[Dict[str, Any]]:
        asked = asked_of(input_batch.get("sampling_params") or {}, "max_tokens", HARMLESS)
        extras = input_batch.get("env_extras") or [{}] * len(input_batch["prompts"])
        return [sampled_as(task_of({"env_extras": extra}), asked, "SkyRL's sampling parameters") for extra in extras]

    async def _tell_version(self, rollouts: Rollouts, metadata: Any) -> None:
        if not self._sets_policy or metadata is None or metadata.global_step is None:
            return
        steps = metadata.global_step - (metadata.training_phase == "train")  # in training it is the step in the making
        if steps > self._steps:
            self._steps = steps
            await rollouts.client.policy_set(f"step-{steps}")

    @staticmethod
    async def _run(rollouts: Rollouts, tasks: List[Dict[str, Any]], ids: Sequence[Any]) -> List[Trajectory]:
        """A group for each instance, whose rows are alike."""
        places: Dict[str, List[int]] = {}
        for place, id in enumerate(ids):
            places.setdefault(id.instance_id, []).append(place)
        for instance, its in places.items():
            if any(tasks[place] != tasks[its[0]] for place in its):
                raise BadArgument(f"the rows of instance {instance!r} hold different tasks", "env_extras")
        groups = await all_of(rollouts.run(tasks[its[0]], samples=len(its)) for its in places.values())
        found = {place: t for its, group in zip(places.values(), groups) for place, t in zip(its, group)}
        return [found[place] for place in range(len(tasks))]

    @staticmethod
    def _check(trajectories: List[Trajectory]) -> None:
        left_out = [t for t in trajectories if not is_scored(t)]
        if left_out:
            warnings.warn(f"{len(left_out)} of {len(trajectories)} rollouts may not be learned from, and are masked; "
                          f"{left_out[0]!r}", stacklevel=3)
        for t in trajectories:
            for trace in t.traces if is_scored(t) else ():
                require_ratio(t, trace)

    @staticmethod
    def _metrics(told: Dict[str, Any], trajectories: List[Trajectory]) -> Dict[str, Any]:
        """SkyRL's own, and the rollouts': the mean of each by name."""
        metrics: Dict[str, Any] = get_rollout_metrics(told["response_ids"], told["rewards"],
                                                      loss_masks=told["loss_masks"])
        metrics["sluice/left_out"] = sum(not is_scored(t) for t in trajectories)
        names = {name for t in trajectories for name in {**t.metrics, **t.rewards}}
        for name in sorted(names):
            values = [said[name] for said in ({**t.metrics, **t.rewards} for t in trajectories) if name in said]
            metrics[f"sluice/{name}_mean"] = sum(values) / len(values)
        return metrics
