"""The directory of an export: files that are whole, and beside them how far it has come (.sluice-export.json).

A file has its name only once it is whole and on the disk; then the progress says so. Killed at any moment and started again, an
export makes the file that was not finished anew, of the same trajectories: the files come out the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Tuple

from ..errors import SluiceError

PROGRESS, STATE, LOCK, VERSION = ".sluice-export.json", ".sluice-export.state.json", ".sluice-export.lock", 1
UNFINISHED = ".unfinished"
_NAME = re.compile(r"\d{12,}-\d{12,}\.(jsonl|parquet)")


class ExportError(SluiceError):
    """Why an export cannot begin or go on."""


def sync_directory(path: str) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """A file that takes its name at the end of the block, or never."""
    with open(path + UNFINISHED, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + UNFINISHED, path)
    sync_directory(os.path.dirname(path) or ".")


def _write_json(path: str, value: Any) -> None:
    with whole_file(path) as file:
        file.write(json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass") + b"\n")


class Folder:
    """Use it with `with`: one export at a time writes there."""

    def __init__(self, path: str, options: Dict[str, Any]) -> None:
        self.path, self.options = path, options
        self.progress: Dict[str, Any] = {}
        self.lock: Optional[int] = None

    def __enter__(self) -> Folder:
        try:
            os.makedirs(os.path.join(self.path, "data"), exist_ok=True)
            self.lock = os.open(os.path.join(self.path, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read()
        except BlockingIOError:
            self.close()
            raise ExportError(f"another export writes to {self.path}") from None
        except OSError as why:
            self.close()
            raise ExportError(f"{self.path}: {why.strerror}") from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.lock is not None:
            os.close(self.lock)
        self.lock = None

    def _read(self) -> None:
        """Goes on with an export of the same options; refuses any other, and a directory of other things."""
        path = os.path.join(self.path, PROGRESS)
        data = os.path.join(self.path, "data")
        if not os.path.exists(path):
            others = [name for name in os.listdir(data) if not name.endswith(UNFINISHED)]
            if others:
                raise ExportError(f"{data} holds {others[0]}, and no {PROGRESS} says of which export: name another directory")
            self.progress = {"version": VERSION, "options": self.options, "next": 0, "last": None, "files": []}
            _write_json(path, self.progress)
        else:
            self.progress = self._read_progress(path)
        self._sweep(data)

    def _sweep(self, data: str) -> None:
        """What an export that was killed left behind: files that the progress does not know, and states of others."""
        known = {file["name"] for file in self.progress["files"]}
        for name in os.listdir(data):
            if name.endswith(UNFINISHED) or _NAME.fullmatch(name) and name not in known:
                os.unlink(os.path.join(data, name))
        for name in os.listdir(self.path):
            is_old_state = name.startswith(STATE) and name != f"{STATE}.{self.progress['next']}"
            if is_old_state or name in (PROGRESS + UNFINISHED, "README.md" + UNFINISHED):
                os.unlink(os.path.join(self.path, name))

    def _read_progress(self, path: str) -> Dict[str, Any]:
        try:
            with open(path, encoding="utf-8") as file:
                progress: Dict[str, Any] = json.load(file)
            options, _ = progress["options"], (progress["next"], progress["last"], progress["files"])
            good = progress["version"] == VERSION and isinstance(options, dict)
        except (ValueError, KeyError, TypeError):
            good = False
        if not good:
            raise ExportError(f"{path} is not the progress of an export: remove it, and data/, to start over")
        differing = sorted(name for name in {*options, *self.options} if options.get(name) != self.options.get(name))
        if differing:
            raise ExportError(f"{self.path} holds an export with another {' and '.join(differing)}: name another directory")
        return progress

    def read_state(self) -> Optional[Dict[str, Any]]:
        """The form's at the last whole file; None: there is none."""
        if not self.progress["files"]:
            return None
        try:
            with open(os.path.join(self.path, f"{STATE}.{self.progress['next']}"), encoding="utf-8", errors="surrogatepass") as file:
                state: Dict[str, Any] = json.load(file)
            return state
        except (OSError, ValueError):
            raise ExportError(f"{self.path} has lost {STATE}.{self.progress['next']}: remove the directory to start over") from None

    def add(self, numbers: Tuple[int, int], ending: str, write: Callable[[BinaryIO], int], last: Any, state: Callable[[], Dict[str, Any]]) -> None:
        """One more file, of these numbers, of what `write` writes, which returns how many rows."""
        before, next_seq = self.progress["next"], numbers[1] + 1
        name = f"{numbers[0]:012d}-{numbers[1]:012d}.{ending}"
        with whole_file(os.path.join(self.path, "data", name)) as file:
            rows = write(file)
        _write_json(os.path.join(self.path, f"{STATE}.{next_seq}"), state())
        self.progress["files"].append({"name": name, "rows": rows})
        self.progress.update(next=next_seq, last=last)
        _write_json(os.path.join(self.path, PROGRESS), self.progress)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.path, f"{STATE}.{before}"))

    def paths(self) -> List[str]:
        return [os.path.join(self.path, "data", file["name"]) for file in self.progress["files"]]

    def write_text(self, name: str, text: str) -> None:
        with whole_file(os.path.join(self.path, name)) as file:
            file.write(text.encode())
