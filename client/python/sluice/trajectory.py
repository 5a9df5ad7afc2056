"""A trajectory: what the model sampled and saw, token by token, and how it was scored."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, Dict, List, Optional, Tuple, Type, TypeVar

import lz4.block
import msgpack
import numpy as np
import numpy.typing as npt

from .errors import OtherTokens
from .protocol.messages import MessageError

RECORD_VERSION = 4  # and older ones, since 1
TOKENS_MAX = 1 << 22
COLUMN_BYTES_MAX = 256 << 20  # of all columns by name of a record, unpacked
SHOWN_MAX = 60  # characters of a text in a repr

K = TypeVar("K")


def _line(text: str) -> str:
    """As repr() shows it, on one line and not a long one."""
    return repr(text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX - 3] + "...")


@dataclasses.dataclass
class Sampling:
    """As the engine was asked for a turn."""

    temperature: float  # 0: greedy
    top_p: float        # 1: off
    min_p: float        # 0: off
    top_k: int          # 0: off
    max_tokens: int     # at most so many, in this turn
    seed: Optional[int] = None  # None: the engine's choice


@dataclasses.dataclass
class VersionSpan:
    """What of a turn's tokens one version of the policy sampled."""

    offset: int   # its first token, within the turn
    length: int   # its number of tokens
    version: str  # the policy's


@dataclasses.dataclass(repr=False)
class Column:
    """Values by name of a trace's tokens, such as routed experts (docs/trajectory.md)."""

    name: str    # as the record has it
    offset: int  # the first token of the trace that it has a row for
    values: npt.NDArray[Any]  # [rows, ...]; with offsets all rows' values, one after the other; read-only
    offsets: Optional[npt.NDArray[np.int64]] = None  # rows + 1: row i is values[offsets[i]:offsets[i + 1]]

    @property
    def rows(self) -> int:
        """How many tokens it has a row for."""
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    def __repr__(self) -> str:
        ragged = "" if self.offsets is None else ", ragged"
        return f"Column({self.name}, {self.rows} rows from {self.offset}, {self.values.dtype}{ragged})"


@dataclasses.dataclass
class Turn:
    """A run of a trace's tokens: prompt, one assistant turn, or a tool's output."""

    offset: int   # its first token in the trace
    length: int   # its number of tokens
    role: str     # "prompt", "assistant", "user" or "tool"
    finish: str = ""         # of the assistant's: "stop", "length" or "abort"
    masked: str = ""         # of the assistant's: the label for which its mask is 0 (agent.train); "": none
    engine: str = ""         # of the assistant's: the engine's URL
    version: str = ""        # of the assistant's: the policy's version
    prompt_tokens: int = 0   # as the engine counted them
    cached_tokens: int = 0   # how many of those came from its cache
    seconds: float = 0.0     # of the model call or the tool call
    queue_seconds: Optional[float] = None    # of them, as the engine reported; None: it did not
    prefill_seconds: Optional[float] = None  # likewise
    decode_seconds: Optional[float] = None   # likewise
    sampling: Optional[Sampling] = None      # of the assistant's: how it was sampled; None: not known
    versions: List[VersionSpan] = dataclasses.field(default_factory=list)  # where `version` joins several, if known


