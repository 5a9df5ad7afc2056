"""verl over Sluice (docs/trainers/verl.md): an agent loop, and a manager of them, whose rollouts are Sluice's.

    actor_rollout_ref.rollout.agent.agent_loop_config_path=loops.yaml    # - {name: sluice, _target_: ...}
    +actor_rollout_ref.rollout.agent.agent_loop_manager_class=sluice.adapters.verl.SluiceAgentLoopManager

sluice.adapters.verl.v1 has the manager of verl's V1 trainer.
"""

from __future__ import annotations

import atexit
import dataclasses
import inspect
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from ...bridge.thread import LoopThread
from ...errors import BadArgument, SluiceError
from ...task.tasks import read_tasks
from ...trajectory import Trajectory
from ..rollouts import only_trace, task_of
from ..parts.shared import shared
from ..parts.together import all_of
from ..tasks import is_learnable, prompt_of
from .mapping import SCORED, outputs, task_for
from .runs import Engine, Options, Runs  # first: it says which verl is wanted

from omegaconf import OmegaConf
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopManager, AgentLoopOutput, AgentLoopWorker
from verl.protocol import DataProto

__all__ = ["Engine", "SluiceAgentLoop", "SluiceAgentLoopManager", "is_learnable", "outputs", "rows", "task_for"]

OWN = frozenset(inspect.signature(AgentLoopBase.__init__).parameters)  # what verl gives an agent loop
OPTIONS = frozenset(field.name for field in dataclasses.fields(Options))


def rows(tasks: Iterable[Mapping[str, Any]], data_source: str = "sluice") -> List[Dict[str, Any]]:
    """Rows of a data set, one a task: `datasets.Dataset.from_list(rows(tasks)).to_parquet("train.parquet")`.

    Raises BadTask, which names all that are no tasks by their place and field.
    """
    return [{"prompt": prompt_of(line.task), "data_source": data_source,
             "reward_model": {"style": "rule", "ground_truth": ""}, "extra_info": {"index": index, "task": line.text}}
            for index, line in enumerate(read_tasks(tasks)[1])]


def learned(told: Sequence[Trajectory]) -> Sequence[Trajectory]:
    """All of them. SluiceError: one cannot be learned from, after all tries."""
    for trajectory in told:
        if not is_learnable(trajectory):
            raise SluiceError(f"{trajectory.rollout} cannot be learned from, nor could those before it "
                              f"({trajectory.outcome}: {trajectory.detail})")
    return told


class SluiceAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """A loop is one rollout of the row's task.

    The entry of agent_loop_config_path has the members of Options beside name and _target_. One that ends without
    anything to learn from is begun again, `tries` times in all, and is then an error: of the training in v0, of the
    group in V1.
    """

    def __init__(self, *, name: str = "sluice", tools: Any = None, **given: Any) -> None:
        super().__init__(**{key: value for key, value in given.items() if key in OWN})
        self._options = Options.of({key: value for key, value in given.items() if key not in OWN})

    def _make(self) -> Runs:
        return Runs(self._options, self.config, self.tokenizer, self.server_manager)

    async def run(self, sampling_params: Dict[str, Any], **row: Any) -> Any:
        """V1 has the outputs of all traces, a list; v0 the one of the only trace."""
        runs = shared(("verl", self._options.stream, self._options.broker), self._make)
        trajectory, = learned(await runs.group(task_of(row), sampling_params, 1))
        if "session_id" not in row:
            only_trace(trajectory)
            return outputs(trajectory, runs.lengths)[0]
        return counted(trajectory, outputs(trajectory, runs.lengths))


def counted(trajectory: Trajectory, told: List[AgentLoopOutput]) -> List[AgentLoopOutput]:
    """These. SluiceError: one has tokens of a version without a number, where verl's V1 trainer computes with it."""
    for output in told:
        if output.extra_fields["min_global_steps"] is None:
            versions = sorted({name for trace in trajectory.traces for name in trace.versions()[trace.mask == 1]})
            raise SluiceError(f"{trajectory.rollout} was sampled by versions {versions}, and verl's V1 trainer counts "
                              "them: name them by policy_set() such that they end with their number, step-7, or leave "
                              "engine at verl")
    return told


