"""Folders become tasks; each that cannot is told, by its path and why."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Optional, Union

from ...task.task_rules import TaskError, check_task, parse_json
from ..importing import Imported, put
from ..row import RowError
from .choices import HarborChoices, Notes
from .dataset import Found, digest, find
from .folder import task_of_folder
from .terminal_bench import task_of_old_folder


def _task(found: Found, choices: HarborChoices, notes: Notes) -> Dict[str, Any]:
    if found.why:
        raise RowError(found.why)
    if os.path.isfile(os.path.join(found.folder, "task.toml")):
        return task_of_folder(found.folder, choices, notes)
    return task_of_old_folder(found.folder, choices, notes)


def _imported(found: Found, choices: HarborChoices, notes: Notes) -> Imported:
    try:
        task = _task(found, choices, notes)
        for path, value in choices.fields.items():
            put(task, path, value)
        text = json.dumps(task, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        check_task(text, parse_json(text))
        if found.digest and found.digest != digest(found.folder):
            notes.add(found.folder, "its content is not that of the digest in dataset.toml")
        return Imported(found.folder, text)
    except (RowError, TaskError) as why:
        return Imported(found.folder, None, str(why))
    except UnicodeEncodeError:
        return Imported(found.folder, None, "a text or a name in it is not UTF-8")
    except (OSError, ValueError, RecursionError) as why:
        return Imported(found.folder, None, f"it cannot be read: {why}")


def import_folders(paths: List[Union[str, "os.PathLike[str]"]], choices: HarborChoices = HarborChoices(),
                   notes: Optional[Notes] = None) -> Iterator[Imported]:
    """Each task of these folders, data sets and dataset.toml files, in order. `notes` takes the warnings."""
    notes = notes or Notes()
    left = choices.limit
    for given in paths:
        path = os.fspath(given)
        try:
            for found in find(path, notes):
                if left == 0:
                    return
                left = None if left is None else left - 1
                yield _imported(found, choices, notes)
        except (RowError, OSError) as why:
            yield Imported(path, None, str(why))
