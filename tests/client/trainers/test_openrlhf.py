"""sluice.adapters.openrlhf with OpenRLHF's own executor and Experience, a real service and a real model. Run by tests/trainers.sh.

OpenRLHF's sample generator imports ray and vllm, which are not installed for a test without a GPU: they are empty modules here, and
the LLM actor is one of the test's that asks llama-server.
"""
# Packages: openrlhf>=0.11,<0.12 aiohttp aiohappyeyeballs aiosignal attrs frozenlist multidict propcache yarl pylatexenc tqdm
# Options: --no-deps
# Torch: yes
from __future__ import annotations

import asyncio
import json
import os
import sys
import types
import unittest
import urllib.request

for name, members in (("ray", {"remote": lambda *given, **_: given[0] if given else (lambda made: made), "ObjectRef": object}),
                      ("vllm", {"SamplingParams": lambda **asked: types.SimpleNamespace(**asked)})):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(members)
engines = sys.modules["openrlhf.trainer.ray.vllm_engine"] = types.ModuleType("openrlhf.trainer.ray.vllm_engine")
engines.batch_vllm_engine_call = None

import torch  # noqa: E402
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator  # noqa: E402
from openrlhf.utils.agent import AgentExecutorBase  # noqa: E402
from service import Service, copy_task  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

import sluice  # noqa: E402
from sluice import SluiceError  # noqa: E402
from sluice.adapters.openrlhf import SluiceAgentExecutor, response  # noqa: E402
from sluice.errors import BadArgument  # noqa: E402


class Actor:
    """Answers as OpenRLHF's LLM actor does, by llama-server's ids."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def generate(self, ids, asked):
        body = {"prompt": ids, "n_predict": asked.max_tokens, "return_tokens": True, "n_probs": 1, "temperature": asked.temperature,
                "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": getattr(asked, "seed", -1)}
        request = urllib.request.Request(self.url + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
        told = json.loads(await asyncio.to_thread(lambda: urllib.request.urlopen(request).read()))
        logprobs = [{place["id"]: types.SimpleNamespace(logprob=place["logprob"])} for place in told["completion_probabilities"]]
        finish = "stop" if told["stop_type"] == "eos" else "length"
        return types.SimpleNamespace(outputs=[types.SimpleNamespace(token_ids=told["tokens"], logprobs=logprobs, finish_reason=finish)])


class Executions(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service().__enter__()
        cls.addClassCleanup(cls.service.__exit__)
        cls.made = cls.service.make()

    def assert_experience(self, told, trace) -> None:
        experience = SamplesGenerator._process_response_into_experience(None, told, max_len=2048)
        self.assertEqual(experience.sequences[0].tolist(), trace.token_ids.tolist())
        self.assertEqual(experience.action_mask[0].tolist(), trace.mask[1:].tolist())
        self.assertTrue(torch.equal(experience.rollout_log_probs[0], torch.tensor(trace.logprobs[1:])))
        self.assertEqual(experience.rewards.tolist(), [told["reward"]])

    def test_a_rollout_becomes_the_experience_of_its_tokens_mask_log_probabilities_and_reward(self) -> None:
        for trajectory in self.made.group:
            self.assert_experience(response(trajectory, "p", "l"), trajectory.traces[0])

    def test_what_cannot_be_learned_from_is_an_error_by_name_and_never_a_reward_of_0(self) -> None:
        for trajectory in (self.made.unscored, self.made.cancelled):
            with self.assertRaisesRegex(SluiceError, f"{trajectory.rollout} has no reward to learn from"):
                response(trajectory, "p", "l")
        if self.made.several is not None and self.made.several.trainable:
            with self.assertRaisesRegex(BadArgument, "agent.max_traces"):
                response(self.made.several, "p", "l")

    def test_executions_are_rollouts_sampled_by_the_trainers_own_actor(self) -> None:
        folder, file = os.path.split(os.environ["SLUICE_MODEL"])
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
        with sluice.local(slots=4) as client:
            class AgentExecutor(SluiceAgentExecutor):
                stream, broker = "agents", client.url
            self.assertTrue(issubclass(AgentExecutor, AgentExecutorBase))

            async def main():
                executor = AgentExecutor()
                label = json.dumps(copy_task("river"))
                told = await asyncio.gather(*(executor.execute("p", label, None, 1024, tokenizer, Actor(self.service.engine.url))
                                              for _ in range(3)))
                await (await executor._started).close()
                await executor._bridge.__aexit__(None)
                return told
            told = asyncio.run(asyncio.wait_for(main(), 100))
        for one in told:
            (start, end), = one["action_ranges"]
            self.assertEqual(end, len(one["observation_tokens"]))
            self.assertIn(one["reward"], (0.0, 1.0))
            self.assertTrue(all(logprob < 0 for logprob in one["rollout_log_probs"][start:end]))


if __name__ == "__main__":
    unittest.main()
