"""Reading one stream: each trajectory once, in order, whatever is lost on the way.

FEED (SUB) is fast and may drop. A number below the next is a duplicate, one above shows a gap; a gap,
or a head that has passed what arrived, starts a fetch on FRONT, and FEED is left unread until its answer
has ended. Memory is bounded by one fetch's answer and FEED's queue.
"""

import time

import zmq

from . import messages
from .errors import OtherLedger, Refused

FETCH_LIMIT = 64
FETCH_PAUSE = 0.25  # seconds after a fetch that brought nothing although there is more
SILENCE = 2.0       # FEED says heads every second while there is work: then ask FRONT


class Stream:
    def __init__(self, client, feed, name):
        self.client, self.feed, self.name = client, feed, name
        self.topic = f"t/{name}/".encode()
        self.ready = []        # fields of trajectories, in order from self.wanted_seq
        self.wanted_seq = 1    # the number to give out next
        self.head = self.epoch = self.pending = 0
        self.fetch = None      # the Request in the air
        self.fetched = 0       # how many it brought
        self.behind = False    # something is missing: fetch it
        self.not_before = 0.0  # of the next fetch
        self.heard = time.monotonic()
        self.asked = False     # FRONT has told of the stream as it is now
        self.failed = None     # what next() raises
        feed.setsockopt(zmq.SUBSCRIBE, self.topic)

    def close(self):
        self.feed.close()

    def begin(self, from_seq, head):
        self.wanted_seq = from_seq or head["first"]
        self._end_fetch(head)
        self.not_before = 0.0

    @property
    def expected(self):
        return self.wanted_seq + len(self.ready)

    def next(self, timeout, until_idle=False):
        """The next trajectory's fields; None after `timeout` seconds without one, or if idle."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            away, wake = self._work(time.monotonic())
            if self.ready:
                self.wanted_seq += 1
                return self.ready.pop(0)
            if self.failed:
                failed, self.failed = self.failed, None
                raise failed
            if until_idle and self._is_idle():
                return None
            now = time.monotonic()
            if deadline is not None:
                if now >= deadline:
                    return None
                wake = min(wake, deadline)
            self._sleep(wake - now, away)

    def _is_idle(self):
        """Nothing is accepted that has not been given out, as FRONT last said for sure."""
        return not self.fetch and not self.behind and self.asked and self.pending == 0

    # ---- what came -----------------------------------------------------------------------------

    def offer(self, wire, fields):
        """A message from FRONT that answers nothing else."""
        if not self.fetch or fields.get("tag", 0) != self.fetch.tag:
            return
        if wire == "trajectory":
            self.fetch.send_at = time.monotonic() + self.fetch.again
            self.fetched += self._keep(fields)
        elif wire == "stream.head":
            self._end_fetch(fields)
        elif wire == "refused":
            self.fetch, self.behind, self.heard = None, False, time.monotonic()
            if fields["reason"] != "unknown-stream":  # that is: nothing was submitted to it yet
                self.failed = Refused(fields["text"], fields["reason"], fields.get("field"))

    def _keep(self, fields):
        if fields["seq"] != self.expected or len(self.ready) >= FETCH_LIMIT:
            return False
        self.ready.append(fields)
        self.head = max(self.head, fields["seq"])
        return True

    def _end_fetch(self, head):
        """The head that ends a fetch's answer was made for it: what it says is so."""
        self.fetch, self.heard = None, time.monotonic()
        if head["epoch"] < self.epoch or head["head"] < self.head:
            self.failed = OtherLedger(
                f"stream {self.name}: the broker has another ledger than before: it is at start "
                f"{head['epoch']} and number {head['head']}, and was at {self.epoch} and {self.head}")
            return
        if head["first"] > self.expected:
            self.failed = Refused(f"stream {self.name}: number {self.expected} is no longer kept; "
                                  f"the oldest is {head['first']}", "forgotten")
            return
        self.epoch, self.head, self.pending = head["epoch"], head["head"], head["pending"]
        self.behind = self.head >= self.expected
        self.asked = True
        self.not_before = 0.0 if self.fetched else time.monotonic() + FETCH_PAUSE

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
            self.behind |= old or fields["head"] >= self.expected
            if not old:
                self.head, self.pending = fields["head"], fields["pending"]

    # ---- fetching ----------------------------------------------------------------------------------

    def _work(self, now):
        """One round; returns whether the broker is away and until when to wait."""
        for wire, fields in self.client._read():
            self.offer(wire, fields)
        if not self.fetch and not self.behind and not self.ready:
            self._hear_feed()
        if not self.fetch and now - self.heard >= SILENCE:
            self.behind = True
        if self.behind and not (self.fetch or self.ready or self.failed) and now >= self.not_before:
            self.fetch = self.client._make("stream.fetch", {
                "stream": self.name, "from": self.wanted_seq, "limit": FETCH_LIMIT})
            self.behind, self.fetched = False, 0
        if self.fetch:
            away = not self.fetch.send_due(self.client._front, now)
            return away, now + SILENCE if away else self.fetch.send_at
        return False, self.not_before if self.behind else self.heard + SILENCE

    def _sleep(self, seconds, away):
        poller = zmq.Poller()
        poller.register(self.client._front, zmq.POLLIN | (zmq.POLLOUT if away else 0))
        if not self.fetch and not self.behind:
            poller.register(self.feed, zmq.POLLIN)
        poller.poll(max(0, seconds * 1000) + 1)
