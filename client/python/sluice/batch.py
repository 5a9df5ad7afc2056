"""From trajectories to arrays: split, padded or packed. Pure, in numpy; torch is imported by as_torch() alone.

Nothing is truncated: what is longer than a bound is an error that names it.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import arguments
from .advantages import Estimator, grpo, rewards_of
from .errors import BadArgument
from .trajectory import TOKENS_MAX, Trace

__all__ = ["Split", "split", "Arrays", "to_batch", "pack", "as_torch"]

PACK_MAX = (1 << 31) - 1  # tokens: "cu_seqlens" has no larger numbers

Array = npt.NDArray[Any]
PER_TOKEN: Dict[str, Any] = {"ids": np.int64, "attention": np.uint8, "mask": np.uint8, "logprobs": np.float32,
                             "advantages": np.float32, "positions": np.int64}


class Split(NamedTuple):
    """A trace at its first sampled token; views of its arrays, read-only. All are empty but the first if none was
    sampled."""

    prompt_ids: npt.NDArray[np.uint32]         # what stands before it
    response_ids: npt.NDArray[np.uint32]       # from it on: what was sampled, and what tools said in between
    response_mask: npt.NDArray[np.uint8]       # 1: sampled
    response_logprobs: npt.NDArray[np.float32]  # 0 where mask is 0


def _first(trace: Trace) -> int:
    """The index of the first sampled token; the length, if there is none."""
    return int(trace.mask.argmax()) if trace.mask.any() else len(trace.mask)


def split(trace: Trace) -> Split:
    """A trace's prompt and response, as most trainers want them."""
    at = _first(trace)
    return Split(trace.token_ids[:at], trace.token_ids[at:], trace.mask[at:], trace.logprobs[at:])


@dataclasses.dataclass
class Arrays:
    """Traces as arrays by name: arrays["ids"]."""

    arrays: Dict[str, Array]  # by name
    prompt_width: int = 0     # of layout "prompt": the first columns, which are of prompts
    left_out: int = 0         # traces with mask 0, as their rollouts have no reward or are not trainable
    without_tokens: int = 0   # rollouts that have no traces, and so are not in it

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]


class Row(NamedTuple):
    trace: Trace
    advantage: float
    is_trained: bool
    group: int    # its place among the groups; of traces alone -1
    rollout: int  # among all rollouts of these; of traces alone its own place


Traces = Sequence[Any]  # of Trace, or of Group or SampledGroup


def _rows(traces: Traces, advantages: Union[Sequence[float], Estimator, None]) -> Tuple[List[Row], int]:
    """Rows, and how many rollouts have none."""
    given = list(traces)
    if all(isinstance(one, Trace) for one in given):
        values = [0.0] * len(given) if advantages is None else advantages
        if callable(values) or len(values) != len(given):
            raise BadArgument(f"advantages wants a number for each of the {len(given)} traces", "advantages")
        return [Row(trace, float(value), True, -1, place) for place, (trace, value) in enumerate(zip(given, values))], 0
    if not all(hasattr(one, "trajectories") for one in given):
        raise BadArgument("a batch is made of traces, or of groups (a Batch's, or those of groups()), not of both",
                          "traces")
    if advantages is not None and not callable(advantages):
        raise BadArgument("advantages wants a function of a group's rewards, such as grpo, where groups are given",
                          "advantages")
    rows: List[Row] = []
    rollout = without_tokens = 0
    for place, group in enumerate(given):
        told = (advantages or grpo)(rewards_of(group.trajectories))
        for trajectory, value, is_scored in zip(group.trajectories, told.values, told.scored):
            rows += [Row(trace, float(value), bool(is_scored), place, rollout) for trace in trajectory.traces]
            without_tokens += not trajectory.traces
            rollout += 1
    return rows, without_tokens


