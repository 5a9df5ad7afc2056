"""What is made of trajectories: rows. A form that waits for more of them (a group's others) has a state, which is JSON."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..errors import BadArgument
from ..trajectory import Message, Trajectory
from .columns import COLUMNS, REAL, TEXT, INT, Row
from .filters import Test, read_filters

CHAT = {"role": TEXT, "content": TEXT}
OPEN_MAX = 100_000  # groups that have begun and not ended


class Form:
    """kinds: of its rows. take() gives the rows that a trajectory completes."""

    kinds: Dict[str, Any]

    def __init__(self, filters: Sequence[str]) -> None:
        self.wants: Test = read_filters(filters)
        self.left_out = 0

    def take(self, t: Trajectory) -> Iterator[Row]:
        raise NotImplementedError

    def state(self) -> Dict[str, Any]:
        return {"left_out": self.left_out}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.left_out = state["left_out"]


class Rows(Form):
    """Each trajectory as it is."""

    def __init__(self, filters: Sequence[str], columns: Optional[Sequence[str]]) -> None:
        super().__init__(filters)
        names = list(COLUMNS) if columns is None else list(columns)
        unknown = [name for name in names if name not in COLUMNS]
        if unknown or not names:
            raise BadArgument(f"columns: there is none named {', '.join(unknown) or repr('')}; there are {', '.join(COLUMNS)}", "columns")
        self.getters = {name: COLUMNS[name][1] for name in names}
        self.kinds = {name: COLUMNS[name][0] for name in names}

    def take(self, t: Trajectory) -> Iterator[Row]:
        if self.wants(t):
            yield {name: get(t) for name, get in self.getters.items()}
        else:
            self.left_out += 1


def _conversation(t: Trajectory) -> List[Message]:
    """Of a harness, which holds several conversations, the main one, as it was in the end."""
    told = [trace for trace in t.traces if trace.messages]
    main = [trace for trace in told if trace.label == "main"] or told
    return main[-1].messages if main else t.messages


def chat_of(t: Trajectory) -> Tuple[List[Row], List[Row]]:
    """What was said before the policy's first reply, and from it on, in the roles in which the model was told it.

    An agent that tells results in the user's turns has messages of `tool` in the record, and no turn of that role.
    """
    said = [message for message in _conversation(t) if message.role != "note"]
    has_tool_turns = any(turn.role == "tool" for trace in t.traces for turn in trace.turns)

    def row(message: Message) -> Row:
        role = "user" if message.role == "tool" and not has_tool_turns else message.role
        return {"role": role, "content": message.content}

    first = next((k for k, message in enumerate(said) if message.sampled), len(said))
    last = max((k for k, message in enumerate(said) if message.sampled), default=-1)
    return [row(message) for message in said[:first]], [row(message) for message in said[first:last + 1]]


class Sft(Form):
    """Conversations of rollouts that ended ok with enough reward, up to the policy's last reply."""

    kinds = {"messages": [CHAT], "reward": REAL, "rollout": TEXT, "task": TEXT, "seq": INT}

    def __init__(self, filters: Sequence[str], min_reward: float) -> None:
        super().__init__(filters)
        self.min_reward = min_reward

    def take(self, t: Trajectory) -> Iterator[Row]:
        prompt, answer = chat_of(t)
        if t.outcome == "ok" and t.reward is not None and t.reward >= self.min_reward and answer and self.wants(t):
            yield {"messages": prompt + answer, "reward": t.reward, "rollout": t.rollout, "task": t.task, "seq": t.seq}
        else:
            self.left_out += 1


@dataclasses.dataclass
class _Open:
    """What is known of a group until its last rollout has ended."""

    seen: int = 0
    best: Optional[Row] = None
    worst: Optional[Row] = None


class Dpo(Form):
    """The best and the worst rollout of each group whose rollouts have all ended, where their rewards differ."""

    kinds = {"prompt": [CHAT], "chosen": [CHAT], "rejected": [CHAT], "chosen_reward": REAL, "rejected_reward": REAL, "chosen_rollout": TEXT,
             "rejected_rollout": TEXT, "group": TEXT, "task": TEXT, "seq": INT}

    def __init__(self, filters: Sequence[str], margin: float) -> None:
        super().__init__(filters)
        self.margin = margin
        self.open: Dict[str, _Open] = {}

    def take(self, t: Trajectory) -> Iterator[Row]:
        group = self.open.setdefault(t.group, _Open())
        group.seen += 1
        self._compare(group, t)
        if t.group_complete:
            del self.open[t.group]
            pair = self._pair(t, group)
            if pair is not None:
                yield pair
            else:
                self.left_out += 1
        while len(self.open) > OPEN_MAX:
            del self.open[next(iter(self.open))]
            self.left_out += 1

    def _compare(self, group: _Open, t: Trajectory) -> None:
        """Of equal rewards the earlier one stays."""
        prompt, answer = chat_of(t)
        if t.reward is None or not t.trainable or not answer or not self.wants(t):
            return
        own = {"prompt": prompt, "answer": answer, "reward": t.reward, "rollout": t.rollout}
        if group.best is None or t.reward > group.best["reward"]:
            group.best = own
        if group.worst is None or t.reward < group.worst["reward"]:
            group.worst = own

    def _pair(self, t: Trajectory, group: _Open) -> Optional[Row]:
        """None: not all of the group was read, too few have a reward, or they do not differ."""
        best, worst = group.best, group.worst
        if group.seen != t.group_size or best is None or worst is None or best["prompt"] != worst["prompt"]:
            return None
        if best["reward"] <= worst["reward"] or best["reward"] - worst["reward"] < self.margin:
            return None
        return {"prompt": best["prompt"], "chosen": best["answer"], "rejected": worst["answer"], "chosen_reward": best["reward"],
                "rejected_reward": worst["reward"], "chosen_rollout": best["rollout"], "rejected_rollout": worst["rollout"],
                "group": t.group, "task": t.task, "seq": t.seq}

    def state(self) -> Dict[str, Any]:
        return {**super().state(), "open": {name: dataclasses.asdict(group) for name, group in self.open.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self.open = {name: _Open(**group) for name, group in state["open"].items()}


FORMS = {"parquet": "parquet", "jsonl": "jsonl", "sft": "jsonl", "dpo": "jsonl"}  # and the files that each is written to


def make_form(format: str, filters: Sequence[str], columns: Optional[Sequence[str]], min_reward: float, margin: float) -> Form:
    if format not in FORMS:
        raise BadArgument(f"format wants one of {', '.join(FORMS)}, not {format!r}", "format")
    if format in ("sft", "dpo") and columns is not None:
        raise BadArgument(f"columns are of parquet and jsonl, not of {format}", "columns")
    if format == "sft":
        return Sft(filters, min_reward)
    return Dpo(filters, margin) if format == "dpo" else Rows(filters, columns)
