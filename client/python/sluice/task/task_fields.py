"""The fields of a task by the rows of tasks.json: what each alone may be. What several say together is in task_rules.py."""

from __future__ import annotations

import base64
import binascii
import json
import pathlib
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .image_name import explain_image
from .nearest import nearest

TASK_BYTES, TASK_VALUES, TASK_LEVELS, KEY_SHOWN, SCRIPT_MAX, ARGUMENTS_DEPTH = 1 << 20, 65536, 64, 60, 1024, 32
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
                        f"{shown} is {amount:.15g}{unit}; the {'minimum' if small else 'maximum'} is {bound:.15g}")


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
    told[row.path] = image


_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*(:[A-Za-z0-9_.][A-Za-z0-9_.-]*)?")


def _read_user(row: Row, value: Any, shown: str, told: Told) -> None:
    user = _text(row, value, shown)
    if not _USER.fullmatch(user):
        raise TaskError("bad-name", shown, f"{shown} must be a user, or user:group, each by name or number")
    told[row.path] = user


def _absolute(row: Row, value: Any, shown: str, where: str) -> str:
    path = _text(row, value, shown)
    if not path.startswith("/") or _climbs(path):
        raise TaskError("bad-task", shown, f'{shown} must be an absolute path {where}, without ".."')
    return path


def _read_directory(row: Row, value: Any, shown: str, told: Told) -> None:
    told[row.path] = _absolute(row, value, shown, "inside the sandbox")


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
        raise TaskError("bad-name", shown, f"{shown} must be letters, digits, '_', '.' and '-', beginning with a letter")
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
        read_object("messages[]", message, f"{shown}[{i}]", one)
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
    told[row.path] = _absolute(row, value, shown, "on the workers' nodes")


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
        raise TaskError("missing-field", f"{shown}.text", f"{shown}.text is missing: give one of text, base64 and source")
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
        read_object("files[]", file, f"{shown}[{i}]", one)
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
            raise TaskError("too-large", shown, f"{shown} has a name of {len(name.encode())} bytes; the maximum is {_NAME.most}")
    told[row.path] = True


def _read_options(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, dict):
        raise _type(shown, "an object of letters and texts")
    _bounds(row, len(value), " elements", shown)
    for letter, text in value.items():
        if not re.fullmatch("[A-Z]", letter):
            raise TaskError("bad-name", shown, f"{shown}: an option is named by one letter, A to Z")
        _text(_COMMAND, text, f"{shown}.{letter}")
    told[row.path] = value


def _read_grants(row: Row, value: Any, shown: str, told: Told) -> None:
    seen: List[str] = []
    for i, grant in enumerate(_list(row, value, shown)):
        if not isinstance(grant, str):
            raise _type(f"{shown}[{i}]", "a string")
        if not re.fullmatch("[a-z][a-z0-9-]{0,31}", grant):
            raise TaskError("bad-name", f"{shown}[{i}]", f"{shown}[{i}] must be 1 to 32 characters of a-z, 0-9 and -, beginning with a letter")
        if grant in seen:
            raise TaskError("bad-task", f"{shown}[{i}]", f"{shown}[{i}] is given twice")
        seen.append(grant)
    told[row.path] = seen


def _read_artifacts(row: Row, value: Any, shown: str, told: Told) -> None:
    told[row.path] = []  # an empty list, too, says something
    for i, artifact in enumerate(_list(row, value, shown)):
        one: Told = {}
        place = f"{shown}[{i}]"
        read_object("eval.artifacts[]", {"path": artifact} if isinstance(artifact, str) else artifact, place, one)
        if not one["eval.artifacts[].path"].lstrip("/."):
            raise TaskError("bad-task", place, f"{place} must name a file or a directory below / and the working directory")
        told[row.path].append(one["eval.artifacts[].path"])


def _read_collect(row: Row, value: Any, shown: str, told: Told) -> None:
    for i, collect in enumerate(_list(row, value, shown)):
        read_object("eval.collect[]", collect, f"{shown}[{i}]", {})
    told[row.path] = value


