"""sluice.adapters.verl with verl's own AgentLoopWorker, DataProto and TransferQueue, a real service and a real model.

Run by tests/trainers.sh. verl's LLM servers want GPUs: its clients of them are verl's own, the server is one of the
test's that asks llama-server.
"""
# Packages: verl>=0.9,<0.10 TransferQueue>=0.1.10,<0.2 transformers>=5.5.3,<5.11,!=5.6.0 tokenizers>=0.22,<=0.23.0
# Packages: huggingface_hub<2 httpx httpcore sniffio ray tensordict>=0.10,<0.11 pyvers hydra-core omegaconf
# Packages: antlr4-python3-runtime==4.9.3 codetiming protobuf orjson cloudpickle importlib_metadata jsonschema
# Packages: jsonschema-specifications referencing rpds-py attrs datasets dill pandas pyarrow multiprocess xxhash
# Packages: python-dateutil six pytz tzdata torchdata msgspec peft pillow cachetools uvicorn fastapi starlette
# Packages: opentelemetry-api aiohttp multidict yarl propcache aiohappyeyeballs aiosignal frozenlist
# Packages: prometheus_client
# Options: --no-deps
# Python: 3.11
# Torch: yes
from __future__ import annotations

import asyncio
import copy
import dataclasses
import importlib
import unittest
import unittest.mock
import warnings

import numpy as np
import torch
from service import SAMPLING, copy_task
from verl_case import PROMPT, RESPONSE, Case, Server, batch_of, configuration, with_loop
from verl_queue import Queue  # noqa: F401  of V1

import sluice
from sluice import SluiceError
from sluice.adapters import verl as adapter
from sluice.adapters.verl import mapping as verl_outputs
from sluice.adapters.parts.shared import shared
from sluice.adapters.verl.mapping import Lengths, outputs, task_for
from sluice.adapters.verl.runs import PROCESS, Options
from sluice.advantages import grpo
from sluice.errors import BadArgument
from sluice.trajectory import Column
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, AgentLoopWorker
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import AdvantageEstimator
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.trainer.ppo.reward import extract_reward
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient

LENGTHS = Lengths(PROMPT, RESPONSE)


