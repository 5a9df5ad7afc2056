"""prime-rl: Sluice in the place of its orchestrator (docs/trainers/prime_rl.md).

    orchestrator = Orchestrator("outputs", tasks, Servers(["http://gpu1:8000"]), groups=16, samples=8, seq_len=8192)
    asyncio.run(orchestrator.run())

prime-rl's own packer and transports carry the batches, so that the trainer reads what its orchestrator would send.
"""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from .. import arguments
from ..advantages import Estimator, dr_grpo
from ..aio import AsyncClient
from ..errors import BadArgument, SluiceError
from ..sampler import Batch
from .parts.rows import token_rows
from .parts.versions import WrongPackage, require

require("sluice.adapters.prime_rl", "prime-rl", "0.8", "0.9", "prime_rl.transports.rollouts")
from prime_rl.configs.shared import FileSystemTransportConfig  # noqa: E402
from prime_rl.trainer.batch import build_bin_cost, prepare_batch  # noqa: E402
from prime_rl.transports.rollouts import TrainingSample, setup_micro_batch_sender  # noqa: E402
from prime_rl.utils.pathing import clean_future_steps, get_broadcast_dir, get_step_path  # noqa: E402

FIELDS = ("token_ids", "mask", "logprobs", "temperatures", "advantages", "env_name")  # of a TrainingSample
POLL = 0.5  # seconds between looks for weights
RESET = 300.0  # seconds at most until a server has dropped what it had cached
STALENESS = 8  # versions, as prime-rl's max_off_policy_steps

_missing = set(FIELDS) - set(TrainingSample.__struct_fields__)
if _missing:
    raise WrongPackage(f"the adapter wants a TrainingSample with {', '.join(sorted(_missing))}, which that "
                       "of this prime-rl does not have", name="prime-rl")

Load = Callable[[Path, int], Awaitable[None]]


class Servers:
    """prime-rl's inference servers, as what loads weights: by its own client, with /pause, /update_weights and /resume.

    urls: of each server itself, not of a router. resets_cache: whether what they have cached of prompts is dropped
    then, as prime-rl's own calls alone tell the cache their version. False: they have no prefix cache.
    """

    def __init__(self, urls: Sequence[str], resets_cache: bool = True) -> None:
        from prime_rl.configs.shared import ClientConfig
        from prime_rl.utils.client import setup_admin_clients

        self._clients = setup_admin_clients(ClientConfig(admin_base_url=list(urls)))
        self._resets_cache = arguments.flag("resets_cache", resets_cache)

    async def __call__(self, folder: Path, step: int) -> None:
        from prime_rl.utils.client import update_weights

        await update_weights(self._clients, folder, step=step)
        if self._resets_cache:
            await asyncio.gather(*map(self._reset_cache, self._clients))

    @staticmethod
    async def _reset_cache(client: Any) -> None:
        """What is under way is computed anew, under the new weights."""
        answer = await client.post("/reset_prefix_cache", params={"reset_running_requests": "true"}, timeout=RESET)
        if answer.status_code == 404:
            raise SluiceError(f"{client.base_url} has no /reset_prefix_cache, so that it would go on with prompts "
                              "computed under the old weights: start it with VLLM_SERVER_DEV_MODE=1, or without a "
                              "prefix cache and Servers(..., resets_cache=False)")
        answer.raise_for_status()


