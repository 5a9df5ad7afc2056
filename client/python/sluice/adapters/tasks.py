"""What a trainer's data row holds for Sluice, and what a trajectory holds for a trainer of one sequence a rollout."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping

from ..arguments import shown
from ..errors import BadArgument
from ..trajectory import Trace, Trajectory, Turn

PLACES = ("extra_info", "metadata", "env_extras")  # where trainers keep a row's further columns


def part_of(task: Mapping[str, Any], name: str) -> Dict[str, Any]:
    """What a task says in an object of it, such as "sampling"; {} where it says nothing. BadArgument: it is none."""
    value = task.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise BadArgument(f"the task {task.get('task')!r} has the {name} {shown(value)}, where a dict is wanted", name)
    return dict(value or {})


def _without_none(value: Any) -> Any:
    """Tables of columns put None where another row has a value; a task has no field that wants it."""
    if isinstance(value, Mapping):
        return {name: _without_none(one) for name, one in value.items() if one is not None}
    if isinstance(value, (list, tuple)) or type(value).__name__ == "ndarray":
        return [_without_none(one) for one in value]
    return value.item() if type(value).__module__ == "numpy" else value


def _parsed(value: Any, place: str) -> Dict[str, Any]:
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as why:
            raise BadArgument(f"{place} is not JSON: {why}", "task") from None
    if not isinstance(value, Mapping):
        raise BadArgument(f"{place} wants a Sluice task, a dict or its JSON text, not a {type(value).__name__}", "task")
    try:
        task: Dict[str, Any] = _without_none(value)
    except RecursionError:
        raise BadArgument(f"{place} has too many levels", "task") from None
    return task


def _is_task(value: Any) -> bool:
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode(errors="replace")
        return text.lstrip().startswith("{")
    return isinstance(value, Mapping)


def task_of(row: Mapping[str, Any]) -> Dict[str, Any]:
    """The Sluice task of a trainer's data row: row["task"], or "task" of its "extra_info", "metadata" or "env_extras".

    It is a dict (docs/tasks.md), or the JSON text of one, which is the safer where rows are kept as a table: such a
    table fills in None for what a row has not, and that is left out here. Raises BadArgument, which says what the row
    has, where there is none.
    """
    if not isinstance(row, Mapping):
        raise BadArgument(f"row wants a mapping of columns, not a {type(row).__name__}", "row")
    found = {'row["task"]': row["task"]} if "task" in row else {}
    for column in PLACES:
        inner = row.get(column)
        if isinstance(inner, (str, bytes)) and _is_task(inner):
            inner = _parsed(inner, f'row["{column}"]')
        if isinstance(inner, Mapping) and inner.get("task") is not None:
            found[f'row["{column}"]["task"]'] = inner["task"]
    for place, value in found.items():
        if _is_task(value):
            return _parsed(value, place)
    told = "; ".join(f"{place} is {str(value)[:40]!r}" for place, value in found.items()) or \
        f"it has the columns {', '.join(map(str, row)) or '(none)'}"
    raise BadArgument('a row wants its Sluice task, a dict or its JSON text (docs/tasks.md), as row["task"], or as '
                      f"\"task\" in row[{']/row['.join(map(repr, PLACES))}]: {told}", "task")


def prompt_of(task: Mapping[str, Any]) -> List[Dict[str, str]]:
    """The messages that a row shows of a task, which check_task() has found to be one."""
    messages = task.get("messages") or [{"role": "user", "content": task.get("prompt") or task["task"]}]
    return [{"role": one["role"], "content": one.get("content") or ""} for one in messages]


def sampled(trajectory: Trajectory) -> int:
    """How many of its tokens the policy sampled."""
    return sum(int(trace.mask.sum()) for trace in trajectory.traces)


def learnt_turns(trace: Trace) -> List[Turn]:
    """Those that the policy sampled and that are learned from: a reply that nobody read has mask 0 (docs/harnesses.md)."""
    return [turn for turn in trace.turns if trace.mask[turn.offset:turn.offset + turn.length].any()]


def is_learnable(trajectory: Trajectory) -> bool:
    """Whether it has something to learn from: it is trainable, and has tokens that the policy sampled."""
    return trajectory.trainable and sampled(trajectory) > 0


def is_scored(trajectory: Trajectory) -> bool:
    """Whether it can be learned from by a reward of its own."""
    return is_learnable(trajectory) and trajectory.reward is not None


def may_have_several_traces(task: Mapping[str, Any]) -> bool:
    """Whether a rollout of the task may."""
    agent = part_of(task, "agent")
    return agent.get("kind") != "chat" and agent.get("max_traces") != 1


def only_trace(trajectory: Trajectory) -> Trace:
    """The one trace of a rollout that is learned from, for trainers that take no more; of one without any its only one.
    BadArgument: it has several, or none, and what to do."""
    learnt = [trace for trace in trajectory.traces if trace.mask.any()] or trajectory.traces
    count = len(learnt)
    if count == 1:
        return learnt[0]
    if count == 0:
        raise BadArgument(f"{trajectory.rollout} has no tokens (outcome {trajectory.outcome}"
                          f"{': ' + trajectory.detail if trajectory.detail else ''}): ask whether it is trainable, and "
                          "has traces, before it is learned from", "trajectory")
    reasons = ", ".join(trace.reason or "?" for trace in learnt[1:])
    raise BadArgument(f"{trajectory.rollout} has {count} traces ({reasons}), and this trainer takes one sequence of a "
                      "rollout: set agent.max_traces to 1 in its task; it then ends where a second would begin",
                      "trajectory")
