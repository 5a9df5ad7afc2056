"""TRL's GRPOTrainer over Sluice (docs/trainers/trl.md): its rollouts, and their log-probabilities in the ratio.

    rollouts = RolloutFunction(client, tasks, update=load_weights)
    trainer = SluiceGRPOTrainer(model=model, args=args, processing_class=tokenizer, reward_funcs=sluice_reward,
                                train_dataset=Dataset.from_list(rows(tasks)), rollout_func=rollouts)

sluice.adapters.trl_async is for AsyncGRPOTrainer.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import uuid
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .. import arguments
from ..batch import split
from ..client import Client
from ..errors import BadArgument, OtherTokens, SluiceError
from ..groups import Group
from ..tokenizer import tokenizer_digest
from ..trajectory import Trace, Trajectory
from .parts.sampling import DEFAULTS, FILTERS, require_comparable, require_finite, require_same
from .parts.versions import require
from .tasks import is_learnable, is_scored, may_have_several_traces

KNOWN = ("1.16", "1.17")  # versions of TRL: from the one on, and below the other
TOKENS = ("prompt_ids", "completion_ids", "logprobs", "env_mask")  # what TRL trains on
COLUMNS = ("reward", "rollout", "outcome", "truncated", "metrics")  # for reward functions, beside TRL's own


def require_trl() -> Any:
    """The package trl. Raises WrongPackage, an ImportError, for any other version than this adapter knows, or none."""
    require("sluice.adapters.trl", "trl", *KNOWN)
    import trl
    return trl


def prompt_of(task: Mapping[str, Any]) -> Any:
    """What TRL's column `prompt` holds of a task: its `messages`, else its `prompt`."""
    prompt = task.get("messages") or task.get("prompt")
    if not prompt:
        raise BadArgument(f"tasks: {task.get('task')!r} has neither messages nor a prompt, by which TRL's rows are matched "
                          "with tasks", "tasks")
    return prompt


