"""The parts of client/learn: its tasks, its metrics, its picture and, where torch is, its step. client/learn.sh runs all of it."""
import itertools
import json
import math
import os
import sys
import tempfile
import types
import unittest
import xml.dom.minidom

SOURCE = os.environ.get("SLUICE_SOURCE_DIR") or os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path += [os.path.join(SOURCE, "client", "learn"), os.path.join(SOURCE, "client", "python"),
             os.path.join(SOURCE, "tests", "client", "adapters")]

import curve  # noqa: E402
from learn_tasks import Tasks  # noqa: E402



def names(tasks):
    return [task["task"] for task in tasks]


class Learning(unittest.TestCase):
    def test_tasks_are_the_same_whenever_a_trainer_starts(self):
        first, again, other = (names(itertools.islice(Tasks(seed), 200)) for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_what_is_held_out_is_never_trained_on(self):
        tasks = Tasks(0)
        held_out, trained = set(names(tasks.held_out)), set(names(itertools.islice(tasks, 3000)))
        self.assertEqual((len(held_out), len(tasks.held_out)), (24, 24))
        self.assertGreater(len(trained), 80)
        self.assertFalse(held_out & trained)

    def test_a_step_is_the_token_mean_of_the_clipped_gains(self):
        try:
            import torch
            from learn import with_advantages
            from policy import Policy
        except ImportError as missing:
            self.skipTest(str(missing))
        from made import group, rollout, trace

        class Bigrams(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.nn.Parameter(torch.linspace(-1, 1, 64).reshape(8, 8).sin())

            def forward(self, ids, logits_to_keep):
                return types.SimpleNamespace(logits=self.table[ids][:, -logits_to_keep:])

        policy = Policy.__new__(Policy)
        policy.model = Bigrams()
        policy.trained = dict(policy.model.named_parameters())
        policy.optimizer = torch.optim.SGD(policy.trained.values(), lr=0.1)
        groups = [group(rollout(1.0, [trace("0011", logprob=-2.5)]), rollout(0.0, [trace("01011", 2, logprob=-1.5)]),
                        rollout(None, [trace("01")]), rollout(1.0, [trace("01")], trainable=False)),
                  group(rollout(0.5, [trace("001", 3)]), rollout(0.0, [trace("011", 1)]), rollout(0.0, [trace("011", 1)]))]
        logs = torch.log_softmax(policy.model.table.detach().double(), -1)
        gains, apart = [], []
        for rewards, one in (((1.0, 0.0), groups[0]), ((0.5, 0.0, 0.0), groups[1])):
            mean = sum(rewards) / len(rewards)
            std = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards))
            for reward, told in zip(rewards, one.trajectories):
                ids, mask, old = (values.tolist() for values in (told.traces[0].token_ids, told.traces[0].mask,
                                                                 told.traces[0].logprobs))
                for k in (k for k, sampled in enumerate(mask) if sampled):
                    apart.append(float(logs[ids[k - 1], ids[k]]) - old[k])
                    r, advantage = math.exp(apart[-1]), (reward - mean) / (std + 1e-4)
                    gains.append(min(r * advantage, min(max(r, 0.8), 1.28) * advantage))
        told = policy.step([with_advantages(one) for one in groups])
        self.assertEqual(told["tokens"], 10)
        self.assertAlmostEqual(told["loss"], -sum(gains) / 10, places=5)
        self.assertAlmostEqual(told["difference"], sum(map(abs, apart)) / 10, places=5)
        self.assertAlmostEqual(told["ratio"], sum(map(math.exp, apart)) / 10, places=5)
        self.assertGreater(told["gradient"], 0.01)

    def test_a_step_that_is_done_again_is_told_once(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "metrics.jsonl"), "w", encoding="utf-8") as file:
                file.write('{"step": 1, "reward": 0.5}\n{"step": 2, "reward": 0.6}\n{"step": 3, "rew')  # killed in the third
            metrics = curve.Metrics(folder, 1)
            self.assertEqual(metrics.rows, [{"step": 1, "reward": 0.5}])
            row = {"step": 2, "reward": 0.75, "rollouts": 8, "difference": 1e-5, "ratio": 1.0, "sample_s": 1.0,
                   "train_s": 1.0, "update_s": 1.0}
            metrics.add(row)
            with open(metrics.path, encoding="utf-8") as file:
                self.assertEqual([json.loads(line)["reward"] for line in file], [0.5, 0.75])

    def test_the_picture_has_a_point_a_step_in_each_of_two_curves(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "learn.svg")
            curve.draw(path, [{"reward": 0.1 * k, "ratio": 1.0} for k in range(8)], [[0, 0.4], [8, 0.8]])
            picture = xml.dom.minidom.parse(path)
        self.assertEqual(len(picture.getElementsByTagName("circle")), 16)
        self.assertEqual([len(line.getAttribute("points").split()) for line in picture.getElementsByTagName("polyline")], [8, 8])


if __name__ == "__main__":
    unittest.main()
