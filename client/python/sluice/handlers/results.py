"""What a function may return, and the fields of the message that it becomes."""

from __future__ import annotations

import dataclasses
import json
import math
import numbers
from typing import Any, Dict, List, Mapping, Optional, Union

STATUSES = ("passed", "failed", "skipped", "error")
DETAIL_MAX = 2000  # bytes, as handler.score has it


@dataclasses.dataclass(frozen=True)
class Part:
    """A named part of a reward. weight: its share in the sum."""

    name: str
    value: float
    weight: float = 1.0


@dataclasses.dataclass(frozen=True)
class Test:
    """One test of an evaluator. status: passed, failed, skipped or error; seconds: how long it took, or None."""

    __test__ = False  # pytest: no class of tests

    name: str
    status: str
    message: Optional[str] = None
    seconds: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class Score:
    """How a rollout was scored.

    reward: a number, or None: the weighted sum of parts, and without parts no reward at all, which is not a reward of 0.
    parts: a list of Part, or a dict of names to a value or to (value, weight). metrics: numbers by name, which are recorded and are no reward. tests: a list of Test. detail: why.
    """

    reward: Optional[float] = None
    parts: Union[List[Part], Mapping[str, Any]] = dataclasses.field(default_factory=list)
    metrics: Dict[str, float] = dataclasses.field(default_factory=dict)
    tests: List[Test] = dataclasses.field(default_factory=list)
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class Answer:
    """A tool's result that ends the rollout. answer: what evaluators read; text: what the record says of the call."""

    answer: str
    text: str = "The answer was submitted."


@dataclasses.dataclass(frozen=True)
class Change:
    """What a hook makes of what passes it; what is not given stays.

    messages: of a request, all that the model is to be shown. text, thinking, calls: of a turn, what the harness is told.
    """

    messages: Optional[List[Dict[str, Any]]] = None
    text: Optional[str] = None
    thinking: Optional[str] = None
    calls: Optional[List[Dict[str, Any]]] = None


@dataclasses.dataclass(frozen=True)
class Refuse:
    """A hook lets it not pass: the harness is told an error. words: why, for the harness and the record."""

    words: str


def number(name: str, value: Any) -> float:
    """A finite number, or an exception that names it. Numbers of numpy and torch, with one element, are numbers."""
    if not isinstance(value, numbers.Real) and hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {type(value).__name__}, not a number")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {float(value)}, which is not finite")
    return float(value)


def _parts(given: Any) -> List[Part]:
    """A list of Part, or a mapping of names to a value or to (value, weight)."""
    if not isinstance(given, Mapping):
        for part in given:
            if not isinstance(part, Part):
                raise TypeError(f"parts has {part!r}, which is no Part")
        return list(given)
    return [Part(name, *value) if isinstance(value, tuple) else Part(name, value) for name, value in given.items()]


def _score_of_mapping(given: Mapping[str, Any]) -> Score:
    """By the fields of Score; `score` is the reward, too, and any other number is a metric."""
    known = dict(given)
    if "score" in known and "reward" in known:
        raise TypeError("an evaluator's result has both reward and score")
    reward = known.pop("reward", known.pop("score", None))
    parts, tests = _parts(known.pop("parts", ())), list(known.pop("tests", ()))
    detail, metrics = known.pop("detail", ""), dict(known.pop("metrics", {}))
    return Score(reward, parts, {**metrics, **known}, tests, detail)


def score_of(result: Any) -> Score:
    """What an evaluator's function returned, as a Score."""
    if isinstance(result, Score):
        return result
    if isinstance(result, Mapping):
        return _score_of_mapping(result)
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], str):
        return Score(result[0], detail=result[1])
    return Score(result)


def _dump_list(items: List[Dict[str, Any]]) -> Optional[str]:
    return json.dumps(items) if items else None


def _test_fields(test: Union[Test, Mapping[str, Any]]) -> Dict[str, Any]:
    fields = dataclasses.asdict(test) if isinstance(test, Test) else dict(test)
    if fields.get("status") not in STATUSES:
        raise ValueError(f"the status of test {fields.get('name')!r} is {fields.get('status')!r}, not one of "
                         f"{', '.join(STATUSES)}")
    if fields.get("seconds") is not None:
        fields["seconds"] = number(f"the seconds of test {fields.get('name')!r}", fields["seconds"])
    return {name: value for name, value in fields.items() if value is not None}


def _detail(text: Optional[str]) -> Optional[str]:
    """Why, as text; of what is longer than a message holds the end goes, which is told: it costs no reward."""
    if not text:
        return None
    told = str(text).replace("\0", "\\0").encode(errors="replace")
    if len(told) > DETAIL_MAX:
        mark = f"... ({len(told)} bytes)".encode()
        told = told[:DETAIL_MAX - len(mark)] + mark
    return told.decode(errors="ignore")


def score_fields(score: Score) -> Dict[str, Any]:
    """The fields of handler.score, but the job's id."""
    parts = [{"name": part.name, "value": number(f"part {part.name}", part.value),
              "weight": number(f"the weight of part {part.name}", part.weight)} for part in _parts(score.parts)]
    metrics = {name: number(f"metric {name}", value) for name, value in score.metrics.items()}
    return {"reward": None if score.reward is None else number("the reward", score.reward), "parts": _dump_list(parts),
            "metrics": json.dumps(metrics) if metrics else None,
            "tests": _dump_list([_test_fields(test) for test in score.tests]), "detail": _detail(score.detail)}


def output_fields(result: Any) -> Dict[str, Any]:
    """The fields of handler.output, but the job's id: a string as it is, None as "", anything else as JSON."""
    if isinstance(result, Answer):
        return {"text": result.text, "answer": result.answer}
    if result is None:
        return {"text": ""}
    return {"text": result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)}


def _dump_told(value: Any) -> str:
    """No longer than it was when it was asked of, for the same bound holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text.encode()  # half a surrogate is no text: an exception here is the hook's
    return text


def decision_fields(result: Any, reply: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """The fields of handler.decision, but the job's id. reply: what the hook was asked of; None: a request."""
    if result is None:
        return {"action": "pass"}
    if isinstance(result, Refuse):
        return {"action": "refuse", "words": str(result.words)[:500] or "no reason given"}
    if not isinstance(result, Change):
        raise TypeError(f"a hook returns None, a Change or a Refuse, not {type(result).__name__}")
    told = {name: value for name in ("text", "thinking", "calls") if (value := getattr(result, name)) is not None}
    if (reply is None) == bool(told) or (reply is None) == (result.messages is None):
        raise TypeError("a hook changes the messages of a request, and text, thinking and calls of a reply")
    if reply is None:
        return {"action": "change", "messages": _dump_told(result.messages)}
    return {"action": "change", "reply": _dump_told({**reply, **told})}


def end_fields(result: Any) -> Dict[str, Any]:
    """The fields of handler.end, but the job's id: a string is the answer, None leaves the last turn's text."""
    if result is not None and not isinstance(result, str):
        raise TypeError(f"an agent returns its answer, a string, or None, not {type(result).__name__}")
    return {"outcome": "ok", "answer": result}
