"""Traces of a harness that do not train, in what trainers are given: a title has mask 0 and teaches nothing, wherever it goes."""
import types
import unittest

import python_path  # noqa: F401  before all that it finds
from made import group, rollout, trace

from sluice import Sampling, SluiceError, Turn
from sluice.adapters.parts.generated import generator_output
from sluice.adapters.parts.responses import response_of, verified
from sluice.adapters.parts.rows import rows, token_rows
from sluice.adapters.tasks import is_learnable, only_trace
from sluice.adapters.trl import RolloutFunction
from sluice.advantages import dr_grpo, rewards_of
from sluice.batch import pack, split, to_batch

END = 99


def replied(sampled, label, first_id=1):
    """A trace of a prompt of two tokens and a reply of two, which trains or is masked by its label."""
    one = trace("0011" if sampled else "0000", first_id, label=label)
    one.turns += [Turn(0, 2, "prompt"), Turn(2, 2, "assistant", "stop", masked="" if sampled else label, prompt_tokens=2,
                                             sampling=Sampling(1.0, 1.0, 0.0, 0, 8))]
    return one


def titled(reward=1.0, sample=0):
    """A rollout as most harnesses have it: a title, and the main conversation."""
    one = rollout(reward, [replied(False, "auxiliary"), replied(True, "main", 11)], sample)
    one.logprobs_mode = "raw"
    return one


def masked(reward=1.0, sample=0):
    one = rollout(reward, [replied(False, "auxiliary"), replied(False, "undelivered", 11)], sample)
    one.logprobs_mode = "raw"
    return one


class Titles(unittest.TestCase):
    """A trace with mask 0 beside one that is learned from."""

    def test_a_batch_has_it_with_mask_0_and_advantage_0(self):
        batch = to_batch([group(titled(1.0), titled(0.0, 1))], dr_grpo)
        self.assertEqual(batch["mask"].tolist(), [[0] * 4, [0, 0, 1, 1]] * 2)
        self.assertEqual(batch["advantages"].tolist(), [[0] * 4, [0, 0, .5, .5], [0] * 4, [0, 0, -.5, -.5]])
        packed, = pack([group(titled(1.0), titled(0.0, 1))], 64, dr_grpo)
        self.assertEqual((packed["mask"].sum(), packed["advantages"].sum()), (4, 0))
        self.assertEqual([len(part) for part in split(titled().traces[0])], [4, 0, 0, 0])

    def test_rows_of_prompt_and_response_are_of_the_others_alone(self):
        wanted = ([11, 12], [13, 14], [1, 1], [-0.5, -0.5], "stop", True)
        self.assertEqual([rows(titled(), END), rows(titled(), END, step_wise=True)], [[wanted], [wanted]])
        told = generator_output([titled()], [types.SimpleNamespace(instance_id="a")], END)
        self.assertEqual((told["prompt_token_ids"], told["loss_masks"]), ([[11, 12]], [[1, 1]]))
        self.assertEqual([row["token_ids"] for row in token_rows([titled()], dr_grpo)], [[11, 12, 13, 14]])

    def test_it_is_none_of_the_traces_of_a_trainer_that_takes_one(self):
        self.assertEqual(only_trace(titled()).label, "main")
        item, = response_of(titled())["output"]
        self.assertEqual(item["generation_token_ids"], [13, 14])
        self.assertFalse(verified(titled(), {})["mask_sample"])
        columns = self.trl(titled())
        self.assertEqual((columns["prompt_ids"], columns["completion_ids"], columns["env_mask"]), ([[11, 12]], [[13, 14]], [[1, 1]]))

    def test_a_limit_that_cut_the_main_conversation_cut_no_title_behind_it(self):
        one = rollout(1.0, [replied(True, "main"), replied(True, "auxiliary", 11)])
        one.truncated = True
        self.assertEqual([row.stop_reason for row in rows(one, END, step_wise=True)], ["length", "stop"])

    @staticmethod
    def trl(*trajectories):
        """As GRPOTrainer is given them."""
        function = RolloutFunction(None, [{"task": "t", "prompt": "p", "agent": {"max_traces": 1}}])
        trainer = types.SimpleNamespace(processing_class=types.SimpleNamespace(eos_token_id=END),
                                        args=types.SimpleNamespace(temperature=1.0, top_p=1.0, top_k=0, min_p=0.0))
        return function._columns(list(trajectories), trainer)


class Masked(unittest.TestCase):
    """A rollout whose every trace has mask 0: as one that is not trainable, whatever its reward."""

    def test_its_reward_is_in_no_mean_and_it_is_counted_as_left_out(self):
        batch = to_batch([group(titled(1.0), titled(0.0, 1), masked(1.0, 2))], dr_grpo)
        self.assertEqual((batch.left_out, batch["mask"][4:].sum()), (2, 0))
        self.assertEqual(batch["advantages"].max(), 0.5)
        self.assertEqual(rewards_of([titled(), masked()]), [1.0, None])
        self.assertFalse(is_learnable(masked()))

    def test_a_row_stands_in_for_it_with_loss_mask_0(self):
        self.assertEqual(rows(masked(), END), [([END], [END], [0], [0.0], "abort", True)])
        self.assertEqual(token_rows([masked()], dr_grpo), [])
        ids = [types.SimpleNamespace(instance_id=one) for one in "aa"]
        told = generator_output([titled(0.0), masked()], ids, END)
        self.assertEqual((told["rewards"], told["loss_masks"]), ([0.0, 0.0], [[1, 1], [0]]))

    def test_trl_masks_it_and_refuses_a_batch_of_nothing_else(self):
        with self.assertWarnsRegex(UserWarning, "1 of 2 rollouts may not be learned from"):
            columns = Titles.trl(titled(), masked())
        self.assertEqual((columns["env_mask"], columns["reward"]), ([[1, 1], [0]], [1.0, None]))
        with self.assertRaisesRegex(SluiceError, "none of the 1 rollouts may be learned from"):
            Titles.trl(masked())


if __name__ == "__main__":
    unittest.main()
