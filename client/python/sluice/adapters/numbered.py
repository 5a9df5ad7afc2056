"""A policy's versions as numbers, for trainers that count them."""

from __future__ import annotations

import re
from typing import Optional


def number_of(version: str) -> Optional[int]:
    """The number that a turn's version ends with, "step-7"; of several, "step-7+step-8", the least. None: it has none."""
    numbers = [re.search(r"(\d{1,18})$", part) for part in version.split("+")]
    found = [int(number.group(1)) for number in numbers if number]
    return min(found) if len(found) == len(numbers) else None