@dataclasses.dataclass(repr=False)
class Trace:
    """Flat arrays of equal length; a new trace starts where a prompt could not be extended exactly."""

    token_ids: npt.NDArray[np.uint32]  # the ids; read-only, as the other two
    mask: npt.NDArray[np.uint8]        # 1: sampled by the policy
    logprobs: npt.NDArray[np.float32]  # 0 where mask is 0
    turns: List[Turn]      # they cover the arrays from 0, in order, without gaps
    reason: str            # why it started, "" for the first
    template_digest: str = ""   # of the engine it started on; "": not known
    tokenizer_digest: str = ""  # likewise
    columns: Dict[str, Column] = dataclasses.field(default_factory=dict)  # values by name, where there are any
    label: str = ""  # of a harness's: "main", "sub-agent", "branch", "auxiliary" or "undelivered" (docs/trajectory.md)
    messages: List[Message] = dataclasses.field(default_factory=list)  # of a harness's: what was said in it; of others none

    def versions(self) -> npt.NDArray[np.object_]:
        """The version of the policy that sampled each token, as an array of str; "" where mask is 0.

        Where a turn was sampled under several versions and the engine did not say which sampled which, its tokens have
        them all, joined by "+"; where none is known, "".
        """
        told = np.full(len(self.token_ids), "", dtype=object)
        for turn in self.turns:
            spans = turn.versions or [VersionSpan(0, turn.length, turn.version)]
            for span in spans:
                at = turn.offset + span.offset
                told[at:at + span.length] = span.version
        told[self.mask == 0] = ""
        return told

    def temperatures(self) -> npt.NDArray[np.float32]:
        """The temperature that each token was sampled at; NaN where mask is 0, or it is not known."""
        told = np.full(len(self.token_ids), math.nan, dtype=np.float32)
        for turn in self.turns:
            if turn.sampling is not None:
                told[turn.offset:turn.offset + turn.length] = turn.sampling.temperature
        told[self.mask == 0] = math.nan
        return told

    def column(self, name: str) -> Column:
        """The column of that name. KeyError: the trace has none, and which it has."""
        if name not in self.columns:
            raise KeyError(f"the trace has no column {name!r}; it has {', '.join(self.columns) or 'none'}")
        return self.columns[name]

    def __repr__(self) -> str:
        turns = sum(turn.role == "assistant" for turn in self.turns)
        why = "".join(f", {text}" for text in (self.label, self.reason) if text)
        return f"Trace({len(self.token_ids)} tokens, {int(self.mask.sum())} of them sampled, in {turns} turns{why})"


@dataclasses.dataclass(repr=False)
class Message:
    """A message as text, for people; the tokens are authoritative."""

    role: str     # "system", "user", "assistant" or "tool"; "note": a handler's, which the model was not shown
    content: str  # as text
    tool: Optional[str] = None  # of a tool's: its name and arguments, "bash: ls -l"
    exit_status: int = 0        # of a tool's
    sampled: bool = False       # of the assistant's: the policy said it; False: it was given with the task

    def __repr__(self) -> str:
        of = f", {_line(self.tool)}" if self.tool else ""
        return f"Message({self.role}{of}, {_line(self.content)})"


@dataclasses.dataclass
class Sandbox:
    """What the agent's sandbox used; peaks as seen ten times a second."""

    peak_memory_kib: int = 0   # resident, all processes together
    peak_processes: int = 0    # threads included
    peak_disk_bytes: int = 0   # written and not removed
    peak_inodes: int = 0       # files, directories and links of it
    cpu_seconds: float = 0.0   # of processes that have ended
    commands: int = 0          # bash commands and cells of Python
    timed_out: int = 0         # those of them that were stopped
    output_bytes: int = 0      # what they wrote
    cut_bytes: int = 0         # of those, what the agent was not shown
    breaches: Dict[str, int] = dataclasses.field(default_factory=dict)  # limit: how often


@dataclasses.dataclass(repr=False)
class Tamper:
    """Files of the agent's that decide what runs when an evaluator runs (docs/trajectory.md)."""

    count: int = 0  # how many there are in all
    files: List[Tuple[str, str]] = dataclasses.field(default_factory=list)  # (kind, path), the first of each kind

    def __repr__(self) -> str:
        return f"Tamper({self.count} files, {', '.join(_line(path) for _, path in self.files[:3])})"


@dataclasses.dataclass
class Test:
    """One test of an evaluator's."""

    __test__ = False  # no test case of a runner's

    name: str    # which may come again
    status: str  # "passed", "failed", "skipped" or "error"
    message: Optional[str] = None    # why; None: nothing was said
    seconds: Optional[float] = None  # None: not known


@dataclasses.dataclass(repr=False)
class Tests:
    """What an evaluator's tests came to."""

    __test__ = False  # likewise

    passed: int = 0   # of all, listed or not
    failed: int = 0   # likewise
    skipped: int = 0  # likewise
    error: int = 0    # likewise: came to no result
    list: List[Test] = dataclasses.field(default_factory=lambda: [])  # the first of them, in the evaluator's order

    @property
    def pass_fraction(self) -> Optional[float]:
        """Passed among passed, failed and error; None where there is none of these."""
        count = self.passed + self.failed + self.error
        return self.passed / count if count else None

    def __repr__(self) -> str:
        return f"Tests({self.passed} passed, {self.failed} failed, {self.skipped} skipped, {self.error} error)"


