"""sluice.adapters.trl with TRL's own classes, a real service and a real model. Run by tests/trainers.sh."""
# Packages: trl>=1.16,<1.17
# Torch: yes
from __future__ import annotations

import collections
import copy
import dataclasses
import inspect
import itertools
import os
import queue
import tempfile
import unittest
import unittest.mock
import warnings

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

from service import Service, copy_task
import numpy as np
import torch
import trl
import weights
from accelerate import PartialState
from datasets import Dataset
from policy import load_model, load_tokenizer
from sluice import BadArgument, OtherTokens, SluiceError
from sluice.adapters.trl import RolloutFunction, SluiceGRPOTrainer, rows, sluice_reward
from sluice.adapters.trl_async import RolloutWorker, WeightTransfer
from tokenizers import pre_tokenizers
from trl.experimental.async_grpo.async_grpo_trainer import RolloutQueueDataset, RolloutWorkerProtocol, WeightTransferProtocol
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample
from trl.experimental.async_grpo.packing import TreeRow

WORDS = ("river", "stone", "cloud", "house")
LAYERS = 1  # of the model, the last ones, that are trained


class Recorder(SluiceGRPOTrainer):
    """Keeps what TRL made of each batch, and the log-probabilities that its loss computed."""

    def __init__(self, *args, **options):
        self.made, self.present = [], []
        super().__init__(*args, **options)

    def _generate_and_score_completions(self, inputs):
        output = super()._generate_and_score_completions(inputs)
        self.made.append({name: value.clone() for name, value in output.items() if torch.is_tensor(value)})
        return output

    def _get_per_token_logps_and_entropies(self, model, input_ids, *args, **options):
        told = super()._get_per_token_logps_and_entropies(model, input_ids, *args, **options)
        if torch.is_grad_enabled():
            self.present.append((input_ids.clone(), told[0].detach().clone()))
        return told


class Case(unittest.TestCase):
    @classmethod
    def prepare(cls):
        """Once for all of them."""
        gguf = os.environ["SLUICE_MODEL"]
        cls.folder = unittest.enterModuleContext(tempfile.TemporaryDirectory(prefix="sluice-trl-"))
        cls.model, cls.tokenizer = load_model(gguf, LAYERS), load_tokenizer(gguf)
        cls.weights = os.path.join(cls.folder, "weights.gguf")
        weights.write(cls.model, gguf, cls.weights)
        cls.patch = weights.Patch(cls.weights)
        cls.service = unittest.enterModuleContext(Service(cls.weights))
        cls.made = cls.service.make()

    def update(self, trainer):
        self.updates.append(trainer.state.global_step)
        self.service.engine.stop()
        self.patch(trainer.accelerator.unwrap_model(trainer.model))
        self.service.engine.start(self.weights)

    def trainer(self, tasks, kind=Recorder, rollouts=None, tokenizer=None, functions=sluice_reward, **more):
        self.updates = []
        args = trl.GRPOConfig(**{**dict(
            output_dir=self.folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, num_generations=4, max_steps=2,
            learning_rate=1e-4, lr_scheduler_type="constant", use_cpu=True, bf16=False, gradient_checkpointing=False, report_to=[],
            save_strategy="no", logging_steps=1, disable_tqdm=True, shuffle_dataset=False), **more})
        rollouts = rollouts or RolloutFunction(self.service.client, tasks, update=self.update)
        return kind(model=self.model, args=args, processing_class=tokenizer or self.tokenizer, reward_funcs=functions,
                    train_dataset=Dataset.from_list(rows(tasks)), rollout_func=rollouts)


def setUpModule():
    Case.prepare()


