"""Samplers: batches go on, and are the same, whoever is killed; a made-up acceptance; two at a time."""
import asyncio
import itertools
import json
import os
import random
import signal
import sys
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Client, Fleet, chat, sandbox, script  # noqa: E402
from harness import PYTHON, SLUICE  # noqa: E402
from sluice import AsyncClient, BadArgument, Forgotten, Refused  # noqa: E402
from sluice.adapters.rollouts import Rollouts  # noqa: E402

SAMPLES = 4
# Of three tasks one is always solved, one never, and one now and then: of those, seven in eight groups are mixed.
COMMANDS = ("true", "false", "test $((RANDOM % 2)) = 0")

# Learns from batches: a line for each, before the next is asked for.
TRAINER = """
import json, sys
sys.path[:0] = [sys.argv[4]]
import test_faults_samplers as tests
from sluice import Client
client = Client(sys.argv[1], allow_plaintext=True)
print("trainer ready", flush=True)
with open(sys.argv[2], "a", encoding="utf-8") as log:
    for batch in client.sampler("train", tests.tasks(), groups=3, samples=tests.SAMPLES):
        log.write(json.dumps(tests.told(batch)) + "\\n")
        log.flush()
        if batch.number >= int(sys.argv[3]):
            break
"""


def tasks():
    for number in itertools.count():
        yield sandbox(number, COMMANDS[number % len(COMMANDS)])


def told(batch):
    return [batch.number, batch.version, batch.account, batch.acceptance,
            [[group.group, group.number, group.mean, [(t.rollout, t.seq, t.reward) for t in group.trajectories]]
             for group in batch.groups]]


