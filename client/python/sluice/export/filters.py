"""Which trajectories are taken: FIELD OP VALUE, such as outcome=ok, reward>=0.5, metadata.split!=test."""

from __future__ import annotations

import operator
import re
from typing import Any, Callable, Dict, List, Sequence

from ..errors import BadArgument
from ..trajectory import Trajectory
from .columns import COLUMNS, FLAG, INT, REAL, TEXT

OPERATORS: Dict[str, Callable[[Any, Any], bool]] = {"!=": operator.ne, ">=": operator.ge, "<=": operator.le, "=": operator.eq,
                                                    ">": operator.gt, "<": operator.lt}
_FORM = re.compile(r"([A-Za-z_][\w.]*)\s*(!=|>=|<=|=|>|<)\s*(.*)", re.DOTALL)
_WORDS = {"true": True, "false": False}
Test = Callable[[Trajectory], bool]


def _value(kind: Any, text: str) -> Any:
    """By the field's kind; of metadata by how it is written."""
    if kind == FLAG:
        return _WORDS[text]
    if kind in (INT, REAL):
        return float(text)
    if kind == TEXT:
        return text
    try:
        return float(text)
    except ValueError:
        return _WORDS.get(text, text)


def _getter(name: str) -> Callable[[Trajectory], Any]:
    part, dot, rest = name.partition(".")
    if dot and part == "metadata":
        return lambda t: t.metadata.get(rest)
    if dot and part == "metrics":
        return lambda t: t.metrics.get(rest)
    return COLUMNS[name][1]


def _kind(name: str) -> Any:
    """None: any, of metadata."""
    part, dot, _ = name.partition(".")
    if dot and part in ("metadata", "metrics"):
        return REAL if part == "metrics" else None
    kind = COLUMNS[name][0] if name in COLUMNS else "unknown"
    if kind not in (TEXT, INT, REAL, FLAG) or name == "metadata":
        raise BadArgument(f"filter: {name} is no field that can be compared (metadata.NAME and metrics.NAME can)", "filter")
    return kind


def _compare(get: Callable[[Trajectory], Any], compare: Callable[[Any, Any], bool], value: Any) -> Test:
    """What is not there, or of another kind, is equal to nothing, and neither larger nor smaller."""
    def test(t: Trajectory) -> bool:
        found = get(t)
        if found is None or isinstance(found, str) != isinstance(value, str):
            return compare is operator.ne
        try:
            return compare(found, value)
        except TypeError:
            return compare is operator.ne
    return test


def read_filter(text: str) -> Test:
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise BadArgument(f"filter wants FIELD=VALUE, or !=, >=, <=, > or <, not {text!r}", "filter")
    name, sign, value = found.groups()
    kind = _kind(name)
    try:
        return _compare(_getter(name), OPERATORS[sign], _value(kind, value.strip()))
    except (ValueError, KeyError):
        wanted = "true or false" if kind == FLAG else "a number"
        raise BadArgument(f"filter: {name} is compared with {wanted}, not {value!r}", "filter") from None


def read_filters(texts: Sequence[str]) -> Test:
    """All must hold."""
    tests: List[Test] = [read_filter(text) for text in texts]
    return lambda t: all(test(t) for test in tests)