class Outputs(Case):
    def test_a_rollout_becomes_verls_output_of_its_tokens_mask_log_probabilities_and_reward(self) -> None:
        for trajectory in self.made.group:
            (told,), (trace,) = outputs(trajectory, LENGTHS), trajectory.traces
            self.assertIsInstance(told, AgentLoopOutput)
            begin = trace.mask.tolist().index(1)
            self.assertEqual(told.prompt_ids, trace.token_ids[:begin].tolist())
            self.assertEqual(told.response_ids, trace.token_ids[begin:].tolist())
            fields = told.as_dict()  # verl's own tensors
            self.assertEqual(fields["response_mask"].tolist(), trace.mask[begin:].tolist())
            self.assertTrue(torch.equal(fields["rollout_log_probs"], torch.tensor(trace.logprobs[begin:])))
            scores = fields["rm_scores"].tolist()
            self.assertEqual((sum(scores), scores[-1], fields["num_turns"]), (trajectory.reward, trajectory.reward, 2))
            extra = fields["extra_fields"]
            self.assertEqual([extra[name] for name in ("min_global_steps", "max_global_steps", "sluice_rollout")],
                             [7, 7, trajectory.rollout])

    def test_what_has_no_reward_has_no_score_and_what_cannot_be_learned_from_is_an_error(self) -> None:
        told, = outputs(self.made.unscored, LENGTHS)
        self.assertIsNone(told.reward_score)
        self.assertNotIn("rm_scores", told.as_dict())
        with self.assertRaisesRegex(SluiceError, f"{self.made.cancelled.rollout} is not trainable .cancelled"):
            outputs(self.made.cancelled, LENGTHS)
        with self.assertRaisesRegex(SluiceError, "has no sampled token"):
            outputs(dataclasses.replace(self.made.group[0], traces=[]), LENGTHS)

    def test_several_traces_are_an_output_each_with_the_rollouts_reward(self) -> None:
        if self.made.several is None or not self.made.several.trainable:
            self.skipTest("this machine makes no sandboxes")
        told = outputs(self.made.several, Lengths(2048, 2048))
        self.assertEqual([len(one.prompt_ids) + len(one.response_ids) for one in told],
                         [len(trace.token_ids) for trace in self.made.several.traces])
        self.assertEqual({one.reward_score for one in told}, {self.made.several.reward})

    def test_what_is_longer_than_a_row_is_cut_and_warned_of_or_refused(self) -> None:
        trajectory = self.made.group[0]
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            told, = outputs(trajectory, Lengths(PROMPT, 3))
        self.assertEqual([len(told.response_ids), len(told.response_mask), len(told.response_logprobs)], [3] * 3)
        self.assertIn("are cut off: raise data.max_response_length", str(warned[0].message))
        with self.assertRaisesRegex(SluiceError, "have room for 5: raise data.max_prompt_length"):
            outputs(trajectory, Lengths(5, RESPONSE))

    def test_log_probabilities_that_would_bias_the_ratio_are_refused_and_none_given_where_none_are_wanted(self) -> None:
        trajectory = self.made.group[0]
        trace = trajectory.traces[0]
        hot = copy.deepcopy(trace)
        for turn in hot.turns:
            if turn.sampling is not None:
                turn.sampling.temperature = 0.7
        with self.assertRaisesRegex(SluiceError, "at temperature 0.7 by an engine whose log-prob.* those at 1"):
            outputs(dataclasses.replace(trajectory, traces=[hot]), dataclasses.replace(LENGTHS, temperature=0.7))
        wrong = trace.logprobs.copy()
        wrong[-1] = float("nan")
        broken = dataclasses.replace(trajectory, traces=[dataclasses.replace(trace, logprobs=wrong)])
        with self.assertRaisesRegex(SluiceError, "log-probabilities that are not finite"):
            outputs(broken, LENGTHS)
        self.assertIsNone(outputs(broken, dataclasses.replace(LENGTHS, logprobs=False))[0].response_logprobs)

    def test_routed_experts_are_of_all_tokens_and_are_missed_by_name(self) -> None:
        trajectory = self.made.group[0]
        trace, = trajectory.traces
        values = np.ones((len(trace.token_ids) - 1, 2, 3), dtype=np.uint8)
        routed = dataclasses.replace(trace, columns={"routed_experts": Column("routed_experts", 0, values)})
        told, = outputs(dataclasses.replace(trajectory, traces=[routed]), dataclasses.replace(LENGTHS, routed=True))
        self.assertEqual(told.routed_experts.shape, (len(trace.token_ids), 2, 3))
        self.assertEqual(told.routed_experts.dtype, np.int16)
        self.assertEqual(told.as_dict()["routed_experts"].sum().item(), values.sum())
        with self.assertRaisesRegex(SluiceError, "has no routed experts"):
            outputs(trajectory, dataclasses.replace(LENGTHS, routed=True))

    def test_a_version_of_verl_that_is_not_known_is_named(self) -> None:
        with unittest.mock.patch("importlib.metadata.version", lambda package: "0.10.0"), \
                self.assertRaisesRegex(ImportError, "wants verl>=0.9,<0.10; 0.10.0 is installed"):
            importlib.reload(verl_outputs)

    def test_verl_says_how_is_sampled_and_how_long_a_context_may_be(self) -> None:
        told = task_for(copy_task("a", limits={"context_tokens": 9999, "run_s": 60}),
                        {"temperature": 0.5, "top_p": 0.9, "top_k": -1}, LENGTHS)
        self.assertEqual(told["sampling"], {**SAMPLING, "max_tokens": 12, "temperature": 0.5, "top_p": 0.9, "top_k": 0})
        self.assertEqual(told["limits"], {"context_tokens": PROMPT + RESPONSE, "run_s": 60})
        with self.assertRaisesRegex(BadArgument, "no option 'steam'; it has stream, broker"):
            Options.of({"steam": "a"})


class Loop(Case):
    def worker(self, **entry) -> AgentLoopWorker:
        """verl's own, as a plain object."""
        return AgentLoopWorker(with_loop(self.service, **entry), None)

    def generate(self, worker: AgentLoopWorker, batch: DataProto, stream: str = "verl") -> DataProto:
        async def main():
            try:
                return await worker.generate_sequences(batch)
            finally:
                await shared(("verl", stream, self.service.url), lambda: None).close()
        return asyncio.run(asyncio.wait_for(main(), 100))

    def test_verls_worker_makes_rows_of_rollouts(self) -> None:
        told = self.generate(self.worker(), batch_of([copy_task("river"), copy_task("stone")], 2))
        self.assert_rows(told, 4)
        self.assertEqual(len(set(told.non_tensor_batch["sluice_rollout"])), 4)
        self.assertEqual(told.non_tensor_batch["min_global_steps"].tolist(), [7] * 4)
        self.assertEqual(told.meta_info["reward_extra_keys"], ["raw_reward", "truncated"])

    def test_a_rollout_that_cannot_be_learned_from_is_begun_again_and_is_then_an_error(self) -> None:
        worker = self.worker(stream="again", tries=2)
        with self.assertRaisesRegex(SluiceError, "cannot be learned from, nor could those before it"):
            self.generate(worker, batch_of([{"task": "nothing", "kind": "noop"}]), "again")
        streams = [t for t in self.service.client.trajectories(f"again.{PROCESS}", until_idle=True)]
        self.assertLessEqual(len(streams), 2)

    def test_an_option_that_is_unknown_is_named(self) -> None:
        with self.assertRaisesRegex(Exception, "no option 'steam'"):
            asyncio.run(self.worker(steam="a").generate_sequences(batch_of([copy_task("river")])))


