"""A row of somebody's data set: its columns, and the words with which it is refused."""

from __future__ import annotations

import json
import math
from typing import Any, Dict, Iterable, List, Mapping, Optional

from ..task.task_rules import TASK_BYTES

Row = Mapping[str, Any]
SMALL_BYTES = 1024  # of a column that goes along as metadata
ROLES = {"system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant"}


class RowError(Exception):
    """Why a row cannot be a task: one sentence, without its place."""


def first(row: Row, *columns: str) -> Any:
    """Of these columns the first that says something, or None."""
    for column in columns:
        value = row.get(column)
        if value is not None and value != "" and value != []:
            return value
    return None


def text_of(row: Row, *columns: str) -> str:
    """As `first`, and it must be a text."""
    value = first(row, *columns)
    if value is None:
        raise RowError(f"it has no {' or '.join(columns)}")
    if not isinstance(value, str):
        raise RowError(f"{' or '.join(columns)} must be a text, not {type(value).__name__}")
    return value


def gold_of(value: Any, column: str) -> str:
    """The accepted answer as a text; numbers are written out."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise RowError(f"no gold: {column} is " + ("missing" if value is None else f"{type(value).__name__}, not a text or a number"))
    if isinstance(value, float) and not math.isfinite(value):
        raise RowError(f"no gold: {column} is {value}, which stands for what is missing")
    text = str(value).strip()
    if not text:
        raise RowError(f"no gold: {column} is empty")
    return text


def decoded(value: Any, column: str) -> Any:
    """What a column holds that may be JSON in a text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as why:
        raise RowError(f"{column} is not JSON: {why}") from None


def within(row: Row, path: str) -> Any:
    """The value at a dotted path of objects, or None."""
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def renamed(row: Row, columns: Mapping[str, str]) -> Dict[str, Any]:
    """The same with {column: field}: what the column holds, which may be a dotted path, is the field's."""
    changed = dict(row)
    for column, field in columns.items():
        value = row[column] if column in row else within(row, column)
        if value is None:
            raise RowError(f"it has no column {column}")
        changed[field] = value
        if field != column:
            changed.pop(column, None)
    return changed


def small_columns(row: Row, but: Iterable[str] = ()) -> Dict[str, Any]:
    """Its columns that are a number, a word or a short text: what goes along as metadata."""
    left_out = set(but)
    return {name: value for name, value in row.items() if name not in left_out and isinstance(value, (str, int, float))
            and value != "" and len(str(value).encode(errors="replace")) <= SMALL_BYTES
            and not (isinstance(value, float) and not math.isfinite(value))}  # such as pandas has for what is missing


def _content(value: Any, place: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, Mapping) for part in value):
        kinds = [part.get("type") for part in value]
        other = next((kind for kind in kinds if kind not in ("text", "input_text", "output_text")), None)
        if other is None and all(isinstance(part.get("text"), str) for part in value):
            return "".join(part["text"] for part in value)
        raise RowError(f"{place} holds a part of type {other}, and a task's messages are text")
    raise RowError(f"{place} must be a text, not {type(value).__name__}")


def asked(value: Any, column: str) -> Dict[str, Any]:
    """{"prompt": ...} or {"messages": ...} of a text, or of a list of {role, content}."""
    if isinstance(value, str) and value:
        return {"prompt": value}
    if not isinstance(value, list) or not value:
        raise RowError(f"{column} must be a text or a list of messages, and is " + ("missing" if not value else type(value).__name__))
    messages: List[Dict[str, str]] = []
    for i, message in enumerate(value):
        place = f"{column}[{i}]"
        role = message.get("role") if isinstance(message, Mapping) else None
        if not isinstance(role, str) or role not in ROLES:
            raise RowError(f"{place} has the role {role}; a task's messages are {', '.join(sorted(set(ROLES.values())))}")
        messages.append({"role": ROLES[role], "content": _content(message.get("content"), f"{place}.content")})
    if len(messages) == 1 and messages[0]["role"] == "user":
        return {"prompt": messages[0]["content"]}
    return {"messages": messages}


def check_size(tests: Any) -> None:
    """Refuses tests that no task can hold, by their size."""
    size = len(json.dumps(tests, ensure_ascii=False).encode(errors="replace"))
    if size > TASK_BYTES:
        raise RowError(f"its tests are {size} bytes, and a task is at most {TASK_BYTES}")


def named(value: Optional[Any], default: str) -> str:
    """A task's id of whatever a row calls itself."""
    text = str(value) if isinstance(value, (str, int)) and str(value).strip() else default
    clean = "".join("-" if c <= " " or c in "/\x7f" else c for c in text)
    return clean.encode(errors="replace")[:128].decode(errors="ignore")
