"""What a task may be: the rows of tasks.json, and what several fields say together, in the words of `sluice submit`.

The same rules as schemas/task/*.c, in the same order, so that the same field is named; a test has both read the same
thousands of tasks. The broker checks again, so a rule that is missing here is no hole.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import pathlib
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..nearest import nearest
from .image_name import explain_image

TASK_BYTES, TASK_VALUES, KEY_SHOWN, SCRIPT_MAX, ARGUMENTS_DEPTH = 1 << 20, 65536, 60, 1024, 32
FIELD_BYTES, VARIABLES_BYTES = 127, 6144


class TaskError(Exception):
    """Why it is none: reason, field and sentence."""

    def __init__(self, reason: str, field: str, text: str) -> None:
        super().__init__(text)
        self.reason, self.field, self.text = reason, field, text


class Row(NamedTuple):
    path: str
    kind: str
    required: bool
    least: float
    most: float
    words: Optional[List[str]]
    default: Optional[str] = None  # as text


class EvalRule(NamedTuple):
    """The evaluators, "one|of|these", that a field of eval goes with."""
    field: str
    evaluators: str
    required: str  # those of them that require it
    handlers: bool  # whether one of a handler may be given it


def _load() -> Dict[str, Any]:
    with open(pathlib.Path(__file__).with_name("tasks.json"), encoding="utf-8") as file:
        table: Dict[str, Any] = json.load(file)
    return table


_TABLE = _load()
TOOLS: List[str] = _TABLE["tools"]
ROWS = [Row(row["path"], row["type"], row["required"], row["min"], row["max"], row.get("words"), row.get("default"))
        for row in _TABLE["fields"]]
DEFAULTS = {row.path: row.default for row in ROWS}
# Those that are built in: whether eval.answer or eval.answers is required.
EVALUATORS: Dict[str, bool] = {row["name"]: row["has_answer"] for row in _TABLE["evaluators"]}
EVAL_RULES = [EvalRule(**row) for row in _TABLE["eval_rules"]]


def _parent(path: str) -> Tuple[str, str]:
    parent, _, key = path.rpartition(".")
    return parent, key


# Of each object its rows by key, in the table's order.
OBJECTS: Dict[str, Dict[str, Row]] = {}
for _row in ROWS:
    OBJECTS.setdefault(_parent(_row.path)[0], {})[_parent(_row.path)[1]] = _row

Told = Dict[str, Any]  # what a task says, by path
Reader = Callable[[Row, Any, str, Told], None]


def _type(shown: str, wanted: str) -> TaskError:
    return TaskError("wrong-type", shown, f"{shown} must be {wanted}")


def _bounds(row: Row, amount: float, unit: str, shown: str) -> None:
    small = amount < row.least
    if small or not amount <= row.most:
        bound = row.least if small else row.most
        raise TaskError("too-small" if small else "too-large", shown,
                        f"{shown} is {amount:.15g}{unit}, at {'least' if small else 'most'} {bound:.15g}")


def _text(row: Row, value: Any, shown: str) -> str:
    if not isinstance(value, str):
        raise _type(shown, "a string")
    _bounds(row, len(value.encode()), " bytes", shown)
    return value


def _read_text(row: Row, value: Any, shown: str, told: Told) -> None:
    told[row.path] = _text(row, value, shown)


def _read_name(row: Row, value: Any, shown: str, told: Told) -> None:
    name = _text(row, value, shown)
    if any(c <= " " or c in "/\x7f" for c in name):
        raise TaskError("bad-name", shown, f"{shown} holds a '/', a blank or a control character")
    told[row.path] = name


def _climbs(path: str) -> bool:
    return ".." in path.split("/")


def _read_path(row: Row, value: Any, shown: str, told: Told) -> None:
    path = _text(row, value, shown)
    if path.rpartition("/")[2] in ("", ".") or _climbs(path):
        raise TaskError("bad-task", shown, f'{shown} must name a file, without ".."')
    told[row.path] = path


def _read_place(row: Row, value: Any, shown: str, told: Told) -> None:
    path = _text(row, value, shown)
    if _climbs(path):
        raise TaskError("bad-task", shown, f'{shown} must name a file, without ".."')
    told[row.path] = path


def _read_image(row: Row, value: Any, shown: str, told: Told) -> None:
    image = _text(row, value, shown)
    words = explain_image(image)
    if words:
        raise TaskError("bad-task", shown, f"{shown}: {words}")
    if image != "host" and (not image.startswith("/") or _climbs(image)):
        raise TaskError("bad-task", shown, f'{shown} must be "host" or an absolute path, without ".."')


_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*(:[A-Za-z0-9_.][A-Za-z0-9_.-]*)?")


def _read_user(row: Row, value: Any, shown: str, told: Told) -> None:
    user = _text(row, value, shown)
    if not _USER.fullmatch(user):
        raise TaskError("bad-name", shown, f"{shown} must be a user, or user:group, each by name or number")
    told[row.path] = user


def _read_directory(row: Row, value: Any, shown: str, told: Told) -> None:
    path = _text(row, value, shown)
    if not path.startswith("/") or _climbs(path):
        raise TaskError("bad-task", shown, f'{shown} must be an absolute path inside the sandbox, without ".."')
    told[row.path] = path


def _read_variables(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, dict):
        raise _type(shown, "an object of names and texts")
    _bounds(row, len(value), " elements", shown)
    size = 0
    for name, text in value.items():
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) or name.startswith("SLUICE_"):
            raise TaskError("bad-name", shown, f"{shown}: a variable's name is of letters, digits and _, no digit first, "
                            "and does not begin with SLUICE_")
        if not isinstance(text, str):
            raise _type(f"{shown[:60]}.{name[:60]}", "a string")
        size += len(name) + len(text.encode()) + 2
        if size > VARIABLES_BYTES:
            raise TaskError("too-large", shown, f"{shown} has more than {VARIABLES_BYTES} bytes of names and values")
    told[row.path] = value


def _read_word(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, str):
        raise _type(shown, "a string")
    if value not in (row.words or ()):
        raise TaskError("bad-task", shown, f"{shown} must be one of {'|'.join(row.words or ())}")
    told[row.path] = value


def _read_handler_name(row: Row, value: Any, shown: str, told: Told) -> None:
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_.-]*", _text(row, value, shown)):
        raise TaskError("bad-name", shown, f"{shown} must be letters, digits, '_', '.' and '-', a letter first")
    told[row.path] = value


def _read_whole(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _type(shown, "a whole number")
    _bounds(row, value, "", shown)
    told[row.path] = value


def _read_real(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _type(shown, "a number")
    _bounds(row, value, "", shown)
    told[row.path] = value


# ---- lists -------------------------------------------------------------------------------------------


def _list(row: Row, value: Any, shown: str) -> List[Any]:
    if not isinstance(value, list):
        raise _type(shown, "a list")
    _bounds(row, len(value), " elements", shown)
    return value


def _one_conversation(shown: str, told: Told) -> None:
    if "messages" in told:
        raise TaskError("ambiguous", shown, "only one of prompt and messages may be given")


def _read_prompt(row: Row, value: Any, shown: str, told: Told) -> None:
    _text(row, value, shown)
    _one_conversation(shown, told)
    told["messages"] = ["user"]


def _read_messages(row: Row, value: Any, shown: str, told: Told) -> None:
    messages = _list(row, value, shown)
    _one_conversation(shown, told)
    told["messages"] = []
    for i, message in enumerate(messages):
        one: Told = {}
        _read_object("messages[]", message, f"{shown}[{i}]", one)
        told["messages"].append(one["messages[].role"])


def _set_content(shown: str, told: Told) -> None:
    if "content" in told:
        raise TaskError("ambiguous", shown, f"{shown}: only one of text, base64 and source may be given")
    told["content"] = True


def _read_file_text(row: Row, value: Any, shown: str, told: Told) -> None:
    _text(row, value, shown)
    _set_content(shown, told)


def _is_base64(digits: str) -> bool:
    try:
        return base64.b64encode(base64.b64decode(digits, validate=True)).decode() == digits
    except (ValueError, binascii.Error):
        return False


def _read_file_base64(row: Row, value: Any, shown: str, told: Told) -> None:
    if not _is_base64(_text(row, value, shown)):
        raise TaskError("bad-task", shown, f"{shown} is not padded base64")
    _set_content(shown, told)


def _read_source(row: Row, value: Any, shown: str, told: Told) -> None:
    path = _text(row, value, shown)
    if not path.startswith("/") or _climbs(path):
        raise TaskError("bad-task", shown, f"{shown} must be an absolute path on the workers' nodes, without \"..\"")
    told[row.path] = path


def _read_file_source(row: Row, value: Any, shown: str, told: Told) -> None:
    _read_source(row, value, shown, told)
    _set_content(shown, told)
    told["source"] = True


def _read_file_mode(row: Row, value: Any, shown: str, told: Told) -> None:
    mode = _text(row, value, shown)
    if not re.fullmatch("[0-7]*", mode) or int(mode or "0", 8) > 0o777:
        raise TaskError("bad-task", shown, f'{shown} must be permission bits in octal, such as "0755"')


def _check_file(one: Told, file: Dict[str, Any], shown: str) -> None:
    if "source" in one:
        if "mode" in file:
            raise TaskError("ambiguous", f"{shown}.mode",
                            f"{shown}.mode goes with text and base64: a source has its own modes")
        return
    if "content" not in one:
        raise TaskError("missing-field", f"{shown}.text", f"{shown}.text is missing, or base64 or source in its place")
    if one["files[].path"].rpartition("/")[2] in ("", "."):
        raise TaskError("bad-task", f"{shown}.path", f'{shown}.path must name a file, without ".."')


def _read_files(row: Row, value: Any, shown: str, told: Told) -> None:
    if isinstance(value, dict):
        value = [{"path": path, "text": text} for path, text in value.items()]
    elif not isinstance(value, list):
        raise _type(shown, "a list of files, or an object of path and text")
    told[row.path] = _list(row, value, shown)
    for i, file in enumerate(value):
        one: Told = {}
        _read_object("files[]", file, f"{shown}[{i}]", one)
        _check_file(one, file, f"{shown}[{i}]")


_COMMAND = Row("", "TEXT", False, 1, 65536, None)
_TOOL = Row("", "HANDLER_NAME", False, 1, 64, None)
_STATUS = Row("", "UINT", False, 0, 125, None)


def _read_setup(row: Row, value: Any, shown: str, told: Told) -> None:
    for i, command in enumerate(_list(row, value, shown)):
        _text(_COMMAND, command, f"{shown}[{i}]")
    told[row.path] = value


_NAME = Row("", "TEXT", False, 1, 4096, None)
_TEST_STATUSES = ("PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL")


def _read_names(row: Row, value: Any, shown: str, told: Told) -> None:
    for i, name in enumerate(_list(row, value, shown)):
        _text(_NAME, name, f"{shown}[{i}]")
    told[row.path] = True


def _read_hidden(row: Row, value: Any, shown: str, told: Told) -> None:
    _read_names(row, value, shown, told)
    for i, path in enumerate(value):
        if not path.startswith("/") or not path.strip("/.") or _climbs(path):
            raise TaskError("bad-task", f"{shown}[{i}]",
                            f'{shown}[{i}] must be an absolute path inside the sandbox, without ".."')


def _read_expected(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, dict):
        raise _type(shown, "an object of names and statuses")
    _bounds(row, len(value), " elements", shown)
    for name, status in value.items():
        if not isinstance(status, str):
            raise _type(shown, "an object of names and statuses")
        if status not in _TEST_STATUSES:
            raise TaskError("bad-task", shown, f"{shown}: a status must be one of {'|'.join(_TEST_STATUSES)}")
        if len(name.encode()) > _NAME.most:
            raise TaskError("too-large", shown, f"{shown} has a name of {len(name.encode())} bytes, at most {_NAME.most}")
    told[row.path] = True


def _read_grants(row: Row, value: Any, shown: str, told: Told) -> None:
    seen: List[str] = []
    for i, grant in enumerate(_list(row, value, shown)):
        if not isinstance(grant, str):
            raise _type(f"{shown}[{i}]", "a string")
        if not re.fullmatch("[a-z][a-z0-9-]{0,31}", grant):
            raise TaskError("bad-name", f"{shown}[{i}]", f"{shown}[{i}] must be 1 to 32 of a-z, 0-9 and -, a letter first")
        if grant in seen:
            raise TaskError("bad-task", f"{shown}[{i}]", f"{shown}[{i}] is given twice")
        seen.append(grant)
    told[row.path] = seen


def _read_tests(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, dict):
        raise _type(shown, "an object")
    for name, inner in value.items():
        kind, words = {"inputs": (list, "a list"), "outputs": (list, "a list"), "asserts": (list, "a list of strings"),
                       "fn_name": (str, "a string"), "entry_point": (str, "a string")}.get(name, (None, ""))
        where = f"{shown}.{name}"
        if kind is None:
            raise TaskError("unknown-field", shown, f"{shown} has only inputs, outputs, fn_name, asserts and entry_point")
        if not isinstance(inner, kind) or (name == "asserts" and not all(isinstance(one, str) for one in inner)):
            raise _type(where, words)
    if "asserts" in value and ("inputs" in value or "outputs" in value or "fn_name" in value):
        raise TaskError("ambiguous", shown, f"{shown} has asserts, or inputs and outputs, and not both")
    if "asserts" not in value and ("inputs" not in value or "outputs" not in value):
        raise TaskError("missing-field", shown, f"{shown} must have inputs and outputs, or asserts")
    if "asserts" not in value and len(value["inputs"]) != len(value["outputs"]):
        raise TaskError("bad-task", shown, f"{shown} has {len(value['inputs'])} inputs and {len(value['outputs'])} outputs")
    _bounds(row, len(value.get("asserts", value.get("inputs", ()))), " elements", shown)
    if "fn_name" not in value and not all(isinstance(one, str) for one in value.get("inputs", []) + value.get("outputs", [])):
        raise _type(shown, "of texts where there is no fn_name")
    told[row.path] = "asserts" if "asserts" in value else "outputs"


def _read_statuses(row: Row, value: Any, shown: str, told: Told) -> None:
    seen: List[int] = []
    for i, status in enumerate(_list(row, value, shown)):
        _read_whole(_STATUS, status, f"{shown}[{i}]", {})
        if status in seen:
            raise TaskError("bad-task", f"{shown}[{i}]", f"{shown}[{i}] is given twice")
        seen.append(status)
    if 0 not in seen:
        raise TaskError("bad-task", shown, f"{shown} must have 0: no other status is a reward of 1")
    told[row.path] = seen


# ---- tools and what a replay calls --------------------------------------------------------------------


def _read_handlers(row: Row, value: Any, shown: str, told: Told) -> None:
    names: List[str] = []
    for i, handler in enumerate(_list(row, value, shown)):
        one: Told = {}
        _read_object("handlers[]", handler, f"{shown}[{i}]", one)
        name = one["handlers[].name"]
        if name in names:
            raise TaskError("bad-task", f"{shown}[{i}]", f"{shown}[{i}]: the name {name} is given twice")
        names.append(name)


def _read_tools(row: Row, value: Any, shown: str, told: Told) -> None:
    tools: List[str] = []
    for i, tool in enumerate(_list(row, value, shown)):
        if isinstance(tool, str) and tool in tools:
            raise TaskError("bad-task", f"{shown}[{i}]", f"{shown}[{i}] is there already")
        _read_handler_name(_TOOL, tool, f"{shown}[{i}]", {})
        tools.append(tool)
    told["tools"] = tools


def _levels(value: Any, most: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is None or (most > 0 and all(_levels(one, most - 1) for one in inner))


def _read_arguments(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, dict):
        raise _type(shown, "an object")
    if not _levels(value, ARGUMENTS_DEPTH):
        raise TaskError("too-large", shown, f"{shown} has more than {ARGUMENTS_DEPTH} levels")


def _one_script(shown: str, told: Told) -> None:
    if "script" in told:
        raise TaskError("ambiguous", shown, "only one of agent.script and agent.recorded may be given")


def _read_script(row: Row, value: Any, shown: str, told: Told) -> None:
    _one_script(shown, told)
    told["script"] = []
    for i, call in enumerate(_list(row, value, shown)):
        one: Told = {}
        _read_object("agent.script[]", call, f"{shown}[{i}]", one)
        told["script"].append(one["agent.script[].tool"])


def _call_of(said: str, shown: str) -> str:
    """The tool of "NAME: ARGUMENTS", as a trajectory has them."""
    name, _, rest = said.partition(": ")
    _read_handler_name(_TOOL, name, shown, {})
    try:
        arguments = parse_json(rest)
    except TaskError:
        arguments = None
    if not isinstance(arguments, dict):
        if name != "bash":
            raise TaskError("bad-task", shown,
                            f'{shown} must be a tool\'s name, ": " and its arguments as a JSON object')
        arguments = {}
    _read_arguments(_TOOL, arguments, shown, {})
    return name


def _read_recorded(row: Row, value: Any, shown: str, told: Told) -> None:
    _one_script(shown, told)
    script: List[str] = []
    for i, message in enumerate(_list(row, value, shown)):
        one: Told = {}
        _read_object("agent.recorded[]", message, f"{shown}[{i}]", one)
        if "agent.recorded[].tool" not in one:
            continue
        if len(script) == SCRIPT_MAX:
            raise TaskError("too-large", f"{shown}[{i}]", f"more than {SCRIPT_MAX} calls")
        script.append(_call_of(one["agent.recorded[].tool"], f"{shown}[{i}].tool"))
    if not script:
        raise TaskError("bad-task", shown, f"none of {shown} is a call")
    told["script"] = script


# ---- judges --------------------------------------------------------------------------------------------


_PATH = Row("", "PATH", False, 1, 4096, None)
_CHOICE = Row("", "TEXT", False, 1, 128, None)


def _read_judge_files(row: Row, value: Any, shown: str, told: Told) -> None:
    for i, path in enumerate(_list(row, value, shown)):
        _read_path(_PATH, path, f"{shown}[{i}]", {})
    told[row.path] = value


def _read_choices(row: Row, value: Any, shown: str, told: Told) -> None:
    for i, choice in enumerate(_list(row, value, shown)):
        _text(_CHOICE, choice, f"{shown}[{i}]")
    for i, choice in enumerate(value):
        if choice in value[:i]:
            raise TaskError("bad-task", shown, f"{shown}: '{choice[:60]}' is given twice")
    told[row.path] = value


def _read_criteria(row: Row, value: Any, shown: str, told: Told) -> None:
    inner = f"{row.path}[]."
    criteria: List[Told] = []
    for i, criterion in enumerate(_list(row, value, shown)):
        one: Told = {}
        place = f"{shown}[{i}]"
        _read_object(f"{row.path}[]", criterion, place, one)
        if any(one[inner + "name"] == other[inner + "name"] for other in criteria):
            raise TaskError("bad-task", place, f"{place}: the name {one[inner + 'name']} is given twice")
        least, most = one.get(inner + "min", 0), one.get(inner + "max", 0)
        if least > most:
            raise TaskError("bad-task", f"{place}.max", f"{place}.max must be above min")
        if one.get(inner + "choices") and least < most:
            raise TaskError("ambiguous", place, f"{place} has choices, or min and max, and not both")
        criteria.append(one)
    told[row.path] = criteria


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
                        "eval.judge.criteria is missing, or eval.judge.reference in its place")
    if criteria and not sum(one.get(at + "criteria[].weight", 1) for one in criteria) > 0:
        raise TaskError("bad-task", at + "criteria", "eval.judge.criteria must have one of a weight above 0")
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
                        "eval.judge.samples is above 1: else each is the same")
    samples_nothing = told.get("kind") == "noop" or kind in ("none", "replay") or told.get("agent.engine") == "none"
    policy = told.get(at + "policy", "judge")
    if not samples_nothing and policy == told.get("policy", "default") and told.get(at + "self") != "allow":
        raise TaskError("bad-task", at + "policy", f"eval.judge.policy is the task's own policy, {policy[:64]}, which "
                        'would judge itself: name another, or say "self": "allow"')


# ---- objects --------------------------------------------------------------------------------------------


def _show_key(shown: str, key: str) -> str:
    clean = "".join(chr(c) if 0x20 < c < 0x7f else "?" for c in key.encode(errors="replace")[:KEY_SHOWN])
    return (f"{shown}.{clean}" if shown else clean)[:FIELD_BYTES]


def _unknown(parent: str, key: str, shown: str) -> TaskError:
    meant = nearest(key, OBJECTS.get(parent, ()))
    if meant is None:
        meant = next((row.path for row in ROWS if len(key) > 1 and "." in row.path and _parent(row.path)[1] == key), None)
    hint = f"; did you mean '{meant}'?" if meant else ""
    return TaskError("unknown-field", shown, f"a task has no field '{shown}'{hint}")


def _read_object(parent: str, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, dict):
        raise TaskError("wrong-type", shown, f"{shown or 'a task'} must be an object")
    rows = OBJECTS[parent]
    for key, inner in value.items():
        row = rows.get(key)
        place = _show_key(shown, key)
        if row is None:
            raise _unknown(parent, key, place)
        _READERS[row.kind](row, inner, place, told)
    for key, row in rows.items():
        if row.required and key not in value:
            raise TaskError("missing-field", _show_key(shown, key), f"{_show_key(shown, key)} is missing")


def _read_inner(row: Row, value: Any, shown: str, told: Told) -> None:
    _read_object(row.path, value, shown, told)


def _read_metadata(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, dict):
        raise _type(shown, "an object")


_READERS: Dict[str, Reader] = {
    "OBJECT": _read_inner, "NAME": _read_name, "TEXT": _read_text, "PATH": _read_path, "PLACE": _read_place, "IMAGE": _read_image,
    "WORD": _read_word, "USER": _read_user, "DIRECTORY": _read_directory, "VARIABLES": _read_variables,
    "OPEN_WORD": _read_handler_name, "HANDLER_NAME": _read_handler_name, "UINT": _read_whole,
    "INT": _read_whole, "REAL": _read_real, "PROMPT": _read_prompt, "MESSAGES": _read_messages, "FILES": _read_files,
    "EVAL_FILES": _read_files, "SOLUTION_FILES": _read_files, "SOLUTION_COMMANDS": _read_setup, "FILE_TEXT": _read_file_text, "FILE_BASE64": _read_file_base64,
    "FILE_SOURCE": _read_file_source, "FILE_MODE": _read_file_mode, "SETUP": _read_setup, "GRANTS": _read_grants, "EVAL_GRANTS": _read_grants,
    "INIT_GRANTS": _read_grants, "BUILD_GRANTS": _read_grants, "SOURCE": _read_source,
    "STATUSES": _read_statuses, "ANSWERS": _read_setup, "FAIL_TO_PASS": _read_names, "PASS_TO_PASS": _read_names, "PROTECTED": _read_names,
    "EXPECTED_TESTS": _read_expected, "HIDDEN": _read_hidden, "TESTS": _read_tests, "HANDLERS": _read_handlers, "TOOLS": _read_tools,
    "JUDGE_FILES": _read_judge_files, "CRITERIA": _read_criteria, "CHOICES": _read_choices,
    "SCRIPT": _read_script,
    "RECORDED": _read_recorded, "ARGUMENTS": _read_arguments, "METADATA": _read_metadata,
}


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


def _check_agent(kind: str, told: Told) -> None:
    if kind == "replay" and "script" not in told:
        raise TaskError("missing-field", "agent.script", "agent.script is missing, or agent.recorded in its place; "
                        "agent.kind replay requires it")
    if kind != "replay" and "script" in told:
        raise TaskError("bad-task", "agent.script", f"agent.script goes with agent.kind replay, and this task's is {kind}")
    for field in ("agent.form", "agent.tool_role"):
        if told.get(field, "auto") != "auto" and kind != "tools" and kind in _AGENTS:
            raise TaskError("bad-task", field, f"{field} goes with agent.kind tools, and this task's is {kind}")
    if told.get("agent.engine", "auto") != "auto" and kind in _AGENTS:
        raise TaskError("bad-task", "agent.engine",
                        f"agent.engine goes with an agent of a handler, and this task's is {kind}")
    _check_tools(kind, told)


def _check_messages(kind: str, told: Told) -> None:
    messages = told.get("messages")
    if not messages:
        if told.get("kind") == "noop" or kind in ("none", "replay", "oracle") or told.get("agent.engine") == "none":
            return
        raise TaskError("missing-field", "prompt", "prompt is missing, or messages in its place")
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


def _check_eval(told: Told) -> None:
    kind = told.get("eval.kind", "none")
    for rule in EVAL_RULES:
        field, of = rule.field, rule.evaluators
        given = bool(told.get(field)) and str(told[field]) != DEFAULTS.get(field)
        applies = kind in of.split("|")
        if not given and kind in rule.required.split("|"):
            raise TaskError("missing-field", field, f"{field} is missing; eval.kind {kind} requires it")
        if not applies and given and not (rule.handlers and kind not in EVALUATORS):
            raise TaskError("bad-task", field, f"{field} goes with eval.kind {of}, and this task's is {kind}")
    if told.get("eval.verdict_statuses") and told.get("eval.reward_file"):
        raise TaskError("ambiguous", "eval.verdict_statuses", "only one of eval.reward_file and eval.verdict_statuses "
                        "may be given: where there is a reward file, status 0 alone is a verdict")
    if told.get("eval.sandbox") == "agent":
        for field, given in (("eval.trust", told.get("eval.trust", "none") != "none"), ("eval.network", told.get("eval.network")),
                             ("eval.user", told.get("eval.user") not in (None, told.get("user")))):
            if given:
                raise TaskError("bad-task", field,
                                f"{field} goes with eval.sandbox fresh: in the agent's own all is as the agent had it")
    _check_checker(kind, told)
    if told.get("eval.answer") and told.get("eval.answers"):
        raise TaskError("ambiguous", "eval.answers", "only one of eval.answer and eval.answers may be given")
    if EVALUATORS.get(kind, False) and not told.get("eval.answer") and not told.get("eval.answers"):
        raise TaskError("missing-field", "eval.answer",
                        f"eval.answer is missing; eval.kind {kind} requires it, or eval.answers")


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
    if kind != "oracle" or told.get("kind") == "noop" or any(told.get(f"solution.{of}") for of in ("files", "commands", "answer")):
        return
    if told.get("eval.kind") not in ("math", "choice", "exact"):
        raise TaskError("missing-field", "solution", "solution is missing; agent.kind oracle does what it says, or says "
                        "eval.answer of math, choice and exact")


def _check_build(told: Told) -> None:
    if "build.dockerfile" in told:
        return
    for field in ("build.context", "build.args", "build.target", "build.network"):
        if told.get(field):
            raise TaskError("missing-field", "build.dockerfile", f"build.dockerfile is missing; {field} requires it")


# ---- JSON ---------------------------------------------------------------------------------------------------


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    told = dict(pairs)
    if len(told) != len(pairs):
        raise TaskError("duplicate-field", "", "the task's JSON cannot be read: a name is given twice in one object")
    return told


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def parse_json(text: str) -> Any:
    """Strictly: no name twice, no NaN, no lone surrogate, no NUL."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise TaskError("too-large", "", "the task's JSON cannot be read: it has too many levels") from None
    except ValueError as why:
        raise TaskError("malformed", "", f"the task's JSON cannot be read: {why}") from None
    return value


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
        raise TaskError("too-large", "", f"a task is {size} bytes, at most {TASK_BYTES}")
    if _count(value) > TASK_VALUES:
        raise TaskError("too-large", "", f"a task's JSON has more than {TASK_VALUES} values and names")
    told: Told = {}
    _read_object("", value, "", told)
    kind = told.get("agent.kind") or _kind_of(told)
    _check_agent(kind, told)
    _check_messages(kind, told)
    _check_eval(told)
    _check_swe(told)
    _check_judge(kind, told)
    _check_solution(kind, told)
    _check_shaping(kind, told)
    _check_build(told)
