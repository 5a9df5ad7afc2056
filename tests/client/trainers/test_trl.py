"""sluice.adapters.trl with TRL's own classes, a real service and a real model. Run by tests/trainers.sh."""
# Packages: trl>=1.16,<1.17
# Torch: yes
from __future__ import annotations

import unittest

from service import Service


class Trajectories(unittest.TestCase):
    def test_each_kind_that_a_trainer_may_meet_is_made(self) -> None:
        with Service() as service:
            made = service.make()
        self.assertEqual([(t.sample, len(t.traces), t.trainable, t.reward is None) for t in made.group],
                         [(k, 1, True, False) for k in range(4)])
        self.assertEqual((made.unscored.trainable, made.unscored.reward, len(made.unscored.traces)), (True, None, 1))
        self.assertEqual((made.cancelled.trainable, made.cancelled.reward, made.cancelled.traces), (False, None, []))
        if made.several is not None:
            self.assertEqual(len(made.several.traces), 2)


if __name__ == "__main__":
    unittest.main()
