"""What an installed directory holds, file by file, so that a later look finds what differs."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from typing import Dict, Iterator, List

MANIFEST, LISTED = "manifest.json", "files.txt"   # of ours; all else is the harness's


def _digest(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            piece = file.read(1 << 20)
            if not piece:
                return found.hexdigest()
            found.update(piece)


def _entries(root: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        for name in sorted(names + [one for one in folders if os.path.islink(os.path.join(folder, one))]):
            below = os.path.relpath(os.path.join(folder, name), root)
            if below not in (MANIFEST, LISTED):
                yield below
        folders.sort()


def _line(root: str, below: str) -> str:
    path = os.path.join(root, below)
    it = os.lstat(path)
    if stat.S_ISLNK(it.st_mode):
        return f"link {os.readlink(path)}"
    return f"{'program' if it.st_mode & 0o100 else 'file'} {_digest(path)}" if stat.S_ISREG(it.st_mode) else "other"


def _quoted(name: str) -> str:
    """As it is, but for what would end a line or a field of it, and the sign that says so."""
    return re.sub(r"[\\\x00-\x1f\x7f\x85\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", name)


def listing(root: str) -> str:
    """A line each: its kind, its digest or where it leads, its name."""
    return "".join(f"{_quoted(_line(root, below))}\t{_quoted(below)}\n" for below in sorted(_entries(root)))


def digest_of(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def write(root: str) -> str:
    """Lists what lies in it; the list's digest."""
    text = listing(root)
    with open(os.path.join(root, LISTED), "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)
    return digest_of(text)


def _rows(text: str) -> Dict[str, str]:
    return {below: what for what, _, below in (line.partition("\t") for line in text.split("\n") if line)}


def differing(root: str, digest: str) -> List[str]:
    """What is not as it was when it was listed, each in words."""
    try:
        with open(os.path.join(root, LISTED), encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
    except OSError as why:
        return [f"{LISTED} cannot be read: {why.strerror}"]
    if digest_of(text) != digest:
        return [f"{LISTED} is not the one that {MANIFEST} has the digest of"]
    was, now = _rows(text), _rows(listing(root))
    return [f"{below} {'is gone' if below not in now else 'is new' if below not in was else 'was changed'}"
            for below in sorted(was.keys() | now.keys()) if was.get(below) != now.get(below)]


def size_of(root: str) -> int:
    return sum(os.lstat(os.path.join(root, below)).st_blocks * 512 for below in _entries(root))


def make_readable(root: str) -> None:
    """By whoever a sandbox's user is, and changed by its owner alone."""
    for folder, _, names in os.walk(root):
        os.chmod(folder, 0o755)
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.lstat(path).st_mode & 0o111 else 0o644)
