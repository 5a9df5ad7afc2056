"""What several fields of a task say together, in the words of `sluice submit`; what each alone may be is in task_fields.py.

The same rules as schemas/task/*.c, in the same order, so that the same field is named; a test has both read the same
thousands of tasks. The broker checks again, so a rule that is missing here is no hole.
"""

from __future__ import annotations

import math
import re
from typing import Any, List

from .room_rules import check_room
from .step_rules import check_steps, have_commands, have_solution
from .task_fields import (DEFAULTS, EVAL_RULES, EVALUATORS, OBJECTS, TASK_BYTES, TASK_LEVELS, TASK_VALUES, TaskError, Told, has_levels,
                          parse_json, read_object)

__all__ = ["OBJECTS", "TASK_BYTES", "TaskError", "check_task", "parse_json"]


# ---- what several fields say together ---------------------------------------------------------------------


def _kind_of(told: Told) -> str:
    if "script" in told:
        return "replay"
    if "tools" not in told or told["tools"] == ["bash"]:
        return "bash"
    return "tools" if told["tools"] else "chat"


def _check_tools(kind: str, told: Told) -> None:
    tools = told.get("tools")
    if kind == "replay":
        for i, tool in enumerate(told["script"]):
            if tools is not None and tool not in tools:
                field = f"agent.script[{i}].tool"
                raise TaskError("bad-task", field, f"{field} is {tool}, which is not among agent.tools")
    elif tools is not None and kind in _AGENTS:
        wanted = {"tools": "" if tools else "of at least one tool",
                  "bash": "" if tools == ["bash"] else '["bash"]'}.get(kind, "[]" if tools else "")
        if wanted:
            raise TaskError("bad-task", "agent.tools", f"agent.kind {kind} goes with agent.tools {wanted}")


def _check_harness(kind: str, told: Told) -> None:
    is_command = told.get("agent.harness", "command") == "command"
    if kind != "harness" and not is_command:
        raise TaskError("bad-task", "agent.harness", f"agent.harness goes with agent.kind harness, and this task's is {kind}")
    if kind == "harness" and is_command and "agent.command" not in told:
        raise TaskError("missing-field", "agent.command", "agent.command is missing; agent.harness command, which is the "
                        "default, requires it")
    if "agent.command" in told and not (kind == "harness" and is_command):
        raise TaskError("bad-task", "agent.command", "agent.command goes with agent.kind harness and agent.harness command")


def _check_train(kind: str, told: Told) -> None:
    if "agent.train" in told and kind not in ("harness", "session"):
        raise TaskError("bad-task", "agent.train", f"agent.train goes with agent.kind harness or session, and this task's is {kind}")


def _check_agent(kind: str, told: Told) -> None:
    if kind == "replay" and "script" not in told:
        raise TaskError("missing-field", "agent.script", "agent.script is missing; give it or agent.recorded: "
                        "agent.kind replay requires it")
    if kind != "replay" and "script" in told:
        raise TaskError("bad-task", "agent.script", f"agent.script goes with agent.kind replay, and this task's is {kind}")
    for field in ("agent.form", "agent.tool_role"):
        if told.get(field, "auto") != "auto" and kind not in ("tools", "harness", "session") and kind in _AGENTS:
            raise TaskError("bad-task", field, f"{field} goes with agent.kind tools, harness or session, and this task's is {kind}")
    if told.get("agent.engine", "auto") != "auto" and kind in _AGENTS:
        raise TaskError("bad-task", "agent.engine",
                        f"agent.engine goes with an agent of a handler, and this task's is {kind}")
    _check_harness(kind, told)
    _check_train(kind, told)
    if told.get("agent.idle_s", 300) != 300 and kind != "session":
        raise TaskError("bad-task", "agent.idle_s", f"agent.idle_s goes with agent.kind session, and this task's is {kind}")
    _check_tools(kind, told)


def _check_messages(kind: str, told: Told) -> None:
    messages = told.get("messages")
    if not messages:
        if told.get("steps") or told.get("kind") == "noop" or kind in ("none", "replay", "oracle", "session") or told.get("agent.engine") == "none":
            return
        raise TaskError("missing-field", "prompt", "prompt is missing: give one of prompt, messages and steps")
    if messages[-1] != "user":
        raise TaskError("bad-task", "messages", "the last of messages must be the user's")


