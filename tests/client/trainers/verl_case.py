"""What tests of verl's adapter share: its configuration, its data, and a server in place of its own."""
from __future__ import annotations

import asyncio
import json
import os
import types
import unittest
import urllib.request
import uuid

import numpy as np
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from policy import load_tokenizer
from service import Service
from transformers import AutoConfig

import verl
from sluice.adapters.verl import rows as rows_of
from verl.protocol import DataProto
from verl.workers.rollout.replica import TokenOutput

PROMPT, RESPONSE = 128, 16  # tokens of a row
AGENT = "actor_rollout_ref.rollout.agent"


def model_folder(folder: str) -> str:
    """As verl wants a model's: its configuration and its tokenizer."""
    path = os.path.join(folder, "model")
    if not os.path.isdir(path):
        where, file = os.path.split(os.environ["SLUICE_MODEL"])
        config = AutoConfig.from_pretrained(where, gguf_file=file)
        config.architectures = ["LlamaForCausalLM"]
        config.save_pretrained(path)
        load_tokenizer(os.environ["SLUICE_MODEL"]).save_pretrained(path)
    return path


def configuration(folder: str, *more: str):
    """verl's own, composed by hydra as its main does."""
    with initialize_config_dir(os.path.join(os.path.dirname(verl.__file__), "trainer", "config"), version_base=None):
        return compose("ppo_trainer", overrides=[
            f"actor_rollout_ref.model.path={model_folder(folder)}", "actor_rollout_ref.rollout.name=vllm",
            f"data.max_prompt_length={PROMPT}", f"data.max_response_length={RESPONSE}",
            "actor_rollout_ref.rollout.n=4", *more])


def with_loop(service, *more: str, **entry):
    """verl's configuration with our agent loop, of a file, on the broker's engines."""
    path = os.path.join(service.folder, "loops.yaml")
    OmegaConf.save(OmegaConf.create([{"name": "sluice", "_target_": "sluice.adapters.verl.SluiceAgentLoop",
                                      "broker": service.url, "engine": "broker", **entry}]), path)
    return configuration(service.folder, f"{AGENT}.agent_loop_config_path={path}", f"{AGENT}.default_agent_loop=sluice",
                         *more)


def columns_of(tasks):
    """As verl's data set has them, by name."""
    rows = rows_of(tasks)
    columns = {name: [row[name] for row in rows] for name in ("data_source", "reward_model", "extra_info")}
    columns.update(raw_prompt=[row["prompt"] for row in rows], index=[row["extra_info"]["index"] for row in rows],
                   uid=[str(uuid.uuid4()) for _ in rows])
    return columns


def batch_of(tasks, samples: int = 1, **meta) -> DataProto:
    """As verl's v0 trainer gives it: each prompt's rows one behind the other, of one uid."""
    arrays = {}
    for name, values in columns_of(tasks).items():
        arrays[name] = np.empty(len(values), dtype=object)
        arrays[name][:] = values
    return DataProto.from_dict({"dummy_tensor": torch.zeros((len(tasks), 1), dtype=torch.uint8)}, arrays,
                               meta_info={"global_steps": 8, **meta}).repeat(samples, interleave=True)


class Server:
    """One of verl's LLM servers, and their load balancer, by llama-server; their methods have `.remote`, as actors'."""

    def __init__(self, url: str, step: int = 7) -> None:
        self.url, self.step, self.aborts, self.calls = url, step, 0, 0
        for name in ("generate", "require_acquire_fields", "require_release_fields", "acquire_server",
                     "release_server"):
            setattr(self, name, types.SimpleNamespace(remote=getattr(self, "_" + name)))

    async def _require_acquire_fields(self):
        return []

    _require_release_fields = _require_acquire_fields

    async def _acquire_server(self, request_id, **_):
        return "server", self

    def _release_server(self, server_id, **_):
        pass

    async def _generate(self, request_id, prompt_ids, sampling_params, **_):
        self.calls += 1
        most = sampling_params["max_tokens"]
        is_cut = self.aborts > 0 and most > 2
        if is_cut:  # an update of the weights comes when two tokens were sampled
            self.aborts -= 1
        step = self.step
        body = {"prompt": prompt_ids, "n_predict": 2 if is_cut else most, "return_tokens": True, "n_probs": 1,
                "temperature": sampling_params["temperature"], "top_k": 0, "top_p": 1.0, "min_p": 0.0,
                "seed": sampling_params.get("seed", -1)}
        request = urllib.request.Request(self.url + "/completion", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        told = json.loads(await asyncio.to_thread(lambda: urllib.request.urlopen(request).read()))
        is_cut = is_cut and told["stop_type"] != "eos"
        self.step += is_cut
        logprobs = [place["logprob"] for place in told["completion_probabilities"]]
        return TokenOutput(token_ids=told["tokens"], log_probs=logprobs,
                           stop_reason="aborted" if is_cut else "completed", extra_fields={"global_steps": step})


class Case(unittest.TestCase):
    """One service, model and set of trajectories for all of a module."""

    @classmethod
    def setUpClass(cls) -> None:
        if not hasattr(Case, "service"):
            Case.service = unittest.enterModuleContext(Service())
            unittest.addModuleCleanup(delattr, Case, "service")
            with Case.service.client.updating("step-7"):  # with a pause, so that no turn is without it
                pass
            Case.made = Case.service.make()

    def assert_rows(self, told: DataProto, count: int) -> None:
        """As verl's documentation of generate_sequences() has them."""
        shapes = {name: (tuple(values.shape), values.dtype) for name, values in told.batch.items()}
        whole = ((count, PROMPT + RESPONSE), torch.int64)
        self.assertEqual({name: shapes[name] for name in ("input_ids", "attention_mask", "position_ids")},
                         dict.fromkeys(("input_ids", "attention_mask", "position_ids"), whole))
        self.assertEqual(shapes["prompts"], ((count, PROMPT), torch.int64))
        for name, dtype in (("responses", torch.int64), ("response_mask", torch.int64),
                            ("rollout_log_probs", torch.float32), ("rm_scores", torch.float32)):
            self.assertEqual(shapes[name], ((count, RESPONSE), dtype), name)
        mask, logprobs = told.batch["response_mask"], told.batch["rollout_log_probs"]
        self.assertTrue((mask.sum(1) > 0).all())
        self.assertTrue((logprobs[mask == 0] == 0).all())
        self.assertTrue((logprobs[mask == 1] < 0).all())
        lengths = told.batch["attention_mask"][:, PROMPT:].sum(1)
        scores = told.batch["rm_scores"]
        self.assertTrue(torch.equal(scores.sum(1), scores[torch.arange(count), lengths - 1]))
