"""Messages as the table has them (messages.json, made from schemas/messages.def): bytes to dict and back.

A message is one frame: its wire name as a MessagePack str, then a map of its fields. What is sent passes the
same checks as what is read; a breach raises WireError naming the field.
"""
import json
import math
import os

import msgpack

_HERE = os.path.dirname(__file__)


class WireError(ValueError):
    """A message that breaks the table; `field` names where."""

    def __init__(self, field, text):
        super().__init__(text)
        self.field = field


def _load():
    for path in (os.path.join(_HERE, "messages.json"),
                 os.path.join(_HERE, "..", "..", "..", "schemas", "messages.json")):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as text:
                return {message["wire"]: message for message in json.load(text)["messages"]}
    raise ImportError("sluice: messages.json is missing from the package")


MESSAGES = _load()

# type name: (what Python value it is, what min and max bound)
_TYPES = {
    "str": (str, lambda v: len(v.encode())),
    "bin": (bytes, len),
    "uint": (int, lambda v: v),
    "real": (float, None),
    "bool": (bool, None),
    "jobs": (list, len),
}


def _check(wire, field, value):
    name, (kind, measure) = field["name"], _TYPES[field["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise WireError(name, f"{wire}: {name} is not of type {field['type']}")
    if kind is float and not math.isfinite(value):
        raise WireError(name, f"{wire}: {name} is not a finite number")
    if measure and not field["min"] <= measure(value) <= field["max"]:
        raise WireError(name, f"{wire}: {name} is {measure(value)}, allowed {field['min']} to {field['max']}")


def _check_all(wire, values):
    fields = {field["name"]: field for field in MESSAGES[wire]["fields"]}
    for name, value in values.items():
        if name not in fields:
            raise WireError(name, f"{wire} has no field '{name}'")
        _check(wire, fields[name], value)
    for name, field in fields.items():
        if field["required"] and name not in values:
            raise WireError(name, f"{wire}: {name} is missing")


def encode(wire, **values):
    """The bytes of message `wire`."""
    _check_all(wire, values)
    return msgpack.packb(wire) + msgpack.packb(values, use_bin_type=True)


def decode(frame):
    """(wire name, fields) of one frame."""
    unpacker = msgpack.Unpacker(raw=False, max_buffer_size=len(frame) + 1, max_bin_len=len(frame),
                                max_str_len=len(frame), max_array_len=65536, max_map_len=64)
    unpacker.feed(frame)
    try:
        wire, values = unpacker.unpack(), unpacker.unpack()
    except (msgpack.UnpackException, ValueError) as error:
        raise WireError("", f"not a message: {error}") from None
    if wire not in MESSAGES or not isinstance(values, dict):
        raise WireError("", f"no message is called {wire!r}")
    _check_all(wire, values)
    return wire, values
