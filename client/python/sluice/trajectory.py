"""A trajectory as numpy arrays (docs/trajectory.md)."""
from dataclasses import dataclass, field
from typing import List, Optional

import lz4.block
import msgpack
import numpy as np

_ARRAY_BYTES_MAX = 1 << 26


@dataclass
class Turn:
    """`length` tokens of a trace from `offset`; role "prompt", "assistant" or "tool"."""
    offset: int
    length: int
    role: str
    finish: str = ""
    engine: str = ""
    version: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0


@dataclass
class Trace:
    """Flat arrays of equal length: token_ids uint32, mask uint8 (1: sampled by the policy), logprobs float32."""
    token_ids: np.ndarray
    mask: np.ndarray
    logprobs: np.ndarray
    turns: List[Turn]
    reason: str = ""


@dataclass
class Message:
    """What was said, for people; the tokens are the truth."""
    role: str
    content: str
    tool: Optional[str] = None
    exit_status: int = 0


@dataclass
class Trajectory:
    """One ended rollout. reward is None unless an evaluator ran to its end."""
    stream: str
    seq: int
    rollout: str
    group: str
    task: str
    sample: int
    attempt: int
    outcome: str
    trainable: bool
    reward: Optional[float]
    detail: str
    init_layer: Optional[str]
    engine: Optional[str]
    wait_ms: int
    init_ms: int
    run_ms: int
    eval_ms: int
    ended_ms: int
    agent: str = ""
    template_digest: str = ""
    logprobs_mode: str = ""
    traces: List[Trace] = field(default_factory=list)
    messages: List[Message] = field(default_factory=list)


def _array(column, dtype):
    """One column {codec, length, data}; bounds are checked before anything is allocated."""
    length, data = column["length"], column["data"]
    if not 0 <= length <= _ARRAY_BYTES_MAX:
        raise ValueError(f"an array of {length} bytes")
    if column["codec"] == "lz4":
        data = lz4.block.decompress(data, uncompressed_size=length)
    if len(data) != length:
        raise ValueError("an array's length is wrong")
    return np.frombuffer(data, dtype=dtype)


def _trace(packed):
    trace = Trace(_array(packed["token_ids"], "<u4"), _array(packed["mask"], "u1"), _array(packed["logprobs"], "<f4"),
                  [Turn(**turn) for turn in packed["turns"]], packed.get("reason", ""))
    if not trace.token_ids.size == trace.mask.size == trace.logprobs.size:
        raise ValueError("the arrays of a trace differ in length")
    return trace


def from_message(values):
    """A Trajectory from the fields of a `trajectory` message."""
    known = {name: values.get(name) for name in Trajectory.__dataclass_fields__
             if name not in ("agent", "template_digest", "logprobs_mode", "traces", "messages")}
    known["detail"] = known["detail"] or ""
    trajectory = Trajectory(**known)
    if values.get("record"):
        record = msgpack.unpackb(values["record"], raw=False, max_bin_len=_ARRAY_BYTES_MAX)
        trajectory.agent = record.get("agent", "")
        trajectory.template_digest = record.get("template_digest", "")
        trajectory.logprobs_mode = record.get("logprobs_mode", "")
        trajectory.traces = [_trace(packed) for packed in record["traces"]]
        trajectory.messages = [Message(**message) for message in record["messages"]]
    return trajectory