_AGENTS: List[str] = OBJECTS["agent"]["kind"].words or []  # that are built in


def _check_shaping(kind: str, told: Told) -> None:
    most, buffer = told.get("shaping.max_tokens", 0), told.get("shaping.buffer_tokens", 0)
    field = "shaping.buffer_tokens"
    if not most:
        if buffer:
            raise TaskError("bad-task", field, f"{field} goes with shaping.max_tokens, and this task has none")
        return
    if not buffer:
        raise TaskError("missing-field", field, f"{field} is missing; shaping.max_tokens requires it")
    if buffer > most:
        raise TaskError("too-large", field, f"{field} must be at most shaping.max_tokens, {most}")
    if told.get("eval.kind", "none") == "none" and kind != "noop":
        raise TaskError("bad-task", "shaping.max_tokens",
                        "shaping.max_tokens changes a reward, and eval.kind none gives none")


def _check_checker(kind: str, told: Told) -> None:
    field, checker = "eval.checker_program", told.get("eval.checker", "lines")
    program, files = told.get(field), told.get("eval.files")
    if checker == "program" and not program:
        raise TaskError("missing-field", field, f"{field} is missing; eval.checker program requires it")
    if program and checker != "program":
        raise TaskError("bad-task", field, f"{field} goes with eval.checker program, and this task's is {checker}")
    if kind == "code" and files and checker != "program":
        raise TaskError("bad-task", "eval.files", "eval.files of eval.kind code go with eval.checker program, and this "
                        f"task's is {checker}")
    if checker == "program" and program not in [file["path"] for file in files or ()]:
        raise TaskError("bad-task", field, f"{field} must be the path of one of eval.files")
    if checker == "program" and told["eval.tests"] != "outputs":
        raise TaskError("bad-task", "eval.tests", "eval.tests must have outputs for eval.checker program to judge")


def _check_eval(agent: str, told: Told) -> None:
    kind = told.get("eval.kind", "none")
    for rule in EVAL_RULES:
        field, of = rule.field, rule.evaluators
        given = field in told if field == "eval.artifacts" else bool(told.get(field)) and str(told[field]) != DEFAULTS.get(field)
        given = given or (field == "eval.command" and kind in EVALUATORS and have_commands(told))
        applies = kind in of.split("|")
        if not given and kind in rule.required.split("|"):
            raise TaskError("missing-field", field, f"{field} is missing; eval.kind {kind} requires it")
        if not applies and given and not (rule.handlers and kind not in EVALUATORS):
            raise TaskError("bad-task", field, f"{field} goes with eval.kind {of}, and this task's is {kind}")
    if told.get("eval.verdict_statuses") and told.get("eval.reward_file"):
        raise TaskError("ambiguous", "eval.verdict_statuses", "only one of eval.reward_file and eval.verdict_statuses "
                        "may be given: where there is a reward file, status 0 alone is a verdict")
    check_room(told)
    _check_checker(kind, told)
    if told.get("eval.answer") and told.get("eval.answers"):
        raise TaskError("ambiguous", "eval.answers", "only one of eval.answer and eval.answers may be given")
    if EVALUATORS.get(kind, False) and not told.get("eval.answer") and not told.get("eval.answers"):
        raise TaskError("missing-field", "eval.answer",
                        f"eval.answer is missing; eval.kind {kind} requires it, or eval.answers")
    if kind == "posted" and agent != "session":
        raise TaskError("bad-task", "eval.kind", f"eval.kind posted goes with agent.kind session, and this task's is {agent}")