class SluiceAgentLoopManager(AgentLoopManager):  # type: ignore[misc]
    """For verl's v0 trainer: rows of one uid are one group of rollouts. `sluice` of its configuration has Options."""

    def __init__(self, config: Any, llm_client: Any, teacher_client: Any = None,
                 reward_loop_worker_handles: Optional[List[Any]] = None) -> None:
        super().__init__(config, llm_client, teacher_client, reward_loop_worker_handles)
        given = OmegaConf.to_container(config.get("sluice") or OmegaConf.create({}), resolve=True)
        self.options = Options.of(given if isinstance(given, dict) else {"sluice": given})
        self.worker = self._make_worker()
        self.runs = Runs(self.options, config, self.worker.tokenizer, llm_client)
        self.thread = LoopThread("sluice-verl")
        self._is_closed = False
        atexit.register(self.close)

    def _make_worker(self) -> Any:
        """verl's own, in this process: it makes the rows."""
        return AgentLoopWorker(self.config, self.llm_client, self.teacher_client, self.reward_loop_worker_handles)

    @classmethod
    def create(cls, *given: Any, **options: Any) -> SluiceAgentLoopManager:
        return cls(*given, **options)

    def close(self) -> None:
        """Ends what is under way, and takes its engine from the broker. Idempotent; at the process's end it is called."""
        if not self._is_closed:
            self._is_closed = True
            atexit.unregister(self.close)
            self.thread.run(self.runs.close())
            self.thread.end()

    def sampling(self, is_validation: bool, is_sampled: bool = True) -> Dict[str, Any]:
        """As verl says it; is_sampled: not greedily."""
        if not is_sampled:
            return {"temperature": 0.0, "top_p": 1.0, "top_k": -1}
        of = self.rollout_config.val_kwargs if is_validation else self.rollout_config
        return {name: of[name] for name in ("temperature", "top_p", "top_k")}

    async def begin(self, step: int, is_validation: bool, is_quiet: bool) -> None:
        """The weights of a training's step are those of the one before it."""
        await self.runs.start()
        await self.runs.set_step(step if is_validation else max(step - 1, 0), is_quiet)

    def generate_sequences(self, prompts: DataProto) -> DataProto:
        """Blocks until all rollouts have ended. SluiceError: one cannot be learned from, after all tries."""
        return self.thread.run(self._generate(prompts))

    async def _generate(self, prompts: DataProto) -> DataProto:
        is_validation = bool(prompts.meta_info.get("validate", False))
        await self.begin(int(prompts.meta_info.get("global_steps", 0)), is_validation, True)
        groups: Dict[Any, List[int]] = {}  # uid and whether it is sampled: places of its rows
        columns = prompts.non_tensor_batch
        for place in range(len(prompts)):
            is_sampled = bool(columns["__do_sample__"][place]) if "__do_sample__" in columns else True
            groups.setdefault((columns["uid"][place] if "uid" in columns else place, is_sampled), []).append(place)
        told = await all_of(
            self._group([{name: column[place] for name, column in columns.items() if name != "__do_sample__"}
                         for place in places], self.sampling(is_validation, is_sampled), is_validation)
            for (_, is_sampled), places in groups.items())
        made = {place: output for places, group in zip(groups.values(), told) for place, output in zip(places, group)}
        return self._joined([made[place] for place in range(len(prompts))], columns, is_validation)

    async def _group(self, rows: List[Dict[str, Any]], sampling: Mapping[str, Any], is_validation: bool) -> List[Any]:
        """verl's padded outputs of rows that are one prompt."""
        told = learned(await self.runs.group(task_of(rows[0]), sampling, len(rows)))
        for trajectory in told:
            only_trace(trajectory)
        return await all_of(
            self.worker._agent_loop_postprocess(outputs(trajectory, self.runs.lengths)[0], is_validation, **row)
            for trajectory, row in zip(told, rows))

    def _joined(self, made: List[Any], columns: Dict[str, Any], is_validation: bool) -> DataProto:
        unscored = [output for output in made if SCORED not in output.extra_fields.get("reward_extra_info", {})]
        if unscored and len(unscored) < len(made):
            name = unscored[0].extra_fields["sluice_rollout"]
            raise BadArgument(f"{name} has no reward, where others of the batch have one, and verl's v0 trainer wants "
                              "them of all or of none: give each task an eval.kind, or none", "task")
        output = self.worker._postprocess(made, columns, is_validation)
        metrics = output.meta_info.pop("metrics")
        output.meta_info = {"timing": self._performance_metrics([metrics], output), **output.meta_info}
        return output
