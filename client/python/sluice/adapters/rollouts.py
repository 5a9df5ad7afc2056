"""Rollouts that are awaited: what every adapter in a trainer's asyncio loop stands on.

    async with Rollouts("train") as rollouts:
        group = await rollouts.run(task, samples=8)

One reader goes through the stream, and gives each trajectory to whoever waits for its group. What ended before anybody
here waited for it (a run that was killed had submitted it) is asked for by name. So nothing is missed, whoever was
killed, and nothing is held in memory but groups that somebody waits for.
"""

from __future__ import annotations

import asyncio
import functools
import time
import uuid
import warnings
from typing import Any, Coroutine, Dict, List, Mapping, Optional, Set

from .. import arguments
from ..aio import AsyncClient
from ..calls import SAMPLES_MAX
from ..errors import BadArgument, BadTask, BrokerSilent, Forgotten, Full, OtherLedger, Refused, SluiceError
from ..protocol.messages import MessageError
from ..trajectory import Trajectory
from .parts.prefix import Prefix
from .parts.together import all_of
from .tasks import only_trace, task_of

__all__ = ["Rollouts", "only_trace", "task_of"]

FOREIGN_MAX = 1024  # trajectories of others that hold acknowledging back, before it is said


class Claim:
    """One group that callers wait for."""

    def __init__(self, group: str, task: Mapping[str, Any], samples: int, is_named: bool) -> None:
        self.group, self.task, self.samples = group, dict(task), samples
        self.is_named = is_named  # by the caller, who may ask for it again; else nobody can
        self.is_accepted = True   # or may be ...
        self.is_told = False      # ... and is known to be
        self.callers = 0
        self.got: Dict[int, Trajectory] = {}
        self.done: asyncio.Future[List[Trajectory]] = asyncio.get_running_loop().create_future()
        self.done.add_done_callback(lambda done: done.exception())  # it counts as told, also where nobody is left

    @property
    def is_answered(self) -> bool:
        return self.done.done() and self.done.exception() is None

    def take(self, trajectory: Trajectory) -> None:
        self.got[trajectory.sample] = trajectory
        self._answer()

    def accept(self) -> None:
        """The broker has it. Before that, what the reader comes to may be of another group of this name, earlier."""
        self.is_told = True
        self._answer()

    def _answer(self) -> None:
        if self.is_told and len(self.got) == self.samples and not self.done.done():
            self.done.set_result([self.got[k] for k in sorted(self.got)])

    def fail(self, why: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(why)


class Rollouts:
    """Runs tasks and awaits their trajectories: one object a process and stream, any number of callers at a time.

    stream: which must be of rollouts alone, without a sampler. broker: FRONT's URL; None: $SLUICE_BROKER, else this
    machine. priority, lease, versions_behind, on_stale: of what is submitted, as in Client.submit(). expect_template,
    expect_tokenizer: digests that each trace must have; else OtherTokens is raised to the group's callers.
    client_options: further ones of AsyncClient.

    acknowledge: whether the broker may forget what the callers have taken, as soon as they have. False: once you call
    acknowledge(), say after a checkpoint; then what was taken since the one before can be had again, by its group's
    name.

    exclusive: the stream is this process's alone, and what it holds that nobody here asked for (of a run that was
    killed) may be forgotten with the rest. False: it may not, as others may read the stream too; where it stands in the
    way of acknowledging much, warnings.warn says so. Give each process a stream of its own.

    Belongs to the event loop that first awaits run(). Use it with `async with`, or await close().
    """

    def __init__(self, stream: str, broker: Optional[str] = None, *, acknowledge: bool = True, exclusive: bool = False,
                 priority: Optional[int] = None, lease: Optional[float] = None, versions_behind: Optional[int] = None,
                 on_stale: Optional[str] = None, expect_template: Optional[str] = None,
                 expect_tokenizer: Optional[str] = None, **client_options: Any) -> None:
        self.stream = arguments.name("stream", stream)
        self._acknowledges = arguments.flag("acknowledge", acknowledge)
        self._is_exclusive = arguments.flag("exclusive", exclusive)
        self._template = arguments.digest("expect_template", expect_template)
        self._tokenizer = arguments.digest("expect_tokenizer", expect_tokenizer)
        self._client = AsyncClient(broker, **client_options)
        self._submit = functools.partial(self._client.submit, stream=stream, priority=priority, lease=lease,
                                         versions_behind=versions_behind, on_stale=on_stale)
        self._claims: Dict[str, Claim] = {}
        self._unwanted: Dict[str, Set[int]] = {}  # groups whose callers went, and which samples are to come
        self._prefix = Prefix()
        self._acknowledged = 0
        self._next = 0                       # the number that reading begins with; 0: the oldest
        self._reader: Optional[asyncio.Task[None]] = None
        self._carrying: Set[asyncio.Task[None]] = set()
        self._telling: Set[asyncio.Task[None]] = set()  # cancelling and acknowledging
        self._is_acknowledging = False
        self._came: Optional[asyncio.Event] = None  # set when the reader gives out one, or goes on elsewhere
        self._is_closed = self._has_warned = False

    async def __aenter__(self) -> Rollouts:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Rollouts({self.stream!r}, {self._client!r}, {len(self._claims)} groups awaited)"

    @property
    def client(self) -> AsyncClient:
        """For other calls. It reads this stream; do not let it read another one."""
        return self._client

    async def run(self, task: Mapping[str, Any], samples: int = 1, group: Optional[str] = None) -> List[Trajectory]:
        """The trajectories of `samples` rollouts of the task, by sample number, once all have ended.

        group: a name for it. The same name with the same task and samples is the same group, also in another process,
        which is how a trainer that was killed gets what it had asked for. None: a new one.

        If the caller is cancelled and nobody else waits for the group, the group is cancelled. Ends of any kind are
        trajectories (see `outcome` and `trainable`). Raises what submit() and trajectories() raise, to those
        concerned; Forgotten where the group was taken and acknowledged before.
        """
        if self._is_closed:
            raise self._closed()
        samples = arguments.number("samples", samples, 1, SAMPLES_MAX)
        if not isinstance(task, Mapping):
            raise BadArgument(f"task wants a dict (docs/tasks.md), not a {type(task).__name__}", "task")
        name = f"run-{uuid.uuid4().hex[:20]}" if group is None else \
            arguments.name("group", group, arguments.GROUP_BYTES)
        claim = self._claims.get(name)
        if claim is None:
            claim = self._claims[name] = Claim(name, task, samples, group is not None)
            self._unwanted.pop(name, None)
            self._start(self._carry(claim), self._carrying)
        elif (claim.task, claim.samples) != (dict(task), samples):
            raise BadArgument(f"group {name} is being run with another task or number of samples: name this one "
                              "otherwise", "group")
        claim.callers += 1
        try:
            return list(await asyncio.shield(claim.done))
        finally:
            claim.callers -= 1
            if not claim.callers:
                self._leave(claim)

    async def acknowledge(self) -> int:
        """Lets the broker forget what was taken, and returns up to which number; 0: none.

        That is the longest run from the stream's beginning of trajectories that callers have taken, or that are of
        groups that were cancelled.
        """
        await self._catch_up()
        return await self._acknowledge()

    async def _acknowledge(self) -> int:
        prefix, up_to = self._prefix, self._prefix.up_to
        if up_to > self._acknowledged:
            await self._client.ack(self.stream, up_to)
            if prefix is self._prefix:  # the ledger is still the same
                self._acknowledged = max(self._acknowledged, up_to)
        return self._acknowledged

    async def close(self) -> None:
        """Ends it, and with SluiceError what waits for it. Idempotent.

        Groups without a name are cancelled, as nobody can ask for them again; those with one go on. It waits no longer
        than the client's timeout for a broker that does not answer.
        """
        if self._is_closed:
            return
        self._is_closed = True
        for claim in list(self._claims.values()):
            if not claim.done.done() and not claim.is_named:
                self._start(self._cancel(claim.group), self._telling)
            claim.fail(self._closed())
        try:
            if self._acknowledges:
                await self._catch_up()
            readers = self._carrying | ({self._reader} if self._reader else set())
            for task in readers:
                task.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
            if self._acknowledges:
                self._start_acknowledging()
            await asyncio.gather(*self._telling, return_exceptions=True)
        finally:
            await self._client.close()

    # ---- groups -------------------------------------------------------------------------------------

    def _closed(self) -> SluiceError:
        return SluiceError(f"the rollouts of stream {self.stream} were closed")

    def _start(self, work: Coroutine[Any, Any, None], among: Set[asyncio.Task[None]]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        among.add(task)
        task.add_done_callback(among.discard)

    async def _carry(self, claim: Claim) -> None:
        """Submits it, and asks for what of it has ended: the reader may be past that."""
        try:
            await self._refuse_sampler()
            await self._submit([claim.task], samples=claim.samples, group=lambda _: claim.group)
            claim.accept()
            if self._reader is None or self._reader.done():
                self._reader = asyncio.get_running_loop().create_task(self._read())
            for told in await all_of(self._client.get(f"{claim.group}/{sample}") for sample in range(claim.samples)):
                if isinstance(told, Trajectory):
                    self._take(claim, told)
        except (BadArgument, Full, BadTask) as why:
            claim.is_accepted = False
            claim.fail(why)
        except Forgotten as why:
            claim.fail(Forgotten(f"group {claim.group} was run, taken and acknowledged before: for a new one use "
                                 f"another name, with the step in it, say ({why})", why.reason, why.field, oldest=why.oldest))
        except Exception as why:  # whatever it is, its callers hear of it
            claim.fail(why)

    async def _refuse_sampler(self) -> None:
        """One holds what is submitted until a batch is asked for, which nobody here does."""
        try:
            await self._client.sampler_state(self.stream)
        except Refused as why:
            if why.reason != "unknown-stream":
                raise
            return
        raise BadArgument(f"stream {self.stream} has a sampler, which holds its groups back until a batch is asked for, and "
                          "nobody here would: read batches with Client.sampler() (docs/sampler.md), or run rollouts in a "
                          "stream of their own", "stream")

    def _take(self, claim: Claim, trajectory: Trajectory) -> None:
        try:
            trajectory.expect(self._template, self._tokenizer)
        except SluiceError as why:
            claim.fail(why)
        claim.take(trajectory)

    def _leave(self, claim: Claim) -> None:
        """Nobody waits for it any more."""
        if self._claims.get(claim.group) is claim:
            del self._claims[claim.group]
        was_cancelled = not claim.done.done()
        if was_cancelled:
            claim.fail(SluiceError(f"group {claim.group} was cancelled"))
            if not self._is_closed:
                self._start(self._cancel(claim.group), self._telling)
        if claim.is_answered or was_cancelled or not claim.is_named:
            for trajectory in claim.got.values():
                self._prefix.let_go(trajectory.seq)
            left = set(range(claim.samples)) - set(claim.got)
            if left and claim.is_accepted:
                self._unwanted[claim.group] = left
        self._acknowledge_soon()

    async def _cancel(self, group: str) -> None:
        try:
            await self._client.cancel(group=group)
        except SluiceError as why:
            warnings.warn(f"group {group} of stream {self.stream}, which nobody waits for, could not be cancelled: "
                          f"{why}", stacklevel=2)

    # ---- reading ------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            try:
                async for trajectory in self._client.trajectories(self.stream, from_seq=self._next):
                    self._come(trajectory)
            except MessageError as why:
                self._go_on(None if why.seq is None else why.seq + 1, why)
            except Forgotten as why:
                self._go_on(why.oldest, why)
            except OtherLedger as why:
                self._prefix, self._acknowledged = Prefix(), 0
                self._go_on(why.oldest, why)
            except Exception as why:  # its callers hear of it; the next run() reads on
                self._fail(why)
                return

    def _come(self, trajectory: Trajectory) -> None:
        self._next = trajectory.seq + 1
        claim, group = self._claims.get(trajectory.group), trajectory.group
        is_held = claim is not None or not self._is_exclusive
        if claim is not None:
            self._take(claim, trajectory)
        elif group in self._unwanted:
            is_held = False
            self._unwanted[group].discard(trajectory.sample)
            if not self._unwanted[group]:
                del self._unwanted[group]
        self._prefix.come(trajectory.seq, is_held)
        self._wake()
        self._acknowledge_soon()

    def _go_on(self, seq: Optional[int], why: Exception) -> None:
        """Reading goes on at `seq`; what was passed over, or is another ledger's, is asked for by name."""
        if seq is None:
            self._fail(why)
            return
        if isinstance(why, MessageError):
            self._prefix.come(seq - 1, not self._is_exclusive)
        else:
            self._prefix.skip_to(seq)
        self._next = seq
        self._wake()
        for claim in list(self._claims.values()):
            if not claim.done.done():
                self._start(self._carry(claim), self._carrying)

    def _fail(self, why: Exception) -> None:
        for claim in list(self._claims.values()):
            claim.fail(why)

    # ---- acknowledging ------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._came is not None:
            self._came.set()

    async def _catch_up(self) -> None:
        """Until the reader has come to all that was taken, which it may be behind: asked for by name it was there at
        once."""
        end = time.monotonic() + self._client.timeout
        while self._prefix.is_behind and self._reader is not None and not self._reader.done():
            self._came = self._came or asyncio.Event()
            self._came.clear()
            try:
                await asyncio.wait_for(self._came.wait(), end - time.monotonic())
            except asyncio.TimeoutError:
                return

    def _acknowledge_soon(self) -> None:
        if not self._acknowledges or self._is_closed:
            return
        if len(self._prefix.held) > FOREIGN_MAX and not self._has_warned:
            self._warn_of_foreign()
        self._start_acknowledging()

    def _start_acknowledging(self) -> None:
        if self._prefix.up_to > self._acknowledged and not self._is_acknowledging:
            self._is_acknowledging = True
            self._start(self._acknowledge_all(), self._telling)

    async def _acknowledge_all(self) -> None:
        """One request at a time. What a broker that is away is not told is told it with the next one."""
        try:
            while self._prefix.up_to > self._acknowledged:
                await self._acknowledge()
        except BrokerSilent:
            pass
        except SluiceError as why:
            warnings.warn(f"stream {self.stream} could not be acknowledged up to {self._prefix.up_to}: {why}",
                          stacklevel=2)
        finally:
            self._is_acknowledging = False

    def _warn_of_foreign(self) -> None:
        foreign = len(self._prefix.held) - sum(len(claim.got) for claim in self._claims.values())
        if foreign > FOREIGN_MAX:
            self._has_warned = True
            warnings.warn(f"stream {self.stream} holds {foreign} trajectories that nobody in this process asked "
                          f"for, so that only those up to {self._prefix.up_to} can be acknowledged: give each process a "
                          "stream of its own, with exclusive=True, or acknowledge them", stacklevel=2)
