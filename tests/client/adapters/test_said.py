"""What was said in each trace of a rollout, as trainers are told it: a sub-agent's steps tell of nothing else."""
import unittest

import python_path  # noqa: F401  before all that it finds
import numpy as np
from made import rollout

from sluice import Message, Trace, Turn
from sluice.adapters.parts.responses import response_of
from sluice.adapters.parts.said import conversations, replies_in, said_in, texts
from sluice.adapters.trl_async import _conversation

SYSTEM, ASKED, TITLED = Message("system", "You title."), Message("user", "a title"), Message("assistant", "A title", sampled=True)
USER, FIRST, MORE = Message("user", "do it"), Message("assistant", "I look.", sampled=True), Message("tool", "it is there")
SECOND, OTHER = Message("assistant", "Done.", sampled=True), Message("user", "another way")
BRANCHED, NOTE = Message("assistant", "So.", sampled=True), Message("note", "it printed this")
ALL = [SYSTEM, ASKED, TITLED, USER, FIRST, MORE, SECOND, OTHER, BRANCHED, NOTE]


def trace(roles, messages, trains=True):
    """Each turn has two tokens."""
    turns = [Turn(2 * k, 2, role) for k, role in enumerate(roles)]
    mask = np.repeat([int(trains and role == "assistant") for role in roles], 2).astype(np.uint8)
    return Trace(np.arange(len(mask), dtype=np.uint32), mask, mask * np.float32(-1), turns, "", messages=messages)


def harness():
    """A title that does not train, the main conversation, and another turn behind its first reply."""
    one = rollout(1.0, [trace(["prompt", "assistant"], [SYSTEM, ASKED, TITLED], trains=False),
                        trace(["prompt", "assistant", "tool", "assistant"], [USER, FIRST, MORE, SECOND]),
                        trace(["prompt", "user", "assistant"], [USER, FIRST, OTHER, BRANCHED])])
    one.messages = ALL
    return one


def contents(messages):
    return [message["content"] for message in messages]


class Harness(unittest.TestCase):
    def test_each_reply_ends_the_conversation_of_its_own_trace(self):
        one = harness()
        told = [{offset: contents(said) for offset, said in conversations(one, trace).items()} for trace in one.traces]
        self.assertEqual(told, [{2: ["You title.", "a title", "A title"]},
                                {2: ["do it", "I look."], 6: ["do it", "I look.", "it is there", "Done."]},
                                {4: ["do it", "I look.", "another way", "So."]}])

    def test_a_branch_says_its_own_replies_and_has_the_others_in_its_prompt(self):
        one = harness()
        self.assertEqual([texts(one, trace) for trace in one.traces], [{2: "A title"}, {2: "I look.", 6: "Done."}, {4: "So."}])
        self.assertEqual([list(map(contents, _conversation(one, trace))) for trace in one.traces],
                         [[["You title.", "a title"], ["A title"]], [["do it"], ["I look.", "it is there", "Done."]],
                          [["do it", "I look.", "another way"], ["So."]]])

    def test_a_title_beside_the_one_trace_that_trains_is_none_of_its_replies(self):
        one = harness()
        del one.traces[2]
        self.assertEqual([item["content"][0]["text"] for item in response_of(one)["output"]], ["I look.", "Done."])


class Others(unittest.TestCase):
    """Agents that do not tell what was said in which trace: the record has their replies in a row."""

    def one(self, messages):
        one = rollout(1.0, [trace(["prompt", "assistant", "user", "assistant"], []), trace(["prompt", "assistant"], [])])
        one.messages = messages
        return one

    def test_the_replies_of_all_traces_are_told_in_a_row(self):
        one = self.one([USER, FIRST, MORE, SECOND, OTHER, BRANCHED, NOTE])
        self.assertEqual([list(texts(one, trace).values()) for trace in one.traces], [["I look.", "Done."], ["So."]])
        self.assertEqual(contents(conversations(one, one.traces[1])[2]), ["do it", "I look.", "it is there", "Done.", "another way", "So."])
        self.assertEqual(_conversation(one, one.traces[0])[0], [{"role": "user", "content": "do it"}])

    def test_where_replies_and_turns_do_not_agree_nothing_is_told_of_them(self):
        one = self.one([USER, FIRST])
        self.assertEqual([replies_in(one, trace) for trace in one.traces], [[], []])
        self.assertEqual(conversations(one, one.traces[0]), {})
        self.assertEqual(_conversation(one, one.traces[0]), ([{"role": "user", "content": "do it"}, {"role": "assistant", "content": "I look."}], []))

    def test_notes_are_no_part_of_what_was_said(self):
        self.assertNotIn(NOTE, said_in(self.one(ALL), trace(["prompt"], [])))


if __name__ == "__main__":
    unittest.main()