@dataclasses.dataclass(repr=False)
class Trajectory:
    """The result of one rollout (docs/trajectory.md)."""

    stream: str    # the stream it is in
    seq: int       # its number there, from 1
    rollout: str   # its name, "GROUP/NUMBER"
    group: str     # its group's id
    task: str      # its task's id
    sample: int    # its number in the group, from 0
    attempt: int   # number of dispatches of its last stage
    outcome: str   # "ok", "agent", "task", "infra" or "cancelled"
    trainable: bool  # whether a trainer may learn from it
    wait_ms: int   # in queues, of all stages
    init_ms: int   # the time of its group's set-up
    run_ms: int    # the agent's time
    eval_ms: int   # the evaluator's time
    ended_ms: int  # when it ended: milliseconds since 1970, by the broker's clock
    reward: Optional[float] = None  # as the task's shaping makes it; None: no evaluator ran to its end
    raw_reward: Optional[float] = None  # the evaluator's, before that
    rewards: Dict[str, float] = dataclasses.field(default_factory=dict)         # parts of the reward, by name
    reward_weights: Dict[str, float] = dataclasses.field(default_factory=dict)  # of these
    metrics: Dict[str, float] = dataclasses.field(default_factory=dict)         # what else the evaluator measured, and what agent and tools noted
    tests: Optional[Tests] = None     # None: the evaluator told of none
    eval_sandbox: str = ""            # "agent": evaluated in the agent's own sandbox; "": in none or a fresh one
    patch: Optional[str] = None       # what the agent changed in a repository (eval swe); None: not known
    group_size: Optional[int] = None  # how many rollouts its group has; None: not known
    group_ended: Optional[int] = None  # how many of them had ended when it had, itself among them; None: not known
    metadata: Dict[str, Any] = dataclasses.field(default_factory=dict)  # the task's
    end: str = ""            # how the agent ended, as a code (docs/trajectory.md); "": not by itself or a limit
    truncated: bool = False  # a limit on tokens cut it off
    run_attempt: int = 0     # how often its run was handed out; 0: not known
    detail: str = ""       # how it ended, in words
    init_layer: str = ""   # the digest of what set-up left; "": nothing
    engine: str = ""       # the URL of the last engine
    agent: str = ""        # its kind; "": it never ran
    template_digest: str = ""   # of the engine last used; traces have their own
    tokenizer_digest: str = ""  # likewise
    logprobs_mode: str = ""     # "raw", "processed" or "unknown"; "": nothing was sampled
    traces: List[Trace] = dataclasses.field(default_factory=list)      # the tokens
    messages: List[Message] = dataclasses.field(default_factory=list)  # the conversation as text
    sandbox: Optional[Sandbox] = None  # None when the agent had none
    tamper: Optional[Tamper] = None    # None when it touched nothing of the kind

    @property
    def group_complete(self) -> bool:
        """Whether all of its group had ended when it had: true of the last of each group."""
        return self.group_size is not None and self.group_ended == self.group_size

    def __repr__(self) -> str:
        reward = "no reward" if self.reward is None else f"reward {self.reward:g}"
        tokens, sampled = (sum(map(len, (t.token_ids for t in self.traces))), sum(int(t.mask.sum()) for t in self.traces))
        detail = f", {_line(self.detail)}" if self.detail and not self.trainable else ""
        return (f"Trajectory({self.stream} {self.seq}, {self.rollout}, {self.outcome}, {reward}, "
                f"{tokens} tokens, {sampled} of them sampled{detail})")

    def expect(self, template: Optional[str] = None, tokenizer: Optional[str] = None) -> None:
        """Raises OtherTokens unless every trace was made with this chat template and this tokenizer.

        Both are digests, "sha256:..."; None: any. A trace whose engine did not report its own is
        rejected too. tokenizer_digest() computes one for a trainer's own tokenizer.
        """
        for place, trace in enumerate(self.traces):
            for what, wanted, found in (("template", template, trace.template_digest),
                                        ("tokenizer", tokenizer, trace.tokenizer_digest)):
                if wanted is not None and wanted != found:
                    raise OtherTokens(f"trace {place} of {self.rollout} (number {self.seq} of stream {self.stream}) has "
                                      f"the {what} {found or 'of an engine that did not tell it'}, where {wanted} "
                                      "is expected", self.seq)


