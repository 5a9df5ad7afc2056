"""sluice.adapters.skyrl with SkyRL's own trainer as far as its advantages, its data set and its inference client, a
real service and a real model. Run by tests/trainers.sh.

Its trainer is the class itself, made without its workers, which want GPUs. The server that SkyRL's client asks is a
bridge to llama-server, as vLLM's is not installed.
"""
# Packages: skyrl>=0.4,<0.5 skyrl-gym>=0.4 ray==2.57.0 loguru omegaconf antlr4-python3-runtime==4.9.3 hydra-core
# Packages: jaxtyping wadler-lindig torchdata tensordict pyvers func_timeout pandas datasets multiprocess dill pyarrow
# Packages: xxhash orjson pybase64 aiohttp aiohappyeyeballs aiosignal attrs frozenlist multidict propcache yarl httpx
# Packages: jsonschema jsonschema-specifications referencing rpds-py protobuf cloudpathlib zstandard
# Packages: python-dateutil pytz six tzdata
# Options: --no-deps --ignore-requires-python
# Python: 3.11
# Torch: yes
from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
import typing
import unittest
import urllib.request
import warnings

import typing_extensions

if sys.version_info < (3, 12):  # SkyRL wants 3.12 for these alone
    typing.TypedDict = typing_extensions.TypedDict

import torch  # noqa: E402
from service import Service, copy_task  # noqa: E402
from skyrl.backends.skyrl_train.inference_servers.engine_utils import get_sampling_params_for_backend  # noqa: E402
from skyrl.backends.skyrl_train.inference_servers.remote_inference_client import RemoteInferenceClient  # noqa: E402
from skyrl.train.config import SkyRLTrainConfig  # noqa: E402
from skyrl.train.dataset import PromptDataset  # noqa: E402
from skyrl.train.entrypoints.main_base import BasePPOExp  # noqa: E402
from skyrl.train.generators.base import GeneratorInterface, TrajectoryID  # noqa: E402
from skyrl.train.generators.utils import prepare_generator_input  # noqa: E402
from skyrl.train.trainer import RayPPOTrainer  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

import sluice  # noqa: E402
from sluice.adapters.parts.generated import generator_output  # noqa: E402
from sluice.adapters.parts.shared import shared_rollouts  # noqa: E402
from sluice.adapters.skyrl import Engine, SluiceGenerator  # noqa: E402
from sluice.bridge import Bridge, Sampled  # noqa: E402
from sluice.errors import BadArgument  # noqa: E402

SAMPLES = 4


class Dispatch:
    """What the trainer asks of its workers before it trains."""

    def get_lcm_dp_size(self) -> int:
        return 1


class Experiment(BasePPOExp):
    """As in docs/trainers/skyrl.md."""

    stream, broker, bridge = "skyrl", None, None

    def get_generator(self, cfg, tokenizer, inference_engine_client):
        return SluiceGenerator(cfg.generator, tokenizer, self.stream, self.broker, bridge=self.bridge)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service().__enter__()
        cls.addClassCleanup(cls.service.__exit__)
        folder, file = os.path.split(os.environ["SLUICE_MODEL"])
        cls.tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
        cls.end = cls.tokenizer.eos_token_id

    def trainer(self, step_wise=False, **experiment):
        """RayPPOTrainer with this adapter's generator, and no workers."""
        cfg = SkyRLTrainConfig()
        cfg.generator.step_wise_trajectories = step_wise
        cfg.generator.n_samples_per_prompt = SAMPLES
        one = Experiment.__new__(type("One", (Experiment,), experiment))
        trainer = RayPPOTrainer.__new__(RayPPOTrainer)
        trainer.cfg, trainer.tokenizer, trainer.all_metrics, trainer.dispatch = cfg, self.tokenizer, {}, Dispatch()
        trainer.generator = one.get_generator(cfg, self.tokenizer, None)
        return trainer

    def learn(self, trainer, told, uids):
        """What SkyRL makes of a GeneratorOutput, up to the advantages."""
        trainer.cfg.trainer.train_batch_size = trainer.cfg.trainer.policy_mini_batch_size = len(set(uids))
        told, uids = trainer.postprocess_generator_output(told, uids)
        batch = trainer.convert_to_training_input(told, uids)
        return trainer.compute_advantages_and_returns(dict_with_values(batch))


