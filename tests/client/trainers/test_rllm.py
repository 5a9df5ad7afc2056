"""sluice.adapters.rllm with rLLM's own Episode and Workflow, a real service and a real model. Run by tests/trainers.sh."""
# Packages: git+https://github.com/rllm-org/rllm@9beb6e0f pydantic pydantic-core annotated-types typing-extensions typing-inspection
# Options: --no-deps
# Python: 3.11
# Torch: yes
from __future__ import annotations

import asyncio
import unittest

from rllm.types import Episode
from rllm.workflows.workflow import TerminationReason, Workflow
from service import Service, copy_task

from sluice.adapters.rllm import SluiceWorkflow, episode
from sluice.adapters.parts.shared import shared_rollouts
from sluice.errors import SluiceError


class Episodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service().__enter__()
        cls.addClassCleanup(cls.service.__exit__)
        with cls.service.client.updating("step-7"):  # with a pause, so that no turn is without it
            pass
        cls.made = cls.service.make()

    def test_each_turn_becomes_a_step_of_the_sampled_ids_behind_all_that_was_before(self) -> None:
        for trajectory in self.made.group:
            told, (trace,) = episode(trajectory, "copy:0", {"k": 1}), trajectory.traces
            made, = told.trajectories
            step, = made.steps
            self.assertEqual(step.prompt_ids + step.response_ids, trace.token_ids.tolist())
            self.assertEqual(step.logprobs, trace.logprobs[trace.mask == 1].tolist())
            self.assertEqual((step.weight_version, made.reward, step.reward), (7, trajectory.reward, trajectory.reward))
            self.assertEqual((told.task_id, told.rollout_idx, told.task, told.is_correct),
                             ("copy", "0", {"k": 1}, trajectory.reward == 1))
            self.assertEqual(step.chat_completions[-1], {"role": "assistant", "content": trajectory.messages[-1].content})
            self.assertIn(told.termination_reason, (TerminationReason.ENV_DONE, TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED))

    def test_several_traces_become_steps_of_their_own(self) -> None:
        if self.made.several is None or not self.made.several.trainable:
            self.skipTest("this machine makes no sandboxes")
        made, = episode(self.made.several, "story:0", {}).trajectories
        self.assertEqual([len(step.prompt_ids) + len(step.response_ids) for step in made.steps],
                         [len(trace.token_ids) for trace in self.made.several.traces])

    def test_what_cannot_be_learned_from_is_an_error_by_name_and_never_a_reward_of_0(self) -> None:
        for trajectory in (self.made.unscored, self.made.cancelled):
            with self.assertRaisesRegex(SluiceError, f"{trajectory.rollout} has no reward to learn from"):
                episode(trajectory, "a:0", {})

    def test_workflows_run_rollouts_at_once_and_rllm_handles_their_errors(self) -> None:
        async def main():
            flows = [SluiceWorkflow(None, None, stream="flows", broker=self.service.url) for _ in range(3)]
            self.assertIsInstance(flows[0], Workflow)
            rows = [{"task": copy_task("stone")}, {"task": copy_task("river")}, {"task": copy_task("moon", eval={"kind": "none"})}]
            for k, (flow, row) in enumerate(zip(flows, rows)):
                flow.reset(task=row, uid=f"row:{k}")  # as its engine does before each try
            told = await asyncio.gather(*(flow.run_with_termination_handling(task=row, uid=f"row:{k}")
                                          for k, (flow, row) in enumerate(zip(flows, rows))))
            await shared_rollouts("flows", self.service.url, {}).close()
            return told
        first, second, failed = asyncio.run(asyncio.wait_for(main(), 60))
        for told in (first, second):
            self.assertIsInstance(told, Episode)
            self.assertIsNotNone(told.trajectories[0].reward)
        self.assertEqual((failed.termination_reason, failed.trajectories), (TerminationReason.ERROR, []))


if __name__ == "__main__":
    unittest.main()
