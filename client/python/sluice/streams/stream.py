"""Reading one stream: each trajectory once, in order, whatever is lost on the way.

FEED (SUB) is fast and may drop. A number below the next is a duplicate, one above shows a gap; a gap,
or a head that has passed what arrived, starts a fetch on FRONT. Until its answer has ended FEED is left
unread and nothing of it is given out: the head that ends it says whose numbers these are. Memory is
bounded by one fetch's answer and FEED's queue.

A broker that was started again may have another ledger, an older back-up or an empty one. In a ledger each
start has a greater epoch, and neither the head nor the count of what was accepted shrinks; where the stream
has grown again meanwhile, the number before the next tells: after each new start it is fetched too, and must
be the one that was given out.
"""

from __future__ import annotations

import time
from typing import List, Optional, Tuple

import zmq

from ..arguments import Path
from ..errors import Forgotten, OtherLedger, SluiceError, refusal, warn
from ..protocol import messages
from ..protocol.link import AGAIN
from ..protocol.session import FAR, STOPPED, Ear, Fields, Pause, Reader, Request, Session, Steps
from .cursor import read_cursor, write_cursor

FETCH_LIMIT = 64
FETCH_PAUSE = 0.25  # seconds after a fetch that brought nothing although there is more
SILENCE = 2.0       # FEED says heads every second while there is work: then ask FRONT
RENEW = 5.0         # how often a reader says that it is alive, for leases


