"""Files of rows, written row by row: JSON lines, and parquet. The same rows are the same bytes."""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Dict, List, Protocol, Sequence

from .columns import BYTES, FLAG, IDS, INT, LOGPROBS, MASK, REAL, TEXT, UINT, Row
from .folder import ExportError

BATCH_ROWS, BATCH_TOKENS = 256, 4 << 20  # of a row group, whichever comes first
NEEDS_PYARROW = "parquet needs pyarrow: pip install 'sluice-rollouts[parquet]', or pip install pyarrow"


class Writer(Protocol):
    def write(self, row: Row) -> None: ...

    def close(self) -> None: ...


# ---- JSON lines -------------------------------------------------------------------------------


def _json(kind: Any, value: Any) -> Any:
    """What JSON has: arrays as lists; 32-bit floats in the nine digits that say which they are."""
    if value is None:
        return None
    if isinstance(kind, dict):
        return {name: _json(inner, value[name]) for name, inner in kind.items()}
    if isinstance(kind, list):
        return [_json(kind[0], inner) for inner in value]
    if kind == LOGPROBS:
        return [float(f"{number:.9g}") for number in value.tolist()]
    if kind == BYTES:
        return value.hex()
    return value.tolist() if kind in (IDS, MASK) else value


class Lines:
    def __init__(self, file: BinaryIO, kinds: Dict[str, Any]) -> None:
        self.file, self.kinds = file, kinds

    def write(self, row: Row) -> None:
        text = json.dumps(_json(self.kinds, row), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        self.file.write(text.encode("utf-8", "replace") + b"\n")

    def close(self) -> None:
        """The file is the caller's."""


# ---- parquet ----------------------------------------------------------------------------------


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ExportError(NEEDS_PYARROW) from None
    return pyarrow


def arrow_type(kind: Any) -> Any:
    arrow = _arrow()
    if isinstance(kind, dict):
        return arrow.struct([arrow.field(name, arrow_type(inner)) for name, inner in kind.items()])
    if isinstance(kind, list):
        return arrow.list_(arrow_type(kind[0]))
    return {TEXT: arrow.string, INT: arrow.int64, UINT: arrow.uint64, REAL: arrow.float64, FLAG: arrow.bool_, BYTES: arrow.binary,
            IDS: lambda: arrow.list_(arrow.uint32()), MASK: lambda: arrow.list_(arrow.uint8()),
            LOGPROBS: lambda: arrow.list_(arrow.float32())}[kind]()


def arrow_schema(kinds: Dict[str, Any]) -> Any:
    return _arrow().schema([_arrow().field(name, arrow_type(kind)) for name, kind in kinds.items()])


def _tokens(row: Row) -> int:
    return sum(len(trace["token_ids"]) for trace in row.get("traces") or ())


class Parquet:
    """Row groups end where so many rows or tokens are in them: by the rows alone."""

    def __init__(self, file: BinaryIO, kinds: Dict[str, Any]) -> None:
        self.arrow = _arrow()
        self.schema = arrow_schema(kinds)
        self.writer = self.arrow.parquet.ParquetWriter(file, self.schema, compression="zstd")
        self.rows: List[Row] = []
        self.tokens = 0

    def write(self, row: Row) -> None:
        self.rows.append(row)
        self.tokens += _tokens(row)
        if len(self.rows) >= BATCH_ROWS or self.tokens >= BATCH_TOKENS:
            self._flush()

    def _flush(self) -> None:
        self.writer.write_table(self.arrow.Table.from_pylist(self.rows, schema=self.schema))
        self.rows, self.tokens = [], 0

    def close(self) -> None:
        if self.rows:
            self._flush()
        self.writer.close()


def check(ending: str) -> None:
    """Raises ExportError where such files cannot be written here."""
    if ending == "parquet":
        _arrow()


def open_writer(ending: str, file: BinaryIO, kinds: Dict[str, Any]) -> Writer:
    return Parquet(file, kinds) if ending == "parquet" else Lines(file, kinds)


def join(ending: str, paths: Sequence[str], file: BinaryIO, kinds: Dict[str, Any]) -> None:
    """Several files as one, a piece at a time."""
    if ending != "parquet":
        for path in paths:
            with open(path, "rb") as part:
                while piece := part.read(1 << 20):
                    file.write(piece)
        return
    arrow = _arrow()
    writer: Any = arrow.parquet.ParquetWriter(file, arrow_schema(kinds), compression="zstd")
    for path in paths:
        with arrow.parquet.ParquetFile(path) as part:
            for number in range(part.num_row_groups):
                writer.write_table(part.read_row_group(number))
    writer.close()