def _check_judge(kind: str, told: Told) -> None:
    at = "eval.judge."
    criteria, reference, prompt = told.get(at + "criteria"), told.get(at + "reference"), told.get(at + "prompt")
    if told.get("eval.kind") != "judge":
        return
    if criteria and reference:
        raise TaskError("ambiguous", at + "reference",
                        "only one of eval.judge.criteria and eval.judge.reference may be given")
    if not criteria and not reference:
        raise TaskError("missing-field", at + "criteria",
                        "eval.judge.criteria is missing: give it or eval.judge.reference")
    if criteria and not sum(one.get(at + "criteria[].weight", 1) for one in criteria) > 0:
        raise TaskError("bad-task", at + "criteria", "eval.judge.criteria must have one with a weight above 0")
    view, files = told.get(at + "view", "answer"), told.get(at + "files")
    if view == "files" and not files:
        raise TaskError("missing-field", at + "files", "eval.judge.files is missing; eval.judge.view files requires it")
    if view != "files" and files:
        raise TaskError("bad-task", at + "files",
                        f"eval.judge.files goes with eval.judge.view files, and this task's is {view}")
    for place in ("{judged}", "{reply}"):
        if prompt and place not in prompt:
            raise TaskError("bad-task", at + "prompt", f"eval.judge.prompt must hold {place}: what is judged goes to "
                            "{judged}, and how to reply to {reply}")
    if told.get(at + "samples", 1) > 1 and told.get(at + "temperature", 0) <= 0:
        raise TaskError("bad-task", at + "temperature", "eval.judge.temperature must be above 0 where "
                        "eval.judge.samples is above 1: else all replies are the same")
    samples_nothing = told.get("kind") == "noop" or kind in ("none", "replay", "oracle") or told.get("agent.engine") == "none"
    policy = told.get(at + "policy", "judge")
    if not samples_nothing and policy == told.get("policy", "default") and told.get(at + "self") != "allow":
        raise TaskError("bad-task", at + "policy", f"eval.judge.policy is the task's own policy, {policy[:64]}, which "
                        'would judge itself: name another, or say "self": "allow"')


_SWE_GIVEN = ("test_patch", "script", "test_command", "prepare", "fail_to_pass", "pass_to_pass", "expected", "protected")


def _swe_both(field: str, other: str) -> TaskError:
    return TaskError("ambiguous", f"eval.swe.{field}", f"only one of eval.swe.{other} and eval.swe.{field} may be given")


def _swe_missing(field: str, instead: str) -> TaskError:
    return TaskError("missing-field", f"eval.swe.{field}",
                     f"eval.swe.{field} is missing; eval.kind swe requires it, or eval.swe.{instead}")


def _check_swe(told: Told) -> None:
    kind, given = told.get("eval.kind", "none"), [name for name in _SWE_GIVEN if f"eval.swe.{name}" in told]
    if kind != "swe":
        if given:
            field = f"eval.swe.{given[0]}"
            raise TaskError("bad-task", field, f"{field} goes with eval.kind swe, and this task's is {kind}")
        return
    if "script" not in given and "test_command" not in given:
        raise _swe_missing("test_command", "script")
    for field in ("test_command", "prepare"):
        if "script" in given and field in given:
            raise _swe_both(field, "script")
    if "fail_to_pass" not in given and "expected" not in given:
        raise _swe_missing("fail_to_pass", "expected")
    for field in ("fail_to_pass", "pass_to_pass"):
        if "expected" in given and field in given:
            raise _swe_both("expected", field)
    script = told.get("eval.swe.script")
    if script and ">>>>> End Test Output" not in script.partition(">>>>> Start Test Output")[2]:
        raise TaskError("bad-task", "eval.swe.script", "eval.swe.script must print '>>>>> Start Test Output' before the tests, "
                        "and '>>>>> End Test Output' behind them")
    if not re.fullmatch("HEAD|[0-9a-f]{7,64}", told.get("eval.swe.base_commit", "HEAD")):
        raise TaskError("bad-task", "eval.swe.base_commit",
                        "eval.swe.base_commit must be 7 to 64 hexadecimal digits, or HEAD")


def _check_solution(kind: str, told: Told) -> None:
    if kind != "oracle" or told.get("kind") == "noop" or have_solution(told) or any(told.get(f"solution.{of}") for of in ("files", "commands", "answer")):
        return
    if told.get("eval.kind") not in ("math", "choice", "exact"):
        raise TaskError("missing-field", "solution", "solution is missing; agent.kind oracle requires it, unless "
                        "eval.kind is math, choice or exact")


