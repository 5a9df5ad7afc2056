"""Up to which number a stream may be acknowledged, where its trajectories are taken in any order."""

from __future__ import annotations

import heapq
from typing import List, Set


class Prefix:
    """Of the numbers that came, in order, the longest run from the first in which nothing is held. Pure."""

    def __init__(self) -> None:
        self.last = 0                  # the last one that came
        self.held: Set[int] = set()    # came, and somebody wants it still
        self._lowest: List[int] = []   # a heap of them, and of those that were let go since
        self._early: Set[int] = set()  # let go before they came

    def come(self, seq: int, is_held: bool) -> None:
        """The next one of the stream."""
        self.last = seq
        if seq in self._early:
            self._early.discard(seq)
        elif is_held:
            self.held.add(seq)
            heapq.heappush(self._lowest, seq)

    def let_go(self, seq: int) -> None:
        """Whoever wanted it has it, or wants it no more. It may be one that is still to come."""
        self.held.discard(seq)
        if seq > self.last:
            self._early.add(seq)

    def skip_to(self, seq: int) -> None:
        """What is before it and has not come never will: it is not kept."""
        self.last = max(self.last, seq - 1)
        self._early = {early for early in self._early if early >= seq}

    @property
    def is_behind(self) -> bool:
        """Whether something that was let go is still to come."""
        return bool(self._early)

    @property
    def up_to(self) -> int:
        """0: none yet."""
        while self._lowest and self._lowest[0] not in self.held:
            heapq.heappop(self._lowest)
        return self._lowest[0] - 1 if self._lowest else self.last
