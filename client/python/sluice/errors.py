"""What can go wrong, each with a sentence."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Dict, List, Optional, Tuple, Type


def warn(text: str) -> None:
    """A UserWarning at the line that called into this package, however deep it has come."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(f"{__package__}."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


class SluiceError(Exception):
    """All of this package's errors."""


class BadArgument(SluiceError, ValueError):
    """A call that can never be right; nothing was sent. field: the argument at fault."""

    def __init__(self, text: str, field: str) -> None:
        super().__init__(text)
        self.field = field


class BrokerSilent(SluiceError):
    """No broker answered: a request for the client's timeout, a reader for its patience."""


class AuthRefused(SluiceError):
    """The broker and this client have no matching keys, or the key file cannot be used."""


class ServiceError(SluiceError):
    """A service of local() could not be started; what its programs said is in its text."""


class Refused(SluiceError):
    """The broker rejected a request; nothing changed.

    reason: the refusal's name (docs/contributing/messages.md), such as "group-exists"; field: the field at fault, or
    None; retry_after: seconds after which to retry, if that can help, or None.
    """

    def __init__(self, text: str, reason: str, field: Optional[str] = None,
                 retry_after_ms: Optional[int] = None) -> None:
        super().__init__(text)
        self.reason = reason
        self.field = field
        self.retry_after: Optional[float] = None if retry_after_ms is None else retry_after_ms / 1000


class BadTask(Refused):
    """Some tasks are invalid; nothing was submitted. The error lists each with its position.

    Its text has a line for each, "tasks[2]: agent.kind: must be one of ...", or "FILE:LINE: FIELD: REASON" as
    `sluice submit` says it. problems: (place, field, sentence) of each, the place counted from 0, in a file the line's
    number; reason and field are those of the first.
    """

    def __init__(self, text: str, reason: str, field: Optional[str] = None,
                 problems: Optional[List[Tuple[int, str, str]]] = None) -> None:
        super().__init__(text, reason, field)
        self.problems = problems or []


class NotAllowed(Refused):
    """This key's role may not do it, or the thing belongs to another client."""


class Full(Refused):
    """The broker, or its disk, is full for now. A request that can never fit is Refused, with the reason "too-large"."""


class Forgotten(Refused):
    """The requested data is no longer kept. oldest: the stream's oldest number that is, or None."""

    def __init__(self, text: str, reason: str = "forgotten", field: Optional[str] = None,
                 retry_after_ms: Optional[int] = None, oldest: Optional[int] = None) -> None:
        super().__init__(text, reason, field, retry_after_ms)
        self.oldest = oldest


class SessionLost(SluiceError):
    """A session's loop has nobody to speak to any more: its worker died, or the rollout has ended. rollout: its name.

    What was said in it is gone, and only the loop itself can begin again: Session.reopen() waits for the next attempt.
    """

    def __init__(self, text: str, rollout: str) -> None:
        super().__init__(text)
        self.rollout = rollout


class OtherTokens(SluiceError):
    """A trajectory's tokens are not of the expected chat template or tokenizer. seq: its number."""

    def __init__(self, text: str, seq: int) -> None:
        super().__init__(text)
        self.seq = seq


class OtherLedger(SluiceError):
    """The broker has another ledger than before, an older back-up or an empty one.

    Rollouts that had ended may end again, under the same names and other numbers, and it may know nothing of some
    that were accepted: submit those again. oldest: the stream's oldest number in this ledger, where to resume.
    """

    def __init__(self, text: str, oldest: int) -> None:
        super().__init__(text)
        self.oldest = oldest


CLASSES: Dict[str, Type[Refused]] = {"not-allowed": NotAllowed, "queue-full": Full, "disk-low": Full, "forgotten": Forgotten}


def refusal(fields: Dict[str, Any]) -> Refused:
    """The exception of a `refused` message."""
    kind, retry_after_ms = CLASSES.get(fields["reason"], Refused), fields.get("retry_after_ms")
    if fields["reason"] == "disk-low" and retry_after_ms is None:
        retry_after_ms = 1000  # a disk can be made room on
    return kind(fields["text"], fields["reason"], fields.get("field"), retry_after_ms)
