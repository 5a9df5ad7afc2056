"""Of test_verl.py, the V1 trainer's side: TransferQueue, its tags, and who samples from it."""
from __future__ import annotations

import asyncio
import os
import time

os.environ["RAY_AUTH_MODE"] = "disabled"

import numpy as np
import ray
import torch
import transfer_queue
from omegaconf import OmegaConf
from service import copy_task
from verl_case import AGENT, Case, Server, batch_of, columns_of, configuration, with_loop

import sluice
from sluice import SluiceError
from sluice.adapters.parts.shared import shared
from sluice.adapters.verl.mapping import Lengths
from sluice.adapters.verl.sampler import SluiceReplayBuffer
from sluice.adapters.verl.v1 import SluiceAgentLoopManagerTQ, Worker
from sluice.advantages import grpo
from sluice.errors import BadArgument
from verl.experimental.agent_loop.agent_loop import AgentLoopManager
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import AdvantageEstimator
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from verl.utils import tensordict_utils
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient


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
