"""A replay buffer of verl's V1 trainer whose batches the broker makes (docs/trainers/verl.md, docs/sampler.md).

    trainer.v1.sampler.custom_sampler.path=pkg://sluice.adapters.verl.sampler
    trainer.v1.sampler.custom_sampler.name=SluiceReplayBuffer

It wants the manager of sluice.adapters.verl.v1, in whose process verl makes it.
"""

from __future__ import annotations

import queue
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ...client import Client
from ...errors import BadArgument, SluiceError
from ...sampler import Batch
from ..rollouts import task_of
from .mapping import task_for
from .v1 import SluiceAgentLoopManagerTQ  # first: it says which verl is wanted

import transfer_queue
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

RULE = ("filter", "staleness", "window", "ahead", "over_sample", "early", "surplus", "replace_max", "pool", "priority",
        "lease")  # of Client.sampler(), from trainer.v1.sampler.sampler_kwargs
PROMPT_S = 60.0   # until a prompt that verl was asked for must have come


class SluiceReplayBuffer(ReplayBuffer):  # type: ignore[misc]
    """A training's batches are those of a sampler in the broker; a validation's are verl's own.

    verl's prompts are submitted ahead, in their order, and as many as the sampler wants: in place of groups whose
    rewards are all equal others are asked for. The stream is this process's: what one that was killed had asked for is
    not carried over.
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._rule = dict(self.sampler_kwargs or {})
        for name in self._rule:
            if name not in RULE:
                raise BadArgument(f"trainer.v1.sampler.sampler_kwargs has {name!r}; a sampler of the broker's has "
                                  f"{', '.join(RULE)}", str(name))
        self._waiting: "queue.SimpleQueue[Dict[str, Any]]" = queue.SimpleQueue()
        self._prompts: Dict[str, Dict[str, Any]] = {}  # by their groups
        self._count = self._groups = 0
        self._stream = ""
        self._client: Optional[Client] = None
        self._batches: Optional[Iterator[Batch]] = None
        SluiceAgentLoopManagerTQ.take = self._waiting.put  # the manager is made later, of its class

    def close(self) -> None:
        """Ends the sampler, and what is under way for it. Idempotent."""
        SluiceAgentLoopManagerTQ.take = None
        if self._client is not None:
            self._client.sampler_close(self._stream, cancel=True)
            self._client.close()
            self._client = None

    @property
    def _manager(self) -> SluiceAgentLoopManagerTQ:
        if SluiceAgentLoopManagerTQ.latest is None:
            raise SluiceError("SluiceReplayBuffer wants actor_rollout_ref.rollout.agent.agent_loop_manager_class="
                              "sluice.adapters.verl.v1.SluiceAgentLoopManagerTQ")
        return SluiceAgentLoopManagerTQ.latest

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> Tuple[Any, Dict[str, Any]]:
        """Blocks until the broker has a batch. SluiceError: verl's mode would put the servers to sleep meanwhile."""
        if partition_id != "train":
            told: Tuple[Any, Dict[str, Any]] = super().sample(global_steps, partition_id, batch_size)
            return told
        if self._batches is None:
            self._open(batch_size)
        assert self._batches is not None
        if batch_size != self._groups:
            raise BadArgument(f"a batch of {batch_size} groups is wanted, where the sampler makes batches of "
                              f"{self._groups}", "batch_size")
        return self._put(next(self._batches))

    def _open(self, groups: int) -> None:
        manager = self._manager
        if self.trainer_mode == "sync" and manager.options.engine == "verl":
            raise SluiceError("trainer.v1.trainer_mode=sync puts verl's servers to sleep, which the sampler's rollouts "
                              "need while the trainer learns: set it to separate_async or colocate_async, or "
                              "+sluice.engine=broker")
        self._client = Client(manager.options.broker)
        self._stream = f"{manager.runs.stream}.sampler"
        self._batches = self._client.sampler(self._stream, self._tasks(), groups=groups,
                                             samples=int(manager.rollout_config.n), **self._rule)
        self._groups = groups

    def _tasks(self) -> Iterator[Dict[str, Any]]:
        """Of verl's prompts, as they are wanted."""
        manager = self._manager
        data = manager.config.data
        while True:
            if self._waiting.empty():
                self.refill_fn(int(data.get("gen_batch_size") or data.train_batch_size))
            try:
                prompt = self._waiting.get(timeout=PROMPT_S)
            except queue.Empty:
                raise SluiceError(f"verl was asked for prompts, and gave none for {PROMPT_S:g} s") from None
            self._count += 1
            self._prompts[f"{self._stream}.{self._count}"] = prompt
            yield task_for(task_of(prompt), manager.sampling(False), manager.runs.lengths)

    def _put(self, batch: Batch) -> Tuple[Any, Dict[str, Any]]:
        """Into TransferQueue. verl's KVBatchMeta of it, and metrics."""
        manager = self._manager
        uids: List[str] = []
        for group in batch.groups:
            prompt = self._prompts.pop(group.group, None)
            if prompt is None:
                raise SluiceError(f"group {group.group} of batch {batch.number} is none of verl's prompts: leave the stream "
                                  f"{self._stream} to verl")
            manager.thread.run(manager.worker.put(prompt, group.trajectories, False))
            uids.append(prompt["uid"])
        dropped = [self._prompts.pop(group["group"], None) for group in batch.dropped]
        gone = [prompt["uid"] for prompt in dropped if prompt is not None]
        if gone:
            transfer_queue.kv_clear(keys=gone, partition_id="train")
        self._sync_metadata_from_transfer_queue()
        metrics: Dict[str, Any] = {f"training/sluice/{name}": count for name, count in batch.account.items()}
        metrics["training/sluice/acceptance"] = batch.acceptance
        return self._materialize_batch("train", uids, dict(self.partitions["train"])), metrics