def _shape(rows: List[Row], name: str) -> Tuple[Any, Tuple[int, ...]]:
    """A column's type, and its shape for a token; they are the same in all traces that have it."""
    found = {place: row.trace.columns[name] for place, row in enumerate(rows) if name in row.trace.columns}
    if not found:
        has = sorted({column for row in rows for column in row.trace.columns})
        raise BadArgument(f"no trace has a column {name!r}; they have {', '.join(has) or 'none'}", "columns")
    if any(column.offsets is not None for column in found.values()):
        raise BadArgument(f"the column {name!r} has a different number of values for each token, which is no array: "
                          "take it of trace.column()", "columns")
    if name in PER_TOKEN or name in ("group", "rollout", "row", "sequence_lengths", "cu_seqlens"):
        raise BadArgument(f"a column named {name!r} would hide an array of that name", "columns")
    shapes = {(column.values.dtype, column.values.shape[1:]) for column in found.values()}
    if len(shapes) > 1:
        told = ", ".join(sorted(f"{dtype} {shape}" for dtype, shape in shapes))
        raise BadArgument(f"the column {name!r} is not of one type and shape in these traces: {told}", "columns")
    return shapes.pop()


class Frame:
    """Arrays of zeros by name, into which rows are put."""

    def __init__(self, shape: Tuple[int, ...], pad_id: int, rows: List[Row], columns: Iterable[str]) -> None:
        self.columns = list(columns)
        self.arrays: Dict[str, Array] = {name: np.zeros(shape, dtype) for name, dtype in PER_TOKEN.items()}
        self.arrays["ids"][...] = pad_id
        for name in self.columns:
            dtype, more = _shape(rows, name)
            self.arrays[name] = np.zeros((*shape, *more), dtype)
            self.arrays[f"has_{name}"] = np.zeros(shape, bool)

    def put(self, row: Row, place: Tuple[Any, ...], begin: int) -> None:
        """From column `begin` on."""
        trace, size = row.trace, len(row.trace.token_ids)
        whole = (*place, slice(begin, begin + size))
        self.arrays["ids"][whole] = trace.token_ids
        self.arrays["attention"][whole] = 1
        self.arrays["positions"][whole] = np.arange(size)
        self.arrays["logprobs"][whole] = trace.logprobs
        if row.is_trained:
            self.arrays["mask"][whole] = trace.mask
            self.arrays["advantages"][whole] = trace.mask * np.float32(row.advantage)
        for name in self.columns:
            if name in trace.columns:
                column = trace.columns[name]
                part = (*place, slice(begin + column.offset, begin + column.offset + column.rows))
                self.arrays[name][part] = column.values
                self.arrays[f"has_{name}"][part] = True


