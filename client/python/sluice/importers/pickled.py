"""Texts, numbers, lists and dicts out of a pickle, without unpickling it.

A pickle is a program, and who made it decides what it does. Here its instructions are read one by one, and those that
put plain values together are carried out; every other, and so all that names a class or calls anything, is refused. Only
texts and numbers are taken a second time out of its memory, and no more than REPEATED_MAX of them: no value contains itself,
and a small pickle makes no large one.
"""

from __future__ import annotations

import pickletools
from typing import Any, Dict, List

from .row import RowError

REPEATED_MAX = 16 << 20  # characters of all texts that stand again
_MARK = object()
_PLAIN = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = ("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "FLOAT")
_EMPTY = {"EMPTY_LIST": list, "EMPTY_DICT": dict}
_SKIPPED = ("PROTO", "FRAME")
_PUT = ("BINPUT", "LONG_BINPUT", "PUT")
_GET = ("BINGET", "LONG_BINGET", "GET")


def _above_mark(stack: List[Any]) -> List[Any]:
    at = next(i for i in range(len(stack) - 1, -1, -1) if stack[i] is _MARK)
    found = stack[at + 1:]
    del stack[at:]
    return found


def _add(name: str, stack: List[Any]) -> None:
    """APPEND, APPENDS, SETITEM, SETITEMS: to the list or dict that is below."""
    count = {"APPEND": 1, "SETITEM": 2}.get(name)
    items = _above_mark(stack) if count is None else stack[-count:]
    if count is not None:
        del stack[-count:]
    below = stack[-1]
    if any(item is _MARK for item in items):
        raise RowError("it is malformed")
    if name.startswith("APPEND") and isinstance(below, list):
        below.extend(items)
    elif name.startswith("SET") and isinstance(below, dict) and len(items) % 2 == 0:
        if not all(isinstance(key, str) for key in items[::2]):
            raise RowError("a key in it is not a text")
        below.update(zip(items[::2], items[1::2]))
    else:
        raise RowError("it is malformed")


class _Reader:
    def __init__(self) -> None:
        self.stack: List[Any] = []
        self.memory: Dict[int, Any] = {}
        self.repeated = 0

    def _take(self, index: int) -> None:
        value = self.memory[index]
        if isinstance(value, (list, dict)):
            raise RowError("one list or dict stands in it twice")
        self.repeated += len(value) if isinstance(value, str) else 1
        if self.repeated > REPEATED_MAX:
            raise RowError(f"its texts are repeated, to more than {REPEATED_MAX} characters")
        self.stack.append(value)

    def step(self, name: str, argument: Any) -> None:
        if name in _VALUES:
            self.stack.append(argument)
        elif name in _PLAIN:
            self.stack.append(_PLAIN[name])
        elif name in _EMPTY:
            self.stack.append(_EMPTY[name]())
        elif name == "MARK":
            self.stack.append(_MARK)
        elif name in ("APPEND", "APPENDS", "SETITEM", "SETITEMS"):
            _add(name, self.stack)
        elif name in _PUT or name == "MEMOIZE":
            self.memory[len(self.memory) if name == "MEMOIZE" else argument] = self.stack[-1]
        elif name in _GET:
            self._take(argument)
        elif name not in _SKIPPED:
            raise RowError(f"it is more than texts, numbers, lists and dicts: {name}")


def read_pickled(data: bytes) -> Any:
    """The value; RowError where the pickle is more than that, or broken."""
    reader = _Reader()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                break
            reader.step(opcode.name, argument)
    except (ValueError, IndexError, KeyError, StopIteration, UnicodeError) as why:
        raise RowError(f"it is malformed: {why}") from None
    if len(reader.stack) != 1 or reader.stack[0] is _MARK:
        raise RowError("it is malformed")
    return reader.stack[0]
