"""The name that may have been meant, as common/base/nearest.c finds it."""

from __future__ import annotations

from typing import Iterable, Optional

BYTES_MAX = 64


def _folded(name: str) -> bytes:
    return name.encode(errors="replace").replace(b"-", b"_").lower()[:BYTES_MAX]


def _edits(a: bytes, b: bytes) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def _distance(a: bytes, b: bytes) -> int:
    distance = _edits(a, b)
    return 1 if distance > 1 and (a and a in b or b and b in a) else distance


def nearest(wanted: str, names: Iterable[str]) -> Optional[str]:
    """None: none is likely."""
    folded, size = _folded(wanted), len(wanted.encode(errors="replace"))
    best, least = None, 0
    for name in names:
        distance = _distance(folded, _folded(name))
        if best is None or distance < least:
            best, least = name, distance
    is_likely = size > 1 and least <= (1 if size < 5 else 2 if size < 7 else size // 3)
    return best if is_likely else None
