"""Tasks and the names of their groups, as the `sluice` command makes them."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple, Union

from ..arguments import Path
from ..errors import BadArgument, BadTask
from .task_rules import TaskError, check_task, parse_json

HASH_DIGITS, PREFIX_BYTES, ID_BYTES, PROBLEMS_SHOWN = 10, 24, 56, 20

Task = Mapping[str, Any]
Tasks = Union[Task, Path, Iterable[Task]]


class Line(NamedTuple):
    """One task: its JSON, what that says, and where it was given."""

    text: str
    task: Dict[str, Any]
    at: int
    place: str


class Problems:
    def __init__(self) -> None:
        self.first = ("", "")
        self.lines: List[str] = []
        self.told: List[Tuple[int, str, str]] = []

    def add(self, at: int, place: str, why: TaskError) -> None:
        self.first = (why.reason, why.field) if not self.told else self.first
        self.told.append((at, why.field, why.text))
        text = why.text
        if why.field:
            says_field = text.startswith((why.field + " ", why.field + ":"))
            text = f"{why.field}: {text[len(why.field):].lstrip(': ') if says_field else text}"
        if len(self.lines) < PROBLEMS_SHOWN:
            self.lines.append(f"{place}: {text}")

    def raise_any(self, count: int, what: str) -> None:
        if not self.told:
            return
        more = len(self.told) - len(self.lines)
        lines = self.lines + ([f"... and {more} more"] if more else [])
        are = "is not a task" if len(self.told) == 1 else "are not tasks"
        lines.append(f"{len(self.told)} of {count} {what} {are}; nothing was submitted")
        raise BadTask("\n".join(lines), self.first[0], self.first[1] or None, self.told)


def _clean(text: str, size: int) -> str:
    cut = text.encode()[:size].decode(errors="ignore")
    return "".join("_" if c <= " " or c in "/\x7f" else c for c in cut)


def _of_file(path: pathlib.Path, problems: Problems) -> List[Line]:
    lines = []
    # Not splitlines: it also ends a line at U+2028 and its like, which stand inside of JSON strings.
    for number, raw in enumerate(path.read_bytes().split(b"\n"), 1):
        place = f"{path}:{number}"
        raw = raw.rstrip(b" \t\r")
        if not raw:
            continue
        try:
            text = raw.decode()
            task = parse_json(text)
            check_task(text, task)
            lines.append(Line(text, task, number, place))
        except UnicodeDecodeError:
            problems.add(number, place, TaskError("not-utf8", "", "the task's JSON cannot be read: it is not UTF-8"))
        except TaskError as why:
            problems.add(number, place, why)
    return lines


def _of_dicts(tasks: Iterable[Any], problems: Problems, first: int) -> List[Line]:
    lines = []
    for index, given in enumerate(tasks, first):
        place = f"tasks[{index}]"
        try:
            if not isinstance(given, Mapping):
                raise TaskError("wrong-type", "", f"a task must be a dict, not {type(given).__name__}")
            text = json.dumps(dict(given), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            task = parse_json(text)
            check_task(text, task)
            lines.append(Line(text, task, index, place))
        except TaskError as why:
            problems.add(index, place, why)
        except (TypeError, ValueError, RecursionError) as why:
            problems.add(index, place, TaskError("malformed", "", f"it cannot be written as JSON: {why}"))
    return lines


def read_tasks(tasks: Tasks, first: int = 0) -> Tuple[str, List[Line]]:
    """(prefix, its lines) of a dict, an iterable of dicts, or a JSONL file's path. Raises BadTask for all that are none.

    first: the place of the first dict among those of which these are a part.
    """
    problems = Problems()
    if isinstance(tasks, (str, os.PathLike)):
        path = pathlib.Path(tasks)
        lines, stem, what = _of_file(path, problems), path.name.split(".")[0], "lines"
        if not lines and not problems.told:
            raise BadArgument(f"there is no task in {path}", "tasks")
    elif isinstance(tasks, Iterable) and not isinstance(tasks, (bytes, bytearray)):
        lines = _of_dicts([tasks] if isinstance(tasks, Mapping) else tasks, problems, first)
        stem, what = "py", "tasks"
    else:
        raise BadArgument(f"tasks wants a dict, dicts or the path of a JSONL file, not a {type(tasks).__name__}", "tasks")
    problems.raise_any(len(lines) + len(problems.told), what)
    return stem, lines


def limited(lines: Sequence[Line], limits: Mapping[str, Any]) -> List[Line]:
    """The same with these limits, whatever they say of them."""
    changed = []
    for line in lines:
        task = dict(line.task, limits=dict(line.task.get("limits", {}), **limits))
        changed.append(line._replace(text=json.dumps(task, ensure_ascii=False, separators=(",", ":")), task=task))
    return changed


def name_groups(prefix: str, lines: Sequence[Line], stream: str, samples: Sequence[int]) -> List[str]:
    """A name for each: the same for the same stream, samples and content."""
    seen: Dict[str, int] = {}
    names = []
    for line, count in zip(lines, samples):
        repeat = seen.get(line.text, 0)
        seen[line.text] = repeat + 1
        digest = hashlib.sha256(f"{stream} {count} {repeat} {line.text}".encode()).hexdigest()
        names.append(f"{_clean(prefix, PREFIX_BYTES)}-{_clean(str(line.task.get('task', '')), ID_BYTES)}-"
                     f"{digest[:HASH_DIGITS]}")
    return names
