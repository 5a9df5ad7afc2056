"""TRL's AsyncGRPOTrainer over Sluice (docs/trainers/trl.md): batches in its queue, and versions at its updates.

    transfer = WeightTransfer(load_weights)
    worker = RolloutWorker(tasks, transfer, groups=8, samples=8)
    AsyncGRPOTrainer(model=..., args=args, train_dataset=..., rollout_worker=worker, weight_transfer=transfer).train()

They are TRL's RolloutWorkerProtocol and WeightTransferProtocol.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from .. import arguments
from ..advantages import grpo, rewards_of
from ..aio import AsyncClient
from ..client import Client
from ..errors import BadArgument, SluiceError
from ..sampler import Batch, SampledGroup
from ..trajectory import Trace, Trajectory
from .parts.said import as_chat, replies_in, said_in
from .parts.sampling import require_ratio
from .tasks import is_scored
from .trl import require_trl

FULL = 0.05  # seconds until a full queue is tried again
COUNTED = ("asked", "finished", "kept", "tokens_kept", "tokens_dropped")  # of a batch's account, for TRL's metrics


class WeightTransfer:
    """What AsyncGRPOTrainer takes as `weight_transfer`: holds the service's calls while `send` loads weights.

    send: loads them into the engine: called with an iterator of (name in vLLM's form, tensor), which it must exhaust.
    broker, client_options: as of Client().
    calls: what happens to calls in flight, as in Client.policy_pause().

    The policy's versions are called NAME-1 (before the first step), NAME-2 and so on, in the trajectories too.
    """

    def __init__(self, send: Callable[[Iterator[Tuple[str, Any]]], None], broker: Optional[str] = None,
                 calls: str = "finish", **client_options: Any) -> None:
        self.send, self.calls = send, calls
        self.name = f"trl-{uuid.uuid4().hex[:8]}"
        self.number = 0  # of the version that the engine serves; 0: none yet
        self.broker, self.client_options = broker, client_options
        self._client: Optional[Client] = None

    def init_weight_transfer(self) -> None:
        self._client = Client(self.broker, **self.client_options)
        if not self._client.engines():
            raise BadArgument("broker: no engine is registered, so nothing would be sampled: sluice engine add URL",
                              "broker")

    def pause(self) -> None:
        self._used().policy_pause(self.calls)

    def send_weights(self, iterator: Iterator[Tuple[str, Any]]) -> None:
        """Calls go on at once where it fails, under the version there was."""
        try:
            self.send(iterator)
            if next(iterator, None) is not None:
                raise BadArgument("send: it left weights in the iterator, which the trainer's other processes wait for; "
                                  "exhaust it", "send")
        except BaseException:
            self._used().policy_resume()
            raise

    def resume(self) -> None:
        self.number += 1
        self._used().policy_set(f"{self.name}-{self.number}")
        self._used().policy_resume()

    def destroy(self) -> None:
        """Idempotent."""
        if self._client is not None:
            self._client.policy_resume()
            self._client.close()
            self._client = None

    def number_of(self, version: str) -> Optional[int]:
        """Of a turn's version; None: of another trainer's, or none. Of several, joined with "+", the oldest."""
        found: List[int] = []
        for one in version.split("+"):
            name, _, number = one.rpartition("-")
            if name != self.name or not (number.isascii() and number.isdigit()):
                return None
            found.append(int(number))
        return min(found)

    def _used(self) -> Client:
        if self._client is None:
            raise BadArgument("weight_transfer: init_weight_transfer() comes before its other calls", "weight_transfer")
        return self._client


class RolloutWorker:
    """What AsyncGRPOTrainer takes as `rollout_worker`: a thread that fills `rollout_buffer` from a sampler.

    tasks: an iterable of dicts, endless if you like; the data set of the trainer only counts epochs.
    transfer: the trainer's WeightTransfer, which knows versions by their names.
    groups, samples: of a batch, and of a group. options: further ones of Client.sampler(), such as filter or staleness.
    stream: a sampler's own; None: a new one, that is closed at the end.
    held: samples that the queue holds; None: a batch's.

    Each trace of a rollout becomes a sample; those of a rollout share its advantage, those of a group its number.
    Rollouts that are not trainable, or have no reward, are in none, nor in the group's mean.
    """

    def __init__(self, tasks: Iterable[Mapping[str, Any]], transfer: WeightTransfer, groups: int, samples: int,
                 stream: Optional[str] = None, broker: Optional[str] = None, held: Optional[int] = None,
                 client_options: Optional[Dict[str, Any]] = None, **options: Any) -> None:
        require_trl()
        if not isinstance(transfer, WeightTransfer):
            raise arguments.refuse("transfer", "the WeightTransfer that the trainer is given", transfer)
        self.rollout_buffer: queue.Queue[Any] = queue.Queue(arguments.number("held", held or groups * samples, 1, 1 << 30))
        self.metrics_queue: queue.Queue[Dict[str, Any]] = queue.Queue()
        self.stream = arguments.name("stream", stream or f"{transfer.name}")
        self.model_version = 0  # the trainer's, as it last said
        self._is_streams_own = stream is None
        self._tasks, self._transfer = tasks, transfer
        self._sampling = dict(options, groups=groups, samples=samples)
        self._connection: Tuple[Optional[str], Dict[str, Any]] = (broker, client_options or {})
        self._thread: Optional[threading.Thread] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._filling: Optional[asyncio.Task[None]] = None
        self._failure: Optional[BaseException] = None
        self._filled = 0.0  # when the last sample was ready

    def start(self) -> None:
        if self._thread is not None:
            return
        started = threading.Event()
        self._filled = time.monotonic()
        self._thread = threading.Thread(target=self._run, args=(started,), name="sluice-rollouts", daemon=True)
        self._thread.start()
        started.wait()

    def stop(self) -> None:
        """Idempotent."""
        if self._thread is None:
            return
        if self._loop is not None and self._filling is not None and self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(self._filling.cancel)
            except RuntimeError:  # it has just ended by itself
                pass
        self._thread.join()
        self._thread = None

    def update_model_version(self, model_version: int) -> None:
        self.model_version = int(model_version)

    def check_health(self, stale_after_s: float) -> None:
        """Raises SluiceError if the thread has failed, or was idle for so long, with why there is no batch."""
        if self._failure is not None:
            raise SluiceError(f"no more rollouts come: {self._failure}") from self._failure
        idle = time.monotonic() - self._filled
        if self.rollout_buffer.empty() and idle > stale_after_s:
            broker, options = self._connection
            with Client(broker, **options) as client:
                why = client.sampler_state(self.stream).get("why")
            raise SluiceError(f"no rollout came for {idle:.0f} s to {self.stream}: {why or 'its sampler does not say why'}")

    def _run(self, started: threading.Event) -> None:
        try:
            asyncio.run(self._main(started))
        except BaseException as failure:
            self._failure = failure
        finally:
            started.set()

    async def _main(self, started: threading.Event) -> None:
        self._loop, self._filling = asyncio.get_running_loop(), asyncio.current_task()
        started.set()
        broker, options = self._connection
        async with AsyncClient(broker, **options) as client:
            try:
                async for batch in client.sampler(self.stream, self._tasks, **self._sampling):
                    await self._take(batch)
                raise SluiceError("the tasks of the rollout worker have come to their end; give more, or an endless "
                                  "iterable")
            except asyncio.CancelledError:
                if self._is_streams_own:
                    await client.sampler_close(self.stream, cancel=True)

    async def _take(self, batch: Batch) -> None:
        told = {f"sluice/{name}_total": float(batch.account.get(name, 0)) for name in COUNTED}
        self.metrics_queue.put({**told, "sluice/acceptance": batch.acceptance})
        for group in batch.groups:
            rows = self._samples(group)
            for row in rows:
                row.enqueued_at = time.time()
                while True:
                    try:
                        self.rollout_buffer.put_nowait(row)
                        break
                    except queue.Full:
                        await asyncio.sleep(FULL)
            self._filled = time.monotonic()

    def _samples(self, group: SampledGroup) -> List[Any]:
        """TRL's RolloutSamples of a group."""
        from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

        scored = [t for t in group.trajectories if is_scored(t)]
        rewards = rewards_of(scored)
        made: List[Any] = []
        for t, advantage in zip(scored, grpo(rewards).values):
            for trace in t.traces:
                if not trace.mask.any():
                    continue
                version = self._version(t, trace)
                if version is None:
                    self.metrics_queue.put({"sluice/foreign_samples_total": 1.0})
                    continue
                require_ratio(t, trace)
                prompt, completion = _conversation(t, trace)
                made.append(RolloutSample(
                    prompt=prompt, completion=completion, input_ids=trace.token_ids.astype(np.int64),
                    completion_mask=trace.mask.astype(np.int64),
                    old_log_probs=np.where(trace.mask == 1, trace.logprobs, 0).astype(np.float32),
                    advantage=float(advantage), model_version=version, group_id=group.number,
                    metrics={"reward": float(t.reward or 0), **t.metrics}))
        return made

    def _version(self, t: Trajectory, trace: Trace) -> Optional[int]:
        """The oldest under which any of the trace was sampled; None: of a trainer before this one."""
        told = [turn.version for turn in trace.turns if trace.mask[turn.offset:turn.offset + turn.length].any()]
        if "" in told:
            raise SluiceError(f"{t.rollout} does not say which version of the policy sampled it, so its staleness cannot be "
                              "told: give the trainer the WeightTransfer as weight_transfer")
        numbers = [self._transfer.number_of(version) for version in told]
        return None if None in numbers else min(number for number in numbers if number is not None)


def _conversation(t: Trajectory, trace: Trace) -> Tuple[List[Dict[str, str]], List[Dict[str, str]]]:
    """A trace's messages before the first that the policy said in it, and those from there to the last; for logs."""
    said, places = as_chat(said_in(t, trace)), [place for _, place in replies_in(t, trace)]
    return (said[:places[0]], said[places[0]:places[-1] + 1]) if places else (said, [])