class Samplers(Case):
    def batches(self, client, count, **more):
        options = dict({"groups": 3, "samples": SAMPLES}, **more)
        return list(itertools.islice(client.sampler(options.pop("stream", "train"), options.pop("tasks", tasks()),
                                                    **options), count))

    def assert_batches(self, rows, first=1):
        """As told() has them: one after the other, each whole and mixed, no group in two."""
        self.assertEqual([row[0] for row in rows], list(range(first, first + len(rows))))
        groups = [group for row in rows for group in row[4]]
        self.assertEqual(len({group[0] for group in groups}), 3 * len(rows))
        for row in rows:
            self.assertEqual([group[1] for group in row[4]], sorted(group[1] for group in row[4]))
        for name, number, mean, trajectories in groups:
            self.assertEqual(name, f"train.{number}")
            self.assertEqual([t[0] for t in trajectories], [f"{name}/{k}" for k in range(SAMPLES)])
            rewards = [t[2] for t in trajectories if t[2] is not None]
            self.assertEqual(set(rewards), {0.0, 1.0})
            self.assertAlmostEqual(mean, sum(rewards) / len(rewards))

    def assert_account(self, client, batches, stream="train"):
        """Every group that was ever submitted is somewhere, and nothing was counted twice."""
        state = client.sampler_state(stream)
        total = state["total"]
        dropped = sum(total[word] for word in ("uniform_0", "uniform_1", "uniform_other", "no_reward", "stale", "cancelled",
                                               "forgotten"))
        self.assertEqual(state["batch"], batches)
        self.assertEqual(state["held"] + state["live"] + state["ready"] + dropped + 3 * batches, state["submitted"])
        self.assertEqual(total["kept"], 3 * batches)
        return total

    def test_a_batch_has_what_differs_and_the_rest_is_accounted_for(self):
        fleet = self.enter(Fleet(slots=8))
        client = self.client(fleet, timeout=30)
        batches = self.batches(client, 4)
        self.assert_batches([told(batch) for batch in batches])
        total = self.assert_account(client, 4)
        self.assertGreater(total["uniform_0"], 0)
        self.assertGreater(total["uniform_1"], 0)
        verdicts = {group["group"]: group["verdict"] for batch in batches for group in batch.dropped}
        self.assertGreaterEqual(len(verdicts), 4)
        for name, verdict in verdicts.items():
            kind = COMMANDS[(int(name.split(".")[1]) - 1) % 3]
            self.assertIn(verdict, {"true": ["uniform_1"], "false": ["uniform_0"]}.get(kind, ["uniform_0", "uniform_1"]))
        said = fleet.run("sampler", "state", "train").stdout
        self.assertIn("batch 4; submitted ", said)
        self.assertEqual(json.loads(fleet.run("sampler", "next", "train", "--batch", "4", "--trainer",
                                              client.sampler_state("train")["trainer"], "--json").stdout)["batch"], 4)
        self.assertEqual(fleet.status()["samplers"][0]["stream"], "train")
        fleet["run-1"].send(signal.SIGSTOP)  # what is at work now still is when the sampler closes
        client.submit([sandbox(0)], "train", samples=SAMPLES)  # else nothing may be left
        left = client.sampler_state("train")
        closed = client.sampler_close("train", cancel=True)
        self.assertGreater(closed, 0)
        self.assertGreaterEqual(closed, SAMPLES * left["held"])
        self.assertLessEqual(closed, SAMPLES * (left["held"] + left["live"]))
        with self.assertRaisesRegex(Refused, "has no sampler"):
            client.sampler_state("train")

    def test_a_batch_that_was_waited_for_in_vain_is_not_passed_over(self):
        fleet = self.enter(Fleet(slots=8))
        client = self.client(fleet, timeout=30)
        fleet.run("sampler", "open", "train", "--groups", "1", "--filter", "none")
        told = fleet.run("sampler", "next", "train", "--wait", "100ms", check=False)
        self.assertEqual(told.returncode, 1)
        self.assertIn("batch 1 is not full", told.stderr)
        client.submit([sandbox(k, "true") for k in range(2)], stream="train", samples=1)
        end = time.monotonic() + 60
        while client.sampler_state("train")["batch"] < 1:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        batches = [json.loads(fleet.run("sampler", "next", "train", "--wait", "60s", "--json").stdout)["batch"] for _ in range(2)]
        self.assertEqual(batches, [1, 2])

    def test_a_killed_broker_tells_the_same_batch_again_and_goes_on(self):
        fleet = self.enter(Fleet(slots=8, settings={"adopt_grace": "1000ms"}))
        rows = []
        for _ in range(3):
            with Client(fleet.url, allow_plaintext=True, timeout=30) as client:
                rows.append([told(batch) for batch in self.batches(client, 2)])
            fleet.broker.kill()
            fleet.broker.start()
        for before, after in zip(rows, rows[1:]):
            self.assertEqual(before[-1], after[0])
        self.assert_batches(rows[0] + rows[1][1:] + rows[2][1:])
        self.assert_account(self.client(fleet, timeout=30), 4)

    def test_killed_workers_cost_no_group_and_are_no_reward(self):
        fleet = self.enter(Fleet(workers=2, slots=4, settings={"beat_timeout": "1000ms", "retry_first": "50ms"}))
        client = self.client(fleet, timeout=30)
        rows = []
        for batch in itertools.islice(client.sampler("train", tasks(), groups=3, samples=SAMPLES), 4):
            rows.append(told(batch))
            victim = fleet[f"{('init', 'run', 'eval')[len(rows) % 3]}-1"]
            victim.kill()
            victim.start()
        self.assert_batches(rows)
        total = self.assert_account(client, 4)
        self.assertEqual(total["no_reward"], 0)

    def test_a_killed_trainer_goes_on_with_the_batch_that_it_had(self):
        fleet = Fleet(slots=8)
        log = os.path.join(fleet.root, "batches")
        trainer = fleet.add("trainer", [PYTHON, "-c", TRAINER, fleet.url, log, "12", os.path.dirname(__file__)],
                            ready="trainer ready")
        self.enter(fleet)
        dice = random.Random(9)
        trainer.may_end = True  # where the machine is fast, the twelve batches are there before the fourth kill
        for _ in range(4):
            time.sleep(dice.uniform(0.1, 0.8))
            trainer.kill()
            trainer.start()
        end = time.monotonic() + 120
        while not trainer.finished:
            self.assertLess(time.monotonic(), end, trainer.said()[-2000:])
            trainer.is_running()
            time.sleep(0.05)
        with open(log, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if line.endswith("\n")]
        once = {}
        for row in rows:
            self.assertEqual(once.setdefault(row[0], row), row, "another batch of the same number")
        self.assert_batches(list(once.values()))
        self.assert_account(self.client(fleet, timeout=30), 12)

    def test_two_samplers_at_a_time_have_their_own(self):
        fleet = self.enter(Fleet(slots=8))
        one, two = self.client(fleet, timeout=30), self.client(fleet, timeout=30)
        first = one.sampler("train", tasks(), groups=3, samples=SAMPLES)
        second = two.sampler("other", tasks(), groups=2, samples=2, filter="none", prefix="of-other")
        for number in range(1, 4):
            batch, other = next(first), next(second)
            self.assertEqual((batch.number, other.number), (number, number))
            self.assertEqual([len(batch.groups), len(other.groups)], [3, 2])
            self.assertTrue(all(group.group.startswith("of-other.") for group in other.groups))
        taken = two.sampler("train", tasks(), groups=3, samples=SAMPLES, trainer="another")
        self.assertEqual(next(taken).number, 3)  # the current one, as it was
        with self.assertRaisesRegex(Refused, "not yours since another#[0-9a-f]{8} opened it: one trainer asks at a time"):
            next(first)
        again = one.sampler("train", tasks(), groups=3, samples=SAMPLES, trainer="another")  # a namesake
        self.assertEqual(next(again).number, 3)
        with self.assertRaisesRegex(Refused, "use a stream of your own"):
            next(taken)

    def test_groups_of_others_have_no_task_passed_over(self):
        fleet = self.enter(Fleet(slots=8, settings={"forgotten_max": "1"}))
        fleet.run("sampler", "open", "train", "--groups", "3")
        self.client(fleet, timeout=30).submit([{"task": f"other-{k}", "kind": "noop"} for k in range(100)], stream="train",
                                              samples=2)
        last = 0
        for count in (2, 3):
            with Client(fleet.url, allow_plaintext=True, timeout=30) as client:
                batches = self.batches(client, count)
                last = max(int(group.group.split(".")[1]) for group in batches[-1].groups)
                for number in range(1, last + 1):
                    self.assertTrue(self.is_forgotten(client, f"train.{number}/0") or client.get(f"train.{number}/0"))
        self.assertGreater(last, 11)
        self.assert_account(self.client(fleet, timeout=30), 4)

    def test_a_batch_that_the_operator_let_go_is_named_and_gone_on_after(self):
        fleet = self.enter(Fleet(slots=8, settings={"keep_count": "8"}))
        client = self.client(fleet, timeout=30)
        self.batches(client, 1, groups=2, samples=4, filter="none")
        fleet.wait_for(lambda _: client.sampler_state("train")["ready"] >= 2, 30, "the next batch is ready")
        fleet.wait_for(lambda _: self.is_forgotten(client, "train.1/0"), 30, "the first batch is forgotten")
        with self.assertRaisesRegex(Forgotten, r"^batch 1 of train is no longer whole.*--keep-count.*after=1"):
            self.batches(client, 1, groups=2, samples=4, filter="none")
        self.assertEqual(self.batches(client, 1, groups=2, samples=4, filter="none", after=1)[0].number, 2)

    def is_forgotten(self, client, rollout):
        try:
            client.get(rollout)
        except Forgotten:
            return True
        return False

    def test_a_number_of_another_sampler_is_no_place_to_go_on(self):
        fleet = self.enter(Fleet(slots=8))
        client = self.client(fleet, timeout=30)
        with self.assertRaisesRegex(Refused, "after is 5, and the sampler of train has made no batch yet.*after=0"):
            self.batches(client, 1, after=5)
        self.batches(client, 3, after=0, filter="none")
        for after, words in ((9, "of another sampler"), (1, "too old")):
            with self.assertRaisesRegex(Refused, f"only go on after 2 or 3: the checkpoint is {words}"):
                self.batches(client, 1, after=after, filter="none")

    def test_rollouts_of_a_stream_with_a_sampler_are_refused(self):
        fleet = self.enter(Fleet(slots=8))
        fleet.run("sampler", "open", "train", "--groups", "2")

        async def run(stream):
            async with Rollouts(stream, fleet.url, allow_plaintext=True) as rollouts:
                return len(await rollouts.run({"task": "t", "kind": "noop"}, samples=2))

        with self.assertRaisesRegex(BadArgument, "stream train has a sampler.*read batches with Client.sampler"):
            asyncio.run(run("train"))
        self.assertEqual(asyncio.run(run("other")), 2)
        self.assertEqual(self.client(fleet).sampler_state("train")["submitted"], 0)

    def test_a_group_of_an_old_version_is_in_no_batch(self):
        fleet = Fleet(slots=8)
        fleet.add_engine(script(20))
        self.enter(fleet)
        client = self.client(fleet, timeout=30)
        client.policy_set("step-0")
        batches = client.sampler("train", (chat(number) for number in itertools.count()), groups=2, samples=2,
                                 filter="none", staleness=1)
        for number in range(4):
            batch = next(batches)
            self.assertTrue(all(group.age <= 1 for group in batch.groups), batch.groups)
            self.assertTrue(all(group.tokens > 0 for group in batch.groups))
            client.policy_set(f"step-{number + 1}")
        fleet.wait_for(lambda _: client.sampler_state("train")["ready"] >= 2, 30, "groups of the version before are ready")
        client.policy_set("step-9")
        client.policy_set("step-10")
        client.policy_set("step-11")
        self.assertGreater(client.sampler_state("train")["total"]["stale"], 1)

    def test_a_trainer_of_asyncio_has_the_same(self):
        fleet = self.enter(Fleet(slots=8))

        async def learn():
            async with AsyncClient(fleet.url, allow_plaintext=True, timeout=30) as client:
                rows = []
                async for batch in client.sampler("train", tasks(), groups=3, samples=SAMPLES, pool=200):
                    rows.append(told(batch))
                    if batch.number == 2:
                        break
                return rows, await client.sampler_state("train"), await client.sampler_close("train", cancel=True)

        rows, state, cancelled = asyncio.run(learn())
        self.assert_batches(rows)
        self.assertEqual(state["batch"], 2)
        self.assertGreater(cancelled, 0)

    def test_the_end_of_the_tasks_is_the_end_of_the_batches(self):
        fleet = self.enter(Fleet(slots=8))
        client = self.client(fleet, timeout=30)
        batches = list(client.sampler("train", itertools.islice(tasks(), 9), groups=2, samples=2, filter="none"))
        self.assertEqual([batch.number for batch in batches], [1, 2, 3, 4])  # one of nine groups makes no batch
        self.assertEqual(SLUICE and fleet.run("sampler", "next", "train", check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
