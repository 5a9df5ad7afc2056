"""The files of a task's folder: which go along, and whether as texts of the task or from where they lie."""

from __future__ import annotations

import base64
import fnmatch
import os
import stat
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..row import RowError

INLINE_FILES, INLINE_BYTES = 64, 256 << 10  # of all folders of a task together
SOURCE_ENTRIES = 65536
File = Dict[str, Any]


class Entry(NamedTuple):
    path: str  # relative to the folder
    size: int
    mode: int
    is_link: bool


class Budget:
    """What may still go inline into a task."""

    def __init__(self, how: str) -> None:
        self.how, self.files, self.size = how, INLINE_FILES, INLINE_BYTES

    def take(self, entries: List[Entry]) -> bool:
        size = sum(entry.size for entry in entries)
        has_links = any(entry.is_link for entry in entries)
        if self.how == "source" or has_links or not entries:
            return False
        if len(entries) > self.files or size > self.size:
            return self.how == "inline"
        self.files -= len(entries)
        self.size -= size
        return True


def ignored(rules: List[str], path: str, is_dir: bool) -> bool:
    """gitignore's rules, the last that fits decides: patterns, /anchored, directories/, !taken back."""
    found = False
    for rule in rules:
        pattern, wanted = (rule[1:], False) if rule.startswith("!") else (rule, True)
        dirs_only = pattern.endswith("/")
        pattern = pattern.rstrip("/")
        if not pattern or (dirs_only and not is_dir):
            continue
        where = path if "/" in pattern else os.path.basename(path)
        if fnmatch.fnmatchcase(where, pattern.lstrip("/").replace("**/", "*")):
            found = wanted
    return found


def read_rules(folder: str) -> List[str]:
    try:
        with open(os.path.join(folder, ".harborignore"), encoding="utf-8") as file:
            return [line.strip() for line in file if line.strip() and not line.startswith("#")]
    except FileNotFoundError:
        return []


def _check_link(root: str, path: str) -> None:
    target = os.path.realpath(os.path.join(root, path))
    if os.path.commonpath([os.path.realpath(root), target]) != os.path.realpath(root):
        raise RowError(f"{os.path.basename(root)}/{path} is a link out of its folder, to {os.readlink(os.path.join(root, path))}")


READ = ("task.toml", "instruction.md", "environment", "tests", "solution", "steps", ".harborignore", "environment/Dockerfile", "tests/Dockerfile",
        "task.yaml", "run-tests.sh", "solution.sh", "docker-compose.yaml", "Dockerfile")


def check_own_links(folder: str) -> None:
    """What is read of a task's folder lies in it: a set of others' shows the model no file of who imports it."""
    steps = os.path.join(folder, "steps")
    names = sorted(os.listdir(steps)) if os.path.isdir(steps) else []
    below = [f"steps/{name}{inner}" for name in names for inner in ("", "/instruction.md", "/tests", "/tests/Dockerfile", "/solution", "/workdir")]
    for path in [*READ, *below]:
        if os.path.islink(os.path.join(folder, path)):
            _check_link(folder, path)


def walk(root: str, rules: List[str], prefix: str = "") -> Tuple[List[Entry], bool]:
    """Files and links below `root` in order, and whether a rule left any out. `prefix`: root as the rules call it."""
    entries: List[Entry] = []
    left_out = False
    for folder, names, files in os.walk(root):
        relative = os.path.relpath(folder, root)
        names.sort()
        for name in sorted(names) + sorted(files):
            path = os.path.normpath(os.path.join(relative, name))
            about = os.lstat(os.path.join(root, path))
            is_dir = stat.S_ISDIR(about.st_mode)
            if ignored(rules, os.path.join(prefix, path), is_dir):
                left_out = True
                if is_dir:
                    names.remove(name)
                continue
            if stat.S_ISLNK(about.st_mode):
                _check_link(root, path)
            elif not is_dir and not stat.S_ISREG(about.st_mode):
                raise RowError(f"{os.path.basename(root)}/{path} is neither a file nor a directory")
            if not is_dir:
                entries.append(Entry(path, about.st_size, stat.S_IMODE(about.st_mode), stat.S_ISLNK(about.st_mode)))
        if len(entries) > SOURCE_ENTRIES:
            raise RowError(f"{os.path.basename(root)} holds more than {SOURCE_ENTRIES} files")
    return entries, left_out


def inline(path: str, content: bytes, mode: Optional[int] = None) -> File:
    said: File = {"path": path}
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    said.update({"text": text} if "\0" not in text else {"base64": base64.b64encode(content).decode()})
    return {**said, "mode": f"{mode & 0o777:04o}"} if mode is not None and mode & 0o777 != 0o644 else said


def files_of(root: str, into: str, rules: List[str], budget: Budget) -> List[File]:
    """A folder's files as a task's: its content goes into the directory `into`."""
    entries, left_out = walk(root, rules, os.path.basename(root))
    if budget.take(entries):
        found = []
        for entry in entries:
            with open(os.path.join(root, entry.path), "rb") as file:
                found.append(inline(os.path.join(into, entry.path), file.read(), entry.mode))
        return found
    if not entries:
        return []
    real = os.path.realpath(root)
    if not left_out:
        return [{"path": into, "source": real}]
    if len(entries) > 256:
        raise RowError(f".harborignore leaves {len(entries)} files of {os.path.basename(root)}, and a task names at most 256")
    return [{"path": os.path.join(into, entry.path), "source": os.path.join(real, entry.path)} for entry in entries]


def _files_alone(root: str) -> Optional[List[Entry]]:
    """Those of a folder that holds nothing else: no links, no empty directories."""
    entries: List[Entry] = []
    for folder, names, files in os.walk(root):
        names.sort()
        if not names and not files or len(entries) + len(files) > SOURCE_ENTRIES:
            return None
        for name in sorted(files) + names:
            about = os.lstat(os.path.join(folder, name))
            if stat.S_ISREG(about.st_mode):
                entries.append(Entry(os.path.relpath(os.path.join(folder, name), root), about.st_size, stat.S_IMODE(about.st_mode), False))
            elif not stat.S_ISDIR(about.st_mode):
                return None
    return entries


def context_of(root: str, budget: Budget) -> Dict[str, Any]:
    """What COPY copies from: build.files where they go inline, else build.context."""
    entries = _files_alone(root)
    if not entries or not budget.take(entries):
        return {"context": os.path.realpath(root)}
    found = []
    for entry in entries:
        with open(os.path.join(root, entry.path), "rb") as file:
            found.append(inline(entry.path, file.read(), entry.mode))
    return {"files": found}