class Training(Case):
    def test_two_steps_learn_from_the_rollouts_with_their_own_log_probabilities(self):
        tasks = [copy_task(word) for word in WORDS]
        seen = []

        def every_second(**given):  # so that there is something to learn in every group
            seen.append(given)
            return [float(k % 2) for k in range(len(given["prompts"]))]

        trainer = self.trainer(tasks, functions=[sluice_reward, every_second])
        before = copy.deepcopy(self.model.model.layers[-1].state_dict())
        trainer.train()
        self.assertEqual(self.updates, [0, 1])
        self.assertTrue(any((before[name] != value).any() for name, value in self.model.model.layers[-1].state_dict().items()))
        self.assertEqual([len(trainer.made), len(trainer.present)], [2, 4])
        for step, (made, given) in enumerate(zip(trainer.made, seen)):
            groups = [rollout.partition("/")[0] for rollout in given["rollout"]]
            self.assertEqual((groups[:4], groups[4:]), ([groups[0]] * 4, [groups[4]] * 4))
            self.assertIn(f".s{step}.", groups[0])
            self.assertEqual((given["outcome"], len(given["reward"])), (["ok"] * 8, 8))
            for name in ("old_per_token_logps", "completion_mask", "tool_mask"):
                self.assertEqual(made[name].shape, made["completion_ids"].shape, name)
            self.assertEqual((made["old_per_token_logps"].dtype, made["completion_ids"].dtype), (torch.float32, torch.int64))
            self.assertTrue(torch.equal(made["old_per_token_logps"], made["sampling_per_token_logps"]))
            mask = (made["completion_mask"] * made["tool_mask"]).bool()
            self.assertTrue((made["old_per_token_logps"][mask] < 0).all())
            for ids, now in trainer.present[2 * step:2 * step + 2]:  # TRL shuffles rows between the two
                width = now.shape[1]
                for row, logps in zip(ids, now):
                    same = [k for k in range(8) if torch.equal(made["completion_ids"][k][:width], row[-width:])]
                    apart = min((logps - made["old_per_token_logps"][k][:width])[mask[k][:width]].abs().max().item() for k in same)
                    self.assertLess(apart, 2e-3)  # the ratio is 1 but for this
        logged = [row for row in trainer.state.log_history if "reward" in row]
        self.assertEqual([float(row["clip_ratio/region_mean"]) for row in logged], [0, 0])
        self.assertTrue(all(float(row["grad_norm"]) > 0 for row in logged))

    def test_a_rollout_without_a_reward_is_left_out_and_one_without_tokens_is_masked(self):
        tasks = [copy_task("water"), copy_task("bread")]
        rollouts = RolloutFunction(self.service.client, tasks, update=self.update)
        submit = self.service.client.submit

        def submit_and_cancel(given, **more):
            names = submit(given, **more)
            if given[0] == tasks[0]:
                self.service.client.cancel(group=names[0])
            return names

        trainer = self.trainer(tasks, rollouts=rollouts, max_steps=1)
        with unittest.mock.patch.object(self.service.client, "submit", submit_and_cancel), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            trainer.train()
        self.assertTrue(any("4 of 8 rollouts may not be learned from" in str(warning.message) for warning in warned), warned)
        made = trainer.made[0]
        self.assertEqual(made["tool_mask"][:4, 0].tolist(), [0] * 4)
        self.assertEqual(made["advantages"][:4].tolist(), [0] * 4)
        self.assertTrue(made["tool_mask"][4:, 0].all())
        for row in trainer.state.log_history:
            self.assertTrue(np.isfinite(float(row.get("loss", 0))), row)