def _check_one_build(of: str, path: str, told: Told) -> None:
    """`of` is what it is called; told has its fields by `path`."""
    files, needed = told.get(f"{path}.files") or [], f"{of}.dockerfile"
    for name in ("context", "files", "args", "target", "network", "timeout_s"):
        if f"{path}.dockerfile" not in told and told.get(f"{path}.{name}"):
            raise TaskError("missing-field", needed, f"{needed} is missing; {of}.{name} requires it")
    if f"{path}.context" in told and files:
        raise TaskError("ambiguous", f"{of}.files", f"only one of {of}.context and {of}.files may be given")
    for i, file in enumerate(files):
        if "source" in file:
            field = f"{of}.files[{i}].source"
            raise TaskError("bad-task", field, f"{field}: {of}.context takes what lies on a file system")


def _check_build(told: Told) -> None:
    _check_one_build("build", "build", told)
    _check_one_build("eval.build", "eval.build", told)
    for i, step in enumerate(told.get("steps", [])):
        _check_one_build(f"steps[{i}].eval.build", "steps[].eval.build", step)


def _check_score(told: Told) -> None:
    field, engine = "score.engine", told.get("score.engine")
    if not engine:
        needing = "score.top_k" if told.get("score.top_k") else "score.timeout_s"
        if told.get(needing):
            raise TaskError("missing-field", field, f"{field} is missing; {needing} requires it")
        return
    if told.get("kind") == "noop":
        raise TaskError("bad-task", field, f"{field} goes with kind sandbox: kind noop samples nothing")
    if told.get("steps"):
        raise TaskError("bad-task", field, f"{field} does not go with steps: a teacher scores in the eval stage")
    if told.get("eval.kind") == "posted":
        raise TaskError("bad-task", field, f"{field} does not go with eval.kind posted: a teacher scores in the eval stage, "
                        "and what is posted ends the rollout in its run")
    if told.get("eval.sandbox") == "agent":
        raise TaskError("bad-task", field, f"{field} goes with eval.sandbox fresh: a teacher scores in the eval stage, "
                        "and the agent's own sandbox is evaluated in its run")
    judge = told.get("eval.judge.policy", "judge") if told.get("eval.kind") == "judge" else engine
    if judge != engine:
        raise TaskError("bad-task", field, f"{field} must be eval.judge.policy, {judge[:64]}: an evaluation is given one "
                        "engine, which judges and scores")


# ---- the whole ---------------------------------------------------------------------------------------------


def _count(value: Any) -> int:
    """Its values and names, at any depth; refuses what no broker reads."""
    if isinstance(value, dict):
        return 1 + sum(_count(name) + _count(inner) for name, inner in value.items())
    if isinstance(value, list):
        return 1 + sum(map(_count, value))
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= c <= "\udfff" for c in value)):
        raise TaskError("not-utf8", "", "the task's JSON cannot be read: a text in it holds a NUL or half a surrogate pair")
    if isinstance(value, int) and not isinstance(value, bool) and not -2**63 <= value < 2**63:
        raise TaskError("too-large", "", f"the task's JSON cannot be read: {str(value)[:40]} is too large a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise TaskError("too-large", "", "the task's JSON cannot be read: a number in it is too large")
    return 1


def check_task(text: str, value: Any) -> None:
    """Raises TaskError unless `value`, whose JSON is `text`, is a task."""
    size = len(text.encode(errors="replace"))
    if size > TASK_BYTES:
        raise TaskError("too-large", "", f"a task is {size} bytes; the maximum is {TASK_BYTES}")
    if _count(value) > TASK_VALUES:
        raise TaskError("too-large", "", f"a task's JSON has more than {TASK_VALUES} values and names")
    if not has_levels(value, TASK_LEVELS):
        raise TaskError("too-large", "", f"a task's JSON has more than {TASK_LEVELS} levels")
    told: Told = {}
    read_object("", value, "", told)
    kind = told.get("agent.kind") or _kind_of(told)
    _check_agent(kind, told)
    _check_messages(kind, told)
    _check_eval(kind, told)
    _check_judge(kind, told)
    _check_swe(told)
    check_steps(kind, told)
    _check_solution(kind, told)
    _check_shaping(kind, told)
    _check_build(told)
    _check_score(told)