def _array(column: Dict[str, Any], dtype: str, most: int = TOKENS_MAX * 4) -> npt.NDArray[Any]:
    size = column["length"]
    if size % np.dtype(dtype).itemsize or size > most or size // 255 > len(column["data"]):
        raise MessageError(f"record: a column of {size} bytes")
    data = column["data"]
    if column["codec"] == "lz4":
        data = lz4.block.decompress(data, uncompressed_size=size)
    elif column["codec"] != "raw":
        raise MessageError(f"record: no codec is named {column['codec']!r}")
    if len(data) != size:
        raise MessageError("record: a column is shorter than it says")
    return np.frombuffer(data, dtype=dtype)


def _known(kind: Type[K], fields: Dict[str, Any]) -> K:
    """`kind` from a map; members that a later version added are passed over."""
    names = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in fields.items() if name in names})


_TYPES = {"u8": "u1", "i8": "i1", "u16": "<u2", "i16": "<i2", "u32": "<u4", "i32": "<i4", "f16": "<f2", "f32": "<f4"}


def _column(fields: Dict[str, Any], tokens: int) -> Column:
    name, rows, offset, shape = fields["name"], fields["rows"], fields["offset"], fields["shape"]
    for part in ("values", "counts"):
        if part in fields and fields[part]["length"] > COLUMN_BYTES_MAX:
            raise MessageError(f"record: the column {name} is larger than a record may be")
    if fields["type"] not in _TYPES or not 0 <= offset <= offset + rows <= tokens:
        raise MessageError(f"record: the column {name} has an unknown type, or rows beyond the trace's tokens")
    values = _array(fields["values"], _TYPES[fields["type"]], COLUMN_BYTES_MAX)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise MessageError(f"record: the column {name} holds a number that is not finite")
    if "counts" not in fields:
        return Column(name, offset, values.reshape([rows, *shape]))
    counts = _array(fields["counts"], "<u4", COLUMN_BYTES_MAX)
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:], dtype=np.int64)
    return Column(name, offset, values.reshape([int(offsets[-1]), *shape]), offsets)


def _turn(fields: Dict[str, Any]) -> Turn:
    turn = _known(Turn, fields)
    if turn.sampling is not None:
        turn.sampling = _known(Sampling, fields["sampling"])
    turn.versions = [_known(VersionSpan, span) for span in fields.get("versions", ())]
    return turn


def _trace(fields: Dict[str, Any]) -> Trace:
    trace = Trace(token_ids=_array(fields["token_ids"], "<u4"), mask=_array(fields["mask"], "u1"),
                  logprobs=_array(fields["logprobs"], "<f4"),
                  turns=[_turn(turn) for turn in fields["turns"]],
                  reason=fields.get("reason", ""), template_digest=fields["template_digest"],
                  tokenizer_digest=fields["tokenizer_digest"])
    if not len(trace.token_ids) == len(trace.mask) == len(trace.logprobs):
        raise MessageError("record: arrays of one trace differ in length")
    columns = [_column(column, len(trace.token_ids)) for column in fields.get("columns", ())]
    trace.columns = {column.name: column for column in columns}
    trace.label = fields.get("label", "")
    return trace


def _conversation(fields: Dict[str, Any], messages: List[Message]) -> List[Message]:
    """What was said in a trace: runs of the record's messages, each behind the one before."""
    told: List[Message] = []
    end = 0
    for run in fields.get("messages", ()):
        offset, length = run["offset"], run["length"]
        if not end <= offset < offset + length <= len(messages):
            raise MessageError("record: a trace's messages are not runs of the record's")
        end = offset + length
        told += messages[offset:end]
    return told


def _sandbox(fields: Dict[str, Any]) -> Sandbox:
    used = _known(Sandbox, fields)
    used.breaches = {breach["limit"]: breach["count"] for breach in fields["breaches"]}
    return used


