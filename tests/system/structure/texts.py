"""The repository as text: what the tests of this folder read."""
import os
import re

ROOT = os.path.abspath(os.environ.get("SLUICE_SOURCE_DIR") or os.path.join(os.path.dirname(__file__), "..", "..", ".."))
PROGRAMS = ("common", "schemas", "broker", "workers", "client")
C = (".c", ".h")


def read(*path):
    """A file by its path from the root, or by its whole path."""
    with open(os.path.join(ROOT, *path), encoding="utf-8") as text:
        return text.read()


def paths(*folders, ends=C):
    """Whole paths of the files in folders and below, in order."""
    for folder in folders:
        for where, inner, names in os.walk(os.path.join(ROOT, folder)):
            inner.sort()
            yield from (os.path.join(where, name) for name in sorted(names) if name.endswith(ends))


def pages():
    """The README's path first, then those of docs/."""
    return [os.path.join(ROOT, "README.md"), *paths("docs", ends=(".md",))]


def cells(page, heading=None):
    """The rows of its tables, or of those below a heading, as lists of cells."""
    text = page if heading is None else page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    for line in text.splitlines():
        row = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if line.startswith("|") and not set(row[0]) <= {"-"}:
            yield row
