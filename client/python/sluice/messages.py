"""The messages on the wire: the table in messages.json, and bytes from and to it.

A message is a MessagePack str, its wire name, then a map of its fields. What is sent passes the same
checks as what is read.
"""

import json
import math
import pathlib

import msgpack

from .errors import SluiceError


class MessageError(SluiceError):
    """A message, or a field, that breaks the schema."""


def _load():
    with open(pathlib.Path(__file__).with_name("messages.json"), encoding="utf-8") as file:
        table = json.load(file)
    return {m["wire"]: {f["name"]: f for f in m["fields"]} for m in table["messages"]}


MESSAGES = _load()


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _check_bounds(where, field, amount, unit):
    if amount < field["min"]:
        raise MessageError(f"{where} is {amount}{unit}, at least {field['min']}")
    if amount > field["max"]:
        raise MessageError(f"{where} is {amount}{unit}, at most {field['max']}")


def _check_value(where, field, value):
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


def check(wire, fields):
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


def encode(wire, **fields):
    """The bytes of a message; fields that are None are left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    check(wire, given)
    table = MESSAGES[wire]
    ordered = {name: float(given[name]) if table[name]["type"] == "real" else given[name]
               for name in table if name in given}
    return msgpack.packb(wire, use_bin_type=True) + msgpack.packb(ordered, use_bin_type=True)


def _unique(pairs):
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise MessageError("a field is given twice")
    return fields


def decode(data):
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