def rows(tasks: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """A data set's rows, one a task: `datasets.Dataset.from_list(rows(tasks))`."""
    return [{"prompt": prompt_of(task)} for task in tasks]


def sluice_reward(reward: List[Optional[float]], **_: Any) -> List[Optional[float]]:
    """A reward function that gives the rollouts' own: None where there is none, which TRL leaves out of the mean."""
    return reward


def _key(prompt: Any) -> str:
    """The same for a task's prompt and for what a data set has made of it: there, absent members are None."""
    if isinstance(prompt, list):
        prompt = [{name: value for name, value in message.items() if value is not None} for message in prompt]
    return json.dumps(prompt, sort_keys=True, ensure_ascii=False)


def _always(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda task: name


class Piece(NamedTuple):
    """Prompts in a row that are the same: one group."""

    task: Mapping[str, Any]
    samples: int


class RolloutFunction:
    """What GRPOTrainer takes as `rollout_func`. Blocks until the rollouts of all prompts have ended.

    client: of the trainer's thread; its own in each process.
    tasks: all that a row of the data set may stand for (rows()); a row is matched by the content of its prompt.
    update: loads the trainer's weights into the engine: called with the trainer, by each of its processes, before the
    first rollouts and whenever trainer.state.global_step has moved, while the service holds its calls. None: TRL does it
    itself, which needs use_vllm=True.
    stream: one that nobody else uses; None: a new one. Processes beyond the first have streams of their own, NAME.pK.
    lease: seconds after which the rollouts of a trainer that is gone are cancelled, as in Client.submit().
    check_template: whether traces must be of processing_class.chat_template, by its digest; their tokenizer always is.

    Raises BadArgument for tasks that cannot be trained on, or that sample otherwise than the trainer's args say,
    OtherTokens for traces of another tokenizer or template, and SluiceError for rollouts that cannot be learned from
    correctly: of several traces, with log-probabilities that are not finite, or none trainable at all.
    """

    def __init__(self, client: Client, tasks: Sequence[Mapping[str, Any]],
                 update: Optional[Callable[[Any], None]] = None, stream: Optional[str] = None,
                 lease: Optional[float] = None, check_template: bool = True) -> None:
        run = uuid.uuid4().hex[:8]
        self.client, self.update, self.lease, self.check_template = client, update, lease, check_template
        self.stream = arguments.name("stream", stream or f"trl-{run}")
        self.is_ratio_ours = False  # a SluiceGRPOTrainer takes the log-probabilities for those of the old policy
        self._prefix = f"{self.stream}.{run}" if stream else self.stream
        self._tasks = self._by_prompt(tasks)
        self._served: Optional[int] = None  # the step whose weights the engine has
        self._calls = 0                     # at that step
        self._reading: Optional[Iterator[Group]] = None

    @staticmethod
    def _by_prompt(tasks: Sequence[Mapping[str, Any]]) -> Dict[str, Mapping[str, Any]]:
        found: Dict[str, Mapping[str, Any]] = {}
        for task in tasks:
            if may_have_several_traces(task):
                raise BadArgument(f"tasks: {task.get('task')!r} may make several traces of a rollout, and GRPOTrainer takes "
                                  "one: set agent.max_traces to 1", "tasks")
            key = _key(prompt_of(task))
            if found.setdefault(key, task) != task:
                raise BadArgument(f"tasks: {found[key].get('task')!r} and {task.get('task')!r} differ, and have the same "
                                  "prompt, by which TRL's rows are matched with tasks", "tasks")
        if not found:
            raise BadArgument("tasks: there are none", "tasks")
        return found

    def __call__(self, prompts: List[Any], trainer: Any) -> Dict[str, Any]:
        """prompts: of this process's part of the batch; the lists that are returned have an entry for each."""
        if self._reading is None:
            self._begin(trainer)
        self._serve(trainer)
        self._calls += 1
        mode = "" if trainer.model.training else ".eval"
        copies = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
        pieces = list(self._pieces(prompts, copies))
        names = [f"{self._prefix}.s{self._served}{mode}.{self._calls}.{k}" for k in range(len(pieces))]
        for name, piece in zip(names, pieces):
            self.client.submit([dict(piece.task)], stream=self.stream, samples=piece.samples, group=_always(name),
                               lease=self.lease)
        groups = self._read(set(names))
        return self._columns([t for name in names for t in groups[name].trajectories], trainer)

    def _begin(self, trainer: Any) -> None:
        if self.update is None and not trainer.args.use_vllm:
            raise BadArgument("update: who loads the trainer's weights into the engine? Give a function that does, or set "
                              "use_vllm, with which TRL does it itself", "update")
        for task in self._tasks.values():
            said = {**DEFAULTS, **(task.get("sampling") or {})}
            self._check_sampling(f"the task {task.get('task')!r}", {name: said[name] for name in DEFAULTS},
                                 trainer.args)
        process = trainer.accelerator.process_index
        if process > 0:
            self.stream, self._prefix = f"{self.stream}.p{process}", f"{self._prefix}.p{process}"
        tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        template = getattr(trainer.processing_class, "chat_template", None)
        digest = "sha256:" + hashlib.sha256(template.encode()).hexdigest() if isinstance(template, str) else None
        self._reading = self.client.groups(
            self.stream, expect_template=digest if self.check_template else None,
            expect_tokenizer=tokenizer_digest(lambda text: list(tokenizer.encode(text, add_special_tokens=False))))

    def _check_sampling(self, what: str, said: Mapping[str, float], args: Any) -> None:
        require_same(what, said, {name: getattr(args, name, None) or 0 for name in DEFAULTS}, "the trainer's args")
        for name, off in FILTERS.items() if self.is_ratio_ours else ():
            if float(said[name]) != off:
                raise BadArgument(f"{what} samples with sampling.{name} {said[name]:g}: its log-probabilities are of what that "
                                  "leaves over, and the trainer's are not, so that the ratio would be biased; set it to "
                                  f"{off:g}", name)

    def _serve(self, trainer: Any) -> None:
        """Has the engine serve the weights of the trainer's step."""
        step = int(trainer.state.global_step)
        if step == self._served:
            return
        accelerator = trainer.accelerator
        with contextlib.ExitStack() as stack:
            if accelerator.is_main_process and self.update is None:
                self.client.policy_set(f"step-{step}")
            elif accelerator.is_main_process:
                stack.enter_context(self.client.updating(f"step-{step}"))
            accelerator.wait_for_everyone()
            if self.update is not None:
                self.update(trainer)
            accelerator.wait_for_everyone()
        accelerator.wait_for_everyone()
        self._served, self._calls = step, 0

    def _pieces(self, prompts: Sequence[Any], copies: int) -> Iterator[Piece]:
        keys = [_key(prompt) for prompt in prompts]
        at = 0
        while at < len(keys):
            task = self._tasks.get(keys[at])
            if task is None:
                raise BadArgument(f"tasks: none has the prompt {arguments.shown(prompts[at])} of the data set; make its "
                                  "rows with sluice.adapters.trl.rows(tasks)", "tasks")
            end = at
            while end < min(len(keys), at + copies) and keys[end] == keys[at]:
                end += 1
            yield Piece(task, end - at)
            at = end

    def _read(self, names: set[str]) -> Dict[str, Group]:
        assert self._reading is not None
        found: Dict[str, Group] = {}
        seq = 0
        try:
            for group in self._reading:
                seq = group.seq
                if group.group in names:
                    found[group.group] = group
                if found.keys() == names:
                    break
        except OtherTokens as error:
            raise OtherTokens(f"{error}, the trainer's: have the engine serve the model with the tokenizer and the chat "
                              "template of processing_class", error.seq) from error
        self.client.ack(self.stream, seq)
        return found

    def _columns(self, trajectories: List[Trajectory], trainer: Any) -> Dict[str, Any]:
        end = int(getattr(trainer.processing_class, "tokenizer", trainer.processing_class).eos_token_id)
        left_out = [t for t in trajectories if not is_learnable(t)]
        if left_out:
            why = f"{left_out[0].rollout} ended as {left_out[0].outcome}: {left_out[0].detail}"
            if len(left_out) == len(trajectories):
                raise SluiceError(f"none of the {len(trajectories)} rollouts may be learned from; {why}")
            warnings.warn(f"{len(left_out)} of {len(trajectories)} rollouts may not be learned from, and are masked; {why}",
                          stacklevel=4)
        given: Dict[str, List[Any]] = {name: [] for name in (*TOKENS, *COLUMNS)}
        for t in trajectories:
            reward = t.reward if is_scored(t) else None
            values = (*self._tokens(t, trainer.args, end), reward, t.rollout, t.outcome, t.truncated, t.metrics)
            for name, value in zip(given, values):
                given[name].append(value)
        return given

    def _tokens(self, t: Trajectory, args: Any, end: int) -> Tuple[List[int], List[int], List[float], List[int]]:
        """TOKENS of it; an end token with mask 0 for what may not be learned from."""
        if not is_learnable(t):
            return [end], [end], [0.0], [0]
        learnt = [trace for trace in t.traces if trace.mask.any()]
        if len(learnt) > 1:
            raise SluiceError(f"{t.rollout} has {len(learnt)} traces ({learnt[1].reason}), and GRPOTrainer takes one: "
                              "set agent.max_traces of its task to 1")
        trace, = learnt
        self._check_trace(t, trace, args)
        prompt, completion, mask, logprobs = (part.tolist() for part in split(trace))
        return prompt, completion, logprobs, mask

    def _check_trace(self, t: Trajectory, trace: Trace, args: Any) -> None:
        for turn in trace.turns:
            if turn.sampling is not None:
                self._check_sampling(t.rollout, {name: getattr(turn.sampling, name) for name in DEFAULTS}, args)
        require_finite(t, trace)
        if self.is_ratio_ours:
            require_comparable(t, args.temperature)


class SampledLogprobs:
    """Mixed into GRPOTrainer: the ratio is exp(log p now - log p when sampled), the latter the rollouts' own.

    Without it, and without vLLM, GRPOTrainer takes its own present ones for those of the old policy, and the rollouts'
    only reach its logs: the ratio is then 1 by construction, whatever was sampled from.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        require_trl()
        super().__init__(*args, **options)
        rollouts = getattr(self, "rollout_func", None)
        if not isinstance(rollouts, RolloutFunction):
            raise BadArgument("rollout_func: SluiceGRPOTrainer wants a RolloutFunction", "rollout_func")
        if self.args.use_vllm:  # type: ignore[attr-defined]
            raise BadArgument("args: with use_vllm TRL corrects by the rollouts' log-probabilities itself; use TRL's "
                              "GRPOTrainer", "args")
        self._require_a_batch()
        rollouts.is_ratio_ours = True

    def _require_a_batch(self) -> None:
        """Where there are fewer prompts than a batch has, TRL would make no step and say nothing."""
        args, prompts = self.args, getattr(self, "train_dataset", None)  # type: ignore[attr-defined]
        wanted = args.generation_batch_size // args.num_generations
        if hasattr(prompts, "__len__") and len(prompts) < wanted:
            raise BadArgument(f"train_dataset: of its {len(prompts)} prompts TRL makes no batch, which has {wanted} "
                              "(generation_batch_size by num_generations): add tasks, or make the batch smaller",
                              "train_dataset")

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        ours = output["sampling_per_token_logps"]
        if ours.shape != output["completion_ids"].shape:
            raise SluiceError(f"log-probabilities of shape {tuple(ours.shape)} for completions of "
                              f"{tuple(output['completion_ids'].shape)}")
        output["old_per_token_logps"] = ours
        return output


def __getattr__(name: str) -> Any:
    """SluiceGRPOTrainer, made where it is first asked for: TRL need not be there for the rest."""
    if name != "SluiceGRPOTrainer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = type(name, (SampledLogprobs, require_trl().GRPOTrainer),
                {"__module__": __name__, "__doc__": SampledLogprobs.__doc__})
    globals()[name] = made
    return made
