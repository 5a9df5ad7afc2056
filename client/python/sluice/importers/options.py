"""What the command lines of the importers have in common."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import Any, Callable, Optional, TextIO, Tuple


def pair(text: str) -> Tuple[str, str]:
    name, mark, value = text.partition("=")
    if not (name and mark and value):
        raise argparse.ArgumentTypeError(f"{text} is not NAME=VALUE")
    return name, value


def field(text: str) -> Tuple[str, Any]:
    """A field of a task and its value: as JSON, else as it is written."""
    name, value = pair(text)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def write_to(path: Optional[str], write: Callable[[TextIO], int]) -> int:
    """The exit status of what writes there; of no path, to standard output."""
    with contextlib.ExitStack() as stack:
        try:
            out = stack.enter_context(open(path, "w", encoding="utf-8")) if path else sys.stdout
        except OSError as why:
            print(f"{path}: {why.strerror}", file=sys.stderr)
            return 1
        return write(out)
