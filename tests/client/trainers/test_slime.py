"""sluice.adapters.slime with slime's own data source, rollout manager and group generation, a real service and a real
model. Run by tests/trainers.sh.

slime imports SGLang and wandb, which are not installed for a test without a GPU: their modules are empty here. Its
manager is the class itself, made without its servers.
"""
# Packages: git+https://github.com/THUDM/slime@624b824a ray==2.57.0 httpx pillow pylatexenc protobuf jsonschema
# Packages: jsonschema-specifications referencing rpds-py aiohttp aiohappyeyeballs aiosignal attrs frozenlist multidict
# Packages: propcache yarl httpcore sniffio
# Options: --no-deps
# Python: 3.10
# Torch: yes
from __future__ import annotations

import argparse
import asyncio
import http.server
import json
import math
import os
import threading
import types
import unittest
import unittest.mock

from absent import pretend

pretend("sglang", "sglang_router", "wandb")

import torch  # noqa: E402
from service import Service, copy_task  # noqa: E402
from slime.observability.rollout_data_utils import tensorize_rollout_data_for_training  # noqa: E402
from slime.ray.rollout import RolloutManager  # noqa: E402
from slime.rollout import fully_async_rollout  # noqa: E402
from slime.rollout.data_source import RolloutDataSourceWithBuffer  # noqa: E402
from slime.rollout.fully_async_rollout import generate_rollout_fully_async  # noqa: E402
from slime.rollout.sglang_rollout import eval_rollout_single_dataset, generate_and_rm_group  # noqa: E402
from slime.utils.async_utils import run  # noqa: E402
from slime.utils.eval_config import EvalDatasetConfig  # noqa: E402
from slime.utils.http_utils import init_http_client  # noqa: E402
from slime.utils.misc import SingletonMeta, load_function  # noqa: E402
from slime.utils.types import Sample  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

import sluice  # noqa: E402
from sluice.adapters import slime as adapter  # noqa: E402
from sluice.errors import BadArgument  # noqa: E402

SAMPLES = 4
ROLLOUTS, GENERATE = "sluice.adapters.slime.generate_rollout", "sluice.adapters.slime.generate"


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service().__enter__()
        cls.addClassCleanup(cls.service.__exit__)
        folder, file = os.path.split(os.environ["SLUICE_MODEL"])
        cls.checkpoint = os.path.join(cls.service.folder, "checkpoint")
        AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(cls.checkpoint)
        with cls.service.client.updating("step-7"):
            pass

    def setUp(self) -> None:
        SingletonMeta._instances.clear()  # slime's state of one loop, where here each test may have another

    def args(self, tasks=(), **more):
        """slime's arguments; the data set has these tasks."""
        path = os.path.join(self.service.folder, "rows.jsonl")
        with open(path, "w") as file:
            for task in tasks:
                file.write(json.dumps({"text": task["task"], "label": "", "metadata": {"task": task}}) + "\n")
        told = {
            "hf_checkpoint": self.checkpoint, "prompt_data": path, "rollout_global_dataset": True, "dump_details": None,
            "rollout_max_prompt_len": None, "input_key": "text", "label_key": "label", "metadata_key": "metadata",
            "tool_key": None, "multimodal_keys": None, "apply_chat_template": False, "apply_chat_template_kwargs": None,
            "rollout_seed": 0, "rollout_shuffle": False, "buffer_filter_path": None, "n_samples_per_prompt": SAMPLES,
            "rollout_batch_size": len(tasks), "over_sampling_batch_size": len(tasks), "rollout_temperature": 1.0,
            "rollout_top_p": 1.0, "rollout_top_k": -1, "rollout_max_response_len": 12, "rollout_stop": None,
            "rollout_stop_token_ids": None, "rollout_skip_special_tokens": False, "dynamic_sampling_filter_path": None,
            "rollout_sample_filter_path": None, "rollout_all_samples_process_path": None, "partial_rollout": False,
            "custom_reward_post_process_path": "sluice.adapters.slime.rewards", "group_rm": False, "reward_key": None,
            "advantage_estimator": "grpo", "rewards_normalization": True, "grpo_std_normalization": True,
            "custom_generate_function_path": GENERATE, "sglang_server_concurrency": 8, "rollout_num_engines": 1,
            "sglang_dp_size": 1, "use_distributed_post": False, "load_debug_rollout_data": None, "custom_rm_path": None,
            "rm_type": None, "rollout_function_path": ROLLOUTS, "sluice_broker": self.service.url,
            "sluice_stream": self.id().rpartition(".")[2][:40], "sluice_register": False}
        return argparse.Namespace(**{**told, **more})

    def manager(self, args):
        """slime's, without servers."""
        kind = RolloutManager.__ray_metadata__.modified_class
        one = kind.__new__(kind)
        one.args, one.data_source = args, RolloutDataSourceWithBuffer(args)
        one.generate_rollout = load_function(args.rollout_function_path)
        path = args.custom_reward_post_process_path
        one.custom_reward_post_process_func = load_function(path) if path else None
        one.custom_convert_samples_to_train_data_func = None
        return one

    def trained(self, args, samples):
        """What the trainer is given of them, as tensors."""
        told = self.manager(args)._convert_samples_to_train_data(samples)
        tensorize_rollout_data_for_training(told)
        return told


