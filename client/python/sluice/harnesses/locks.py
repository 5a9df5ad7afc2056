"""What the lock of a harness must be before npm or pip is given any of it: it may have come from another node."""

from __future__ import annotations

import re
from typing import Any, Dict

from .recipes import HarnessError

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,212}[A-Za-z0-9])?"
_VERSION = r"[0-9A-Za-z][0-9A-Za-z.!+_-]{0,127}"
_PLACE = r"node_modules/(?:@[A-Za-z0-9._~-]{1,214}/)?[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,213}"
_DIGESTS = r"(?:sha(?:1|256|384|512)-[A-Za-z0-9+/]{20,100}={0,2} ?){1,8}"

_PYPI = {"name": _NAME, "version": _VERSION, "digest": r"sha256:[0-9a-f]{64}"}
_NPM = {"version": _VERSION, "integrity": _DIGESTS, "resolved": r"https?://[!-~]{1,2000}"}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _field(said: str, row: Dict[str, Any], name: str, pattern: str) -> None:
    if name not in row:
        raise HarnessError(f"{said}.{name} is missing")
    if not isinstance(row[name], str) or not re.fullmatch(pattern, row[name]):
        raise HarnessError(f"{said}.{name} is {_shown(row[name])}, which is no {name} of a package")


def _object(said: str, value: Any) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise HarnessError(f"{said} is {_shown(value)}, not an object")
    return value


def _check_pypi(said: str, lock: Dict[str, Any]) -> None:
    for at, row in enumerate(lock["packages"]):
        place = f"{said}: packages[{at}]"
        for name, pattern in _PYPI.items():
            _field(place, _object(place, row), name, pattern)


def _check_npm(said: str, lock: Dict[str, Any]) -> None:
    inner = _object(f"{said}: lock", lock.get("lock"))
    if inner.get("lockfileVersion") not in (2, 3):
        raise HarnessError(f"{said}: lock.lockfileVersion is {_shown(inner.get('lockfileVersion'))}, not 2 or 3")
    for place, row in _object(f"{said}: lock.packages", inner.get("packages")).items():
        at = f"{said}: lock.packages[{_shown(place)}]"
        _object(at, row)
        if place and not re.fullmatch(f"{_PLACE}(?:/{_PLACE})*", place):
            raise HarnessError(f"{at} is no place of a package")
        if "link" in row:
            raise HarnessError(f"{at}.link is there: a link leads to what has no digest")
        for name, pattern in _NPM.items():
            if place and (name in row or name == "version"):
                _field(at, row, name, pattern)


def check(source: str, said: str, lock: Dict[str, Any]) -> None:
    """By where its packages are from: npm or pypi. What it cannot be is a HarnessError that names the field."""
    {"npm": _check_npm, "pypi": _check_pypi}[source](said, lock)
