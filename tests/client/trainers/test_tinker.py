"""sluice.adapters.tinker with Tinker's own classes, a real service and a real model. Run by tests/trainers.sh.

The service of Tinker wants a key, so its sampler here is a class of the test's that answers with Tinker's own SampleResponse.
"""
# Packages: tinker>=0.22,<0.39
# Python: 3.11
from __future__ import annotations

import asyncio
import unittest

import numpy as np
import tinker
from service import Service

from sluice.adapters.tinker import Sampler, data, datum
from sluice.bridge.sampled import Rules, sample


class Client:
    """Answers as tinker.SamplingClient does."""

    def __init__(self, tokens, stop_reason="stop") -> None:
        self.asked, self.tokens, self.stop_reason = [], tokens, stop_reason

    async def sample_async(self, prompt, num_samples, sampling_params):
        self.asked.append((prompt.to_ints(), num_samples, sampling_params))
        sequence = tinker.types.SampledSequence(stop_reason=self.stop_reason, sequence_id="s", tokens_np=np.array(self.tokens, dtype="i4"),
                                                logprobs_np=np.full(len(self.tokens), -0.5, dtype="f4"))
        return tinker.types.SampleResponse(sequences=[sequence])

    async def compute_logprobs_async(self, prompt):
        return [None] + [-1.0] * (prompt.length - 1)


class Datums(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        with Service() as service:
            cls.made = service.make()

    def test_a_datum_has_the_traces_tokens_and_log_probabilities_shifted_by_one(self) -> None:
        for trajectory in self.made.group:
            trace, = trajectory.traces
            made = datum(trace, -1.5)
            told = {name: values.to_numpy() for name, values in made.loss_fn_inputs.items()}
            self.assertEqual(made.model_input.to_ints(), trace.token_ids[:-1].tolist())
            self.assertEqual({name: (values.dtype, values.shape) for name, values in told.items()}, {
                "target_tokens": (np.int64, (len(trace.mask) - 1,)), "logprobs": (np.float32, (len(trace.mask) - 1,)),
                "advantages": (np.float32, (len(trace.mask) - 1,))})
            self.assertEqual(told["target_tokens"].tolist(), trace.token_ids[1:].tolist())
            self.assertEqual(told["logprobs"].tolist(), trace.logprobs[1:].tolist())
            self.assertEqual(told["advantages"].tolist(), (-1.5 * trace.mask[1:].astype("f4")).tolist())
            self.assertTrue((told["logprobs"][told["advantages"] != 0] < 0).all())

    def test_each_trace_of_a_rollout_is_a_datum_of_its_advantage(self) -> None:
        self.assertEqual(len(data((trajectory, 1.0) for trajectory in self.made.group)), 4)
        if self.made.several is not None:
            made = data([(self.made.several, 0.5)])
            self.assertEqual([datum.model_input.length + 1 for datum in made],
                             [len(trace.token_ids) for trace in self.made.several.traces])

    def test_what_cannot_be_learned_from_is_refused_by_name(self) -> None:
        with self.assertRaisesRegex(ValueError, "cancelled-group/0 is not trainable"):
            data([(self.made.cancelled, 1.0)])
        with self.assertRaisesRegex(ValueError, "not finite"):
            datum(self.made.group[0].traces[0], float("nan"))


class Sampling(unittest.TestCase):
    ASKED = {"max_tokens": 5, "temperature": 0.7, "top_p": 0.9, "top_k": -1, "min_p": 0.0, "stop_token_ids": [2], "seed": 3}

    def test_its_sampler_is_asked_for_ids_and_its_answer_is_what_a_bridge_takes(self) -> None:
        client = Client([7, 8, 2])
        turn = asyncio.run(sample(Sampler(client, "step-1"), [1, 5], self.ASKED, Rules(100, None)))
        (ids, count, params), = client.asked
        self.assertEqual((ids, count, params.max_tokens, params.temperature, params.top_p, params.top_k, list(params.stop),
                          params.seed), ([1, 5], 1, 5, 0.7, 0.9, -1, [2], 3))
        self.assertEqual((turn.ids, turn.logprobs, turn.finish, turn.spans), ([7, 8, 2], [-0.5] * 3, "stop", [("step-1", 0, 3)]))

    def test_a_call_ends_with_the_client_and_the_version_that_it_began_with(self) -> None:
        first, then = Client([7, 2]), Client([8, 2])
        sampler, answer = Sampler(first, "step-1"), first.sample_async

        async def update_meanwhile(**asked):
            sampler.set(then, "step-2")
            return await answer(**asked)
        first.sample_async = update_meanwhile
        got = [asyncio.run(sampler([1], self.ASKED)) for _ in range(2)]
        self.assertEqual([(one.ids, one.version) for one in got], [([7, 2], "step-1"), ([8, 2], "step-2")])

    def test_settings_that_tinker_has_not_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "min_p"):
            asyncio.run(Sampler(Client([2]))([1], dict(self.ASKED, min_p=0.1)))

    def test_a_prompt_is_scored_without_its_first_token(self) -> None:
        self.assertEqual(asyncio.run(Sampler(Client([2])).score([1, 2, 3])), [-1.0, -1.0])


if __name__ == "__main__":
    unittest.main()
