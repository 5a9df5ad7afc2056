"""Rollouts as rows of prompt and response, or token by token, rewards that stand in, and SkyRL's GeneratorOutput."""
import types
import unittest

import python_path  # noqa: F401  before all that it finds
from made import rollout, trace

from sluice import BadArgument, Sampling, SluiceError, Turn
from sluice.adapters.parts.generated import generator_output
from sluice.adapters.parts.rows import rows, stand_ins, token_rows
from sluice.advantages import dr_grpo

END = 99


def replied(mask, finish="stop", first_id=1):
    """A trace whose last sampled run ended so."""
    one = trace(mask, first_id)
    one.turns.append(Turn(mask.index("1"), len(mask) - mask.index("1"), "assistant", finish))
    return one


def ids(*instances):
    return [types.SimpleNamespace(instance_id=instance) for instance in instances]


class Rows(unittest.TestCase):
    def test_a_trace_is_cut_at_its_first_sampled_token_and_keeps_what_tools_said_with_mask_0(self):
        row, = rows(rollout(1.0, [replied("001101")]), END)
        self.assertEqual(row, ([1, 2], [3, 4, 5, 6], [1, 1, 0, 1], [-0.5, -0.5, 0.0, -0.5], "stop", True))

    def test_what_is_not_learned_from_is_one_end_token_with_mask_0(self):
        for one in (rollout(None, [replied("01")]), rollout(1.0, [replied("01")], trainable=False), rollout(1.0),
                    rollout(1.0, [trace("00")])):
            self.assertEqual(rows(one, END), [([END], [END], [0], [0.0], "abort", True)])
        row, = rows(rollout(None, [replied("01")]), END, unscored=True)
        self.assertEqual((row.response_ids, row.loss_mask), ([2], [1]))

    def test_several_traces_are_rows_in_a_row_where_they_may_be_and_else_refused(self):
        several = rollout(1.0, [replied("01", "length"), trace("00"), replied("011", first_id=5)])
        told = rows(several, END, step_wise=True)
        self.assertEqual([(row.response_ids, row.stop_reason, row.is_last) for row in told],
                         [([2], "length", False), ([6, 7], "stop", True)])
        with self.assertRaisesRegex(BadArgument, "g/0 has 2 traces .*agent.max_traces to 1"):
            rows(several, END)

    def test_a_limit_on_tokens_between_turns_cuts_the_last_trace(self):
        one = rollout(1.0, [replied("01"), replied("01")])
        one.truncated = True
        self.assertEqual([row.stop_reason for row in rows(one, END, step_wise=True)], ["stop", "length"])


class Rewards(unittest.TestCase):
    def test_what_stands_in_moves_no_mean(self):
        self.assertEqual(stand_ins([1.0, None, 0.5, 0.0], "aaab"), [1.0, 0.75, 0.5, 0.0])
        self.assertEqual(stand_ins([1.0, None, 0.5], "aba"), [1.0, 0.75, 0.5])
        self.assertEqual(stand_ins([None, None], "ab"), [0.0, 0.0])


class Tokens(unittest.TestCase):
    def sampled_at(self, mask, temperature, first_id=1):
        one = replied(mask, first_id=first_id)
        one.turns[-1].sampling = Sampling(temperature, 1.0, 0.0, 0, 8)
        return one

    def test_each_token_has_its_log_probability_its_temperature_and_its_rollouts_advantage(self):
        group = [rollout(1.0, [self.sampled_at("0011", 1.0), trace("00")]), rollout(0.0, [self.sampled_at("01", 0.5)])]
        told = token_rows(group, dr_grpo)
        self.assertEqual(told[0], {"token_ids": [1, 2, 3, 4], "mask": [False, False, True, True],
                                   "logprobs": [0, 0, -0.5, -0.5], "temperatures": [1, 1, 1, 1],
                                   "advantages": [0, 0, 0.5, 0.5]})
        self.assertEqual((told[1]["temperatures"], told[1]["advantages"], len(told)), ([1, 0.5], [0, -0.5], 2))

    def test_what_has_no_reward_is_in_none_and_in_no_mean(self):
        group = [rollout(1.0, [self.sampled_at("01", 1.0)]), rollout(None, [self.sampled_at("01", 1.0)]),
                 rollout(0.0, [self.sampled_at("01", 1.0)], trainable=False)]
        self.assertEqual([row["advantages"] for row in token_rows(group, dr_grpo)], [[0, 0]])

    def test_a_temperature_that_is_not_known_is_refused(self):
        with self.assertRaisesRegex(SluiceError, "g/0 does not say at which temperature"):
            token_rows([rollout(1.0, [replied("01")])], dr_grpo)

    def test_a_filter_is_refused(self):
        one = self.sampled_at("01", 1.0)
        one.turns[-1].sampling.top_p = 0.9
        with self.assertRaisesRegex(BadArgument, "g/0 samples with sampling.top_p 0.9, where the trainer's .* top_p 1"):
            token_rows([rollout(1.0, [one])], dr_grpo)


class Output(unittest.TestCase):
    def made(self, *trajectories, **options):
        return generator_output(trajectories, ids(*"aabb"[:len(trajectories)]), END, **options)

    def test_all_lists_have_an_entry_for_each_row(self):
        told = self.made(rollout(1.0, [replied("01"), replied("01")]), rollout(None), step_wise=True)
        self.assertEqual({len(value) for value in told.values() if isinstance(value, list)}, {3})
        self.assertEqual((told["rewards"], told["is_last_step"]), ([1.0] * 3, [False, True, True]))
        self.assertEqual([one.instance_id for one in told["trajectory_ids"]], ["a", "a", "a"])
        self.assertIsNone(self.made(rollout(1.0, [replied("01")]))["is_last_step"])

    def test_a_rollout_without_a_reward_makes_no_group_of_equal_ones_look_mixed(self):
        told = self.made(rollout(1.0, [replied("01")]), rollout(None, [replied("01")]), rollout(0.0, [replied("01")]))
        self.assertEqual((told["rewards"], told["loss_masks"]), ([1.0, 1.0, 0.0], [[1], [0], [1]]))

    def test_what_was_cut_is_masked_or_gets_nothing_where_skyrl_is_told_so(self):
        two = rollout(1.0, [replied("01", "length")]), rollout(0.5, [replied("01")])
        self.assertEqual(self.made(*two)["loss_masks"], [[1], [1]])
        self.assertEqual(self.made(*two, mask_cut=True)["loss_masks"], [[0], [1]])
        self.assertEqual(self.made(*two, zero_cut=True)["rewards"], [0.0, 0.5])


if __name__ == "__main__":
    unittest.main()
