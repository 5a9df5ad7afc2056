"""Rows of files become tasks; each that cannot is told, by its file, its line and why."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Union

from ..task.task_rules import TaskError, check_task, parse_json
from .forms import FORMS
from .reasoning_gym import generate
from .row import Row, RowError, renamed
from .row_files import FileError, Numbered, read_rows
from .swe_task_folder import read_tasks

GENERATED = 100  # problems of a generator, without a limit


class Choices(NamedTuple):
    """What the caller says beside the form."""

    columns: Mapping[str, str] = {}      # {column: field}: what a form calls field stands in this column
    routes: Mapping[str, str] = {}       # verl: {data_source: KIND or KIND:EXTRACT}
    evaluator: str = "math"              # question: KIND or KIND:EXTRACT
    fields: Mapping[str, Any] = {}       # {"sampling.max_tokens": 4096}: put into each task
    limit: Optional[int] = None          # rows, of all files together
    seed: int = 0                        # of a generator
    image_template: str = ""             # swe: where prepared images lie, such as "/images/{sif}"


class Imported(NamedTuple):
    """A row: its place, and either the task, as JSON, or why there is none."""

    place: str
    text: Optional[str]
    why: Optional[str] = None


def put(task: Dict[str, Any], path: str, value: Any) -> None:
    """Sets the field at a dotted path."""
    *parents, name = path.split(".")
    for parent in parents:
        inner = task.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise RowError(f"{parent} is not an object, and {path} cannot be set")
        task = inner
    task[name] = value


def _task(form: str, row: Row, name: str, choices: Choices) -> str:
    special: Dict[str, Dict[str, Any]] = {"question": {"route": choices.evaluator}, "verl": {"routes": choices.routes},
                                          "swe": {"template": choices.image_template}}
    task = FORMS[form].read(renamed(row, choices.columns) if choices.columns else row, name, **special.get(form, {}))
    for path, value in choices.fields.items():
        put(task, path, value)
    try:
        text = json.dumps(task, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as why:
        raise RowError(f"it cannot be written as JSON: {why}") from None
    check_task(text, parse_json(text))
    return text


def _name(path: str, number: int) -> str:
    return f"{os.path.basename(path).split('.')[0] or 'row'}-{number}"


def _rows(form: str, path: str, choices: Choices) -> Iterator[Numbered]:
    if form == "reasoning-gym" and not os.path.exists(path):
        return generate(path, GENERATED if choices.limit is None else choices.limit, choices.seed)
    if form == "swe" and os.path.isdir(path):
        return read_tasks(path)
    return read_rows(path)


def import_rows(form: str, paths: List[Union[str, "os.PathLike[str]"]], choices: Choices = Choices()) -> Iterator[Imported]:
    """Each row of these files in order. What is no row, or no file, is one that is refused."""
    left = choices.limit
    for given in paths:
        path = os.fspath(given)
        try:
            for number, row in _rows(form, path, choices):
                if left == 0:
                    return
                left = None if left is None else left - 1
                yield _imported(form, path, number, row, choices)
        except FileError as why:
            yield Imported(path, None, str(why))


def _imported(form: str, path: str, number: int, row: Union[Dict[str, Any], RowError], choices: Choices) -> Imported:
    place = f"{path}:{number}"
    try:
        if isinstance(row, RowError):
            raise row
        return Imported(place, _task(form, row, _name(path, number), choices))
    except RowError as why:
        return Imported(place, None, str(why))
    except TaskError as why:
        return Imported(place, None, why.text)
    except RecursionError:
        return Imported(place, None, "it has too many levels")
