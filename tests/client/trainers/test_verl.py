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
import os
import time
import unittest
import unittest.mock
import warnings

os.environ["RAY_AUTH_MODE"] = "disabled"

import numpy as np
import ray
import torch
import transfer_queue
from omegaconf import OmegaConf
from service import SAMPLING, copy_task
from verl_case import PROMPT, RESPONSE, Case, Server, batch_of, columns_of, configuration

import sluice
from sluice import SluiceError
from sluice.adapters import verl as adapter
from sluice.adapters import verl_outputs
from sluice.adapters.shared import shared
from sluice.adapters.verl_outputs import Lengths, outputs, task_for
from sluice.adapters.verl_runs import PROCESS, Options
from sluice.adapters.verl_sampler import SluiceReplayBuffer
from sluice.adapters.verl_v1 import SluiceAgentLoopManagerTQ, Worker
from sluice.advantages import grpo
from sluice.errors import BadArgument
from sluice.trajectory import Column
from verl.experimental.agent_loop.agent_loop import AgentLoopManager, AgentLoopOutput, AgentLoopWorker
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import AdvantageEstimator
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.trainer.ppo.reward import extract_reward
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from verl.utils import tensordict_utils
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient

LENGTHS = Lengths(PROMPT, RESPONSE)
AGENT = "actor_rollout_ref.rollout.agent"


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


def with_loop(service, *more: str, **entry):
    """verl's configuration with our agent loop, of a file, on the broker's engines."""
    path = os.path.join(service.folder, "loops.yaml")
    OmegaConf.save(OmegaConf.create([{"name": "sluice", "_target_": "sluice.adapters.verl.SluiceAgentLoop",
                                      "broker": service.url, "engine": "broker", **entry}]), path)
    return configuration(service.folder, f"{AGENT}.agent_loop_config_path={path}", f"{AGENT}.default_agent_loop=sluice",
                         *more)


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


