"""The parts of client/learn that need no torch: its tasks, its metrics and its picture. client/learn.sh runs all of it."""
import itertools
import json
import os
import sys
import tempfile
import unittest
import xml.dom.minidom

SOURCE = os.environ.get("SLUICE_SOURCE_DIR") or os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path += [os.path.join(SOURCE, "client", "learn"), os.path.join(SOURCE, "client", "python")]

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
