"""What a task says of the sandbox of its evaluator, as task_check_room in schemas/task/evaluators.c: of the task, or of a step as a task."""

from __future__ import annotations

import re

from .task_fields import TaskError, Told

# What no evaluation in the agent's own sandbox can have, and what of a step is in place of the task's.
BASE, OTHERS = ("eval.image", "eval.build.dockerfile"), ("eval.artifacts", "eval.network", "eval.workdir", "eval.user")


def step_room(told: Told, step: Told) -> Told:
    """The task's fields of that, with the step's in their place."""
    room = dict(told)
    own = {field: step[f"steps[].{field}"] for field in ("eval.sandbox", *BASE, *OTHERS) if f"steps[].{field}" in step}
    if own.get("eval.sandbox") == "agent" != told.get("eval.sandbox"):
        for field in (*BASE, *OTHERS, "eval.trust"):
            room.pop(field, None)
    if any(field in own for field in BASE):
        for field in BASE:
            room.pop(field, None)
    return {**room, **own}


def is_apart(told: Told, step: Told) -> bool:
    """Whether the step is evaluated in a sandbox of the evaluator's own."""
    return step.get("steps[].eval.sandbox", told.get("eval.sandbox", "fresh")) == "fresh"


def _check_own_image(told: Told) -> None:
    given = [field for field in BASE if field in told]
    if len(given) > 1:
        raise TaskError("ambiguous", "eval.build.dockerfile", "only one of eval.image and eval.build may be given")
    if given and "eval.artifacts" not in told:
        raise TaskError("missing-field", "eval.artifacts", f"eval.artifacts is missing; {given[0]} requires it: of the agent's files an "
                        "image of its own has what that lists, and may be []")


def _check_artifacts(told: Told) -> None:
    for i, path in enumerate(told.get("eval.artifacts", ()) if told.get("eval.kind") == "verifier" else ()):
        if re.match(r"(/(\.?(?=/)))*/tests(/|$)", path):
            field = f"eval.artifacts[{i}].path"
            raise TaskError("bad-task", field, f"{field} must not be /tests or below it: there lies what eval.kind verifier judges by, and "
                            "the agent's would take its place")


def _check_agents(told: Told) -> None:
    if told.get("eval.sandbox") == "agent":
        for field, given in (("eval.artifacts", "eval.artifacts" in told), ("eval.trust", told.get("eval.trust", "none") != "none"),
                             ("eval.network", bool(told.get("eval.network"))), ("eval.image", "eval.image" in told),
                             ("eval.build.dockerfile", "eval.build.dockerfile" in told), ("eval.workdir", "eval.workdir" in told),
                             ("eval.user", told.get("eval.user") not in (None, told.get("user")))):
            if given:
                raise TaskError("bad-task", field,
                                f"{field} goes with eval.sandbox fresh: in the agent's own all is as the agent had it")


def check_room(told: Told) -> None:
    _check_agents(told)
    _check_own_image(told)
    _check_artifacts(told)