def _mark_sampled(record: Dict[str, Any]) -> None:
    """What was sampled was said behind all that was given: as many replies as there are turns of the assistant's."""
    left = sum(turn["role"] == "assistant" for trace in record["traces"] for turn in trace["turns"])
    for message in reversed(record["messages"]):
        message["sampled"] = left > 0 and message["role"] == "assistant"
        left -= message["sampled"]


def _read_verdict(data: bytes, trajectory: Trajectory) -> None:
    verdict = msgpack.unpackb(data, raw=False, strict_map_key=True)
    trajectory.rewards = {part["name"]: part["value"] for part in verdict["parts"]}
    trajectory.reward_weights = {part["name"]: part["weight"] for part in verdict["parts"]}
    trajectory.metrics.update({metric["name"]: metric["value"] for metric in verdict["metrics"]})
    numbers = [*trajectory.rewards.values(), *trajectory.reward_weights.values(), *trajectory.metrics.values()]
    if not all(map(math.isfinite, numbers)):
        raise MessageError("verdict: a number is not finite")
    if "tests" in verdict:
        trajectory.tests = _known(Tests, verdict["tests"])
        trajectory.tests.list = [_known(Test, test) for test in verdict["tests"]["list"]]
    trajectory.eval_sandbox = verdict.get("sandbox", "")
    trajectory.patch = verdict.get("patch")


def _read_metadata(text: str, trajectory: Trajectory) -> None:
    trajectory.metadata = json.loads(text)


def _read_record(data: bytes, trajectory: Trajectory) -> None:
    record = msgpack.unpackb(data, raw=False, strict_map_key=True)
    version = record["version"]
    if not 1 <= version <= RECORD_VERSION:
        raise MessageError(f"record: version {version}, not 1 to {RECORD_VERSION}")
    if version < 2:
        for trace in record["traces"]:
            trace.update(template_digest=record["template_digest"], tokenizer_digest="")
    if version < 4:
        _mark_sampled(record)
    trajectory.end = record.get("end", "")
    trajectory.truncated = record.get("truncated", False)
    trajectory.run_attempt = record.get("attempt", 0)
    trajectory.agent = record.get("agent", "")
    trajectory.template_digest = record.get("template_digest", "")
    trajectory.tokenizer_digest = record.get("tokenizer_digest", "")
    trajectory.logprobs_mode = record.get("logprobs_mode", "")
    trajectory.traces = [_trace(trace) for trace in record["traces"]]
    trajectory.messages = [_known(Message, message) for message in record["messages"]]
    for trace, told in zip(trajectory.traces, record["traces"]):
        trace.messages = _conversation(told, trajectory.messages)
    if "sandbox" in record:
        trajectory.sandbox = _sandbox(record["sandbox"])
    if "tamper" in record:
        tamper = record["tamper"]
        trajectory.tamper = Tamper(tamper["count"], [(file["what"], file["path"]) for file in tamper["files"]])
    if "noted" in record:
        trajectory.metrics = {metric["name"]: metric["value"] for metric in record["noted"]["metrics"]}
        if not all(map(math.isfinite, trajectory.metrics.values())):
            raise MessageError("record: a metric is not finite")


def read_trajectory(fields: Dict[str, Any]) -> Trajectory:
    """A Trajectory from the fields of a checked trajectory message."""
    fields = dict(fields)
    fields.pop("tag", None)
    fields.setdefault("raw_reward", fields.get("reward"))
    record, verdict, metadata = (fields.pop(name, None) for name in ("record", "verdict", "metadata"))
    trajectory = Trajectory(**fields)
    for what, data, read in (("record", record, _read_record), ("verdict", verdict, _read_verdict),
                             ("metadata", metadata, _read_metadata)):
        if data is None:
            continue
        try:
            read(data, trajectory)
        except MessageError:
            raise
        except (KeyError, ValueError, TypeError, RuntimeError, AttributeError, lz4.block.LZ4BlockError,
                msgpack.UnpackException) as why:
            raise MessageError(f"the {what} of {trajectory.rollout} cannot be read: {why!r}") from None
    return trajectory
