"""Reading one stream: each trajectory once, in order, whatever is lost on the way.

FEED (SUB) is fast and may drop. A number below the next is a duplicate, one above shows a gap; a gap,
or a head that has passed what arrived, starts a fetch on FRONT. Until its answer has ended FEED is left
unread and nothing of it is given out: the head that ends it says whose numbers these are. Memory is
bounded by one fetch's answer and FEED's queue.

A broker that was started again may have another ledger, an older back-up. An earlier start or a smaller
head tells; where the stream has grown again meanwhile, the number before the next does: after each new
start it is fetched too, and must be the one that was given out.
"""

import time

import zmq

from . import messages
from .cursor import read_cursor, write_cursor
from .errors import Forgotten, OtherLedger, refusal
from .link import AGAIN

FETCH_LIMIT = 64
FETCH_PAUSE = 0.25  # seconds after a fetch that brought nothing although there is more
SILENCE = 2.0       # FEED says heads every second while there is work: then ask FRONT
RENEW = 5.0         # how often a reader says that it is alive, for leases
STOPPED = 1.0       # a wait that took so much longer was no wait: this process stood still
FAR = 2**63 - 1     # a number that no stream reaches: asks where it stands


class Stream:
    def __init__(self, client, open_feed, name, cursor=None):
        self.client, self.open_feed, self.name, self.cursor = client, open_feed, name, cursor
        self.feed = None
        self.topic = f"t/{name}/".encode()
        self.ready = []          # fields of trajectories, in order from self.wanted_seq
        self.wanted_seq = 0      # the number to give out next
        self.last = None         # (rollout, ended_ms) of the one before it
        self.head = self.epoch = self.pending = 0
        self.fetch = None        # the Request in the air
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
        self.failed = None       # what next() raises
        self._open_feed()

    def _open_feed(self):
        """Again, too, when FRONT is made anew: what was not read of the old one is fetched."""
        self.close()
        self.feed = self.open_feed()
        self.feed.setsockopt(zmq.SUBSCRIBE, self.topic)
        self.made = self.client._link.made

    def close(self):
        if self.feed:
            self.feed.close()

    def begin(self, from_seq):
        saved = read_cursor(self.cursor, self.name) if self.cursor else None
        if saved:
            self.wanted_seq, self.epoch = saved["next"], saved["epoch"]
            self.head, self.last = saved["next"] - 1, (saved["rollout"], saved["ended_ms"])
        head = self.client._head(self.name, self.epoch)
        self.wanted_seq = self.wanted_seq or from_seq or head["first"]
        self._end_fetch(head)
        self.not_before = 0.0

    def save(self):
        """Moves the cursor, if there is one, past the last one given out."""
        if self.cursor and self.moved:
            write_cursor(self.cursor, stream=self.name, next=self.wanted_seq, epoch=self.epoch,
                         rollout=self.last[0], ended_ms=self.last[1])
            self.moved = False

    @property
    def expected(self):
        return self.wanted_seq + len(self.ready)

    def next(self, timeout, until_idle=False):
        """The next trajectory's fields; None after `timeout` seconds without one, or if idle."""
        self.save()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            away, wake = self._work(time.monotonic())
            if self.ready and not self.fetch:
                return self._give()
            if self.failed:
                raise self.failed
            if until_idle and self._is_idle():
                return None
            now = time.monotonic()
            self._check_patience(now)
            if deadline is not None:
                if now >= deadline:
                    return None
                wake = min(wake, deadline)
            self._sleep(wake - now, away)

    def _give(self):
        fields = self.ready.pop(0)
        self.wanted_seq += 1
        self.last = (fields["rollout"], fields["ended_ms"])
        self.moved = True
        return fields

    def expect_more(self):
        """This client submits to it: what was heard of it before counts no longer."""
        self.submits += 1
        self.asked, self.behind = False, True

    def _is_idle(self):
        """Nothing is accepted that has not been given out, as FRONT last said for sure."""
        return not self.fetch and not self.behind and self.asked and self.pending == 0

    def _check_patience(self, now):
        patience = self.client.patience
        if self.fetch and patience is not None and now - self.asked_at > max(patience, SILENCE):
            self.asked_at = now
            raise self.client._link.silence()

    # ---- what came -----------------------------------------------------------------------------

    def offer(self, wire, fields):
        """A message from FRONT that answers nothing else."""
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

    def _keep(self, fields):
        if fields["seq"] != self.expected or len(self.ready) >= FETCH_LIMIT:
            return False
        self.ready.append(fields)
        self.head = max(self.head, fields["seq"])
        return True

    def _end(self, failed):
        """Reading cannot go on here: this failure stays."""
        self.ready.clear()
        self.failed = failed

    def _end_fetch(self, head):
        """The head that ends a fetch's answer was made for it: what it says is so."""
        is_new_start = self.epoch and head["epoch"] != self.epoch
        was_checked = self.checks and not self.asks_head
        self.fetch, self.checks, self.asks_head = None, False, False
        self.heard = time.monotonic()
        if head["epoch"] < self.epoch or head["head"] < self.head or self.differs:
            self._end(OtherLedger(
                f"stream {self.name}: the broker has another ledger than before: it is at start "
                f"{head['epoch']} and number {head['head']}, and was at {self.epoch} and {self.head}; "
                f"the oldest number of this one is {head['first']}", head["first"]))
            return
        if head["first"] > self.expected:
            self._end(Forgotten(f"stream {self.name}: number {self.expected} is no longer kept; "
                                f"the oldest is {head['first']}", oldest=head["first"]))
            return
        if is_new_start and not was_checked and self.last and head["first"] < self.wanted_seq:
            self.ready.clear()
            self.checks = True
        self.epoch, self.head, self.pending = head["epoch"], head["head"], head["pending"]
        self.asked = self.fetch_submits == self.submits
        self.behind = self.checks or self.head >= self.expected or not self.asked
        self.not_before = 0.0 if self.fetched or self.checks else time.monotonic() + FETCH_PAUSE

    def _refuse_fetch(self, fields):
        asked_head = self.asks_head
        self.fetch, self.behind, self.checks, self.asks_head = None, False, False, False
        self.heard = time.monotonic()
        if fields["reason"] == "unknown-stream":
            return  # nothing was submitted to it yet
        if fields["reason"] == "forgotten" and not asked_head:
            self.asks_head = self.behind = True  # from where, then?
        else:
            self._end(refusal(fields))

    def _hear_feed(self):
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
            self.behind |= fields["epoch"] != self.epoch or old or ends or fields["head"] >= self.expected
            if not old:
                self.head, self.pending = fields["head"], fields["pending"] or self.pending

    # ---- fetching ----------------------------------------------------------------------------------

    def _start_fetch(self, now):
        self.ready.clear()
        first = FAR if self.asks_head else self.wanted_seq - self.checks
        self.fetch = self.client._make("stream.fetch", {
            "stream": self.name, "from": first, "limit": FETCH_LIMIT})
        self.behind, self.differs, self.fetched, self.asked_at = False, False, 0, now
        self.fetch_submits = self.submits

    def _renew(self, now):
        """Its answer is nobody's and is dropped; the next one is due soon."""
        self.client._make("stream.renew", {"stream": self.name}).send_due(self.client._front, now)
        lease = self.client._lease
        self.renew_at = now + (min(RENEW, lease / 3) if lease else RENEW)

    def _work(self, now):
        """One round; returns whether the broker is away and until when to wait."""
        for wire, fields in self.client._read():
            self.offer(wire, fields)
        if self.made != self.client._link.made:
            self._open_feed()
        if not self.fetch and not self.behind and not self.ready:
            self._hear_feed()
        if not self.fetch and now - self.heard >= SILENCE:
            self.behind = True
        if self.behind and not (self.fetch or self.ready or self.failed) and now >= self.not_before:
            self._start_fetch(now)
        away = bool(self.fetch) and not self.fetch.send_due(self.client._front, now)
        if now >= self.renew_at:
            self._renew(now)
        if self.fetch:
            return away, now + AGAIN if away else self.fetch.send_at
        return False, min(self.renew_at, self.not_before if self.behind else self.heard + SILENCE)

    def _sleep(self, seconds, away):
        poller = zmq.Poller()
        poller.register(self.client._front, zmq.POLLIN | (zmq.POLLOUT if away else 0))
        if not self.fetch and not self.behind:
            poller.register(self.feed, zmq.POLLIN)
        began = time.monotonic()
        poller.poll(max(0, seconds * 1000) + 1)
        late = time.monotonic() - began - max(0, seconds)
        if late > STOPPED:
            self.asked_at += late
