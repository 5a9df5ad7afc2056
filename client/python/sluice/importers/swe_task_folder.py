"""A task repository of SWE-bench 5: tasks/ID/ with task.yaml, tests.json and a file for each long text."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator

from .row import RowError
from .row_files import FileError, Numbered

TEXTS = {"patch": "gold.patch", "test_patch": "test.patch", "eval_script": "eval.sh", "problem_statement": "problem_statement.md"}
TEXT_MAX = 1 << 20


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
            text = file.read(TEXT_MAX + 1)
    except (OSError, UnicodeDecodeError) as why:
        raise RowError(f"{name}: {getattr(why, 'strerror', None) or why}") from None
    if len(text) > TEXT_MAX:
        raise RowError(f"{name} has more than {TEXT_MAX} characters")
    return text


def _row(folder: str) -> Dict[str, Any]:
    import yaml

    try:
        row, tests = yaml.safe_load(_read(folder, "task.yaml")), json.loads(_read(folder, "tests.json"))
    except (yaml.YAMLError, ValueError, RecursionError) as why:
        raise RowError(f"it cannot be read: {' '.join(str(why).split())[:200]}") from None
    if not isinstance(row, dict) or not isinstance(tests, dict):
        raise RowError("task.yaml and tests.json must be objects")
    if os.path.isdir(os.path.join(folder, "test_assets")):
        raise RowError("it has test_assets, files that no patch carries: put them into its image")
    texts = {column: _read(folder, name) for column, name in TEXTS.items()}
    return {"instance_id": os.path.basename(folder), **row, **texts, **tests}


def read_tasks(path: str) -> Iterator[Numbered]:
    """Each folder with a task.yaml, in the order of their names."""
    tasks = os.path.join(path, "tasks")
    if not os.path.isdir(tasks):
        raise FileError(f"{path} is a directory, and has no tasks/")
    try:
        import yaml  # noqa: F401
    except ImportError:
        raise FileError("a task repository needs PyYAML: pip install pyyaml") from None
    found = [name for name in sorted(os.listdir(tasks)) if os.path.exists(os.path.join(tasks, name, "task.yaml"))]
    for number, name in enumerate(found, 1):
        try:
            yield number, _row(os.path.join(tasks, name))
        except RowError as why:
            yield number, why
