"""sluice.advantages: each number by hand."""
import math
import unittest

import python_path  # noqa: F401  before all that it finds
import made
import numpy as np

from sluice import BadArgument
from sluice import advantages as a

NAN = float("nan")


class Estimators(unittest.TestCase):
    def near(self, found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)

    def test_grpo_is_in_standard_deviations_of_the_group(self):
        # mean 0.5; squares of the differences sum to 1: std is sqrt(1/3) of a sample, 0.5 of a population
        std = math.sqrt(1 / 3)
        self.near(a.grpo([1, 0, 0, 1]).values, [0.5 / (std + 1e-4), -0.5 / (std + 1e-4), -0.5 / (std + 1e-4), 0.5 / (std + 1e-4)])
        self.near(a.grpo([1, 0, 0, 1], epsilon=1e-6).values[:1], [0.5 / (std + 1e-6)])
        self.near(a.grpo([1, 0, 0, 1], ddof=0).values[:2], [0.5 / 0.5001, -0.5 / 0.5001])

    def test_what_has_no_reward_is_in_no_mean_and_has_advantage_0(self):
        # of 3 and 1: mean 2, std sqrt(2)
        for none in (None, NAN):
            told = a.grpo([3, none, 1, none], epsilon=0)
            self.near(told.values, [1 / math.sqrt(2), 0, -1 / math.sqrt(2), 0])
            self.assertEqual((told.scored.tolist(), told.left_out), ([True, False, True, False], 2))
            self.near(a.dr_grpo([3, none, 1, none]).values, [1, 0, -1, 0])
            self.near(a.rloo([3, none, 1, none]).values, [2, 0, -2, 0])
            self.near(a.leave_one_out([3, none, 1, none]), [1, 2, 3, 2])

    def test_one_alone_equal_ones_and_none_have_advantage_0(self):
        for estimate in (a.grpo, a.dr_grpo, a.rloo, lambda rewards: a.grpo(rewards, ddof=0, epsilon=0)):
            for rewards in ([], [None], [None, None], [5], [None, 5], [0.1] * 3):
                told = estimate(rewards)
                self.near(told.values, [0] * len(rewards))
                self.assertEqual(told.left_out, rewards.count(None))

    def test_rloo_and_dr_grpo_by_hand(self):
        self.near(a.dr_grpo([4, 1, 1]).values, [2, -1, -1])
        self.near(a.rloo([4, 1, 1]).values, [3, -1.5, -1.5])
        self.near(a.leave_one_out([4, 1, 1]), [1, 2.5, 2.5])
        self.assertTrue(math.isnan(a.leave_one_out([4])[0]))

    def test_an_infinite_reward_is_refused(self):
        with self.assertRaisesRegex(BadArgument, "rewards wants finite numbers"):
            a.grpo([1, float("inf")])

    def test_rewards_are_of_what_may_be_learned_from(self):
        traces = [made.trace("01")]
        group = [made.rollout(1.0, traces, raw=0.5), made.rollout(0.0, traces, trainable=False), made.rollout(None, traces),
                 made.rollout(1.0)]
        group.append(made.rollout(1.0, [made.trace("00")]))
        self.assertEqual(a.rewards_of(group), [1.0, None, None, None, None])
        self.assertEqual(a.rewards_of(group, raw=True), [0.5, None, None, None, None])


class Dapo(unittest.TestCase):
    def group(self, *rewards):
        return made.group(*(made.rollout(shaped, [made.trace("01")], raw=raw) for shaped, raw in rewards))

    def test_groups_are_kept_by_their_raw_rewards(self):
        mixed = self.group((1, 1), (0, 0))
        wrong_of_two_lengths = self.group((-0.5, 0), (0, 0))
        right_with_equal_shaping = self.group((0.5, 1), (0.5, 0))
        unscored = self.group((None, None), (1, 1))
        kept, dropped = a.dapo_filter([mixed, wrong_of_two_lengths, right_with_equal_shaping, unscored])
        self.assertEqual([id(group) for group in kept], [id(mixed), id(right_with_equal_shaping)])
        self.assertEqual(dropped, {"equal": 1, "unscored": 1})

    def test_the_punishment_of_length_falls_over_the_buffer(self):
        self.assertEqual([a.overlong(tokens, 20480, 4096) for tokens in (0, 16384, 18432, 20480, 30000)], [0, 0, -0.5, -1, -1])
        with self.assertRaisesRegex(BadArgument, "buffer"):
            a.overlong(1, 10, 11)