class Samples(Case):
    """Trajectories of each kind, in slime's hands."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.made = cls.service.make()

    def samples(self, *trajectories, group=0):
        asked = [Sample(group_index=group, index=10 * group + k, metadata={"a": 1}) for k in range(len(trajectories))]
        return [one for t, sample in zip(trajectories, asked) for one in adapter.samples_of(t, sample)]

    def test_a_rollout_becomes_a_sample_of_its_tokens_its_mask_its_log_probabilities_and_its_versions(self) -> None:
        samples = self.samples(*self.made.group)
        told = self.trained(self.args(), samples)
        for k, t in enumerate(self.made.group):
            trace, = t.traces
            count = told["response_lengths"][k]
            self.assertEqual((told["tokens"][k].dtype, told["loss_masks"][k].dtype), (torch.long, torch.int))
            self.assertEqual(told["rollout_log_probs"][k].dtype, torch.float32)
            self.assertEqual(told["tokens"][k].tolist(), trace.token_ids.tolist())
            self.assertEqual(told["loss_masks"][k].tolist(), trace.mask[-count:].tolist())
            self.assertEqual(told["loss_masks"][k].sum(), int(trace.mask.sum()))
            self.assertEqual(told["rollout_log_probs"][k].tolist(), trace.logprobs[-count:].tolist())
            self.assertEqual((samples[k].weight_versions, samples[k].reward), (["step-7"], t.reward))
            self.assertEqual((samples[k].response, samples[k].metadata["a"]), (t.messages[-1].content, 1))
            samples[k]._validate_response_metadata_lengths()
        self.assertEqual(told["raw_reward"], [t.reward for t in self.made.group])

    def test_normalized_rewards_are_slimes_own_where_all_have_one(self) -> None:
        args = self.args([copy_task("river")])
        samples = self.samples(*self.made.group)
        own = self.manager(argparse.Namespace(**{**vars(args), "custom_reward_post_process_path": None}))
        for estimator, has_std in (("grpo", True), ("grpo", False), ("reinforce_plus_plus_baseline", 1), ("ppo", 1)):
            args.advantage_estimator, args.grpo_std_normalization = estimator, has_std
            own.args.advantage_estimator, own.args.grpo_std_normalization = estimator, has_std
            (raw, told), (raw_own, told_own) = adapter.rewards(args, samples), own._post_process_rewards(samples)
            self.assertEqual(raw, raw_own)
            for one, another in zip(told, told_own):
                self.assertAlmostEqual(one, another, 4)

    def test_what_is_not_trainable_is_masked_and_in_no_mean(self) -> None:
        samples = self.samples(*self.made.group, self.made.cancelled)
        self.assertEqual((samples[4].status, samples[4].reward), (Sample.Status.ABORTED, None))
        self.assertEqual(samples[4].response_length, 1)
        told = self.trained(self.args(), samples)
        self.assertEqual(told["loss_masks"][4].tolist(), [0])
        self.assertEqual(told["rewards"], [*self.trained(self.args(), samples[:4])["rewards"], 0])
        self.assertAlmostEqual(told["raw_reward"][4], sum(t.reward for t in self.made.group) / 4)

    def test_what_has_no_reward_is_left_to_slimes_reward_model(self) -> None:
        sample, = self.samples(self.made.unscored)
        self.assertIsNone(sample.reward)
        self.assertIn(sample.status, (Sample.Status.COMPLETED, Sample.Status.TRUNCATED))
        self.assertEqual(sum(sample.loss_mask), int(self.made.unscored.traces[0].mask.sum()))

    def test_several_traces_are_samples_of_one_rollout_which_counts_once(self) -> None:
        if self.made.several is None or not self.made.several.trainable:
            self.skipTest("this machine makes no sandboxes")
        traces = self.made.several.traces
        samples = self.samples(self.made.several, self.made.group[0])
        told = self.trained(self.args(), samples)
        self.assertEqual(told["rollout_ids"], [0] * len(traces) + [1])
        sampled = sum(int(trace.mask.sum()) for trace in traces)
        self.assertEqual(told["rollout_mask_sums"].tolist()[:-1], [sampled] * len(traces))
        self.assertEqual(len(set(told["rewards"][:-1])), 1)
        self.assertAlmostEqual(told["rewards"][0] + told["rewards"][-1], 0)


class Generation(Case):
    def test_a_rollout_function_gives_whole_groups_in_their_order(self) -> None:
        args = self.args([copy_task("river"), copy_task("stone")])
        manager = self.manager(args)
        samples, metrics = manager._get_rollout_data(0)
        self.assertEqual([(one.group_index, one.index) for one in samples],
                         [(k // SAMPLES, k) for k in range(2 * SAMPLES)])
        self.assertEqual(metrics, {"rollout/sluice/left_out": 0})
        self.assertEqual({one.status for one in samples} - {Sample.Status.COMPLETED, Sample.Status.TRUNCATED}, set())
        told = self.trained(args, samples)
        self.assertEqual(len(told["tokens"]), 2 * SAMPLES)
        for first in (0, SAMPLES):
            self.assertAlmostEqual(sum(told["rewards"][first:first + SAMPLES]), 0, 4)

    def test_what_is_left_is_given_back_or_goes_on(self) -> None:
        tasks = [copy_task(word) for word in ("river", "stone", "cloud")]
        args = self.args(tasks, rollout_batch_size=1, over_sampling_batch_size=3)
        manager = self.manager(args)
        kept, _ = manager._get_rollout_data(0)
        self.assertEqual(len(kept), SAMPLES)
        given_back = [group[0].group_index for group in manager.data_source.buffer]
        self.assertEqual(sorted([kept[0].group_index, *given_back]), [0, 1, 2])
        args.sluice_carry = True
        manager = self.manager(args)
        kept = [manager._get_rollout_data(k)[0][0].group_index for k in range(2)]
        self.assertEqual((len(set(kept)), manager.data_source.buffer), (2, []))
        run(adapter._pools[manager.data_source].end())

    def test_a_group_without_any_reward_is_replaced_and_slimes_filter_is_asked_for_the_others(self) -> None:
        broken = copy_task("moon", eval={"kind": "command", "command": "exit 9"}, agent={"kind": "chat"})
        args = self.args([broken, copy_task("river")], rollout_batch_size=1, over_sampling_batch_size=1,
                         dynamic_sampling_filter_path=f"{__name__}.keep_all")
        asked.clear()
        kept, metrics = self.manager(args)._get_rollout_data(0)
        self.assertEqual(({one.group_index for one in kept}, [len(group) for group in asked]), ({1}, [SAMPLES]))
        self.assertEqual(metrics["rollout/dynamic_filter/drop_sluice_unscored"], 1)

    def test_what_has_no_reward_is_scored_by_slimes_reward_model(self) -> None:
        def kept(task, **more):
            return self.manager(self.args([task], custom_rm_path=f"{__name__}.lengths", **more))._get_rollout_data(0)[0]
        for samples in (kept(copy_task("river", eval={"kind": "none"})), kept(copy_task("stone"), group_rm=True)):
            self.assertEqual([one.reward for one in samples], [len(one.response) for one in samples])
        self.assertLessEqual({one.reward for one in kept(copy_task("stone"))}, {0, 1})

    def test_slimes_own_loop_takes_a_rollout_a_sample(self) -> None:
        args = self.args([copy_task("river")])
        group, = RolloutDataSourceWithBuffer(args).get_samples(1)
        params = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "max_new_tokens": 12, "stop": None,
                  "stop_token_ids": None, "skip_special_tokens": False, "no_stop_trim": True,
                  "spaces_between_special_tokens": False}
        told = run(generate_and_rm_group(args, group, params))
        self.assertEqual([one.index for one in told], list(range(SAMPLES)))
        self.assertTrue(all(one.reward in (0, 1) and one.response_length for one in told))

    def test_slimes_evaluation_takes_each_rollout_once(self) -> None:
        args = self.args([copy_task("river"), copy_task("stone")], eval_max_prompt_len=None, eval_reward_key=None)
        held_out = EvalDatasetConfig("held-out", args.prompt_data, input_key="text", label_key="label",
                                     metadata_key="metadata", n_samples_per_eval_prompt=2, temperature=1.0, top_p=1.0,
                                     top_k=-1, max_response_len=12)
        told = run(eval_rollout_single_dataset(args, 0, held_out))["held-out"]
        self.assertEqual([one.index for one in told["samples"]], [0, 1, 2, 3])
        self.assertLessEqual(set(told["rewards"]), {0, 1})

    def test_slimes_asynchronous_loop_takes_them_too(self) -> None:
        args = self.args([copy_task("river")], rollout_batch_size=2, sglang_server_concurrency=1)
        try:
            groups = generate_rollout_fully_async(args, 0, RolloutDataSourceWithBuffer(args))
        finally:
            fully_async_rollout._stop_global_worker()
        self.assertEqual([len(group) for group in groups], [SAMPLES] * 2)
        self.assertEqual(len(self.trained(args, [one for group in groups for one in group])["tokens"]), 2 * SAMPLES)

    def test_its_loop_gets_no_number_where_a_rollout_is_not_trainable(self) -> None:
        async def cancelled(task, samples=1):
            return [self.service.make().cancelled]
        args = self.args([copy_task("river")])
        rollouts = types.SimpleNamespace(run=cancelled)
        sample = Sample(index=0, metadata={"task": copy_task("river")})
        with unittest.mock.patch.object(adapter, "shared_rollouts", lambda *_: rollouts):
            told = asyncio.run(adapter.generate(args, sample, {"temperature": 1.0, "top_p": 1.0}))
        self.assertEqual((told.status, told.remove_sample), (Sample.Status.ABORTED, True))
        self.assertTrue(math.isnan(told.reward))

    def test_slimes_servers_become_the_brokers_engines(self) -> None:
        body = json.dumps({"workers": [{"url": self.service.engine.url}]}).encode()

        class Router(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.path == "/workers" else 404)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        server = http.server.HTTPServer(("127.0.0.1", 0), Router)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        with sluice.local(slots=4) as client:
            self.assertEqual(client.engines(), [])
            args = self.args([copy_task("river")], sluice_broker=client.url, sluice_register=True,
                             sglang_router_ip="127.0.0.1", sglang_router_port=server.server_port)
            init_http_client(args)
            kept, _ = self.manager(args)._get_rollout_data(0)
            self.assertEqual(len(kept), SAMPLES)
            self.assertEqual([engine["url"] for engine in client.engines()], [self.service.engine.url])

    def test_what_would_be_learned_wrong_is_refused_by_name(self) -> None:
        for name, value in (("custom_reward_post_process_path", None), ("use_rollout_routing_replay", True),
                            ("rollout_top_p", 0.9), ("rollout_stop", ["}"]), ("rollout_temperature", 0.5)):
            args = self.args([copy_task("river")], **{name: value})
            with self.assertRaises(BadArgument) as caught:
                self.manager(args)._get_rollout_data(0)
            self.assertIn(caught.exception.field, name)
        with self.assertRaisesRegex(BadArgument, "eval_function_path: .*slime.rollout.sglang_rollout.generate_rollout"):
            adapter.generate_rollout(args, 0, None, evaluation=True)


asked = []


def keep_all(args, samples, **_):
    """slime's dynamic filter."""
    asked.append(samples)
    return True


async def lengths(args, samples, **_):
    """slime's reward model of several."""
    return [len(one.response) for one in samples]


if __name__ == "__main__":
    unittest.main()
