"""kill -9 of anything while rollouts run: every accepted rollout ends exactly once. And the judge can say no."""
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import BINARY, PYTHON, SOURCE, Service, check_trajectories  # noqa: E402

CHAOS = os.path.join(SOURCE, "tests", "chaos")
sys.path.append(CHAOS)
import plan  # noqa: E402
import verdict  # noqa: E402

GROUPS, SAMPLES = 40, 4


def slow_tasks():
    """Real sandboxes, real shells, no engine: each stage takes long enough to be hit."""
    return [{"task": f"slow-{k}", "agent": {"kind": "none"}, "files": [{"path": "number", "text": str(k)}],
             "setup": ["sleep 0.1; echo ready >state"],
             "eval": {"kind": "command", "command": f"sleep 0.1; grep -qx {k} number && grep -qx ready state"}}
            for k in range(GROUPS)]


class Chaos(unittest.TestCase):
    def storm(self, *options):
        done = subprocess.run([PYTHON, os.path.join(CHAOS, "chaos.py"), "--build", BINARY, *options], text=True,
                              stdout=subprocess.PIPE, timeout=400)
        self.assertEqual(done.returncode, 0, done.stdout)
        return json.loads(done.stdout)

    def test_a_short_storm_over_everybody_loses_nothing(self):
        seed = os.environ.get("SLUICE_SEED", "11")
        told = self.storm("--seed", seed, "--minutes", os.environ.get("SLUICE_CHAOS_MINUTES", "0.5"))
        self.assertGreater(sum(told["kills"].values()), 5)
        self.assertGreater(told["read"], 100)

    def test_what_sluice_up_supervises_survives_kills_of_every_process(self):
        dice = random.Random(int(os.environ.get("SLUICE_SEED", "3")))
        targets = [("sluice-worker", "init"), ("sluice-worker", "run"), ("sluice-worker", "eval"),
                   ("sluice-broker", None)]
        with Service(init=2, run=2, evaluate=2) as service:
            waiting, out = service.submit(slow_tasks(), "chaos", samples=SAMPLES, wait=False)
            for _ in range(len(targets) * 2):
                time.sleep(dice.uniform(0.3, 1.0))
                if waiting.poll() is not None:
                    break
                service.kill(*dice.choice(targets))
            trajectories = service.finish(waiting, out)
            check_trajectories(self, trajectories, GROUPS, SAMPLES)
            for t in trajectories:
                self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), t)


class Decisions(unittest.TestCase):
    NAMES = ["broker", "init-1", "run-1", "run-2", "eval-1", "trainer-1", "engine", "node-1", "store", "disk"]

    def decide(self, seed):
        steps = plan.decide(seed, self.NAMES, list(plan.HARMS), 0.5)
        return [str(step) for step in itertools.islice(steps, 400)]

    def test_the_same_seed_decides_the_same_and_another_does_not(self):
        self.assertEqual(self.decide(1), self.decide(1))
        self.assertNotEqual(self.decide(1), self.decide(2))

    def test_every_harm_and_every_target_comes(self):
        said = " ".join(self.decide(5))
        for word in [*plan.HARMS, *self.NAMES]:
            self.assertIn(word, said)


class Judge(unittest.TestCase):
    """The verdict on accounts that are wrong in one way each."""

    GOOD = [[1, "s-0-noop/0", "ok", 1.0, True, 0], [2, "s-0-noop/1", "ok", 1.0, True, 0],
            [3, "s-1-killed/0", "task", None, False, 0]]

    def judge(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "accepted"), "w", encoding="utf-8") as file:
                file.write("s-0-noop 2\ns-1-killed 1\n")
            with open(os.path.join(folder, "log"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            found = verdict.Verdict()
            verdict.judge_stream(found, "s", folder)
            return set(found.counts)

    def with_row(self, place, **changes):
        names = ("seq", "rollout", "outcome", "reward", "trainable")
        rows = [list(row) for row in self.GOOD]
        for name, value in changes.items():
            rows[place][names.index(name)] = value
        return rows

    def test_a_good_account_passes(self):
        self.assertEqual(self.judge(self.GOOD), set())

    def test_what_is_lost_doubled_unasked_or_out_of_order_is_found(self):
        self.assertEqual(self.judge(self.GOOD[:2]), {"lost"})
        self.assertEqual(self.judge(self.GOOD + [[4, "s-0-noop/1", "ok", 1.0, True, 0]]), {"twice"})
        self.assertEqual(self.judge(self.GOOD + [[4, "s-7-noop/0", "ok", 1.0, True, 0]]), {"unasked"})
        self.assertEqual(self.judge(self.with_row(1, seq=5)), {"numbers"})

    def test_a_wrong_end_is_found(self):
        for changes in ({"reward": 0.0}, {"outcome": "infra", "reward": None, "trainable": False}, {"trainable": False}):
            self.assertEqual(self.judge(self.with_row(0, **changes)), {"ends"}, changes)

    def test_a_reward_from_an_evaluator_that_failed_is_found(self):
        self.assertEqual(self.judge(self.with_row(2, outcome="ok", reward=0.0, trainable=True)), {"ends"})


if __name__ == "__main__":
    unittest.main()
