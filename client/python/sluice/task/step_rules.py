"""What steps and the rest of a task say together, as in schemas/task/read/steps.c."""

from __future__ import annotations

from typing import Any, List

from .room_rules import check_room, is_apart, step_room
from .task_fields import EVALUATORS, TaskError, Told

_TESTS = "/tests"


def have_commands(told: Told) -> bool:
    """Whether every step says its eval.command."""
    steps = told.get("steps", [])
    return bool(steps) and all("steps[].eval.command" in step for step in steps)


def have_solution(told: Told) -> bool:
    return any(step.get(f"steps[].solution.{of}") for step in told.get("steps", []) for of in ("files", "commands", "answer"))


def _check_alone(kind: str, told: Told) -> None:
    if told.get("messages"):
        raise TaskError("ambiguous", "steps",
                        "only one of prompt, messages and steps may be given: each step has a prompt of its own")
    if any(told.get(f"solution.{of}") for of in ("files", "commands", "env", "answer")):
        raise TaskError("ambiguous", "solution", "solution does not go with steps: each step has its own, steps[].solution")
    if kind == "session":
        raise TaskError("bad-task", "agent.kind", "agent.kind session does not go with steps: its loop is not told when one begins")
    if kind == "replay":
        raise TaskError("bad-task", "agent.kind",
                        "agent.kind replay does not go with steps: nothing says which step a call belongs to")


def _check_evaluator(told: Told) -> None:
    kind = told.get("eval.kind", "none")
    if kind in EVALUATORS and kind not in ("command", "verifier"):
        raise TaskError("bad-task", "eval.kind", f"eval.kind {kind} does not go with steps: each is evaluated by command, verifier or "
                        "an evaluator of a handler")


def _check_files(field: str, files: List[Any]) -> None:
    for i, file in enumerate(files):
        if not file["path"].startswith(_TESTS + "/") and not ("source" in file and file["path"] == _TESTS):
            path = f"{field}[{i}].path"
            raise TaskError("bad-task", path, f"{path} must be below {_TESTS} where steps are evaluated in the agent's own sandbox: "
                            "the agent of the next step must not find it, and that directory is taken away")


def check_steps(kind: str, told: Told) -> None:
    steps, evaluator = told.get("steps"), told.get("eval.kind", "none")
    if not steps:
        if told.get("steps_reward", "mean") != "mean":
            raise TaskError("bad-task", "steps_reward", "steps_reward goes with steps, and this task has none")
        return
    _check_alone(kind, told)
    _check_evaluator(told)
    if not all(is_apart(told, step) for step in steps):
        _check_files("eval.files", told.get("eval.files", []))
    for i, step in enumerate(steps):
        field = f"steps[{i}].eval.command"
        if "steps[].eval.command" in step and evaluator not in EVALUATORS:
            raise TaskError("bad-task", field, f"{field} goes with eval.kind command|verifier, and this task's is {evaluator}")
        if not is_apart(told, step):
            _check_files(f"steps[{i}].eval.files", step.get("steps[].eval.files", []))
        try:
            check_room(step_room(told, step))
        except TaskError as no:
            place = f"steps[{i}]."
            raise TaskError(no.reason, place + no.field, (place if no.text.startswith(no.field) else "") + no.text) from None
