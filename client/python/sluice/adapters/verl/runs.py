"""The rollouts that one process of verl's awaits, and verl's LLM servers as the engine that samples them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import uuid
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ... import arguments
from ...bridge import Bridge, BridgeError, Sampled
from ...errors import BadArgument
from ...tokenizer import tokenizer_digest
from ...trajectory import Trajectory
from ..rollouts import Rollouts
from ..parts.tries import run_wanted
from ..tasks import is_learnable
from .mapping import Lengths, task_for  # first: it says which verl is wanted

from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient

PROCESS = uuid.uuid4().hex[:8]  # of the names of streams: each process reads one of its own


class Engine:
    """verl's client of its LLM servers as the function of a sluice.bridge.Bridge.

    A call that an update of the weights aborts is returned as a part, with which the bridge goes on once the servers
    answer again; so each token has the version that sampled it, step-N.
    """

    def __init__(self, llm_client: Any, ends: Sequence[int]) -> None:
        self._ends = frozenset(ends)  # ids that may end a turn beside those that are asked for
        self._generate = llm_client.generate
        if isinstance(llm_client, FullyAsyncLLMServerClient):  # which joins the parts itself, and loses which is which
            self._generate = functools.partial(LLMServerClient.generate, llm_client)

    async def __call__(self, ids: List[int], sampling: Dict[str, Any]) -> Sampled:
        asked = {**sampling, "logprobs": True, "repetition_penalty": 1.0}
        told = await self._generate(uuid.uuid4().hex, prompt_ids=list(ids), sampling_params=asked)
        step = told.extra_fields.get("global_steps")
        return Sampled(told.token_ids, told.log_probs or [], self._finish(told, sampling),
                       None if step is None else f"step-{step}")

    def _finish(self, told: Any, sampling: Mapping[str, Any]) -> str:
        """verl's servers say "completed" of a turn that ended by itself, and of one that was cut."""
        if told.stop_reason in ("abort", "aborted") or not told.token_ids:
            return "abort"
        last = told.token_ids[-1]
        return "stop" if last in sampling["stop_token_ids"] or last in self._ends else "length"


@dataclasses.dataclass(frozen=True)
class Options:
    """Of `sluice` in verl's configuration, or of an agent loop's entry."""

    stream: str = "verl"          # beginning of the streams' names, one for each process
    broker: Optional[str] = None  # FRONT's URL; None: $SLUICE_BROKER, else this machine
    engine: str = "verl"          # "verl": verl's servers are made one; "broker": those that the broker has
    policy: Optional[str] = None  # of that engine; None: default
    tries: int = 3                # of a rollout that cannot be learned from
    bridge: Mapping[str, Any] = dataclasses.field(default_factory=dict)    # further options of Bridge
    rollouts: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # further options of Rollouts

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """BadArgument: one is unknown, or wrong."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in given:
            if name not in known:
                raise BadArgument(f"sluice.adapters.verl has no option {name!r}; it has {', '.join(known)}", str(name))
        told = cls(**given)
        arguments.name("stream", told.stream)
        arguments.word("engine", told.engine, ("verl", "broker"))
        arguments.number("tries", told.tries, 1, 100)
        return told


class Runs:
    """Rollouts, and the bridge to verl's servers, from the first group on. Belongs to the event loop that awaits it."""

    def __init__(self, options: Options, config: Any, tokenizer: Any, llm_client: Any) -> None:
        """config: verl's, of all."""
        self.options, self._config, self._tokenizer, self._llm_client = options, config, tokenizer, llm_client
        self.lengths = Lengths.of(config.actor_rollout_ref.rollout)
        digest = tokenizer_digest(lambda text: list(tokenizer.encode(text, add_special_tokens=False)))
        self.stream = f"{options.stream}.{PROCESS}"
        more = {"exclusive": True, "expect_tokenizer": digest, **options.rollouts}
        self.rollouts = Rollouts(self.stream, options.broker, **more)
        self._step: Optional[int] = None
        self._bridge: Optional[Bridge] = None
        self._started: Optional[asyncio.Task[None]] = None

    async def start(self) -> None:
        """Idempotent. BadArgument: engine is "verl", and there is no client of verl's servers."""
        if self._started is None:
            self._started = asyncio.ensure_future(self._start())
        await asyncio.shield(self._started)

    async def _start(self) -> None:
        if self.options.engine == "broker":
            return
        if self._llm_client is None:
            raise BadArgument("verl gave no client of its LLM servers: set engine to broker, and register engines "
                              "(sluice engine add)", "engine")
        rollout = self._config.actor_rollout_ref.rollout
        self._bridge = Bridge(
            Engine(self._llm_client, self._tokenizer.all_special_ids), tokenizer=self._tokenizer,
            max_model_len=rollout.get("max_model_len") or self.lengths.prompt + self.lengths.response,
            logprobs_mode=str(rollout.logprobs_mode).partition("_")[0],
            template_options=dict(self._config.data.get("apply_chat_template_kwargs") or {}), **self.options.bridge)
        await self._bridge.__aenter__()
        await self.rollouts.client.engine_add(self._bridge.url, policy=self.options.policy)

    async def set_step(self, step: int, is_quiet: bool) -> None:
        """The engines sample with the weights of this step. is_quiet: no call of another step is under way."""
        if step == self._step:
            return
        if is_quiet and self.options.engine == "broker":
            async with self.rollouts.client.updating(f"step-{step}"):
                pass
        else:
            await self.rollouts.client.policy_set(f"step-{step}")
        self._step = step

    async def group(self, task: Mapping[str, Any], sampling: Mapping[str, Any], samples: int) -> List[Trajectory]:
        """`samples` trajectories; those that cannot be learned from, after so many tries, are the last."""
        await self.start()
        told = await run_wanted(self.rollouts, task_for(task, sampling, self.lengths), samples, self.options.tries,
                                is_learnable)
        if self._bridge is not None:
            self._bridge.check()
        return told

    async def close(self) -> None:
        """Idempotent."""
        if self._bridge is not None:
            with contextlib.suppress(Exception):  # its broker may be gone
                await self.rollouts.client.engine_remove(self._bridge.url)
            with contextlib.suppress(BridgeError):  # group() has raised it
                await self._bridge.__aexit__(None)
            self._bridge = None
        await self.rollouts.close()