def dict_with_values(batch):
    batch["values"] = None  # of no critic
    return batch


class Outputs(Case):
    """Trajectories of each kind, in the trainer's hands."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.made = cls.service.make()

    def trained(self, trajectories, step_wise=False):
        trainer = self.trainer(step_wise)

        async def output(_):
            ids = [TrajectoryID("0", k) for k in range(len(trajectories))]
            told = generator_output(trajectories, ids, self.end, step_wise)
            return {**told, "rollout_metrics": {}}
        trainer.generator = type("Given", (), {"generate": staticmethod(output)})()
        told = asyncio.run(trainer.generate({"prompts": [None] * len(trajectories)}))  # validates it
        return self.learn(trainer, told, [id.instance_id for id in told["trajectory_ids"]])

    def test_a_rollout_becomes_tensors_of_its_tokens_its_mask_its_log_probabilities_and_its_reward(self) -> None:
        batch = self.trained(self.made.group)
        self.assertEqual({batch[name].dtype for name in ("rewards", "rollout_logprobs", "advantages")}, {torch.float32})
        for row, t in enumerate(self.made.group):
            trace, = t.traces
            begin, count = trace.mask.tolist().index(1), len(trace.mask)
            self.assertEqual(batch["sequences"][row, -count:].tolist(), trace.token_ids.tolist())
            self.assertEqual(batch["attention_mask"][row].sum(), count)
            for name, wanted in (("loss_mask", trace.mask), ("rollout_logprobs", trace.logprobs)):
                self.assertEqual(batch[name][row, begin - count:].tolist(), wanted[begin:].tolist())
                self.assertEqual(batch[name][row].sum(), torch.tensor(wanted[begin:].astype("f4")).sum())
            self.assertEqual((batch["rewards"][row, -1], batch["rewards"][row].sum()), (t.reward, t.reward))

    def test_what_is_not_learned_from_has_loss_mask_0_and_is_in_no_mean(self) -> None:
        group = [dataclasses.replace(t, reward=reward) for t, reward in zip(self.made.group, (1.0, 0.0))]
        batch = self.trained([*group, self.made.unscored, self.made.cancelled])
        self.assertEqual(batch["loss_mask"].sum(dim=1)[2:].tolist(), [0, 0])
        self.assertEqual(batch["sequences"][3, -2:].tolist(), [self.end] * 2)
        self.assertEqual(batch["rewards"].sum(dim=1).tolist(), [1, 0, 0.5, 0.5])
        last = batch["advantages"][:, -1]
        self.assertGreater(last[0], 0)
        self.assertEqual((last[0] + last[1], last[2], last[3]), (0, 0, 0))

    def test_several_traces_are_steps_of_one_rollout(self) -> None:
        if self.made.several is None or not self.made.several.trainable:
            self.skipTest("this machine makes no sandboxes")
        traces = self.made.several.traces
        batch = self.trained([self.made.several, self.made.unscored], step_wise=True)
        self.assertEqual(batch.metadata["is_last_step"], [False] * (len(traces) - 1) + [True, True])
        self.assertEqual(batch["loss_mask"].sum(dim=1).tolist(), [int(trace.mask.sum()) for trace in traces] + [0])
        with self.assertRaisesRegex(BadArgument, "agent.max_traces"):
            self.trained([self.made.several])


class Generation(Case):
    """A whole step, from the data set's rows to the advantages."""

    def generate(self, trainer, tasks, step=1, phase="train", sampling=None, client=None):
        path = os.path.join(self.service.folder, "rows.jsonl")
        with open(path, "w") as file:
            for task in tasks:
                row = {"prompt": task["messages"], "env_class": "sluice", "task": json.dumps(task)}
                file.write(json.dumps(row) + "\n")
        data = PromptDataset(path, self.tokenizer, 512, num_workers=1)
        rows = data.collate_fn([data[k] for k in range(len(data))])
        params = get_sampling_params_for_backend("vllm", sampling or trainer.cfg.generator.sampling_params)
        asked, uids = prepare_generator_input(rows, SAMPLES, params, "sluice", phase, step)

        async def main():
            told = await trainer.generate(asked)
            generator = trainer.generator
            await shared_rollouts(generator._stream, generator._broker, {}).close()
            if generator._bridge is not None:
                await generator._bridge.__aexit__(None)
                await client.aclose()
            return told
        return asyncio.run(asyncio.wait_for(main(), 120)), uids

    def test_a_step_of_two_prompts_is_two_groups_of_rollouts_in_their_order(self) -> None:
        trainer = self.trainer(stream="step", broker=self.service.url)
        self.assertIsInstance(trainer.generator, GeneratorInterface)
        words = ["river", "stone"]
        told, uids = self.generate(trainer, [copy_task(word) for word in words], step=3)
        self.assertEqual([(id.instance_id, id.repetition_id) for id in told["trajectory_ids"]],
                         [(str(prompt), sample) for prompt in range(2) for sample in range(SAMPLES)])
        for k, prompt in enumerate(told["prompt_token_ids"]):
            self.assertIn(f"user\n{words[k // SAMPLES]}<|im_end|>\n<|im_start|>ass", self.tokenizer.decode(prompt))
        self.assertEqual(trainer.all_metrics["sluice/left_out"], 0)
        self.assertIn("generate/avg_num_tokens", trainer.all_metrics)
        batch = self.learn(trainer, told, uids)
        self.assertEqual(batch["sequences"].shape[0], 2 * SAMPLES)
        t, = self.service.run(copy_task("sun"))
        self.assertEqual(t.traces[0].versions()[-1], "step-2")

    def test_a_rollout_without_a_reward_is_warned_of_and_counted(self) -> None:
        trainer = self.trainer(stream="unscored", broker=self.service.url)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            told, _ = self.generate(trainer, [copy_task("river", eval={"kind": "none"})])
        self.assertIn("4 of 4 rollouts may not be learned from", str([str(one.message) for one in warned]))
        self.assertEqual((trainer.all_metrics["sluice/left_out"], sum(map(sum, told["loss_masks"]))), (4, 0))

    def test_a_task_samples_as_the_trainer_says_or_is_refused(self) -> None:
        trainer = self.trainer(stream="sampling", broker=self.service.url)
        trainer.cfg.generator.sampling_params.temperature = 0.5
        with self.assertRaisesRegex(BadArgument, "temperature 1, where SkyRL's .* have temperature 0.5"):
            self.generate(trainer, [copy_task("river")])
        trainer.cfg.generator.sampling_params.stop = ["}"]
        with self.assertRaisesRegex(BadArgument, "stop is .* has no such field"):
            self.generate(trainer, [copy_task("river", sampling={"max_tokens": 4})])
        task = copy_task("river", sampling={"max_tokens": 4})
        greedy = trainer.cfg.generator.eval_sampling_params
        told, _ = self.generate(trainer, [task], phase="eval", sampling=greedy)
        self.assertEqual(len({tuple(ids) for ids in told["response_ids"]}), 1)  # greedy: all are the same

    def test_skyrls_own_inference_client_is_the_engine(self) -> None:
        async def llama(ids, sampling):
            body = {"prompt": ids, "n_predict": sampling["max_tokens"], "return_tokens": True, "n_probs": 1, "top_k": 0,
                    "top_p": 1.0, "min_p": 0.0, "temperature": sampling["temperature"]}
            request = urllib.request.Request(self.service.engine.url + "/completion", json.dumps(body).encode(),
                                             {"Content-Type": "application/json"})
            said = json.loads(await asyncio.to_thread(lambda: urllib.request.urlopen(request).read()))
            return Sampled(said["tokens"], [place["logprob"] for place in said["completion_probabilities"]],
                           "stop" if said["stop_type"] == "eos" else "length")

        options = {"tokenizer": self.tokenizer, "max_model_len": 1024, "logprobs_mode": "raw"}
        with Bridge(llama, **options) as server, sluice.local(slots=4) as client:
            skyrls = RemoteInferenceClient(server.url, [server.url], data_parallel_size=1, model_name="policy")
            trainer = self.trainer(stream="bridge", broker=client.url, bridge=Bridge(Engine(skyrls), **options))
            told, uids = self.generate(trainer, [copy_task("river")], client=skyrls)
        self.assertTrue(all(logprob < 0 for row in told["rollout_logprobs"] for logprob in row))
        self.assertEqual(self.learn(trainer, told, uids)["sequences"].shape[0], SAMPLES)


if __name__ == "__main__":
    unittest.main()
