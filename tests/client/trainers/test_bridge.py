"""A plain torch model behind a bridge, as docs/trainers/bridge.md has it, with a real service. Run by tests/trainers.sh."""
# Packages: jinja2
# Torch: yes
from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import unittest

import torch
from service import BINARY, SOURCE, copy_task
from transformers import AutoModelForCausalLM, AutoTokenizer

import sluice
from sluice.bridge import Bridge, Sampled

SAMPLING = {"temperature": 0.8, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": 12}


def page() -> dict:
    """What the blocks of the page define."""
    with open(os.path.join(SOURCE, "docs", "trainers", "bridge.md"), encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
    defined: dict = {}
    for block in blocks:
        exec(block, defined)
    return defined


class Halting:
    """Policy's function, whose parts end after three tokens, each of a version of its own, as at updates of the weights."""

    def __init__(self, policy) -> None:
        self.policy, self.parts = policy, 0

    async def __call__(self, ids, sampling) -> Sampled:
        self.parts += 1
        part = await self.policy.generate(ids, dict(sampling, max_tokens=min(3, sampling["max_tokens"])))
        return part._replace(finish="abort" if part.finish == "length" else part.finish, version=self.parts)


class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        torch.set_num_threads(2)
        folder, file = os.path.split(os.environ["SLUICE_MODEL"])
        cls.tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
        cls.model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
        cls.page = page()
        cls.policy = cls.page["Policy"](cls.model, version=1)

    def bridge(self, generate) -> Bridge:
        return Bridge(generate, score=self.policy.score, tokenizer=self.tokenizer, max_model_len=1024, logprobs_mode="raw",
                      vocab_size=self.model.config.vocab_size)

    def assert_same(self, trace) -> int:
        """Each sampled token's log-probability is torch's. How many there are."""
        ids, sampled = torch.from_numpy(trace.token_ids.astype("i8"))[None], torch.from_numpy(trace.mask == 1)
        with torch.inference_mode():
            logprobs = self.model(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        apart = (logprobs - torch.from_numpy(trace.logprobs[1:].copy()))[sampled[1:]].abs()
        self.assertLess(float(apart.max()), 1e-3)
        return len(apart)

    def test_the_pages_rollouts_have_torchs_own_log_probabilities_and_version(self) -> None:
        with sluice.local(slots=2) as client:
            os.environ["SLUICE_BROKER"] = client.url
            tasks = [copy_task(word, sampling=SAMPLING) for word in ("river", "stone")]
            got = asyncio.run(self.page["rollouts"](self.model, self.tokenizer, tasks))
        self.assertEqual([(t.outcome, t.trainable, t.reward is None, len(t.traces), t.logprobs_mode) for t in got],
                         [("ok", True, False, 1, "raw")] * 4, [t.detail for t in got])
        for trajectory in got:
            trace, = trajectory.traces
            self.assertGreater(self.assert_same(trace), 1)
            self.assertEqual({turn.version for turn in trace.turns if turn.role == "assistant"}, {"1"})
            self.assertEqual(trace.tokenizer_digest, sluice.tokenizer_digest(
                lambda text: self.tokenizer.encode(text, add_special_tokens=False)))

    def test_a_turn_of_several_parts_has_a_span_for_each_and_torchs_own_log_probabilities(self) -> None:
        with self.bridge(Halting(self.policy)) as engine, sluice.local(slots=1) as client:
            client.engine_add(engine.url)
            client.submit([copy_task("river", sampling=SAMPLING)], stream="parts")
            trajectory, = client.trajectories("parts", until_idle=True)
        trace, = trajectory.traces
        turn, = [turn for turn in trace.turns if turn.role == "assistant"]
        self.assertEqual(self.assert_same(trace), turn.length)
        self.assertEqual([span.length for span in turn.versions][:-1], [3] * ((turn.length - 1) // 3))
        self.assertEqual(turn.version, "+".join(span.version for span in turn.versions))
        self.assertGreater(len(turn.versions), 1)

    def test_an_engine_check_finds_nothing_amiss(self) -> None:
        with self.bridge(self.policy.generate) as engine:
            done = subprocess.run([os.path.join(BINARY, "client", "sluice"), "engine", "check", engine.url, "--json"],
                                  capture_output=True, text=True, timeout=500)
        told = {check["check"]: (check["verdict"], check["text"]) for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(done.returncode, 0, told)
        offered = {name for name, (verdict, _) in told.items() if verdict == "pass"}
        self.assertGreaterEqual(offered, {"dialect", "template", "ids", "specials", "bridge", "text", "length", "logprobs",
                                          "scores", "too_long", "version"}, told)


if __name__ == "__main__":
    unittest.main()
