"""The broker killed at each single step of its work, one after the other, and started again: nothing lost, nothing twice."""
import itertools
import os
import sys
import threading
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Client, Fleet, noop  # noqa: E402
from harness import BINARY  # noqa: E402
from test_faults_samplers import tasks, told  # noqa: E402

KILL_AT = os.path.join(BINARY, "tests", "chaos", "libkill_at.so")
GROUPS, SAMPLES = 2, 2


class Points(Case):
    def sweep(self, call, when, points, work, slots=8):
        """A broker that dies at its Nth `call`, for each N of `points`, while `work`(client, stream) is done."""
        fleet = self.enter(Fleet(slots=slots, settings={"adopt_grace": "100ms", "hold_grace": "200ms"}))
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
            died += self.finish_under(fleet, work, f"s-{number}")
        self.assertGreater(died, 4, "the points are where the broker comes by")

    def finish_under(self, fleet, work, stream):
        """Works while the broker may die once; whether it did."""
        wrong = []

        def work_on():
            try:
                with Client(fleet.url, timeout=60) as client:
                    work(client, stream)
            except Exception as why:  # told below, in the thread that can
                wrong.append(why)

        worker, died = threading.Thread(target=work_on), False
        worker.start()
        while worker.is_alive():
            worker.join(0.02)
            if not fleet.broker.is_running():
                died = True
                fleet.broker.start()
        self.assertEqual(wrong, [])
        return died

    def groups_end(self, client, stream):
        """From submit to end."""
        client.submit([noop(k, samples=SAMPLES) for k in range(GROUPS)], stream=stream)
        seen = list(client.trajectories(stream, from_seq=1, timeout=60, until_idle=True))
        self.assertEqual([t.seq for t in seen], list(range(1, GROUPS * SAMPLES + 1)))
        self.assertEqual(len({t.rollout for t in seen}), GROUPS * SAMPLES)
        self.assert_all(seen)

    def batches_come(self, client, stream):
        """A trainer takes two batches; another, that has learned from the first one, is told the same second one."""
        def batches(after, count):
            taken = client.sampler(stream, tasks(), groups=2, samples=SAMPLES, after=after, trainer="t", prefix=stream)
            return [told(batch) for batch in itertools.islice(taken, count)]

        first, second = batches(0, 2)
        self.assertEqual(batches(1, 1), [second])
        self.assertEqual([first[0], second[0]], [1, 2])
        names = [group[0] for row in (first, second) for group in row[4]]
        self.assertEqual(len(set(names)), 4, "no group is in two batches")
        for row in (first, second):
            for _, _, mean, rollouts in row[4]:
                self.assertEqual(len({rollout for rollout, _, _ in rollouts}), SAMPLES)
                self.assertTrue(0 < mean < 1, mean)
        client.sampler_close(stream, cancel=True)

    def test_killed_before_any_write_reaches_the_disk(self):
        self.sweep("pwrite", "before", range(2, 42, 2), self.groups_end)

    def test_killed_after_any_write_reached_the_disk(self):
        self.sweep("fdatasync", "after", range(1, 8), self.groups_end)

    def test_killed_between_any_two_messages(self):
        self.sweep("zmq_msg_send", "before", range(1, 40, 3), self.groups_end)

    def test_a_sampler_killed_before_any_write_reaches_the_disk(self):
        self.sweep("pwrite", "before", range(2, 92, 9), self.batches_come)

    def test_a_sampler_killed_after_any_write_reached_the_disk(self):
        self.sweep("fdatasync", "after", range(1, 24, 3), self.batches_come)

    def test_a_sampler_killed_between_any_two_messages(self):
        self.sweep("zmq_msg_send", "before", range(1, 150, 15), self.batches_come)


if __name__ == "__main__":
    unittest.main()