def _width(what: str, sizes: Sequence[int], width: Optional[int], multiple: int) -> int:
    longest = max(sizes, default=0)
    if width is None:
        return -(-longest // multiple) * multiple
    if longest > arguments.number(what, width, 1, PACK_MAX):
        raise BadArgument(f"{what} is {width}, and row {list(sizes).index(longest)} has {longest} tokens: nothing is "
                          "cut; raise it, or leave that trace out", what)
    return width


def to_batch(traces: Traces, advantages: Union[Sequence[float], Estimator, None] = None, layout: str = "right",
             width: Optional[int] = None, prompt_width: Optional[int] = None, multiple: int = 1, pad_id: int = 0,
             columns: Iterable[str] = ()) -> Arrays:
    """Traces as padded arrays, a row each.

    traces: traces, or groups (a Batch's `groups`, or Groups), of which every trace is a row. advantages: of traces a
    number each (None: 0); of groups a function of a group's rewards, grpo if None.

    layout: "right" begins each trace in column 0, and pads behind it; "prompt" ends each prompt in column
    `prompt_width` - 1 with padding before it, and begins its response in the next, with padding behind (verl's;
    batch["mask"][:, batch.prompt_width:] is its response mask). width: of all columns; None: as wide as the longest,
    rounded up to a `multiple`. prompt_width: of the columns of prompts; None: likewise. pad_id: in "ids" where there is
    no token. columns: names of columns of the traces.

    Arrays of [rows, width]: "ids" int64, "attention" uint8 (1: a token), "mask" uint8 (1: sampled, and to be learned
    from), "logprobs" float32, "advantages" float32 (0 where mask is 0), "positions" int64 (within the trace), each
    column by its name and "has_NAME" bool, where it has a value. Of [rows], int64: "group", the group's place (-1: of
    traces alone), and "rollout", its place among all rollouts, the same for all traces of one.

    A rollout that is not trainable, or has no reward, is in no mean; its traces have advantage 0 and mask 0, and
    `left_out` counts them. `without_tokens` counts the rollouts that have no trace.
    """
    arguments.word("layout", layout, ("right", "prompt"))
    arguments.number("multiple", multiple, 1, TOKENS_MAX)
    rows, without_tokens = _rows(traces, advantages)
    prompts = [_first(row.trace) if layout == "prompt" else 0 for row in rows]
    wide = _width("prompt_width", prompts, prompt_width, multiple) if layout == "prompt" else 0
    rest = [len(row.trace.token_ids) - prompt for row, prompt in zip(rows, prompts)]
    if width is not None and width <= wide and layout == "prompt":
        raise BadArgument(f"width is {width}, of which prompts take {wide}: it is that of prompts and "
                          "responses together", "width")
    behind = _width("width", rest, None if width is None else width - wide, multiple)
    frame = Frame((len(rows), wide + behind), pad_id, rows, columns)
    for place, (row, prompt) in enumerate(zip(rows, prompts)):
        frame.put(row, (place,), wide - prompt)
    frame.arrays["group"] = np.array([row.group for row in rows], dtype=np.int64)
    frame.arrays["rollout"] = np.array([row.rollout for row in rows], dtype=np.int64)
    return Arrays(frame.arrays, wide, sum(not row.is_trained for row in rows), without_tokens)


def pack(traces: Traces, tokens: int, advantages: Union[Sequence[float], Estimator, None] = None,
         columns: Iterable[str] = ()) -> List[Arrays]:
    """Traces one behind the other without padding, in as few packs of at most `tokens` tokens as first-fit finds.

    tokens: at most so many in each pack. traces, advantages, columns: as in to_batch().

    Each pack has the same arrays, of [tokens], where "positions" begin at 0
    in each trace; and of [traces] "sequence_lengths" int32, "group", "rollout" and "row" int64, the trace's place among
    all given; and "cu_seqlens" int32 [traces + 1], where each begins and the last ends. The first pack has
    `without_tokens`.
    """
    columns = list(columns)
    rows, without_tokens = _rows(traces, advantages)
    sizes = [len(row.trace.token_ids) for row in rows]
    _width("tokens", sizes, tokens, 1)
    packs: List[List[int]] = []
    left: List[int] = []
    for place in sorted(range(len(rows)), key=lambda place: -sizes[place]):
        fits = next((k for k, room in enumerate(left) if room >= sizes[place]), None)
        if fits is None:
            packs.append([place])
            left.append(tokens - sizes[place])
        else:
            packs[fits].append(place)
            left[fits] -= sizes[place]
    packed = [_pack([rows[k] for k in sorted(places)], sorted(places), rows, columns) for places in packs]
    if packed:
        packed[0].without_tokens = without_tokens
    return packed


def _pack(rows: List[Row], places: List[int], of: List[Row], columns: List[str]) -> Arrays:
    lengths = np.array([len(row.trace.token_ids) for row in rows], dtype=np.int32)
    begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    frame = Frame((int(begins[-1]),), 0, of, columns)
    for row, begin in zip(rows, begins):
        frame.put(row, (), int(begin))
    for name, values in (("group", [row.group for row in rows]), ("rollout", [row.rollout for row in rows]),
                         ("row", places)):
        frame.arrays[name] = np.array(values, dtype=np.int64)
    frame.arrays.update(sequence_lengths=lengths, cu_seqlens=begins)
    return Arrays(frame.arrays, 0, sum(not row.is_trained for row in rows))


def as_torch(arrays: Union[Arrays, Mapping[str, Array]]) -> Dict[str, Any]:
    """The same as torch's tensors, by name.

    Memory is shared where it may be written, as that of to_batch() and pack(); read-only arrays, such as a trace's own,
    are copied. Unsigned types that torch computes little with become signed ones of twice the size.
    """
    import torch
    wider = {np.dtype(np.uint16): np.int32, np.dtype(np.uint32): np.int64}
    told = {}
    for name, values in (arrays.arrays if isinstance(arrays, Arrays) else arrays).items():
        values = values.astype(wider.get(values.dtype, values.dtype), copy=not values.flags.writeable)
        told[name] = torch.from_numpy(values)
    return told