class Queue(Case):
    """verl's TransferQueue, and a service that has no engine but verl's."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.client = cls.enterClassContext(sluice.local(slots=4))
        ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, object_store_memory=80 << 20)
        cls.addClassCleanup(ray.shutdown)
        transfer_queue.init(OmegaConf.create({"backend": {"SimpleStorage": {"num_data_storage_units": 1}}}))
        cls.addClassCleanup(transfer_queue.close)

    def manager(self, **more):
        config = configuration(self.service.folder, f"+sluice.broker={self.client.url}",
                               "trainer.v1.trainer_mode=separate_async",
                               *(f"+sluice.{name}={value}" for name, value in more.items()))
        self.server = Server(self.service.engine.url)
        llm_client = FullyAsyncLLMServerClient(config, self.server)
        manager = SluiceAgentLoopManagerTQ.create(config=config, llm_client=llm_client)
        self.addCleanup(manager.close)
        return manager

    def submit(self, manager, tasks, is_validation=False):
        """As verl's V1 trainer gives a batch. Its prompts' uids."""
        columns = columns_of(tasks)
        batch = tensordict_utils.get_tensordict(columns)
        tensordict_utils.assign_non_tensor_data(batch, "global_steps", 8)
        if is_validation:
            tensordict_utils.assign_non_tensor_data(batch, "validate", True)
        transfer_queue.kv_batch_put(keys=columns["uid"], partition_id="val" if is_validation else "train",
                                    tags=[{"is_prompt": True, "status": "pending", "global_steps": 8} for _ in tasks])
        manager.generate_sequences(batch)
        return columns["uid"]

    def buffer(self, kind=ReplayBuffer, mode="sync", refill=None, **rule):
        return kind(mode, OmegaConf.create({}), 8, "drop", OmegaConf.create(rule), poll_interval=0.1, refill_fn=refill)

    def ended(self, uid, partition="train"):
        """The prompt's tag, once it has a terminal status."""
        end = time.monotonic() + 100
        while time.monotonic() < end:
            tag = transfer_queue.kv_list(partition)[partition][uid]
            if tag["status"] in ("finished", "failure"):
                return tag["status"]
            time.sleep(0.05)
        self.fail(f"{uid} is still {tag}")

    def clear(self, partition="train"):
        keys = list((transfer_queue.kv_list(partition) or {}).get(partition, {}))
        if keys:
            transfer_queue.kv_clear(keys=keys, partition_id=partition)

    def learn(self, meta, count) -> None:
        """As verl's V1 trainer does with a batch, up to the advantages."""
        self.assertEqual(len(meta.keys), count)
        for tag in meta.tags:
            self.assertEqual((tag["status"], tag["global_steps"], tag["min_global_steps"], tag["max_global_steps"]),
                             ("success", 8, 7, 7))
            self.assertEqual(tag["seq_len"], tag["prompt_len"] + tag["response_len"])
        names = ["uid", "prompts", "responses", "input_ids", "position_ids", "response_mask", "loss_mask", "rm_scores",
                 "rollout_log_probs", "num_turns", "extra_fields", "data_source"]
        data = transfer_queue.kv_batch_get(keys=meta.keys, partition_id=meta.partition_id, select_fields=names)
        for row in range(count):
            tag = meta.tags[row]
            for name, size, dtype in (
                    ("prompts", "prompt_len", torch.int64), ("responses", "response_len", torch.int64),
                    ("input_ids", "seq_len", torch.int64), ("response_mask", "response_len", torch.int64),
                    ("rm_scores", "response_len", torch.float32),
                    ("rollout_log_probs", "response_len", torch.float32)):
                self.assertEqual((tuple(data[name][row].shape), data[name][row].dtype), ((tag[size],), dtype), name)
            prompt, response = data["prompts"][row].tolist(), data["responses"][row].tolist()
            self.assertEqual(data["input_ids"][row].tolist(), prompt + response)
        few = transfer_queue.kv_batch_get(keys=meta.keys, partition_id=meta.partition_id,
                                          select_fields=["uid", "response_mask", "rm_scores"])
        batch = DataProto(batch=few.to_padded_tensor())
        batch.non_tensor_batch["uid"] = np.array(batch.batch.pop("uid").tolist(), dtype=object)
        batch.batch["token_level_rewards"] = batch.batch["token_level_scores"] = batch.batch["rm_scores"]
        batch = compute_advantage_for_multi_trajectories(batch, meta.keys, AdvantageEstimator.GRPO)
        rewards = batch.batch["rm_scores"].sum(1).tolist()
        for uid in set(batch.non_tensor_batch["uid"]):
            rows = [row for row in range(count) if batch.non_tensor_batch["uid"][row] == uid]
            wanted = grpo([rewards[row] for row in rows], epsilon=1e-6).values
            first = [int(batch.batch["response_mask"][row].argmax()) for row in rows]
            told = [batch.batch["advantages"][row, at].item() for row, at in zip(rows, first)]
            np.testing.assert_allclose(told, wanted, atol=1e-3)

    def test_groups_come_into_verls_queue_and_its_replay_buffer_samples_them(self) -> None:
        manager = self.manager()
        uids = self.submit(manager, [copy_task("river"), copy_task("stone")])
        meta, _ = self.buffer().sample(8, "train", 2)
        self.assertEqual({key.split("_")[0] for key in meta.keys}, set(uids))
        self.assertEqual({int(key.split("_")[1]) for key in meta.keys}, {0, 1, 2, 3})
        self.learn(meta, 8)
        self.clear()

    def test_an_update_of_the_weights_is_in_the_tags_that_verl_reckons_staleness_by(self) -> None:
        manager = self.manager()
        self.server.aborts = 1
        self.submit(manager, [copy_task("river")])
        meta, _ = self.buffer().sample(9, "train", 1)
        steps = [(tag["min_global_steps"], tag["max_global_steps"]) for tag in meta.tags]
        self.assertIn((7, 8), steps)
        self.assertLessEqual(set(steps), {(7, 7), (7, 8), (8, 8)})
        self.clear()

    def test_a_group_with_a_rollout_that_cannot_be_learned_from_fails_and_nothing_of_that_is_put(self) -> None:
        manager = self.manager(tries=1)
        uid, = self.submit(manager, [{"task": "nothing", "kind": "noop"}])
        self.assertEqual(self.ended(uid), "failure")
        self.assertEqual(list(transfer_queue.kv_list("train")["train"]), [uid])
        with self.assertRaisesRegex(RuntimeError, "no materializable trajectories"):
            self.buffer().sample(8, "train", 1)
        self.clear()

    def test_a_rollout_that_is_left_out_leaves_the_others_of_its_group(self) -> None:
        manager = self.manager()
        prompt = {name: values[0] for name, values in columns_of([copy_task("river")]).items()}
        steps = manager.worker.put({**prompt, "global_steps": 8}, [*self.made.group[:3], self.made.cancelled], False)
        self.assertFalse(manager.thread.run(steps))
        keys = list(transfer_queue.kv_list("train")["train"])
        self.assertEqual(sorted(keys), [f"{prompt['uid']}_{session}_0" for session in range(3)])
        self.clear()

    def test_several_traces_are_outputs_of_one_session(self) -> None:
        if self.made.several is None or not self.made.several.trainable:
            self.skipTest("this machine makes no sandboxes")
        manager = self.manager()
        manager.runs.lengths = Lengths(2048, 2048)
        prompt = {name: values[0] for name, values in columns_of([copy_task("river")]).items()}
        steps = manager.worker.put({**prompt, "global_steps": 8}, [self.made.several], False)
        self.assertTrue(manager.thread.run(steps))
        tags = transfer_queue.kv_list("train")["train"]
        self.assertEqual(sorted(tags), [f"{prompt['uid']}_0_{place}" for place in range(len(self.made.several.traces))])
        self.assertEqual([tags[key]["seq_len"] for key in sorted(tags)],
                         [len(trace.token_ids) for trace in self.made.several.traces])
        data = transfer_queue.kv_batch_get(keys=sorted(tags), partition_id="train", select_fields=["rm_scores"])
        self.assertEqual({row.sum().item() for row in data["rm_scores"]}, {self.made.several.reward})
        self.clear()

    def test_a_validation_goes_to_its_own_partition_and_samples_as_verl_says_it(self) -> None:
        manager = self.manager()
        uid, = self.submit(manager, [copy_task("river")], is_validation=True)
        self.assertEqual(self.ended(uid, "val"), "finished")
        meta, _ = self.buffer().sample(8, "val", 1)
        self.assertEqual(meta.keys, [f"{uid}_0_0"])
        self.assertEqual(manager.sampling(True)["temperature"], 0)
        self.clear("val")

    def test_verls_own_manager_has_agent_loops_in_actors_of_which_each_reads_a_stream(self) -> None:
        manager = AgentLoopManager.create(with_loop(self.service, f"{AGENT}.num_workers=2", stream="actors"), None)
        told = manager.generate_sequences(batch_of([copy_task("river"), copy_task("stone")], 2))
        self.assert_rows(told, 4)
        streams = [stream["name"] for stream in self.service.client.status()["streams"]]
        self.assertEqual(sum(name.startswith("actors.") for name in streams), 2, streams)

    def test_the_agent_loop_gives_verls_own_worker_the_outputs_of_a_session(self) -> None:
        worker = Worker(with_loop(self.service, stream="v1"), None)
        prompt = {name: values[0] for name, values in columns_of([copy_task("river")]).items()}
        prompt.update(agent_name="sluice", global_steps=8)

        async def main():
            await worker._run_prompt(prompt, dict(temperature=1.0, top_p=1.0, top_k=-1, logprobs=True),
                                     {"validate": False, "step": 8, "sample_index": 0, "rollout_n": 0})
            await shared(("verl", "v1", self.service.url), lambda: None).close()
        asyncio.run(asyncio.wait_for(main(), 100))
        tags = transfer_queue.kv_list("train")["train"]
        self.assertEqual(tags.pop(prompt["uid"])["status"], "finished")
        self.assertEqual(sorted(tags), [f"{prompt['uid']}_{session}_0" for session in range(4)])
        self.assertEqual({tag["min_global_steps"] for tag in tags.values()}, {7})
        self.clear()

    def test_a_sampler_of_the_brokers_makes_the_batches_of_verls_prompts(self) -> None:
        words = iter(f"{word}{k}" for k in range(100) for word in ("river", "stone", "cloud", "moon"))
        asked = []

        def refill(count):
            asked.append(count)
            self.submit(manager, [copy_task(next(words)) for _ in range(count)])

        buffer = self.buffer(SluiceReplayBuffer, "separate_async", refill, filter="mixed", pool=4)
        self.addCleanup(buffer.close)
        manager = self.manager()
        manager.config.data.train_batch_size = 2
        seen = set()
        for _ in range(2):
            meta, metrics = buffer.sample(8, "train", 2)
            self.learn(meta, 8)
            groups = {}
            for key in meta.keys:
                field = transfer_queue.kv_batch_get(keys=[key], partition_id="train", select_fields=["rm_scores"])
                groups.setdefault(key.split("_")[0], []).append(field["rm_scores"][0].sum().item())
            self.assertTrue(all(len(set(rewards)) > 1 for rewards in groups.values()), groups)
            self.assertFalse(seen & set(groups))
            seen |= set(groups)
            self.assertEqual(metrics["training/sluice/kept"] > 0, True)
        self.assertEqual(set(asked), {2})
        with self.assertRaisesRegex(BadArgument, "a batch of 3 groups is wanted"):
            buffer.sample(8, "train", 3)
        buffer.close()
        self.clear()

    def test_a_sampler_refuses_what_it_cannot_do(self) -> None:
        with self.assertRaisesRegex(BadArgument, "sampler_kwargs has 'stale'; .*staleness"):
            self.buffer(SluiceReplayBuffer, stale=3)
        self.manager()
        buffer = self.buffer(SluiceReplayBuffer)
        self.addCleanup(buffer.close)
        with self.assertRaisesRegex(SluiceError, "trainer_mode=sync puts verl's servers to sleep"):
            buffer.sample(8, "train", 2)


if __name__ == "__main__":
    unittest.main()
