"""verl's V1 trainer over Sluice: the whole manager, which puts groups into TransferQueue (docs/trainers/verl.md).

    +actor_rollout_ref.rollout.agent.agent_loop_manager_class=sluice.adapters.verl.v1.SluiceAgentLoopManagerTQ

sluice.adapters.verl.sampler has a sampler for it.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, Optional, Sequence

from ...errors import SluiceError
from ...trajectory import Trajectory
from ..rollouts import task_of
from . import SluiceAgentLoopManager, counted, is_learnable, outputs  # first: it says which verl is wanted
from ..parts.versions import require

require("sluice.adapters.verl.v1", "transferqueue", "0.1.10", "0.2", "transfer_queue")
import transfer_queue  # noqa: E402
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ  # noqa: E402

VERLS = ("__rollout_n__", "__do_sample__", "agent_name")  # columns that verl takes out itself

logger = logging.getLogger(__name__)

Worker: Any = AgentLoopWorkerTQ.__ray_metadata__.modified_class  # the class that verl makes a Ray actor of


class SluiceAgentLoopManagerTQ(SluiceAgentLoopManager):
    """For verl's V1 trainer: each prompt is one group of rollouts. `sluice` of its configuration has Options."""

    latest: Optional[SluiceAgentLoopManagerTQ] = None  # of this process, in which the trainer is, too
    take: Optional[Callable[[Dict[str, Any]], None]] = None  # a sampler's, which gets a training's prompts

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        SluiceAgentLoopManagerTQ.latest = self

    def _make_worker(self) -> Any:
        worker = GroupWorker(self.config, self.llm_client, self.teacher_client, self.reward_loop_worker_handles)
        worker.manager = self
        return worker

    def generate_sequences(self, prompts: Any) -> None:
        """Begins the groups, and returns; TransferQueue has them, and how each ended."""
        self.thread.run(self._begin(prompts))

    async def _begin(self, prompts: Any) -> None:
        is_validation = bool(prompts["validate"]) if "validate" in prompts else False
        await self.begin(int(prompts["global_steps"]), is_validation, self.config.trainer.v1.trainer_mode == "sync")
        await self.worker.generate_sequences(prompts)


class GroupWorker(Worker):  # type: ignore[misc]
    """verl's worker, which puts outputs into TransferQueue; but a prompt's sessions are one group."""

    manager: SluiceAgentLoopManagerTQ

    async def _run_prompt(self, prompt: Dict[str, Any], sampling_params: Dict[str, Any], trajectory: Dict[str, Any],
                          trace: bool = False) -> None:
        if self.manager.take is not None and not trajectory["validate"]:
            self.manager.take(prompt)
            return
        uid, partition = prompt["uid"], "val" if trajectory["validate"] else "train"
        await transfer_queue.async_kv_put(key=uid, partition_id=partition, tag={"status": "running"})
        try:
            is_whole = await self._run_group(prompt, trajectory["validate"])
        except Exception as why:
            logger.error("prompt %s failed: %s", uid, why, exc_info=not isinstance(why, SluiceError))
            is_whole = False
        await transfer_queue.async_kv_put(key=uid, partition_id=partition,
                                          tag={"status": "finished" if is_whole else "failure"})

    async def _run_group(self, prompt: Dict[str, Any], is_validation: bool) -> bool:
        """Whether all of its rollouts can be learned from; those that cannot are not put."""
        rollout = self.config.actor_rollout_ref.rollout
        count = int(prompt.get("__rollout_n__", rollout.val_kwargs.n if is_validation else rollout.n))
        sampling = self.manager.sampling(is_validation, bool(prompt.get("__do_sample__", True)))
        return await self.put(prompt, await self.manager.runs.group(task_of(prompt), sampling, count), is_validation)

    async def put(self, prompt: Dict[str, Any], group: Sequence[Trajectory], is_validation: bool) -> bool:
        """Into TransferQueue, each rollout as a session of the prompt. Whether all of them can be learned from."""
        left_out = [one for one in group if not is_learnable(one)]
        for one in left_out:
            logger.warning("%s of prompt %s is left out: %s, %s", one.rollout, prompt["uid"], one.outcome, one.detail)
        row = {name: value for name, value in prompt.items() if name not in VERLS}
        for session, one in enumerate(group):
            if one not in left_out:
                told: List[Any] = counted(one, outputs(one, self.manager.runs.lengths))
                await self._agent_loop_postprocess(told, is_validation, session_id=session, **row)
        return not left_out
