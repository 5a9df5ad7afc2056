"""A rollout as NeMo RL reads it: one message a sampled turn, each behind all tokens before it."""
import unittest

import python_path  # noqa: F401  before all that it finds
import numpy as np

from sluice import BadArgument, Message, SluiceError, Trace, Trajectory, Turn
from sluice.adapters.parts.responses import verified

TRACE = Trace(np.arange(10, 18, dtype="u4"), np.array([0, 0, 1, 1, 0, 0, 1, 1], dtype="u1"),
              np.array([0, 0, -1, -2, 0, 0, -3, -4], dtype="f4"),
              [Turn(0, 2, "prompt"), Turn(2, 2, "assistant", "stop"), Turn(4, 2, "user"), Turn(6, 2, "assistant", "stop")], "")


def made(**more):
    fields = {"stream": "s", "seq": 1, "rollout": "g/0", "group": "g", "task": "t", "sample": 0, "attempt": 1, "outcome": "ok",
              "trainable": True, "wait_ms": 0, "init_ms": 0, "run_ms": 0, "eval_ms": 0, "ended_ms": 5000, "reward": 0.5,
              "traces": [TRACE], "messages": [Message("user", "a"), Message("assistant", "b", sampled=True), Message("user", "c"),
                                              Message("assistant", "d", sampled=True)]}
    return Trajectory(**{**fields, **more})


class Responses(unittest.TestCase):
    def test_each_sampled_turn_has_its_ids_its_log_probabilities_its_text_and_all_that_was_before(self):
        told = verified(made(), {"input": []})
        self.assertEqual([(item["prompt_token_ids"], item["generation_token_ids"], item["generation_log_probs"],
                           item["content"][0]["text"]) for item in told["response"]["output"]],
                         [([10, 11], [12, 13], [-1, -2], "b"), ([10, 11, 12, 13, 14, 15], [16, 17], [-3, -4], "d")])
        self.assertEqual((told["reward"], told["mask_sample"], told["responses_create_params"]), (0.5, False, {"input": []}))

    def test_what_cannot_be_learned_from_is_masked_and_says_why(self):
        for more, kind in (({"reward": None}, "sluice:no_reward"), ({"trainable": False, "outcome": "infra"}, "sluice:infra")):
            told = verified(made(**more), {})
            self.assertEqual((told["mask_sample"], told["reward"], told["failure_kind"]), (True, 0.0, kind))

    def test_several_traces_and_a_trace_without_a_sampled_token_are_refused(self):
        with self.assertRaisesRegex(BadArgument, "agent.max_traces"):
            verified(made(traces=[TRACE, TRACE]), {})
        given = Trace(TRACE.token_ids[:2], TRACE.mask[:2], TRACE.logprobs[:2], TRACE.turns[:1], "")
        with self.assertRaisesRegex(BadArgument, "g/0 has no sampled token"):
            verified(made(traces=[given]), {})

    def test_log_probabilities_to_learn_from_that_cannot_be_compared_are_refused(self):
        logprobs = TRACE.logprobs.copy()
        logprobs[3] = np.nan
        broken = Trace(TRACE.token_ids, TRACE.mask, logprobs, TRACE.turns, "")
        with self.assertRaisesRegex(SluiceError, "g/0 has log-probabilities that are not finite"):
            verified(made(traces=[broken]), {})
        self.assertTrue(verified(made(traces=[broken], reward=None), {})["mask_sample"])


if __name__ == "__main__":
    unittest.main()
