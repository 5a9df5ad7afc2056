"""The columns of an exported trajectory, by the names that docs/trajectory.md has for its JSON, and what each holds.

A kind is one of the words below, {name: kind} for what has members, or [kind] for a list.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Sequence, Tuple

from ..trajectory import Column, Message, Trace, Trajectory, Turn

TEXT, INT, UINT, REAL, FLAG, BYTES = "text", "int", "uint", "real", "flag", "bytes"
IDS, MASK, LOGPROBS = "u32s", "u8s", "f32s"  # arrays of numpy
Row = Dict[str, Any]

SAMPLING = {"temperature": REAL, "top_p": REAL, "min_p": REAL, "top_k": INT, "max_tokens": INT, "seed": UINT}
SPAN = {"offset": INT, "length": INT, "version": TEXT}
TURN = {"role": TEXT, "offset": INT, "length": INT, "finish": TEXT, "masked": TEXT, "engine": TEXT, "version": TEXT,
        "prompt_tokens": INT, "cached_tokens": INT, "seconds": REAL, "queue_seconds": REAL, "prefill_seconds": REAL,
        "decode_seconds": REAL, "sampling": SAMPLING, "versions": [SPAN]}
COLUMN = {"name": TEXT, "type": TEXT, "offset": INT, "rows": INT, "shape": [INT], "offsets": [INT], "values": BYTES}
TRACE = {"token_ids": IDS, "mask": MASK, "logprobs": LOGPROBS, "turns": [TURN], "reason": TEXT, "label": TEXT,
         "template_digest": TEXT, "tokenizer_digest": TEXT, "columns": [COLUMN]}
MESSAGE = {"role": TEXT, "content": TEXT, "tool": TEXT, "exit_status": INT, "sampled": FLAG}
PART = {"name": TEXT, "value": REAL, "weight": REAL}
METRIC = {"name": TEXT, "value": REAL}
TEST = {"name": TEXT, "status": TEXT, "message": TEXT, "seconds": REAL}
TESTS = {"passed": INT, "failed": INT, "skipped": INT, "error": INT, "list": [TEST]}
BREACH = {"limit": TEXT, "count": INT}
SANDBOX = {"cpu_seconds": REAL, "peak_memory_kib": INT, "peak_processes": INT, "peak_disk_bytes": INT, "peak_inodes": INT,
           "commands": INT, "timed_out": INT, "output_bytes": INT, "cut_bytes": INT, "breaches": [BREACH]}
FILE = {"what": TEXT, "path": TEXT}
TAMPER = {"count": INT, "files": [FILE]}


def _members(thing: Any, kinds: Dict[str, Any], **others: Any) -> Row:
    return {name: others[name] if name in others else getattr(thing, name) for name in kinds}


def _turn(turn: Turn) -> Row:
    sampling = None if turn.sampling is None else _members(turn.sampling, SAMPLING)
    return _members(turn, TURN, sampling=sampling, versions=[_members(span, SPAN) for span in turn.versions])


def _column(column: Column) -> Row:
    """Values as they lie in memory, little-endian, the last dimension running fastest."""
    values = column.values
    shape = list(values.shape[1:])
    offsets = None if column.offsets is None else [int(offset) for offset in column.offsets]
    return {"name": column.name, "type": values.dtype.str.lstrip("<|"), "offset": column.offset, "rows": column.rows, "shape": shape,
            "offsets": offsets, "values": values.tobytes()}


def _trace(trace: Trace) -> Row:
    return _members(trace, TRACE, turns=[_turn(turn) for turn in trace.turns],
                    columns=[_column(column) for column in trace.columns.values()])


def message_row(message: Message) -> Row:
    return _members(message, MESSAGE)


def _parts(t: Trajectory) -> List[Row]:
    return [{"name": name, "value": value, "weight": t.reward_weights[name]} for name, value in t.rewards.items()]


def _metrics(t: Trajectory) -> List[Row]:
    return [{"name": name, "value": value} for name, value in t.metrics.items()]


def _tests(t: Trajectory) -> Any:
    return t.tests and _members(t.tests, TESTS, list=[_members(test, TEST) for test in t.tests.list])


def _sandbox(t: Trajectory) -> Any:
    if t.sandbox is None:
        return None
    return _members(t.sandbox, SANDBOX, breaches=[{"limit": limit, "count": count} for limit, count in t.sandbox.breaches.items()])


def _tamper(t: Trajectory) -> Any:
    return t.tamper and {"count": t.tamper.count, "files": [{"what": what, "path": path} for what, path in t.tamper.files]}


def _plain(name: str) -> Callable[[Trajectory], Any]:
    return lambda t: getattr(t, name)


_PLAIN: Sequence[Tuple[str, str]] = (
    ("stream", TEXT), ("seq", INT), ("rollout", TEXT), ("group", TEXT), ("task", TEXT), ("sample", INT), ("attempt", INT),
    ("outcome", TEXT), ("trainable", FLAG), ("reward", REAL), ("raw_reward", REAL))
_PLAIN_LATER: Sequence[Tuple[str, str]] = (
    ("eval_sandbox", TEXT), ("patch", TEXT), ("group_size", INT), ("group_ended", INT), ("end", TEXT), ("truncated", FLAG), ("run_attempt", INT),
    ("detail", TEXT), ("engine", TEXT), ("init_layer", TEXT), ("agent", TEXT), ("template_digest", TEXT),
    ("tokenizer_digest", TEXT), ("logprobs_mode", TEXT), ("wait_ms", INT), ("init_ms", INT), ("run_ms", INT),
    ("eval_ms", INT), ("ended_ms", INT))

# name: (kind, how it is had), in the order in which they are written
COLUMNS: Dict[str, Tuple[Any, Callable[[Trajectory], Any]]] = {
    **{name: (kind, _plain(name)) for name, kind in _PLAIN},
    "parts": ([PART], _parts),
    "metrics": ([METRIC], _metrics),
    "tests": (TESTS, _tests),
    **{name: (kind, _plain(name)) for name, kind in _PLAIN_LATER},
    "metadata": (TEXT, lambda t: json.dumps(t.metadata, ensure_ascii=False, sort_keys=True)),
    "messages": ([MESSAGE], lambda t: [message_row(message) for message in t.messages]),
    "traces": ([TRACE], lambda t: [_trace(trace) for trace in t.traces]),
    "sandbox": (SANDBOX, _sandbox),
    "tamper": (TAMPER, _tamper),
}
