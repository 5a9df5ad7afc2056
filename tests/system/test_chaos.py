"""kill -9 of any worker and of the broker while rollouts run: every accepted rollout ends exactly once."""
import os
import random
import time
import unittest

from harness import Service, check_trajectories

GROUPS, SAMPLES = 60, 4


def slow_tasks():
    """Real sandboxes, real shells, no engine: each stage takes long enough to be hit."""
    return [{"task": f"slow-{k}", "agent": {"kind": "none"}, "files": [{"path": "number", "text": str(k)}],
             "setup": ["sleep 0.1; echo ready >state"],
             "eval": {"kind": "command", "command": f"sleep 0.1; grep -qx {k} number && grep -qx ready state"}}
            for k in range(GROUPS)]


class Chaos(unittest.TestCase):
    def hurt(self, targets, seed):
        dice = random.Random(seed)
        print(f"seed {seed}", flush=True)
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

    def test_workers_of_every_stage_die(self):
        self.hurt([("sluice-worker", "init"), ("sluice-worker", "run"), ("sluice-worker", "eval")],
                  int(os.environ.get("SLUICE_SEED", "1")))

    def test_the_broker_dies(self):
        self.hurt([("sluice-broker", None)] * 3, int(os.environ.get("SLUICE_SEED", "2")))

    def test_all_of_them_die(self):
        self.hurt([("sluice-worker", "init"), ("sluice-worker", "run"), ("sluice-worker", "eval"),
                   ("sluice-broker", None)], int(os.environ.get("SLUICE_SEED", "3")))


if __name__ == "__main__":
    unittest.main()
