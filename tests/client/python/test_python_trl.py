"""What sluice.adapters.trl does without TRL: which task a row is, which rows are a group, and what it says is missing.
tests/client/trainers/test_trl.py has the rest."""
import types
import unittest

import numpy as np
import python_world  # noqa: F401
from sluice import BadArgument  # noqa: E402
from sluice.adapters import trl as adapter  # noqa: E402
from sluice.adapters.parts.responses import output_items  # noqa: E402
from sluice.adapters.trl_async import WeightTransfer  # noqa: E402
from sluice.trajectory import Turn  # noqa: E402


def chat(word):
    return {"task": word, "messages": [{"role": "user", "content": word}], "agent": {"kind": "chat"}}


class Rows(unittest.TestCase):
    def pieces(self, tasks, words, copies):
        prompts = [[{"role": "user", "content": word, "tool_calls": None}] for word in words]  # as a data set has made it
        return [(piece.task["task"], piece.samples) for piece in adapter.RolloutFunction(None, tasks)._pieces(prompts, copies)]

    def test_copies_in_a_row_are_a_group_and_the_same_prompt_twice_is_two(self):
        tasks = [chat("a"), chat("b")]
        self.assertEqual(self.pieces(tasks, "aaaabbbb", 4), [("a", 4), ("b", 4)])
        self.assertEqual(self.pieces(tasks, "aaaaaaaa", 4), [("a", 4), ("a", 4)])
        self.assertEqual(self.pieces(tasks, "aabbbb", 4), [("a", 2), ("b", 4)])  # a process's part of the batch

    def test_a_prompt_that_no_task_has_is_named(self):
        with self.assertRaisesRegex(BadArgument, "none has the prompt .*'c'"):
            self.pieces([chat("a")], "c", 1)

    def test_rows_are_messages_or_prompts(self):
        task = {"task": "t", "prompt": "Do it.", "agent": {"kind": "bash", "max_traces": 1}}
        self.assertEqual(adapter.rows([chat("a"), task]), [{"prompt": chat("a")["messages"]}, {"prompt": "Do it."}])

    def test_a_task_of_several_traces_is_refused(self):
        with self.assertRaisesRegex(BadArgument, "'t' may make several traces .*set agent.max_traces to 1"):
            adapter.RolloutFunction(None, [{"task": "t", "prompt": "Do it.", "agent": {"kind": "bash"}}])


class Unread(unittest.TestCase):
    def test_a_reply_that_nobody_read_is_no_generation(self):
        turns = [Turn(0, 2, "prompt"), Turn(2, 2, "assistant"), Turn(4, 1, "assistant")]
        trace = types.SimpleNamespace(turns=turns, mask=np.array([0, 0, 1, 1, 0]), token_ids=np.arange(5), logprobs=np.zeros(5), messages=[])
        t = types.SimpleNamespace(traces=[trace], messages=[], rollout="a/0", detail="")
        self.assertEqual([item["generation_token_ids"] for item in output_items(t)], [[2, 3]])


class Without(unittest.TestCase):
    def test_trl_that_is_missing_is_named_with_its_versions(self):
        with self.assertRaisesRegex(ImportError, "wants trl>=1.16,<1.17, which is not installed: pip install"):
            adapter.SluiceGRPOTrainer
        with self.assertRaisesRegex(AttributeError, "no attribute 'Other'"):
            adapter.Other

    def test_a_version_of_the_policy_has_a_number_only_where_it_is_ones_own(self):
        transfer = WeightTransfer(list)
        name = transfer.name
        self.assertEqual([transfer.number_of(version) for version in (f"{name}-7", f"{name}-8+{name}-7", "trl-0-7", "")],
                         [7, 7, None, None])


if __name__ == "__main__":
    unittest.main()
