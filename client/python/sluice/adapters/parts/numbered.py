"""A policy's versions as numbers, for trainers that count them."""

from __future__ import annotations

import re
from typing import Iterable, Optional, Tuple


def _number(part: str) -> Optional[int]:
    """Of one version: all of its last word, or what follows letters of which not all may be hexadecimal digits, "v7"."""
    found = re.search(r"(?:^|[^0-9A-Za-z])([A-Za-z]*)([0-9]{1,18})$", part)
    if not found or re.fullmatch("[A-Fa-f]+", found.group(1)):
        return None
    return int(found.group(2))


def number_of(version: str) -> Optional[int]:
    """The number that a turn's version ends with, "step-7"; of several, "step-7+step-8", the least. None: it has none.

    A digest, "3f9c2a77", is none.
    """
    numbers = [_number(part) for part in version.split("+")]
    found = [number for number in numbers if number is not None]
    return min(found) if len(found) == len(numbers) else None


def span_of(versions: Iterable[str]) -> Optional[Tuple[int, int]]:
    """The least and the greatest number of these versions. None: there are none, or one has no number."""
    numbers = [number_of(part) for version in versions for part in version.split("+")]
    found = [number for number in numbers if number is not None]
    return (min(found), max(found)) if found and len(found) == len(numbers) else None
