"""What a call may be given: the same words as the command line's, with the argument's name where it has the option's."""

from __future__ import annotations

import math
import os
from typing import Any, Iterable, Optional, Union

from .errors import BadArgument

NAME_BYTES, GROUP_BYTES, ROLLOUT_BYTES, WORKER_BYTES = 64, 96, 128, 128
LEASE_MAX, FOREVER = 604800, 10**9

Path = Union[str, "os.PathLike[str]"]


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def refuse(field: str, wanted: str, value: Any) -> BadArgument:
    return BadArgument(f"{field} wants {wanted}, not {shown(value)}", field)


def is_name(value: str) -> bool:
    return bool(value) and not any(c <= " " or c in "/\x7f" for c in value) and is_text(value)


def is_text(value: str) -> bool:
    """No lone surrogates: it can be UTF-8."""
    return not any("\ud800" <= c <= "\udfff" for c in value)


def name(field: str, value: Any, most: int = NAME_BYTES) -> str:
    if not isinstance(value, str) or not is_name(value):
        raise refuse(field, "a name, without a '/', a blank or a control character", value)
    if len(value.encode()) > most:
        raise refuse(field, f"a name of at most {most} bytes", value)
    return value


def rollout(field: str, value: Any) -> str:
    group, slash, sample = value.rpartition("/") if isinstance(value, str) else ("", "", "")
    if not (slash and is_name(group) and sample.isdigit() and sample.isascii() and len(value.encode()) <= ROLLOUT_BYTES):
        raise refuse(field, "a rollout's name, GROUP/NUMBER", value)
    return str(value)


def text(field: str, value: Any, least: int, most: int, what: str = "text") -> str:
    if not isinstance(value, str) or not is_text(value) or "\0" in value or not least <= len(value.encode()) <= most:
        raise refuse(field, f"{what} of {least} to {most} bytes", value)
    return value


def is_whole(value: Any) -> bool:
    """Whole numbers of numpy and its like, too; no bool is one."""
    return hasattr(value, "__index__") and not isinstance(value, bool) and type(value).__name__ != "bool_"


def number(field: str, value: Any, least: int, most: int) -> int:
    """most of 2**63 - 1 is none that is worth saying."""
    if not is_whole(value) or not least <= int(value) <= most:
        raise refuse(field, f"a number from {least}" + (f" to {most}" if most < 2**63 - 1 else " on"), value)
    return int(value)


def optional_number(field: str, value: Any, least: int, most: int) -> Optional[int]:
    return None if value is None else number(field, value, least, most)


def real(field: str, value: Any, least: float, most: float = FOREVER, what: str = "a number") -> float:
    good = (is_whole(value) or hasattr(value, "__float__")) and not isinstance(value, (bool, str))
    try:
        number = float(value) if good else math.nan
    except OverflowError:  # of an int that is larger than any float
        number = math.inf
    if not math.isfinite(number) or not least <= number <= most:
        raise refuse(field, f"{what} from {least:g}" + (f" to {most:.9g}" if most < FOREVER else " on"), value)
    return number


def seconds(field: str, value: Any, least: float, most: float = FOREVER) -> float:
    return real(field, value, least, most, "seconds,")


def optional_seconds(field: str, value: Any, least: float, most: float = FOREVER) -> Optional[float]:
    return None if value is None else seconds(field, value, least, most)


def flag(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise refuse(field, "True or False", value)
    return value


def word(field: str, value: Any, words: Iterable[str]) -> str:
    among = tuple(words)
    if not isinstance(value, str) or value not in among:
        raise refuse(field, "|".join(among), value)
    return value


def path(field: str, value: Any) -> Path:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise refuse(field, "the path of a file", value)
    return value


def digest(field: str, value: Any) -> Optional[str]:
    if value is not None and (not isinstance(value, str) or not value.startswith("sha256:")):
        raise refuse(field, 'a digest, "sha256:..."', value)
    return value if value is None else str(value)


def alternatives(given: "dict[str, Any]") -> None:
    """Exactly one of them."""
    if sum(value is not None for value in given.values()) != 1:
        *most, last = given
        raise BadArgument(f"say either {', '.join(most)} or {last}, and only one of them", last)


def feed_of(front: Any) -> str:
    """FEED's URL, two ports up or beside FRONT's file."""
    if isinstance(front, str):
        if front.startswith("ipc://") and front.endswith("/front"):
            return front[:-len("front")] + "feed"
        host, colon, port = front.rpartition(":")
        if (front.startswith("tcp://") and len(host) > len("tcp://") and colon and port.isascii() and port.isdigit() and
                0 < int(port) < 65534):
            return f"{host}:{int(port) + 2}"
    raise BadArgument(f"{shown(front)} is not a broker's URL: say tcp://HOST:PORT or ipc:///DIRECTORY/front", "url")