class Weights(unittest.TestCase):
    mask = np.array([[0, 1, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0]], np.uint8)

    def test_tokens_weigh_the_same_or_rows_do(self):
        np.testing.assert_allclose(a.token_weights(self.mask), self.mask / 4)
        np.testing.assert_allclose(a.token_weights(self.mask, "sequence"),
                                   [[0, 1 / 6, 1 / 6, 1 / 6], [0, 1 / 2, 0, 0], [0, 0, 0, 0]], rtol=1e-6)
        np.testing.assert_allclose(a.token_weights(self.mask, "constant", 10), self.mask / 20)
        np.testing.assert_array_equal(a.token_weights(np.zeros((2, 2))), np.zeros((2, 2)))

    def test_a_way_that_there_is_not_or_that_lacks_its_length_is_refused(self):
        with self.assertRaisesRegex(BadArgument, r"by wants token\|sequence\|constant"):
            a.token_weights(self.mask, "rows")
        with self.assertRaisesRegex(BadArgument, "length wants"):
            a.token_weights(self.mask, "constant")


class OffPolicy(unittest.TestCase):
    mask = np.array([[0, 1, 1], [1, 1, 1]], np.uint8)
    sampled = np.log(np.array([[1, 0.1, 0.5], [0.5, 0.5, 0.5]], np.float32))
    now = np.log(np.array([[0.2, 0.6, 0.1], [0.5, 0.75, 0.5]], np.float32))  # ratios 6, 0.2 and 1, 1.5, 1

    def each(self, function):
        found = function(self.now, self.sampled, self.mask)
        try:
            import torch
        except ImportError:
            return found
        tensors = [torch.from_numpy(values) for values in (self.now, self.sampled, self.mask)]
        tensors[0].requires_grad_(True)
        same = function(*tensors)
        self.assertFalse(same.requires_grad)
        np.testing.assert_allclose(same.numpy(), found, rtol=1e-5)
        return found

    def test_tis_caps_the_ratio(self):
        np.testing.assert_allclose(self.each(a.tis), [[0, 2, 0.2], [1, 1.5, 1]], rtol=1e-5)
        np.testing.assert_allclose(a.tis(self.now, self.sampled, self.mask, cap=1.25), [[0, 1.25, 0.2], [1, 1.25, 1]], rtol=1e-5)

    def test_icepop_leaves_out_what_is_outside(self):
        np.testing.assert_allclose(self.each(a.icepop), [[0, 0, 0], [1, 1.5, 1]], rtol=1e-5)
        np.testing.assert_allclose(a.icepop(self.now, self.sampled, self.mask, 0.1, 7), [[0, 6, 0.2], [1, 1.5, 1]], rtol=1e-5)

    def test_a_sequence_is_left_out_whole_and_else_has_its_products_weight(self):
        np.testing.assert_allclose(self.each(a.sequence_mask), [[0, 1.2, 1.2], [1.5] * 3], rtol=1e-5)
        np.testing.assert_allclose(a.sequence_mask(self.now, self.sampled, self.mask, cap=1.3), [[0, 1.2, 1.2], [0] * 3], rtol=1e-5)

    def test_what_is_far_apart_is_finite(self):
        far = np.array([[1000.0, -1000.0]])
        for function in (a.tis, a.icepop, a.sequence_mask):
            self.assertTrue(np.isfinite(function(far, -far, np.ones((1, 2)))).all())


if __name__ == "__main__":
    unittest.main()