class Refusals(Case):
    """Each before anything is learned, and by the name of what is wrong."""

    def refused(self, kind, pattern, trainer):
        with self.assertRaisesRegex(kind, pattern):
            trainer.train()

    def test_tasks_that_make_several_traces_have_no_prompt_or_one_prompt(self):
        client = self.service.client
        for pattern, tasks in (("max_traces to 1", [{"task": "a", "prompt": "b", "agent": {"kind": "bash"}}]),
                               ("neither messages nor a prompt", [{"task": "a", "agent": {"kind": "chat"}}]),
                               ("have the same prompt", [copy_task("river"), copy_task("river", eval={"kind": "none"})]),
                               ("there are none", [])):
            with self.assertRaisesRegex(BadArgument, pattern):
                RolloutFunction(client, tasks, update=self.update)

    def test_a_prompt_that_no_task_has(self):
        rollouts = RolloutFunction(self.service.client, [copy_task("river")], update=self.update)
        self.refused(BadArgument, "none has the prompt .*rows\(tasks\)", self.trainer([copy_task("queen"), copy_task("king")], rollouts=rollouts))

    def test_fewer_prompts_than_a_batch_has(self):
        with self.assertRaisesRegex(BadArgument, "of its 1 prompts TRL makes no batch, which has 2"):
            self.trainer([copy_task("river")])

    def test_nobody_loads_the_weights(self):
        tasks = [copy_task("river"), copy_task("stone")]
        self.refused(BadArgument, "who loads the trainer's weights", self.trainer(tasks, rollouts=RolloutFunction(self.service.client, tasks)))

    def test_the_task_samples_otherwise_than_the_trainer_says(self):
        tasks = [copy_task("river"), copy_task("stone")]
        self.refused(BadArgument, "sampling.temperature 1, where the trainer's args have temperature 0.7", self.trainer(tasks, temperature=0.7))
        self.refused(BadArgument, "top_k 0, where the trainer's args have top_k 20", self.trainer(tasks, top_k=20))
        tasks[0]["sampling"] = dict(tasks[0]["sampling"], top_p=0.9)
        self.refused(BadArgument, "the ratio would be biased; set it to 1", self.trainer(tasks, top_p=0.9))

    def test_another_tokenizer_or_template(self):
        tasks = [copy_task("river"), copy_task("stone")]
        other = copy.deepcopy(self.tokenizer)
        other.chat_template += " "
        self.refused(OtherTokens, "has the template .*chat template of processing_class", self.trainer(tasks, tokenizer=other))
        other = load_tokenizer(os.environ["SLUICE_MODEL"])
        other.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # takes digits together
        self.refused(OtherTokens, "has the tokenizer .*the trainer's", self.trainer(tasks, tokenizer=other))

    def rollouts_of(self, *trajectories):
        """Columns of these, in a trainer whose ratio is ours."""
        trainer = self.trainer([copy_task("river"), copy_task("stone")])
        return trainer.rollout_func._columns(list(trajectories), trainer)

    def test_columns_are_those_of_the_traces(self):
        t = self.made.group[0]
        told = self.rollouts_of(t, self.made.unscored)
        trace, = t.traces
        begin = trace.mask.tolist().index(1)
        self.assertEqual(told["prompt_ids"][0] + told["completion_ids"][0], trace.token_ids.tolist())
        self.assertEqual((told["logprobs"][0], told["env_mask"][0]), (trace.logprobs[begin:].tolist(), trace.mask[begin:].tolist()))
        self.assertEqual((told["reward"], told["rollout"]), ([t.reward, None], [t.rollout, self.made.unscored.rollout]))

    def test_log_probabilities_that_are_not_finite(self):
        t = copy.deepcopy(self.made.group[0])
        logprobs = t.traces[0].logprobs.copy()
        logprobs[-1] = float("nan")
        t.traces[0] = dataclasses.replace(t.traces[0], logprobs=logprobs)
        with self.assertRaisesRegex(SluiceError, f"{t.rollout} has log-probabilities that are not finite"):
            self.rollouts_of(t)

    def test_several_traces(self):
        if self.made.several is None:
            self.skipTest("this machine makes no sandboxes")
        with self.assertRaisesRegex(SluiceError, "has 2 traces .*agent.max_traces of its task to 1"):
            self.rollouts_of(self.made.several)

    def test_nothing_that_may_be_learned_from(self):
        with self.assertRaisesRegex(SluiceError, "none of the 1 rollouts .*ended as cancelled"):
            self.rollouts_of(self.made.cancelled)

    def test_a_version_of_trl_that_is_not_known(self):
        with unittest.mock.patch("importlib.metadata.version", lambda package: "1.17.0"), \
                self.assertRaisesRegex(ImportError, "wants trl>=1.16,<1.17; 1.17.0 is installed"):
            self.trainer([copy_task("river")])

    def test_a_rollout_function_of_others(self):
        with self.assertRaisesRegex(BadArgument, "wants a RolloutFunction"):
            self.trainer([copy_task("river")], rollouts=lambda prompts, trainer: {})


