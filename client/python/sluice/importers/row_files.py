"""The rows of a file, one after another: JSON lines or a list of objects, either compressed with gzip, or parquet."""

from __future__ import annotations

import base64
import contextlib
import datetime
import gzip
import json
import os
import zlib
from typing import Any, BinaryIO, Dict, Iterator, Tuple, Union

from .row import RowError

LINE_MAX, LIST_MAX = 256 << 20, 1 << 30  # bytes of a line, and of a file that is one list
Numbered = Tuple[int, Union[Dict[str, Any], RowError]]


class FileError(Exception):
    """Why a file has no rows at all: one sentence."""


def _row(text: bytes) -> Union[Dict[str, Any], RowError]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as why:
        return RowError(f"it is not JSON: {why}")
    return value if isinstance(value, dict) else RowError(f"it is not an object, but a {type(value).__name__}")


def _lines(file: BinaryIO) -> Iterator[Numbered]:
    number = 0
    while True:
        line = file.readline(LINE_MAX + 1)
        if not line:
            return
        number += 1
        if len(line) > LINE_MAX:
            yield number, RowError(f"the line is longer than {LINE_MAX} bytes")
            while line and not line.endswith(b"\n"):
                line = file.readline(LINE_MAX)
        elif line.strip():
            yield number, _row(line)


def _list(file: BinaryIO) -> Iterator[Numbered]:
    text = file.read(LIST_MAX + 1)
    if len(text) > LIST_MAX:
        raise FileError(f"a file that is one list may have {LIST_MAX} bytes; make it JSON lines")
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as why:
        raise FileError(f"it begins as a list, and is not JSON: {why}") from None
    for number, row in enumerate(rows, 1):
        yield number, row if isinstance(row, dict) else RowError(f"it is not an object, but a {type(row).__name__}")


def _json(path: str) -> Iterator[Numbered]:
    """Tells a list from lines by its first byte."""
    with contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(open(path, "rb"))
        if path.endswith(".gz"):
            file = stack.enter_context(gzip.open(file))
        lead = file.read(4096).lstrip()[:1]
        file.seek(0)
        yield from _list(file) if lead == b"[" else _lines(file)


def _plain(value: Any) -> Any:
    """What parquet holds and JSON does not."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _parquet(path: str) -> Iterator[Numbered]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise FileError("parquet needs pyarrow: pip install 'sluice-rollouts[parquet]'") from None
    try:
        number = 0
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=64):
                for row in batch.to_pylist():
                    number += 1
                    yield number, _plain(row)
    except ArrowException as why:
        raise FileError(f"it is not a parquet file: {why}") from None


def read_rows(path: Union[str, "os.PathLike[str]"]) -> Iterator[Numbered]:
    """(line, row) of each; a line of which none can be made comes with its RowError. FileError where the file has none."""
    name = os.fspath(path)
    try:
        yield from _parquet(name) if name.endswith(".parquet") else _json(name)
    except (OSError, EOFError, zlib.error) as why:
        raise FileError(f"it cannot be read: {why.strerror if isinstance(why, OSError) and why.strerror else why}") from None
