"""sluice.adapters.areal with AReaL's own RolloutWorkflow, a real service and a real model. Run by tests/trainers.sh.

The package imports its launchers and GPU platforms when it is imported, so here its modules are imported without that.
"""
# Packages: areal>=1.0,<1.1
# Options: --no-deps
# Python: 3.11
# Torch: yes
from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
import types
import unittest

root = next(path for path in sys.path if os.path.isdir(os.path.join(path, "areal")))
for name in ("areal", "areal.api"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [os.path.join(root, *name.split("."))]
    sys.modules[name].__spec__ = __import__("importlib.machinery").machinery.ModuleSpec(name, None, is_package=True)

import torch  # noqa: E402
from areal.api.workflow_api import RolloutWorkflow  # noqa: E402
from service import Service, copy_task  # noqa: E402

from sluice.adapters.areal import SluiceWorkflow, tensors, version_number  # noqa: E402
from sluice.adapters.parts.shared import shared_rollouts  # noqa: E402
from sluice.errors import BadArgument  # noqa: E402

DTYPES = {"input_ids": torch.int32, "loss_mask": torch.int32, "logprobs": torch.float32, "versions": torch.int32,
          "attention_mask": torch.bool}


class Episodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service().__enter__()
        cls.addClassCleanup(cls.service.__exit__)
        with cls.service.client.updating("step-7"):  # with a pause, so that no turn is without it
            pass
        cls.made = cls.service.make()

    def assert_tensors(self, told) -> None:
        self.assertEqual({name: values.dtype for name, values in told.items()}, {**DTYPES, "rewards": torch.float32})
        count = told["input_ids"].shape[1]
        self.assertEqual({values.shape for name, values in told.items() if name in DTYPES}, {(1, count)})
        self.assertEqual(told["rewards"].shape, (1,))
        self.assertEqual(told["versions"].tolist(), torch.where(told["loss_mask"] == 1, 7, -1).tolist())

    def test_a_rollout_becomes_tensors_of_its_tokens_with_the_version_of_each(self) -> None:
        for trajectory in self.made.group:
            told, (trace,) = tensors(trajectory), trajectory.traces
            self.assert_tensors(told)
            self.assertEqual(told["input_ids"][0].tolist(), trace.token_ids.tolist())
            self.assertEqual(told["logprobs"][0].tolist(), trace.logprobs.tolist())
            self.assertEqual(told["rewards"].item(), trajectory.reward)

    def test_what_is_not_learned_from_is_none(self) -> None:
        self.assertIsNone(tensors(self.made.unscored))
        self.assertIsNone(tensors(self.made.cancelled))

    def test_several_traces_and_versions_without_a_number_are_refused_by_name(self) -> None:
        if self.made.several is not None and self.made.several.trainable:
            with self.assertRaisesRegex(BadArgument, "agent.max_traces"):
                tensors(self.made.several)
        trace, = self.made.group[0].traces
        unnamed = dataclasses.replace(trace, turns=[dataclasses.replace(turn, version="") for turn in trace.turns])
        with self.assertRaisesRegex(ValueError, "policy_set"):
            tensors(dataclasses.replace(self.made.group[0], traces=[unnamed]))
        self.assertEqual((version_number("step-8+step-7"), version_number("12")), (7, 12))

    def test_episodes_are_rollouts_at_once(self) -> None:
        workflow = SluiceWorkflow("episodes", self.service.url)
        self.assertIsInstance(workflow, RolloutWorkflow)

        async def main():
            told = await asyncio.gather(*(workflow.arun_episode(None, {"task": copy_task("stone")}) for _ in range(4)))
            await shared_rollouts("episodes", self.service.url, {}).close()
            return told
        for told in asyncio.run(asyncio.wait_for(main(), 60)):
            self.assert_tensors(told)


if __name__ == "__main__":
    unittest.main()