class Asynchronous(Case):
    def test_a_sampler_fills_the_queue_in_trls_form_and_versions_follow_its_updates(self):
        sent = []
        transfer = WeightTransfer(lambda iterator: sent.append([name for name, _ in iterator]), broker=self.service.url)
        tasks = (dict(copy_task(word), task=f"{word}-{k}") for k in itertools.count() for word in WORDS)
        worker = RolloutWorker(tasks, transfer, groups=2, samples=2, filter="none", staleness=1, broker=self.service.url)
        for one, protocol in ((transfer, WeightTransferProtocol), (worker, RolloutWorkerProtocol)):
            for name, member in vars(protocol).items():
                if not name.startswith("_"):
                    self.assertEqual(list(inspect.signature(getattr(one, name)).parameters),
                                     list(inspect.signature(member).parameters)[1:], name)
            for name in protocol.__annotations__:
                self.assertIsInstance(getattr(one, name), queue.Queue)

        def sync():
            transfer.pause()
            transfer.send_weights(iter([("model.norm.weight", torch.ones(1))]))
            transfer.resume()
            worker.update_model_version(transfer.number)

        PartialState()  # as a trainer makes it: TRL's loggers want it
        transfer.init_weight_transfer()
        try:
            sync()
            worker.start()
            data = RolloutQueueDataset(worker.rollout_buffer, lambda: worker.model_version, worker.check_health, 120,
                                       collections.defaultdict(list), report_to=[])
            rows_of = iter(data)
            taken = [next(rows_of) for _ in range(4)]
            sync()
            while True:
                sample = worker.rollout_buffer.get(timeout=60)
                self.assertIsInstance(sample, RolloutSample)
                if sample.model_version == 2:
                    break
            worker.check_health(60)
        finally:
            worker.stop()
            worker.stop()
            transfer.destroy()
        self.assertEqual(sent, [["model.norm.weight"]] * 2)
        for row in taken:
            self.assertEqual([row[name].dtype for name in ("input_ids", "completion_mask", "old_log_probs")],
                             [np.int64, np.int64, np.float32])
            self.assertEqual(len({len(row[name]) for name in ("input_ids", "completion_mask", "old_log_probs")}), 1)
            self.assertTrue((row["old_log_probs"][row["completion_mask"] == 0] == 0).all())
            self.assertTrue((row["old_log_probs"][row["completion_mask"] == 1] < 0).all())
        groups = [row["group_id"] for row in taken]
        self.assertEqual((groups[0], groups[2]), (groups[1], groups[3]))
        for pair in (taken[:2], taken[2:]):
            self.assertAlmostEqual(sum(row["advantage"] for row in pair), 0, places=5)
        tree = TreeRow()
        tree.add(taken[0])
        self.assertEqual(tree.trained, int(taken[0]["completion_mask"].sum()))
        self.assertEqual((sample.prompt[-1]["role"], sample.completion[0]["role"]), ("user", "assistant"))
        self.assertGreater(worker.metrics_queue.get_nowait()["sluice/finished_total"], 0)

    def test_a_failed_worker_says_why(self):
        transfer = WeightTransfer(lambda iterator: list(iterator), broker=self.service.url)
        worker = RolloutWorker([copy_task("river")], transfer, groups=2, samples=2, filter="none", broker=self.service.url)
        worker.start()
        worker._thread.join(60)
        with self.assertRaisesRegex(SluiceError, "no more rollouts come: the tasks .* have come to their end"):
            worker.check_health(600)
        worker.stop()

    def test_versions_of_others_are_none(self):
        transfer = WeightTransfer(list)
        self.assertEqual([transfer.number_of(f"{transfer.name}-7"), transfer.number_of(f"{transfer.name}-8+{transfer.name}-7"),
                          transfer.number_of("trl-00000000-7"), transfer.number_of("")], [7, 7, None, None])

    def test_weights_that_are_left_in_the_iterator(self):
        transfer = WeightTransfer(next, broker=self.service.url)
        transfer.init_weight_transfer()
        transfer.pause()
        try:
            with self.assertRaisesRegex(BadArgument, "exhaust it"):
                transfer.send_weights(iter([("a", 1), ("b", 2)]))
            self.assertEqual([engine["state"] for engine in self.service.client.engines()], ["healthy"])
        finally:
            transfer.destroy()


if __name__ == "__main__":
    unittest.main()
