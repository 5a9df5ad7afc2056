"""A trajectory: what the model sampled and saw, token by token, and how it was scored."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Optional, Tuple, Type, TypeVar

import lz4.block
import msgpack
import numpy as np
import numpy.typing as npt

from .errors import OtherTokens
from .messages import MessageError

RECORD_VERSION = 3  # and older ones, since 1
TOKENS_MAX = 1 << 22
SHOWN_MAX = 60  # characters of a text in a repr

K = TypeVar("K")


def _line(text: str) -> str:
    """As repr() shows it, on one line and not a long one."""
    return repr(text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX - 3] + "...")


@dataclasses.dataclass
class Turn:
    """A run of a trace's tokens: prompt, one assistant turn, or a tool's output."""

    offset: int   # its first token in the trace
    length: int   # its number of tokens
    role: str     # "prompt", "assistant", "user" or "tool"
    finish: str = ""         # of the assistant's: "stop", "length" or "abort"
    engine: str = ""         # of the assistant's: the engine's URL
    version: str = ""        # of the assistant's: the policy's version
    prompt_tokens: int = 0   # as the engine counted them
    cached_tokens: int = 0   # how many of those came from its cache
    seconds: float = 0.0     # of the model call or the tool call
    queue_seconds: Optional[float] = None    # of them, as the engine reported; None: it did not
    prefill_seconds: Optional[float] = None  # likewise
    decode_seconds: Optional[float] = None   # likewise


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

    def __repr__(self) -> str:
        turns = sum(turn.role == "assistant" for turn in self.turns)
        why = f", {self.reason}" if self.reason else ""
        return f"Trace({len(self.token_ids)} tokens, {int(self.mask.sum())} of them sampled, in {turns} turns{why})"


@dataclasses.dataclass(repr=False)
class Message:
    """A message as text, for people; the tokens are authoritative."""

    role: str     # "system", "user", "assistant" or "tool"
    content: str  # as text
    tool: Optional[str] = None  # of a tool's: its name and arguments, "bash: ls -l"
    exit_status: int = 0        # of a tool's

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
    reward: Optional[float] = None  # None: no evaluator ran to its end
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


def _array(column: Dict[str, Any], dtype: str) -> npt.NDArray[Any]:
    size = column["length"]
    if size % np.dtype(dtype).itemsize or size > TOKENS_MAX * 4:
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


def _trace(fields: Dict[str, Any]) -> Trace:
    trace = Trace(token_ids=_array(fields["token_ids"], "<u4"), mask=_array(fields["mask"], "u1"),
                  logprobs=_array(fields["logprobs"], "<f4"),
                  turns=[_known(Turn, turn) for turn in fields["turns"]],
                  reason=fields.get("reason", ""), template_digest=fields["template_digest"],
                  tokenizer_digest=fields["tokenizer_digest"])
    if not len(trace.token_ids) == len(trace.mask) == len(trace.logprobs):
        raise MessageError("record: arrays of one trace differ in length")
    return trace


def _sandbox(fields: Dict[str, Any]) -> Sandbox:
    used = _known(Sandbox, fields)
    used.breaches = {breach["limit"]: breach["count"] for breach in fields["breaches"]}
    return used


def _read_record(data: bytes, trajectory: Trajectory) -> None:
    record = msgpack.unpackb(data, raw=False, strict_map_key=True)
    version = record["version"]
    if not 1 <= version <= RECORD_VERSION:
        raise MessageError(f"record: version {version}, not 1 to {RECORD_VERSION}")
    if version < 2:
        for trace in record["traces"]:
            trace.update(template_digest=record["template_digest"], tokenizer_digest="")
    trajectory.agent = record.get("agent", "")
    trajectory.template_digest = record.get("template_digest", "")
    trajectory.tokenizer_digest = record.get("tokenizer_digest", "")
    trajectory.logprobs_mode = record.get("logprobs_mode", "")
    trajectory.traces = [_trace(trace) for trace in record["traces"]]
    trajectory.messages = [_known(Message, message) for message in record["messages"]]
    if "sandbox" in record:
        trajectory.sandbox = _sandbox(record["sandbox"])
    if "tamper" in record:
        tamper = record["tamper"]
        trajectory.tamper = Tamper(tamper["count"], [(file["what"], file["path"]) for file in tamper["files"]])


def read_trajectory(fields: Dict[str, Any]) -> Trajectory:
    """A Trajectory from the fields of a checked trajectory message."""
    fields = dict(fields)
    fields.pop("tag", None)
    record = fields.pop("record", None)
    trajectory = Trajectory(**fields)
    if record is not None:
        try:
            _read_record(record, trajectory)
        except MessageError:
            raise
        except (KeyError, ValueError, TypeError, RuntimeError, lz4.block.LZ4BlockError,
                msgpack.UnpackException) as why:
            raise MessageError(f"the record of {trajectory.rollout} cannot be read: {why!r}") from None
    return trajectory
