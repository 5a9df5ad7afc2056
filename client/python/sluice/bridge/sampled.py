"""What the trainer's function returns: checked, and its parts joined."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Awaitable, Callable, Container, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ..errors import SluiceError

LOGPROB_ROUNDING, LOGPROB_LEAST = 1e-4, -9999.0  # above 0: of a softmax; what engines write for minus infinity
VERSION_BYTES = 63
PATIENCE_S = (0.02, 1.0)  # before an abort without a token is tried again: at first, at most

Settings = Dict[str, Any]
Version = Union[str, int, None]
Versions = Union[Version, Sequence[Version]]


class BridgeError(SluiceError):
    """What the function given to a bridge returned is not what it must: nothing of it was used."""


class Sampled(NamedTuple):
    """What the function returns; a plain tuple of the same four will do, with lists, numpy arrays or tensors in it."""

    ids: Sequence[int]         # sampled, the one that ended the turn among them
    logprobs: Sequence[float]  # of each, natural
    finish: str                # "stop": by itself; "length": cut; "abort": a part, which is gone on with
    version: Versions = None   # of the weights that sampled them; a list: one of each; None: not known


class Part(NamedTuple):
    """The same, checked."""

    ids: List[int]
    logprobs: List[float]
    finish: str
    versions: List[Tuple[str, int]]  # each with how many ids it sampled; "": not known


class Span(NamedTuple):
    version: str
    start: int
    end: int


class Rules(NamedTuple):
    """What ids may be."""

    vocabulary: Optional[int]  # ids are below it; None: not known
    specials: Optional[Container[int]]  # the ids that may end a turn beside those asked for; None: not known


def plain(value: Any) -> Any:
    """A list of a numpy array's or a tensor's elements."""
    return value.tolist() if hasattr(value, "tolist") else value


def is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_ids(ids: Any, rules: Rules) -> List[int]:
    ids = plain(ids)
    if not isinstance(ids, (list, tuple)):
        raise BridgeError(f"generate returned ids of type {type(ids).__name__}: return a list of whole numbers")
    for place, id in enumerate(ids):
        id = plain(id)
        if not is_id(id):
            raise BridgeError(f"generate returned {id!r} as id {place}: return whole numbers")
        if id < 0 or (rules.vocabulary is not None and id >= rules.vocabulary):
            end = "" if rules.vocabulary is None else f" of a vocabulary of {rules.vocabulary}"
            raise BridgeError(f"generate returned {id} as id {place}, which is no id{end}: mask the ids of padding, or "
                              "say Bridge(vocab_size=...)")
    return [int(id) for id in ids]


def check_logprobs(logprobs: Any, count: int, what: str = "generate returned") -> List[float]:
    values = plain(logprobs)
    if not isinstance(values, (list, tuple)):
        raise BridgeError(f"{what} log-probabilities of type {type(values).__name__}: return a list of numbers")
    if len(values) != count:
        raise BridgeError(f"{what} {len(values)} log-probabilities for {count} ids: return one of each sampled id")
    told: List[float] = []
    for place, value in enumerate(values):
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            raise BridgeError(f"{what} {value!r} as log-probability {place}: it is no number")
        if not LOGPROB_LEAST < value <= LOGPROB_ROUNDING:
            raise BridgeError(f"{what} {value!r} as log-probability {place}: return natural logarithms, from "
                              f"{LOGPROB_LEAST:g} to 0")
        told.append(min(0.0, float(value)))
    return told


def check_version(version: Any) -> str:
    """"": not known."""
    if version is None or version == "":
        return ""
    version = plain(version)
    text = str(version) if is_id(version) else version
    if (not isinstance(text, str) or len(text.encode(errors="replace")) > VERSION_BYTES or
            any(c <= " " or c in "+\x7f" or "\ud800" <= c <= "\udfff" for c in text)):
        raise BridgeError(f"generate returned the version {version!r}: return a whole number, or a name of at most "
                          f"{VERSION_BYTES} bytes without blanks and '+'")
    return text


def check_versions(versions: Any, count: int) -> List[Tuple[str, int]]:
    """How many ids in a row each sampled."""
    versions = plain(versions)
    if not isinstance(versions, (list, tuple)):
        return [(check_version(versions), count)]
    if len(versions) != count:
        raise BridgeError(f"generate returned {len(versions)} versions for {count} ids: return one for all, or one of each")
    runs: List[Tuple[str, int]] = []
    for version in map(check_version, versions):
        if runs and runs[-1][0] == version:
            runs[-1] = (version, runs[-1][1] + 1)
        else:
            runs.append((version, 1))
    return runs


def check_end(ids: List[int], finish: Any, settings: Settings, rules: Rules) -> None:
    ends = settings["stop_token_ids"]
    for place, id in enumerate(ids[:-1]):
        if id in ends:
            raise BridgeError(f"generate returned {len(ids) - place - 1} ids behind {id}, which ends a turn: stop at "
                              f"stop_token_ids {ends}")
    if finish not in ("stop", "length", "abort"):
        raise BridgeError(f"generate returned the finish {finish!r}: return 'stop', 'length' or 'abort'")
    if not ids and finish != "abort":
        raise BridgeError(f"generate returned no ids with finish {finish!r}: return at least one, or 'abort'")
    if finish == "stop" and ids[-1] not in ends and rules.specials is not None and ids[-1] not in rules.specials:
        raise BridgeError(f"generate returned finish 'stop' behind id {ids[-1]}, which ends no turn: return the id that "
                          f"ended it too, one of {ends}, with its log-probability; 'length' where the turn was cut")


def check_part(returned: Any, settings: Settings, rules: Rules) -> Part:
    """One return value as it must be. BridgeError says what is not, and the cure."""
    if not isinstance(returned, (tuple, list)) or len(returned) != 4:
        raise BridgeError(f"generate returned {type(returned).__name__} "
                          f"{'' if not isinstance(returned, (tuple, list)) else f'of {len(returned)} '}"
                          "where (ids, log-probabilities, finish, version) is wanted")
    ids = check_ids(returned[0], rules)
    if len(ids) > settings["max_tokens"]:
        raise BridgeError(f"generate returned {len(ids)} ids where max_tokens is {settings['max_tokens']}")
    logprobs = check_logprobs(returned[1], len(ids))
    check_end(ids, returned[2], settings, rules)
    finish = "stop" if ids and ids[-1] in settings["stop_token_ids"] else returned[2]
    return Part(ids, logprobs, finish, check_versions(returned[3], len(ids)))


class Turn:
    """What a call has sampled so far, of one or several parts."""

    def __init__(self) -> None:
        self.ids: List[int] = []
        self.logprobs: List[float] = []
        self.finish = "abort"
        self.spans: List[Span] = []

    def add(self, part: Part, max_tokens: int) -> None:
        at = len(self.ids)
        for version, count in part.versions if part.ids else ():
            self._add_span(version, at, at + count)
            at += count
        self.ids.extend(part.ids)
        self.logprobs.extend(part.logprobs)
        self.finish = "length" if part.finish == "abort" and len(self.ids) == max_tokens else part.finish

    def _add_span(self, version: str, start: int, end: int) -> None:
        last = self.spans[-1] if self.spans else None
        if last and bool(last.version) != bool(version):
            raise BridgeError(f"generate returned the versions {last.version or None!r} and {version or None!r} for parts of "
                              "one turn: name the version of each part, or of none")
        if last and last.version == version:
            self.spans[-1] = Span(version, last.start, end)
        else:
            self.spans.append(Span(version, start, end))


async def sample(generate: Callable[[List[int], Settings], Awaitable[Any]], prompt: Sequence[int], settings: Settings,
                 rules: Rules) -> Turn:
    """Calls the function until the turn has ended: a part that was aborted is gone on with, from its own tokens."""
    turn, pause = Turn(), PATIENCE_S[0]
    while turn.finish == "abort":
        left = dict(settings, max_tokens=settings["max_tokens"] - len(turn.ids))
        if "seed" in settings:
            left["seed"] = (settings["seed"] + len(turn.ids)) % (1 << 63)  # no draw is made twice
        part = check_part(await generate([*prompt, *turn.ids], left), left, rules)
        turn.add(part, settings["max_tokens"])
        pause = PATIENCE_S[0] if part.ids else min(PATIENCE_S[1], pause * 2)
        if turn.finish == "abort" and not part.ids:
            await asyncio.sleep(pause)
    return turn