def _read_tests(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, dict):
        raise _type(shown, "an object")
    for name, inner in value.items():
        kind, words = {"inputs": (list, "a list"), "outputs": (list, "a list"), "asserts": (list, "a list of strings"),
                       "fn_name": (str, "a string"), "entry_point": (str, "a string")}.get(name, (None, ""))
        where = f"{shown}.{name}"
        if kind is None:
            raise TaskError("unknown-field", shown, f"{shown} may have only inputs, outputs, fn_name, asserts and entry_point")
        if not isinstance(inner, kind) or (name == "asserts" and not all(isinstance(one, str) for one in inner)):
            raise _type(where, words)
    if "asserts" in value and ("inputs" in value or "outputs" in value or "fn_name" in value):
        raise TaskError("ambiguous", shown, f"{shown} must have either asserts or inputs and outputs, not both")
    if "asserts" not in value and ("inputs" not in value or "outputs" not in value):
        raise TaskError("missing-field", shown, f"{shown} must have inputs and outputs, or asserts")
    if "asserts" not in value and len(value["inputs"]) != len(value["outputs"]):
        raise TaskError("bad-task", shown, f"{shown} has {len(value['inputs'])} inputs and {len(value['outputs'])} outputs")
    _bounds(row, len(value["asserts"] if "asserts" in value else value["inputs"]), " elements", shown)
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
        raise TaskError("bad-task", shown, f"{shown} must have 0: no other status gives a reward of 1")
    told[row.path] = seen


# ---- JSON ---------------------------------------------------------------------------------------------------


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    told = dict(pairs)
    if len(told) != len(pairs):
        raise TaskError("duplicate-field", "", "the task's JSON cannot be read: a name is given twice in one object")
    return told


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number of JSON")


def parse_json(text: str) -> Any:
    """Strictly: no name twice, no NaN, no lone surrogate, no NUL."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise TaskError("too-large", "", "the task's JSON cannot be read: it has too many levels") from None
    except ValueError as why:
        raise TaskError("malformed", "", f"the task's JSON cannot be read: {why}") from None
    return value

# ---- tools and what a replay calls --------------------------------------------------------------------


def _read_handlers(row: Row, value: Any, shown: str, told: Told) -> None:
    names: List[str] = []
    for i, handler in enumerate(_list(row, value, shown)):
        one: Told = {}
        read_object("handlers[]", handler, f"{shown}[{i}]", one)
        name = one["handlers[].name"]
        if name in names:
            raise TaskError("bad-task", f"{shown}[{i}]", f"{shown}[{i}]: the name {name} is given twice")
        names.append(name)


def _read_tools(row: Row, value: Any, shown: str, told: Told) -> None:
    tools: List[str] = []
    for i, tool in enumerate(_list(row, value, shown)):
        if isinstance(tool, str) and tool in tools:
            raise TaskError("bad-task", f"{shown}[{i}]", f"{shown}[{i}] is given twice")
        _read_handler_name(_TOOL, tool, f"{shown}[{i}]", {})
        tools.append(tool)
    told["tools"] = tools


_LABELS = ("main", "sub-agent", "branch", "auxiliary", "retold", "undelivered")


def _read_train(row: Row, value: Any, shown: str, told: Told) -> None:
    labels: List[str] = []
    for i, label in enumerate(_list(row, value, shown)):
        if not isinstance(label, str):
            raise _type(f"{shown}[{i}]", "a string")
        if label not in _LABELS:
            raise TaskError("bad-task", f"{shown}[{i}]", f"{shown}[{i}] must be one of {'|'.join(_LABELS)}")
        if label in labels:
            raise TaskError("bad-task", f"{shown}[{i}]", f"{shown}[{i}] is given twice")
        labels.append(label)
    told[row.path] = labels


def has_levels(value: Any, most: int) -> bool:
    """Whether it has at most so many levels of objects and lists."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is None or (most > 0 and all(has_levels(one, most - 1) for one in inner))


