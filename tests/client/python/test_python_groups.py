"""Whole groups: what a Gatherer makes of trajectories in any order, and both clients on a real broker and its workers."""
import asyncio
import json
import os
import random
import sys
import unittest

from python_world import SOURCE  # before all that it finds

sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
from harness import BROKER, WORKER, Service

from sluice import AsyncClient, Client
from sluice.groups import ASK_FIRST, Gatherer
from sluice.trajectory import Trajectory

SIZES = {"a": 1, "b": 2, "c": 8, "d": 3, "e": 5}


def trajectory(seq, group, sample):
    return Trajectory(stream="s", seq=seq, rollout=f"{group}/{sample}", group=group, task=group, sample=sample, attempt=1,
                      outcome="ok", trainable=True, wait_ms=0, init_ms=0, run_ms=0, eval_ms=0, ended_ms=0, reward=1.0)


def stream(seed):
    """All rollouts of SIZES, in some order."""
    rollouts = [(group, k) for group, size in SIZES.items() for k in range(size)]
    random.Random(seed).shuffle(rollouts)
    return [trajectory(seq, *rollout) for seq, rollout in enumerate(rollouts, 1)]


def gather(trajectories, resume=None, sizes=SIZES):
    gatherer = Gatherer("s", resume["done"] if resume else {})
    gatherer.begin = resume["seq"] if resume else 1
    for one in trajectories:
        if one.seq >= gatherer.begin and gatherer.is_new(one):
            group = gatherer.add(one, sizes[one.group], 0.0)
            if group:
                yield group


class Gatherers(unittest.TestCase):
    def test_each_group_is_given_out_once_and_whole(self):
        for seed in range(50):
            groups = list(gather(stream(seed)))
            self.assertEqual({g.group: g.size for g in groups}, SIZES)
            for group in groups:
                self.assertTrue(group.complete)
                self.assertEqual([t.sample for t in group.trajectories], list(range(group.size)))
                self.assertEqual(len(repr(group).splitlines()), 1)
            self.assertEqual((groups[-1].seq, groups[-1].resume), (19, {"seq": 20, "done": {}}))

    def test_resumed_after_any_group_none_comes_twice_and_none_is_left_out(self):
        for seed in range(50):
            whole = [g.group for g in gather(stream(seed))]
            for stop in range(len(whole)):
                first = list(gather(stream(seed)))[:stop + 1]
                resume = json.loads(json.dumps(first[-1].resume))
                rest = list(gather(stream(seed), resume))
                self.assertEqual([g.group for g in first + rest], whole)
                self.assertTrue(all(g.complete for g in rest))
                given = {t.seq for g in first for t in g.trajectories}
                self.assertTrue(all(seq in given for seq in range(1, first[-1].seq + 1)))

    def test_rollouts_that_ended_before_reading_began_are_asked_for_later_and_later(self):
        gatherer = Gatherer("s", {})
        gatherer.begin = 10
        self.assertTrue(gatherer.is_new(trajectory(10, "c", 3)))
        self.assertIsNone(gatherer.add(trajectory(10, "c", 3), 3 + 1, 0.0))
        self.assertIsNone(gatherer.due(ASK_FIRST - 0.1))
        self.assertEqual(gatherer.due(ASK_FIRST), ("c", [0, 1, 2]))
        self.assertIsNone(gatherer.due(2 * ASK_FIRST))
        self.assertIsNone(gatherer.miss("c", [0, 2]))
        self.assertEqual(gatherer.due(4 * ASK_FIRST), ("c", [1]))
        group = gatherer.miss("c", [1])
        self.assertEqual((group.complete, group.size, [t.sample for t in group.trajectories]), (False, 4, [3]))
        self.assertEqual(repr(group), "Group(c, 1 of 4 rollouts, not complete, rewards [1])")


@unittest.skipUnless(os.path.exists(BROKER) and os.path.exists(WORKER), "there is no broker or worker")
class OnAService(unittest.TestCase):
    def check(self, groups, names, size):
        self.assertEqual(sorted(g.group for g in groups), sorted(names))
        for group in groups:
            self.assertTrue(group.complete)
            self.assertEqual([t.rollout for t in group.trajectories], [f"{group.group}/{k}" for k in range(size)])

    def test_both_clients_get_whole_groups_over_kills_and_resumes(self):
        tasks = [{"task": f"t-{k}", "kind": "noop"} for k in range(40)]
        with Service() as service:
            with Client(service.url) as client:
                names = client.submit(tasks, stream="train", samples=4)
                self.check(list(client.groups("train", until_idle=True)), names, 4)
                self.assertEqual(client._session.sizes, {})

            # Another process, which knows no sizes, and a broker that is killed in the middle.
            with Client(service.url) as client:
                groups, got = client.groups("train", until_idle=True), []
                got += [next(groups) for _ in range(10)]
                service.kill("sluice-broker")
                got += list(groups)
                self.check(got, names, 4)
                ended = client.rollouts("train", outcome="ok", limit=3)
                self.assertEqual([one["seq"] for one in ended], [160, 159, 158])
                self.assertEqual({one["rollout"] for one in client.rollouts(ended=True, group=names[0])},
                                 {f"{names[0]}/{k}" for k in range(4)})
                self.assertEqual((client.rollouts(outcome="infra", stream="train"), client.rollouts()), ([], []))
                # From any group on.
                for at in (0, 17, 38):
                    rest = list(client.groups("train", resume=json.loads(json.dumps(got[at].resume)), until_idle=True))
                    self.check(got[:at + 1] + rest, names, 4)
                # Some that had ended are gone.
                client.ack("train", 2)
                rest = list(client.groups("train", until_idle=True))
                self.assertEqual(sum(len(g.trajectories) for g in rest), 158)
                self.assertEqual({g.size for g in rest}, {4})
                self.assertEqual(sum(4 - len(g.trajectories) for g in rest if not g.complete), 2 - 4 * (40 - len(rest)))
                seq = max(g.seq for g in rest)
                self.assertEqual(seq, 160)
                client.ack("train", seq)

            async def work():
                async with AsyncClient(service.url) as client:
                    names = await client.submit(tasks, stream="async", samples=5)
                    groups, got = client.groups("async", until_idle=True), []
                    while len(got) < 40:  # cancelled again and again
                        try:
                            got.append(await asyncio.wait_for(groups.__anext__(), 0.003))
                        except asyncio.TimeoutError:
                            pass
                    self.check(got, names, 5)
                    with self.assertRaises(StopAsyncIteration):
                        await groups.__anext__()
            asyncio.run(asyncio.wait_for(work(), 120))


if __name__ == "__main__":
    unittest.main()