class Orchestrator:
    """Feeds prime-rl's trainer with batches of a sampler, and the engines with the trainer's weights.

    output_dir: the trainer's. tasks: dicts, endless if you like. load: brings the weights in a directory into the
    engines, such as Servers, or any coroutine function of (directory, step); the service holds its calls meanwhile.
    groups, samples: of a batch, and of a group. seq_len: tokens of a micro batch, and at most those of a trace.

    data_ranks: the trainer's data parallel ranks. transport: its rollout_transport, of prime_rl.configs.shared; None:
    files. step: the trainer's first, one more than that which it resumes from. max_steps: as the trainer's; None:
    without an end. lag: how many batches may be sent ahead of the weights.

    stream: of the sampler. broker: FRONT's URL; None: $SLUICE_BROKER. estimate: of advantages from a group's rewards.
    env_name: in prime-rl's metrics; a task's metadata["env_name"] comes first. model_config: of transformers, by which
    packing balances computation; None: by tokens. on_batch: called with the step and each Batch, for logs.
    client_options: further ones of AsyncClient. options: further ones of AsyncClient.sampler(), such as filter.
    """

    def __init__(self, output_dir: Union[str, Path], tasks: Iterable[Mapping[str, Any]], load: Load, *, groups: int,
                 samples: int, seq_len: int, data_ranks: int = 1, transport: Any = None, step: int = 1,
                 max_steps: Optional[int] = None, lag: int = 1, stream: str = "prime-rl", broker: Optional[str] = None,
                 estimate: Estimator = dr_grpo, env_name: str = "sluice", pad_to_multiple_of: int = 1,
                 model_config: Any = None, on_batch: Optional[Callable[[int, Batch], None]] = None,
                 client_options: Optional[Dict[str, Any]] = None, **options: Any) -> None:
        self.output_dir = Path(output_dir)
        self.step = arguments.number("step", step, 1, 1 << 30)  # the next one to be sent
        self.version = step - 2  # of the engines' weights: how many steps they have seen; at first not enough
        self._last = math.inf if max_steps is None else arguments.number("max_steps", max_steps, step, 1 << 30)
        self._lag = arguments.number("lag", lag, 0, 1 << 30)
        self._tasks, self._load = tasks, load
        self._ranks = arguments.number("data_ranks", data_ranks, 1, 1 << 20)
        self._transport = transport or FileSystemTransportConfig()
        self._seq_len, self._multiple, self._cost = seq_len, pad_to_multiple_of, build_bin_cost(model_config)
        self._estimate, self._env_name, self._on_batch = estimate, env_name, on_batch
        self._stream, self._broker, self._client_options = stream, broker, client_options or {}
        self._options = {"staleness": STALENESS, **options, "groups": groups, "samples": samples}

    async def run(self) -> None:
        """Until the trainer has learned from batch max_steps. Raises whatever fails, in sending or in loading."""
        self._moved = asyncio.Event()
        clean_future_steps(self.output_dir, self.step - 1)
        sender = setup_micro_batch_sender(self.output_dir, self._ranks, self.step, self._transport)
        async with AsyncClient(self._broker, **self._client_options) as client:
            working = [asyncio.ensure_future(self._watch(client)), asyncio.ensure_future(self._send(client, sender))]
            try:
                done, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in working:
                    task.cancel()
                await asyncio.gather(*working, return_exceptions=True)
                sender.close()

    # ---- weights ------------------------------------------------------------------------------------

    def _newest(self) -> int:
        """Of the weights that the trainer has written whole; -1: none."""
        stable = get_broadcast_dir(self.output_dir).glob("step_*/STABLE")
        return max((int(path.parent.name.rpartition("_")[2]) for path in stable), default=-1)

    async def _watch(self, client: AsyncClient) -> None:
        while True:
            newest = self._newest()
            if newest > self.version:
                async with client.updating(f"step-{newest}", calls="hold"):
                    await self._load(get_step_path(get_broadcast_dir(self.output_dir), newest), newest)
                self.version = newest
                self._moved.set()
            await asyncio.sleep(POLL)

    async def _reach(self, version: float) -> None:
        """Until the engines have these weights, or newer ones."""
        while self.version < version:
            self._moved.clear()
            await self._moved.wait()

    # ---- batches ------------------------------------------------------------------------------------

    async def _send(self, client: AsyncClient, sender: Any) -> None:
        await self._reach(self.step - 1)  # as the trainer begins
        batches = client.sampler(self._stream, self._tasks, **self._options)
        while self.step <= self._last:
            await self._reach(self.step - 1 - self._lag)
            try:
                batch = await batches.__anext__()
            except StopAsyncIteration:
                raise SluiceError(f"the tasks have come to their end before batch {self.step}; give more, or an "
                                  "endless iterable") from None
            if self._on_batch is not None:
                self._on_batch(self.step, batch)
            await sender.send(await asyncio.to_thread(self.micro_batches, batch))
            self.step += 1
        await self._reach(self._last)
        await client.sampler_close(self._stream, cancel=True)

    def samples(self, batch: Batch) -> List[Any]:
        """prime-rl's TrainingSamples of a batch: one of each trace that was sampled in.

        SluiceError: there is none, or one that cannot be learned from. BadArgument: one is longer than seq_len.
        """
        made: List[Any] = []
        for group in batch.groups:
            name = group.trajectories[0].metadata.get("env_name", self._env_name)
            made += [TrainingSample(**row, env_name=name) for row in token_rows(group.trajectories, self._estimate)]
        longest = max((len(sample.token_ids) for sample in made), default=0)
        if longest > self._seq_len:
            raise BadArgument(f"seq_len is {self._seq_len}, and a trace of batch {batch.number} has {longest} tokens, "
                              "of which prime-rl would drop the last: raise it, or give the engines no longer context",
                              "seq_len")
        if not made:
            raise SluiceError(f"batch {batch.number} of {self._stream} has no rollout with a reward and tokens")
        return made

    def micro_batches(self, batch: Batch) -> List[List[Any]]:
        """prime-rl's MicroBatches of a batch, a list of each data rank, all as long."""
        made = self.samples(batch)
        grid: List[List[Any]] = prepare_batch(made, self._seq_len, self._ranks, self._cost, self._multiple)
        return grid