class Manager(Case):
    """With a service that has no engine but verl's."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.client = cls.enterClassContext(sluice.local(slots=4))

    def manager(self, client_class=LLMServerClient, **more):
        config = configuration(self.service.folder, f"+sluice.broker={self.client.url}",
                               *(f"+sluice.{name}={value}" for name, value in more.items()))
        self.server = Server(self.service.engine.url)
        manager = adapter.SluiceAgentLoopManager.create(config=config, llm_client=client_class(config, self.server))
        self.addCleanup(manager.close)
        return manager

    def test_rows_of_one_uid_are_a_group_that_verls_servers_sample_and_its_trainer_learns_from(self) -> None:
        prompts = batch_of([copy_task("river"), copy_task("stone")], 4)
        told = self.manager().generate_sequences(prompts)
        self.assert_rows(told, 8)
        self.assertGreaterEqual(self.server.calls, 8)
        groups = [rollout.partition("/")[0] for rollout in told.non_tensor_batch["sluice_rollout"]]
        self.assertEqual((set(groups[:4]), set(groups[4:])), ({groups[0]}, {groups[4]}))
        self.assertNotEqual(groups[0], groups[4])
        self.assertIn("agent_loop/slowest/generate_sequences", told.meta_info["timing"])
        self.assertEqual(told.non_tensor_batch["max_global_steps"].tolist(), [7] * 8)
        self.learn(prompts, told)

    def learn(self, prompts: DataProto, told: DataProto) -> None:
        """As verl's v0 trainer does with them, up to the advantages."""
        told.meta_info.pop("timing")
        batch = prompts.union(told)
        scores, extra = extract_reward(batch)
        self.assertEqual(sorted(extra), ["raw_reward", "truncated"])
        batch.batch["token_level_scores"] = batch.batch["token_level_rewards"] = scores
        batch = compute_advantage(batch, AdvantageEstimator.GRPO, num_repeat=4)
        mask, advantages = batch.batch["response_mask"], batch.batch["advantages"]
        self.assertTrue((advantages[mask == 0] == 0).all())
        ours = [grpo(scores.sum(1).tolist()[k:k + 4], epsilon=1e-6) for k in (0, 4)]
        for row, wanted in enumerate([value for group in ours for value in group.values]):
            first = int(mask[row].argmax())
            self.assertAlmostEqual(advantages[row, first].item(), wanted, places=3)

    def test_an_update_of_the_weights_within_a_call_keeps_its_tokens_with_the_version_of_each(self) -> None:
        manager = self.manager(FullyAsyncLLMServerClient)
        self.server.aborts = 1
        told = manager.generate_sequences(batch_of([copy_task("river")], 1))
        self.assert_rows(told, 1)
        self.assertEqual([told.non_tensor_batch[name][0] for name in ("min_global_steps", "max_global_steps")], [7, 8])

    def test_validation_samples_as_verl_says_it(self) -> None:
        manager = self.manager()
        told = manager.generate_sequences(batch_of([copy_task("river")], 2, validate=True))
        self.assertEqual(len({tuple(row) for row in told.batch["responses"].tolist()}), 1)  # greedy
        self.assertEqual(manager.sampling(True)["temperature"], 0)

    def test_an_error_of_one_group_ends_the_call_and_the_other_groups(self) -> None:
        manager = self.manager(tries=1)
        with self.assertRaisesRegex(SluiceError, "cannot be learned from"):
            manager.generate_sequences(batch_of([copy_task("river"), {"task": "nothing", "kind": "noop"}]))

    def test_a_batch_in_which_some_have_rewards_and_some_have_none_is_refused(self) -> None:
        with self.assertRaisesRegex(BadArgument, "wants them of all or of none: give each task an eval.kind"):
            self.manager().generate_sequences(batch_of([copy_task("river"), copy_task("stone", eval={"kind": "none"})]))

    def test_engines_of_the_broker_want_no_client_of_verls_and_verls_engine_does(self) -> None:
        manager = self.manager(lambda config, server: None)
        with self.assertRaisesRegex(BadArgument, "set engine to broker"):
            manager.generate_sequences(batch_of([copy_task("river")]))


if __name__ == "__main__":
    unittest.main()
