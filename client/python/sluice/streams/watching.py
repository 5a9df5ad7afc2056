"""A rollout while it works (docs/live.md): what is heard of it, event by event.

Batches come over FRONT with the tag of the watch, which is asked for again and again. The number of each says whether
some before it were dropped: that is told by an event of ours, and the rollout is asked for anew. At most READY_MAX
batches wait to be read; what comes beyond is dropped likewise.
"""

from __future__ import annotations

import collections
import json
import time
from typing import Any, Deque, Dict, List, Optional

import zmq

from .. import arguments
from ..errors import Refused, refusal
from ..protocol import messages
from ..protocol.link import AGAIN
from ..protocol.session import Ear, Fields, Pause, Session, Steps

ASK, ASK_SOON, ASK_UNHEARD = 5.0, 0.5, 2.0  # seconds from one rollout.watch to the next: as a rule; while no worker has it; unanswered
BEGIN = 2.0                                 # for so long what was told to others is passed over: the beginning comes
ANEW = 1.0                                  # from one wish to be told anew to the next
READY_MAX = 64

Event = Dict[str, Any]


def _read(fields: Fields) -> Optional[List[Event]]:
    """Workers are not ours: what they say is a list of so many objects, or not told."""
    try:
        events = json.loads(fields["events"])
    except (ValueError, RecursionError):
        return None
    is_sound = isinstance(events, list) and len(events) == fields["count"] and all(isinstance(event, dict) for event in events)
    return events if is_sound else None


class Watching:
    def __init__(self, session: Session, rollout: str, timeout: Optional[float] = None) -> None:
        self.session = session
        self.rollout = arguments.rollout("rollout", rollout)
        self.timeout = arguments.optional_seconds("timeout", timeout, 0)
        self.ear = Ear()
        self.tag = 0                    # 0: it has not begun
        self.ready: Deque[List[Event]] = collections.deque()
        self.events: Deque[Event] = collections.deque()  # of the batch that is being read
        self.part: Any = None           # (stage, attempt)
        self.expected = 1
        self.dropped = 0                # events, and not told of yet
        self.state: Optional[Event] = None
        self.failed: Optional[Refused] = None
        self.ask_at = self.anew_at = self.begin_by = 0.0
        self.unheard: Optional[float] = None  # since when no answer came
        self.wants_anew = self.is_ended = self.is_over = False

    # ---- what comes -------------------------------------------------------------------------------

    def offer(self, wire: str, fields: Fields) -> None:
        now = time.monotonic()
        self.ear.heard = True
        if wire == "rollout.events":
            self._hear(fields, now)
            return
        self.unheard = None
        if wire == "rollout.state":
            self._hear_state(fields, now)
        elif wire == "done":
            self.is_ended = True
        elif wire == "refused" and fields["reason"] != "queue-full":
            self.failed = refusal(fields)

    def _add(self, events: List[Event], about: Event) -> bool:
        if len(self.ready) >= READY_MAX:
            return False
        self.ready.append([{"rollout": self.rollout, **about, **event} for event in events])
        return True

    def _drop(self, count: int, now: float) -> None:
        if count:
            self.dropped += count
            self.wants_anew = True
            self.ask_at = min(self.ask_at, max(now, self.anew_at + ANEW))

    def _hear(self, fields: Fields, now: float) -> None:
        part, number = (fields["stage"], fields["attempt"]), fields["number"]
        if self.part is None and number > 1 and now < self.begin_by:
            return
        if part != self.part or number == 1:
            self.part, self.expected = part, 1
        self._drop(max(0, number - self.expected), now)
        if self.dropped and self._add([{"event": "dropped", "count": self.dropped}], {}):
            self.dropped = 0
        events = _read(fields)
        about = {"stage": part[0], "attempt": part[1]}
        numbered = None if events is None else [{"number": number + i, **event} for i, event in enumerate(events)]
        self.expected = number + fields["count"]
        if numbered is None or not self._add(numbered, about):
            self._drop(fields["count"], now)
        if events and any(event.get("event") == "end" for event in events):
            self.ask_at = min(self.ask_at, now + ASK_SOON / 4)

    def _hear_state(self, fields: Fields, now: float) -> None:
        state = {"event": "state", **{name: value for name, value in fields.items() if name not in ("tag", "rollout")}}
        if state["state"] != "leased":
            self.ask_at = min(self.ask_at, now + ASK_SOON)
        if state != self.state and self._add([state], {}):
            self.state = state

    # ---- asking -----------------------------------------------------------------------------------

    def _begin(self) -> Steps[None]:
        request = self.session.make("rollout.watch", {"rollout": self.rollout, "anew": True})
        self.tag = request.tag
        self.session.watches[self.tag] = self
        self._note_asked(time.monotonic())
        self.begin_by = time.monotonic() + BEGIN
        (wire, fields), = yield from self.session.wait([request])
        self.offer(wire, fields)
        if self.failed:
            raise self.failed

    def _note_asked(self, now: float) -> None:
        self.anew_at, self.wants_anew = (now if self.wants_anew else self.anew_at), False
        self.ask_at = now + (ASK if self.unheard is None else ASK_UNHEARD)
        self.unheard = now if self.unheard is None else self.unheard

    def _ask(self, now: float) -> bool:
        """False: it could not be sent, as the broker is away."""
        self.wants_anew |= self.unheard is not None  # whoever answers may be another broker
        front = self.session.front
        data = messages.encode("rollout.watch", tag=self.tag, rollout=self.rollout, anew=self.wants_anew)
        try:
            if not int(front.getsockopt(zmq.EVENTS)) & zmq.POLLOUT:
                raise zmq.Again
            front.send(data, zmq.DONTWAIT)
        except zmq.Again:
            self.unheard = now if self.unheard is None else self.unheard
            return False
        self._note_asked(now)
        return True

    def _check_patience(self, now: float) -> None:
        patience = self.session.patience
        if patience is not None and self.unheard is not None and now - self.unheard > patience:
            raise self.session.link.silence()

    # ---- reading ----------------------------------------------------------------------------------

    def _take(self) -> Optional[Event]:
        if not self.events and self.ready:
            self.events.extend(self.ready.popleft())
        if self.events:
            return self.events.popleft()
        if self.failed:
            raise self.failed
        if self.is_ended and not self.is_over:
            self.is_over = True
            return {"rollout": self.rollout, "event": "ended"}
        return None

    def next(self) -> Steps[Optional[Event]]:
        """None: at the end, or after `timeout` seconds without one."""
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        if not self.tag:
            yield from self._begin()
        while True:
            self.session.read()
            event = self._take()
            if event is not None or self.is_over:
                return event
            now = time.monotonic()
            away = now >= self.ask_at and not self._ask(now)
            self._check_patience(now)
            if deadline is not None and now >= deadline:
                return None
            wake = now + AGAIN if away else self.ask_at
            self.ear.heard = False
            yield Pause(wake if deadline is None else min(wake, deadline), self.ear, away)

    def close(self) -> None:
        self.session.watches.pop(self.tag, None)
