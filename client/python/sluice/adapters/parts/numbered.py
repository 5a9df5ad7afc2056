"""A policy's versions as numbers, for trainers that count them."""

from __future__ import annotations

import re
from typing import Iterable, Optional, Tuple


def number_of(version: str) -> Optional[int]:
    """The number that a turn's version ends with, "step-7"; of several, "step-7+step-8", the least. None: it has none."""
    numbers = [re.search(r"(\d{1,18})$", part) for part in version.split("+")]
    found = [int(number.group(1)) for number in numbers if number]
    return min(found) if len(found) == len(numbers) else None


def span_of(versions: Iterable[str]) -> Optional[Tuple[int, int]]:
    """The least and the greatest number of these versions. None: there are none, or one has no number."""
    numbers = [number_of(part) for version in versions for part in version.split("+")]
    found = [number for number in numbers if number is not None]
    return (min(found), max(found)) if found and len(found) == len(numbers) else None
