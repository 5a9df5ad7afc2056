"""Which folders are tasks: one, those in a directory, or those that its dataset.toml lists."""

from __future__ import annotations

import fnmatch
import hashlib
import os
from typing import Dict, Iterator, List, NamedTuple, Optional

from ..row import RowError
from .choices import Notes
from .reading import read_toml
from .schema import check

IGNORED = ("*.pyc", "*.swp", "*.swo", "*~", ".DS_Store")
DATASET = {"schema_version": "text", "dataset": "table", "tasks": "tables", "files": "tables", "metrics": "tables"}
TASK = {"name": "text", "digest": "text", "version": "text"}


class Found(NamedTuple):
    folder: str
    digest: Optional[str] = None  # as dataset.toml has it
    why: Optional[str] = None     # it is listed and is not there


def is_task(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in ("task.toml", "task.yaml"))


def _folders(root: str) -> List[str]:
    inner = (os.path.join(root, name) for name in sorted(os.listdir(root)))
    found = [path for path in inner if os.path.isdir(path)]
    return [path for path in found if is_task(path)]


def _name(folder: str) -> str:
    try:
        about = read_toml(os.path.join(folder, "task.toml")).get("task", {})
        return str(about.get("name", "")) if isinstance(about, dict) else ""
    except RowError:
        return ""


def _listed(root: str, notes: Notes) -> Iterator[Found]:
    config = read_toml(os.path.join(root, "dataset.toml"))
    unknown: List[str] = []
    check(DATASET, config, "", unknown)
    for i, row in enumerate(config.get("tasks", [])):
        check(TASK, row, f"tasks[{i}]", unknown)
    for path in unknown:
        notes.add(root, f"dataset.toml: {path} is not known, and is passed over")
    folders = _folders(root)
    by_name: Dict[str, str] = {os.path.basename(folder): folder for folder in folders}
    by_name.update((_name(folder), folder) for folder in folders)
    seen = set()
    for row in config.get("tasks", []):
        folder = by_name.get(row.get("name", ""))
        if folder is None:
            yield Found(os.path.join(root, row.get("name", "?")), None, "dataset.toml lists it, and no folder has that name")
        else:
            seen.add(folder)
            yield Found(folder, row.get("digest"))
    for folder in folders:
        if folder not in seen:
            notes.add(folder, "dataset.toml does not list it, and it is left out")


def find(path: str, notes: Notes) -> Iterator[Found]:
    """RowError where there is nothing."""
    root = os.path.abspath(os.path.dirname(path) if os.path.basename(path) == "dataset.toml" else path)
    if not os.path.isdir(root):
        raise RowError("it is not a directory" if os.path.exists(root) else "there is no such directory")
    if is_task(root):
        yield Found(root)
        return
    if os.path.isfile(os.path.join(root, "dataset.toml")):
        yield from _listed(root, notes)
        return
    folders = _folders(root)
    if not folders:
        raise RowError("neither it nor a directory in it has a task.toml or a task.yaml")
    for folder in folders:
        yield Found(folder)


def digest(folder: str) -> str:
    """Of a folder's content: sha256 over the names and sha256 of its files, in order."""
    paths = []
    for root, names, files in os.walk(folder):
        names[:] = [name for name in names if name != "__pycache__"]
        paths += [os.path.relpath(os.path.join(root, name), folder) for name in files
                  if not any(fnmatch.fnmatch(name, rule) for rule in IGNORED)]
    whole = hashlib.sha256()
    for path in sorted(paths):
        one = hashlib.sha256()
        with open(os.path.join(folder, path), "rb") as file:
            for piece in iter(lambda: file.read(1 << 20), b""):
                one.update(piece)
        whole.update(f"{path}\0{one.hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"
