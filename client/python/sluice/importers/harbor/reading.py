"""Texts and TOML of a folder, bounded."""

from __future__ import annotations

import importlib
import os
import stat

from ..row import RowError
from .schema import Table

TEXT_MAX, TOML_MAX = 1 << 20, 1 << 20


def read_text(path: str, most: int = TEXT_MAX) -> str:
    name = os.path.basename(path)
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RowError(f"{name} is not a plain file")
            data = file.read(most + 1)
        if len(data) > most:
            raise RowError(f"{name} is larger than {most} bytes")
        return data.decode("utf-8")
    except OSError as why:
        raise RowError(f"{name}: {why.strerror}") from None
    except UnicodeDecodeError as why:
        raise RowError(f"{name} is not UTF-8: {why.reason} at byte {why.start}") from None


def cut_canary(text: str) -> str:
    """Without the comments at its beginning that hold a canary, and the blank lines behind them."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        if not (line.startswith("#") or line.startswith("<!--")) or "canary" not in line.lower():
            break
        at += 1
        while at < len(lines) and not lines[at].strip():
            at += 1
    return "\n".join(lines[at:])


def instruction(path: str) -> str:
    """"" where it says nothing."""
    return cut_canary(read_text(path)).strip()


def read_toml(path: str) -> Table:
    for name in ("tomllib", "tomli"):
        try:
            toml = importlib.import_module(name)
            break
        except ImportError:
            continue
    else:
        raise RowError(f"{os.path.basename(path)} needs Python 3.11, or the package tomli")
    try:
        return dict(toml.loads(read_text(path, TOML_MAX)))
    except (toml.TOMLDecodeError, RecursionError) as why:
        raise RowError(f"{os.path.basename(path)} is not TOML: {why}") from None
