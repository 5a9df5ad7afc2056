"""The broker killed at each single step of its work, one after the other, and started again: nothing lost, nothing twice."""
import os
import sys
import threading
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Client, Fleet, noop  # noqa: E402
from harness import BINARY  # noqa: E402

KILL_AT = os.path.join(BINARY, "tests", "chaos", "libkill_at.so")
GROUPS, SAMPLES = 2, 2


class Points(Case):
    def sweep(self, call, when, points):
        """A broker that dies at its Nth `call`, for each N of `points`, while groups go from submit to end."""
        fleet = self.enter(Fleet(slots=8, settings={"adopt_grace": "100ms", "hold_grace": "200ms"}))
        broker, died = fleet.broker, 0
        broker.may_fail = True
        asan = fleet.environment["ASAN_OPTIONS"]
        for number, point in enumerate(points):
            broker.end()
            fleet.environment.update(LD_PRELOAD=KILL_AT, SLUICE_KILL_AT=f"{call} {when} {point}",
                                     ASAN_OPTIONS=asan + ":verify_asan_link_order=0")
            broker.start(wait=False)
            for name in ("LD_PRELOAD", "SLUICE_KILL_AT"):
                fleet.environment.pop(name)
            died += self.finish_under(fleet, f"s-{number}")
        self.assertGreater(died, 4, "the points are where the broker comes by")

    def finish_under(self, fleet, stream):
        """Submits and reads while the broker may die once; whether it did."""
        seen, wrong = [], []

        def work():
            try:
                with Client(fleet.url, timeout=60) as client:
                    client.submit([noop(k, samples=SAMPLES) for k in range(GROUPS)], stream=stream)
                    seen.extend(client.trajectories(stream, from_seq=1, timeout=60, until_idle=True))
            except Exception as why:  # told below, in the thread that can
                wrong.append(why)

        worker, died = threading.Thread(target=work), False
        worker.start()
        while worker.is_alive():
            worker.join(0.02)
            if not fleet.broker.is_running():
                died = True
                fleet.broker.start()
        self.assertEqual(wrong, [])
        self.assertEqual([t.seq for t in seen], list(range(1, GROUPS * SAMPLES + 1)))
        self.assertEqual(len({t.rollout for t in seen}), GROUPS * SAMPLES)
        self.assert_all(seen)
        return died

    def test_killed_before_any_write_reaches_the_disk(self):
        self.sweep("pwrite", "before", range(2, 42, 2))

    def test_killed_after_any_write_reached_the_disk(self):
        self.sweep("fdatasync", "after", range(1, 8))

    def test_killed_between_any_two_messages(self):
        self.sweep("zmq_msg_send", "before", range(1, 40, 3))


if __name__ == "__main__":
    unittest.main()
