"""The messages on the wire: the table in messages.json, and bytes from and to it.

A message is a MessagePack str, its wire name, then a map of its fields. What is sent passes the same
checks as what is read.
"""

from __future__ import annotations

import json
import math
import pathlib
from typing import Any, Dict, List, Optional, Tuple

import msgpack

from ..errors import SluiceError


class MessageError(SluiceError):
    """A message, or a record, that breaks the schema. seq: the number of the trajectory it is of, or None."""

    seq: Optional[int] = None


def _load() -> Dict[str, Dict[str, Dict[str, Any]]]:
    with open(pathlib.Path(__file__).with_name("messages.json"), encoding="utf-8") as file:
        table = json.load(file)
    return {m["wire"]: {f["name"]: f for f in m["fields"]} for m in table["messages"]}


MESSAGES = _load()


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_bounds(where: str, field: Dict[str, Any], amount: int, unit: str) -> None:
    if amount < field["min"]:
        raise MessageError(f"{where} is {amount}{unit}; the minimum is {field['min']}")
    if amount > field["max"]:
        raise MessageError(f"{where} is {amount}{unit}; the maximum is {field['max']}")


def _check_value(where: str, field: Dict[str, Any], value: Any) -> None:
    kind = field["type"]
    if kind == "uint" and _is_whole(value):
        _check_bounds(where, field, value, "")
    elif kind == "str" and isinstance(value, str):
        if "\0" in value:
            raise MessageError(f"{where} holds a NUL")
        _check_bounds(where, field, len(value.encode()), " bytes")
    elif kind == "bin" and isinstance(value, bytes):
        _check_bounds(where, field, len(value), " bytes")
    elif kind == "real" and (isinstance(value, float) or _is_whole(value)):
        if not math.isfinite(value):
            raise MessageError(f"{where} is not a finite number")
    elif kind == "bool" and isinstance(value, bool):
        pass
    else:
        raise MessageError(f"{where} is {type(value).__name__}, not {kind}")


def check(wire: str, fields: Any) -> None:
    """Raises MessageError unless `fields` is a good message `wire`."""
    table = MESSAGES.get(wire)
    if table is None:
        raise MessageError(f"no message is named {wire!r}")
    if not isinstance(fields, dict):
        raise MessageError(f"{wire}: not a map of fields")
    for name, value in fields.items():
        if name not in table:
            raise MessageError(f"{wire}: it has no field {name!r}")
        _check_value(f"{wire}: {name}", table[name], value)
    for name, field in table.items():
        if field["required"] and name not in fields:
            raise MessageError(f"{wire}: {name} is missing")


def encode(wire: str, **fields: Any) -> bytes:
    """The bytes of a message; fields that are None are left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    check(wire, given)
    table = MESSAGES[wire]
    ordered = {name: float(given[name]) if table[name]["type"] == "real" else given[name]
               for name in table if name in given}
    return bytes(msgpack.packb(wire, use_bin_type=True) + msgpack.packb(ordered, use_bin_type=True))


def _unique(pairs: List[Tuple[Any, Any]]) -> Dict[Any, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise MessageError("a field is given twice")
    return fields


def decode(data: bytes) -> Tuple[str, Dict[str, Any]]:
    """(wire name, fields) of a message's bytes."""
    try:
        unpacker = msgpack.Unpacker(raw=False, strict_map_key=True, object_pairs_hook=_unique,
                                    max_buffer_size=len(data) + 1)
        unpacker.feed(data)
        wire, fields = unpacker.unpack(), unpacker.unpack()
        rest = len(data) - unpacker.tell()
    except MessageError:
        raise
    except (ValueError, UnicodeDecodeError, msgpack.UnpackException, TypeError, RecursionError) as why:
        raise MessageError(f"not a message: {why}") from None
    if not isinstance(wire, str) or rest:
        raise MessageError("not a message: no name, or something follows")
    check(wire, fields)
    return wire, fields