class Stream(Reader):
    def __init__(self, session: Session, name: str, cursor: Optional[Path] = None) -> None:
        self.session, self.name, self.cursor = session, name, cursor
        self.feed: Optional[zmq.Socket[bytes]] = None
        self.topic = f"t/{name}/".encode()
        self.ear = Ear()
        self.ready: List[Fields] = []  # of trajectories, in order from self.wanted_seq
        self.wanted_seq = 0      # the number to give out next
        self.last: Optional[Tuple[str, int]] = None  # (rollout, ended_ms) of the one before it
        self.head = self.pending = 0
        self.epoch = self.start_id = 0  # of the broker's start that told last; start_id 0: it did not say
        self.accepted = 0        # as it told then: all rollouts, ended or not
        self.fetch: Optional[Request] = None  # the one in the air
        self.fetched = 0         # how many it brought
        self.behind = False      # something is missing: fetch it
        self.asks_head = False   # the next fetch asks only where the stream stands
        self.checks = False      # the next fetch begins one earlier, with the last one given out
        self.differs = False     # ... and it was another
        self.moved = False       # since the cursor was written
        self.not_before = self.asked_at = self.renew_at = 0.0
        self.heard = time.monotonic()
        self.asked = False       # FRONT has told of the stream as it is now
        self.submits = 0         # to it, by this client ...
        self.fetch_submits = 0   # ... when the fetch in the air began
        self.failed: Optional[SluiceError] = None  # what next() raises
        self.left = False
        self._open_feed()

    def _open_feed(self) -> None:
        """Again, too, when FRONT is made anew: what was not read of the old one is fetched."""
        self._close_feed()
        self.feed = self.session.open_feed()
        self.feed.setsockopt(zmq.SUBSCRIBE, self.topic)
        self.made = self.session.link.made

    def _close_feed(self) -> None:
        if self.feed:
            self.session.sockets.close(self.feed)
        self.feed = None

    def close(self) -> None:
        self.left = True
        self.ear.heard = True  # who waits for it hears so
        self._close_feed()

    def begin(self, from_seq: int) -> Steps[int]:
        """Returns the number it begins at."""
        saved = read_cursor(self.cursor, self.name) if self.cursor else None
        if saved:
            self.wanted_seq, self.epoch, self.start_id = saved["next"], saved["epoch"], saved.get("start_id", 0)
            self.head, self.last = saved["next"] - 1, (saved["rollout"], saved["ended_ms"])
            self.accepted = self.head
        head = yield from self.session.head(self.name)
        if head is None or not head["head"] and not head["pending"]:  # or who listens made it known
            warn(f"nothing has been submitted to the stream {self.name} yet (status()[\"streams\"] lists the streams)")
        head = head or {"first": 1, "head": 0, "pending": 0, "epoch": self.epoch}
        self.wanted_seq = self.wanted_seq or from_seq or head["first"]
        self._end_fetch(head)
        self.not_before = 0.0
        return self.wanted_seq

    def save(self) -> None:
        """Moves the cursor, if there is one, past the last one given out."""
        if self.cursor and self.moved and self.last:
            write_cursor(self.cursor, stream=self.name, next=self.wanted_seq, epoch=self.epoch,
                         start_id=self.start_id, rollout=self.last[0], ended_ms=self.last[1])
            self.moved = False

    @property
    def expected(self) -> int:
        return self.wanted_seq + len(self.ready)

    def next(self, timeout: Optional[float], until_idle: bool = False) -> Steps[Optional[Fields]]:
        """The next trajectory's fields; None after `timeout` seconds without one, or if idle."""
        self.save()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            if self.left:
                raise SluiceError(f"stream {self.name} is not read any more: this client was closed, or reads another")
            away, wake = self._work(time.monotonic())
            if self.ready and not self.fetch:
                return self._give()
            if self.failed:
                raise self.failed
            if until_idle and self.is_idle():
                return None
            now = time.monotonic()
            self._check_patience(now)
            if deadline is not None:
                if now >= deadline:
                    return None
                wake = min(wake, deadline)
            yield from self._sleep(now, wake, away)

    def _give(self) -> Fields:
        fields = self.ready.pop(0)
        self.wanted_seq += 1
        self.last = (fields["rollout"], fields["ended_ms"])
        self.moved = True
        return fields

    def expect_more(self) -> None:
        """This client submits to it: what was heard of it before counts no longer."""
        self.submits += 1
        self.asked, self.behind = False, True

    def is_idle(self) -> bool:
        """Nothing is accepted that has not been given out, as FRONT last said for sure."""
        return not self.fetch and not self.behind and self.asked and self.pending == 0

    def _check_patience(self, now: float) -> None:
        patience = self.session.patience
        if self.fetch and patience is not None and now - self.asked_at > max(patience, SILENCE):
            self.asked_at = now
            raise self.session.link.silence()

    # ---- what came -----------------------------------------------------------------------------

    def offer(self, wire: str, fields: Fields) -> None:
        """A message from FRONT that answers nothing else."""
        self.ear.heard = True
        if not self.fetch or fields.get("tag", 0) != self.fetch.tag:
            return
        if wire == "trajectory":
            self.fetch.send_at = time.monotonic() + self.fetch.again
            if self.checks and fields["seq"] == self.wanted_seq - 1:
                self.differs = (fields["rollout"], fields["ended_ms"]) != self.last
                self.fetched += 1
            else:
                self.fetched += self._keep(fields)
        elif wire == "stream.head":
            self._end_fetch(fields)
        elif wire == "refused":
            self._refuse_fetch(fields)

    def _keep(self, fields: Fields) -> bool:
        if fields["seq"] != self.expected or len(self.ready) >= FETCH_LIMIT:
            return False
        self.ready.append(fields)
        self.head = max(self.head, fields["seq"])
        return True

    def _end(self, failed: SluiceError) -> None:
        """Reading cannot go on here: this failure stays."""
        self.ready.clear()
        self.failed = failed

    def _is_new_start(self, head: Fields) -> bool:
        other = head.get("start_id", 0)
        return bool(self.epoch) and (head["epoch"] != self.epoch or bool(self.start_id and other and other != self.start_id))

    def _is_other_ledger(self, head: Fields) -> bool:
        """Where nothing was accepted nothing can be missed."""
        if not (self.accepted or self.submits or self.last):
            return False
        return (self.differs or head["epoch"] < self.epoch or head["head"] < self.head or
                head["head"] + head["pending"] < self.accepted or
                head["epoch"] == self.epoch and self._is_new_start(head))

    def _end_other(self, head: Fields) -> None:
        self._end(OtherLedger(
            f"stream {self.name}: the broker has another ledger than before: it is at start {head['epoch']} and number "
            f"{head['head']} of {head['head'] + head['pending']} accepted, and was at {self.epoch} and {self.head} of "
            f"{self.head + self.pending}; the oldest number of this one is {head['first']}", head["first"]))

    def _end_fetch(self, head: Fields) -> None:
        """The head that ends a fetch's answer was made for it: what it says is so."""
        is_new_start = self._is_new_start(head)
        was_checked = self.checks and not self.asks_head
        self.fetch, self.checks, self.asks_head = None, False, False
        self.heard = time.monotonic()
        if self._is_other_ledger(head):
            self._end_other(head)
            return
        if head["first"] > self.expected:
            self._end(Forgotten(f"stream {self.name}: number {self.expected} is no longer kept; "
                                f"the oldest is {head['first']}", oldest=head["first"]))
            return
        if is_new_start and not was_checked and self.last and head["first"] < self.wanted_seq:
            self.ready.clear()
            self.checks = True
        self.epoch, self.start_id = head["epoch"], head.get("start_id", 0)
        self.head, self.pending = head["head"], head["pending"]
        self.accepted = self.head + self.pending
        self.asked = self.fetch_submits == self.submits
        self.behind = self.checks or self.head >= self.expected or not self.asked
        self.not_before = 0.0 if self.fetched or self.checks else time.monotonic() + FETCH_PAUSE

    def _refuse_fetch(self, fields: Fields) -> None:
        asked_head = self.asks_head
        self.fetch, self.behind, self.checks, self.asks_head = None, False, False, False
        self.heard = time.monotonic()
        if fields["reason"] == "unknown-stream":
            if self.accepted or self.head:
                self._end_other({"first": 1, "head": 0, "pending": 0, "epoch": self.epoch})
            return  # else nothing was submitted to it yet
        if fields["reason"] == "forgotten" and not asked_head:
            self.asks_head = self.behind = True  # from where, then?
        else:
            self._end(refusal(fields))

    def _hear_feed(self) -> None:
        assert self.feed is not None
        try:
            frames = self.feed.recv_multipart(zmq.DONTWAIT)
        except zmq.Again:
            return
        if len(frames) != 2 or frames[0] != self.topic:
            return
        try:
            wire, fields = messages.decode(frames[1])
        except messages.MessageError:
            return
        if fields.get("stream") != self.name:
            return
        self.heard = time.monotonic()
        if wire == "trajectory" and not self._keep(fields):
            self.behind |= fields["seq"] > self.expected
        elif wire == "stream.head":
            # It may have waited in a queue for long: it only ever makes us look.
            old = fields["epoch"] < self.epoch or fields["head"] < self.head
            ends = self.pending > 0 and fields["pending"] == 0
            self.behind |= fields["epoch"] != self.epoch or self._is_new_start(fields) or old or ends
            self.behind |= fields["head"] >= self.expected
            if not old:
                self.head, self.pending = fields["head"], fields["pending"] or self.pending

    # ---- fetching ----------------------------------------------------------------------------------

    def _start_fetch(self, now: float) -> None:
        self.ready.clear()
        first = FAR if self.asks_head else self.wanted_seq - self.checks
        self.fetch = self.session.make("stream.fetch", {
            "stream": self.name, "from": first, "limit": FETCH_LIMIT})
        self.behind, self.differs, self.fetched, self.asked_at = False, False, 0, now
        self.fetch_submits = self.submits

    def _renew(self, now: float) -> None:
        """Its answer is nobody's and is dropped; the next one is due soon."""
        self.session.make("stream.renew", {"stream": self.name}).send_due(self.session.front, now)
        lease = self.session.lease
        self.renew_at = now + (min(RENEW, lease / 3) if lease else RENEW)

    def _work(self, now: float) -> Tuple[bool, float]:
        """One round; returns whether the broker is away and until when to wait."""
        self.session.read()
        self.ear.heard = False
        if self.made != self.session.link.made:
            self._open_feed()
        if not self.fetch and not self.behind and not self.ready:
            self._hear_feed()
        if not self.fetch and now - self.heard >= SILENCE:
            self.behind = True
        if self.behind and not (self.fetch or self.ready or self.failed) and now >= self.not_before:
            self._start_fetch(now)
        away = self.fetch is not None and not self.fetch.send_due(self.session.front, now)
        if now >= self.renew_at:
            self._renew(now)
        if self.fetch:
            return away, now + AGAIN if away else self.fetch.send_at
        return False, min(self.renew_at, self.not_before if self.behind else self.heard + SILENCE)

    def _sleep(self, now: float, wake: float, away: bool) -> Steps[None]:
        wake = max(now, wake)
        yield Pause(wake, self.ear, away, None if self.fetch or self.behind else self.feed)
        late = time.monotonic() - wake
        if late > STOPPED:
            self.asked_at += late
