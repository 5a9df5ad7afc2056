"""A reader's position in a file: the same one as `sluice watch --cursor` keeps.

One JSON object: the number wanted next, the broker's start (epoch, and start_id where it was told), and what was
given out last, by which a ledger that is another one is recognised. Written whole to a file beside it that then takes its name.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional

from ..arguments import Path
from ..errors import SluiceError

VERSION, BYTES_MAX = 1, 4096


def read_cursor(path: Path, stream: str) -> Optional[Dict[str, Any]]:
    """Its fields, or None when there is no such file."""
    try:
        with open(path, "rb") as file:
            fields: Dict[str, Any] = json.loads(file.read(BYTES_MAX))
        good = (fields["sluice_cursor"] == VERSION and fields["stream"] == stream and fields["next"] >= 2 and
                fields["epoch"] >= 1 and isinstance(fields["rollout"], str) and isinstance(fields["ended_ms"], int))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        good = False
    if not good:
        raise SluiceError(f"{os.fspath(path)} is not a cursor of stream {stream}; remove it to start over")
    return fields


def write_cursor(path: Path, **fields: Any) -> None:
    beside = f"{os.fspath(path)}.new"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump({"sluice_cursor": VERSION, **fields}, file)
        file.flush()
        os.fdatasync(file.fileno())
    os.replace(beside, path)