def _read_arguments(row: Row, value: Any, shown: str, told: Told) -> None:
    if not isinstance(value, dict):
        raise _type(shown, "an object")
    if not has_levels(value, ARGUMENTS_DEPTH):
        raise TaskError("too-large", shown, f"{shown} has more than {ARGUMENTS_DEPTH} levels")


def _one_script(shown: str, told: Told) -> None:
    if "script" in told:
        raise TaskError("ambiguous", shown, "only one of agent.script and agent.recorded may be given")


def _read_script(row: Row, value: Any, shown: str, told: Told) -> None:
    _one_script(shown, told)
    told["script"] = []
    for i, call in enumerate(_list(row, value, shown)):
        one: Told = {}
        read_object("agent.script[]", call, f"{shown}[{i}]", one)
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
        read_object("agent.recorded[]", message, f"{shown}[{i}]", one)
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
        read_object(f"{row.path}[]", criterion, place, one)
        if any(one[inner + "name"] == other[inner + "name"] for other in criteria):
            raise TaskError("bad-task", place, f"{place}: the name {one[inner + 'name']} is given twice")
        least, most = one.get(inner + "min", 0), one.get(inner + "max", 0)
        if least > most:
            raise TaskError("bad-task", f"{place}.max", f"{place}.max must be above min")
        if one.get(inner + "choices") and least < most:
            raise TaskError("ambiguous", place, f"{place} must have either choices or min and max, not both")
        criteria.append(one)
    told[row.path] = criteria


# ---- steps ---------------------------------------------------------------------------------------------


def _read_steps(row: Row, value: Any, shown: str, told: Told) -> None:
    steps: List[Told] = []
    for i, step in enumerate(_list(row, value, shown)):
        one: Told = {}
        read_object("steps[]", step, f"{shown}[{i}]", one)
        name = one["steps[].name"]
        if any(name == other["steps[].name"] for other in steps):
            raise TaskError("bad-task", f"{shown}[{i}]", f"{shown}[{i}]: the name {name} is given twice")
        steps.append(one)
    told["steps"] = steps


_REWARD_NAME = 63


def _read_rewards(row: Row, value: Any, shown: str, told: Told) -> None:
    if isinstance(value, dict):
        _bounds(row, len(value), " elements", shown)
    for name, least in (value if isinstance(value, dict) else {"reward": value}).items():
        size = len(name.encode())
        if not isinstance(least, (int, float)) or isinstance(least, bool):
            raise _type(shown, "a number, or an object of names and numbers")
        if not 0 < size <= _REWARD_NAME:
            raise TaskError("too-large" if size else "too-small", shown,
                            f"{shown} has a name of {size} bytes; a name has 1 to {_REWARD_NAME}")


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


def read_object(parent: str, value: Any, shown: str, told: Told) -> None:
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
    read_object(row.path, value, shown, told)


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
    "STEPS": _read_steps, "FILE_LIST": _read_files, "COMMANDS": _read_setup, "REWARDS": _read_rewards,
    "STATUSES": _read_statuses, "ANSWERS": _read_setup, "OPTIONS": _read_options, "FAIL_TO_PASS": _read_names, "PASS_TO_PASS": _read_names, "PROTECTED": _read_names,
    "EXPECTED_TESTS": _read_expected, "HIDDEN": _read_hidden, "ARTIFACTS": _read_artifacts, "EXCLUDE": _read_names, "COLLECT": _read_collect, "TESTS": _read_tests, "HANDLERS": _read_handlers, "TOOLS": _read_tools, "TRAIN": _read_train,
    "JUDGE_FILES": _read_judge_files, "CRITERIA": _read_criteria, "CHOICES": _read_choices,
    "SCRIPT": _read_script,
    "RECORDED": _read_recorded, "ARGUMENTS": _read_arguments, "METADATA": _read_metadata,
}
