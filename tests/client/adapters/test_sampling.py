"""A trainer's sampling parameters against a task's, and log-probabilities that cannot be learned from."""
import unittest

import python_path  # noqa: F401  before all that it finds
from made import rollout, trace

from sluice import BadArgument, Sampling, SluiceError, Turn
from sluice.adapters.parts.sampling import asked_of, require_comparable, require_finite, require_ratio, sampled_as

TASK = {"task": "t", "prompt": "1+1?"}


class Asked(unittest.TestCase):
    def test_a_trainers_parameters_become_those_of_a_task(self):
        told = asked_of({"temperature": 0.7, "top_p": 1.0, "top_k": -1, "min_p": None, "max_new_tokens": 64,
                         "stop": None, "repetition_penalty": 1.0, "skip_special_tokens": False},
                        "max_new_tokens", ("skip_special_tokens",))
        self.assertEqual(told, {"temperature": 0.7, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": 64})
        self.assertEqual(asked_of({}, "max_tokens"), {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0})

    def test_what_a_task_has_no_field_for_is_refused_by_name(self):
        for name, value in (("stop", ["\n"]), ("repetition_penalty", 1.1)):
            with self.assertRaisesRegex(BadArgument, f"{name} is .* has no such field") as caught:
                asked_of({"temperature": 1.0, name: value}, "max_tokens")
            self.assertEqual(caught.exception.field, name)

    def test_what_is_no_number_is_refused_by_name(self):
        for said, told in (({"top_k": "5"}, "top_k is '5' in the trainer's"), ({"max_tokens": [8]}, r"max_tokens is \[8\]"),
                           ({"temperature": True}, "temperature is True"), (7, "sampling parameters are 7, where a dict")):
            with self.assertRaisesRegex(BadArgument, told):
                asked_of(said, "max_tokens")
        for said, told in ((["x"], r"the task 't' has the sampling \['x'\], where a dict is wanted"),
                           ({"top_p": "x"}, "top_p is 'x' in the sampling of the task 't'")):
            with self.assertRaisesRegex(BadArgument, told):
                sampled_as({**TASK, "sampling": said}, {"temperature": 1.0, "top_p": 1.0}, "they")

    def test_a_task_is_given_what_it_does_not_say_and_keeps_its_own_bound(self):
        asked = {"temperature": 0.7, "top_k": 0, "max_tokens": 64}
        self.assertEqual(sampled_as(TASK, asked, "they")["sampling"], asked)
        told = sampled_as({**TASK, "sampling": {"temperature": 0.7, "max_tokens": 8}}, asked, "they")
        self.assertEqual(told["sampling"], {"temperature": 0.7, "top_k": 0, "max_tokens": 8})
        self.assertNotIn("sampling", TASK)

    def test_a_task_that_says_otherwise_is_refused_with_both_numbers(self):
        with self.assertRaisesRegex(BadArgument, "the task 't' samples with sampling.temperature 1, where they have "
                                                 "temperature 0.7"):
            sampled_as({**TASK, "sampling": {"temperature": 1}}, {"temperature": 0.7}, "they")


class Logprobs(unittest.TestCase):
    def test_those_that_are_none_and_those_of_another_temperature_are_refused(self):
        one = rollout(1.0)
        require_finite(one, trace("01"))
        with self.assertRaisesRegex(SluiceError, "g/0 has log-probabilities that are not finite"):
            require_finite(one, trace("01", logprob=float("nan")))
        one.logprobs_mode = "raw"
        require_comparable(one, 1.0)
        with self.assertRaisesRegex(SluiceError, "sampled at temperature 0.5 by an engine whose log-prob"):
            require_comparable(one, 0.5)
        one.logprobs_mode = "processed"
        require_comparable(one, 0.5)

    def test_a_trace_is_held_to_both_at_the_temperatures_of_its_own_tokens(self):
        one, of = rollout(1.0), trace("01")
        of.turns.append(Turn(0, 2, "assistant", sampling=Sampling(0.5, 1.0, 0.0, 0, 8)))
        require_ratio(one, of)
        one.logprobs_mode = "raw"
        with self.assertRaisesRegex(SluiceError, "temperature 0.5"):
            require_ratio(one, of)
        of.turns[0].sampling = None
        require_ratio(one, of)


if __name__ == "__main__":
    unittest.main()
