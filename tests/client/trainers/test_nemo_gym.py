"""What sluice.adapters.nemo_gym answers, by NeMo Gym's own response classes, a real service and a real model. Run by tests/trainers.sh.

NeMo Gym wants Python 3.13.14, and its servers ray. What they answer with is defined in its openai_utils.py, which is imported here
without the servers' module; the agent server itself runs where Gym does.
"""
# Packages: git+https://github.com/NVIDIA-NeMo/Gym@07d6b0d07 openai<=2.7.2 pydantic pydantic-core annotated-types typing-extensions typing-inspection httpx httpcore h11 anyio sniffio idna certifi distro jiter tqdm
# Options: --no-deps --ignore-requires-python
# Python: 3.11
from __future__ import annotations

import importlib.machinery
import os
import sys
import types
import unittest

root = next(path for path in sys.path if os.path.isdir(os.path.join(path, "nemo_gym")))
package = sys.modules["nemo_gym"] = types.ModuleType("nemo_gym")
package.__path__ = [os.path.join(root, "nemo_gym")]
package.__spec__ = importlib.machinery.ModuleSpec("nemo_gym", None, is_package=True)
servers = sys.modules["nemo_gym.server_utils"] = types.ModuleType("nemo_gym.server_utils")
for name in ("_GLOBAL_AIOHTTP_CLIENT_REQUEST_DEBUG", "MAX_NUM_TRIES", "ClientResponse", "get_response_json", "raise_for_status",
             "request"):
    setattr(servers, name, object)

from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseOutputMessageForTraining  # noqa: E402
from service import Service  # noqa: E402

from sluice.adapters.parts.responses import verified  # noqa: E402
from sluice.errors import BadArgument  # noqa: E402


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        with Service() as service:
            cls.made = service.make()
            cls.turns, = service.run({"task": "turns", "prompt": "Say hello.", "agent": {"kind": "bash", "max_turns": 3},
                                      "sampling": {"temperature": 1.0, "max_tokens": 200}, "eval": {"kind": "none"}})

    def items(self, trajectory) -> list:
        """The output as Gym reads it."""
        response = NeMoGymResponse.model_validate(verified(trajectory, {"input": []})["response"])
        self.assertEqual({type(item) for item in response.output}, {NeMoGymResponseOutputMessageForTraining})
        return response.output

    def test_each_sampled_turn_is_a_message_with_its_tokens_behind_all_that_was_before(self) -> None:
        for trajectory in [*self.made.group, *([self.turns] if len(self.turns.traces) == 1 else [])]:
            trace, seen = trajectory.traces[0], []
            for item in self.items(trajectory):
                self.assertEqual(item.prompt_token_ids[:len(seen)], seen)  # what NeMo RL asserts
                self.assertEqual(len(item.generation_token_ids), len(item.generation_log_probs))
                seen = item.prompt_token_ids + item.generation_token_ids
            self.assertEqual(seen, trace.token_ids[:len(seen)].tolist())
            self.assertEqual(sum(len(item.generation_token_ids) for item in self.items(trajectory)), int(trace.mask.sum()))

    def test_a_reward_is_the_rollouts_and_one_without_is_masked_and_says_why(self) -> None:
        for trajectory in self.made.group:
            told = verified(trajectory, {})
            self.assertEqual((told["reward"], told["mask_sample"], "failure_kind" in told), (trajectory.reward, False, False))
        told = verified(self.made.unscored, {})
        self.assertEqual((told["mask_sample"], told["failure_kind"]), (True, "sluice:no_reward"))

    def test_several_traces_and_none_are_refused_by_name(self) -> None:
        with self.assertRaisesRegex(BadArgument, "cancelled-group/0 has no tokens"):
            verified(self.made.cancelled, {})
        if self.made.several is not None and len(self.made.several.traces) > 1:
            with self.assertRaisesRegex(BadArgument, "agent.max_traces"):
                verified(self.made.several, {})


if __name__ == "__main__":
    unittest.main()
