"""Steps on a real model: each step's trace is what the engine reported, id for id, and `sluice verify` scores it the same again."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from test_real_model import MODEL, SERVER, Llama, agrees, recorded_calls

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import SLUICE, Engine, Service  # noqa: E402

TEST_SH = "echo 0.5 > /logs/verifier/reward.txt\n"
TASK = {"task": "shop", "agent": {"kind": "chat"}, "sampling": {"max_tokens": 32, "temperature": 0.8},
        "eval": {"kind": "verifier", "sandbox": "agent", "files": {"/tests/test.sh": TEST_SH}},
        "steps": [{"name": "first", "prompt": "Say hello."}, {"name": "second", "prompt": "What is two and two?"}]}
SAMPLES = 2


class Steps(unittest.TestCase):
    def test_each_steps_trace_is_exact_and_scores_the_same_again(self):
        with tempfile.TemporaryDirectory() as into, Llama() as llama, Engine(proxy=llama.url) as engine:
            with Service(engines=[engine.url]) as service:
                ended = service.submit([TASK], "real", samples=SAMPLES)
                out = os.path.join(service.root, "real.out.jsonl")
                os.rename(out, os.path.join(into, "all.jsonl"))
            calls = recorded_calls(engine)
            done = subprocess.run([SLUICE, "verify", os.path.join(into, "all.jsonl"), "--engine", llama.url, "--json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(len(ended), SAMPLES)
        for t in ended:
            self.check(t, calls)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        totals = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((sum(totals["errors"].values()), totals["unscored"]), (0, 0), totals)
        self.assertEqual(totals["sampled"], sum(sum(trace["mask"]) for t in ended for trace in t["traces"]))

    def check(self, t, calls):
        self.assertEqual(t["reward"], 0.5, t["detail"])
        self.assertEqual([trace["reason"] for trace in t["traces"]], ["", "step: second"], t["detail"])
        for trace in t["traces"]:
            ids = trace["token_ids"]
            self.assertEqual([turn["role"] for turn in trace["turns"]], ["prompt", "assistant"])  # a conversation of its own
            for turn in trace["turns"]:
                start, end = turn["offset"], turn["offset"] + turn["length"]
                if turn["role"] == "assistant":
                    key = (tuple(ids[:start]), tuple(ids[start:end]))
                    self.assertIn(key, calls, f"{t['rollout']}: the engine never reported this turn")
                    self.assertTrue(any(agrees(ids[start:end], trace["logprobs"][start:end], reported) for reported in calls[key]), turn)


if __name__ == "__main__":
    if not (SERVER and MODEL and os.path.exists(SERVER) and os.path.exists(MODEL)):
        print("skipped: no real engine (SLUICE_LLAMA_SERVER and SLUICE_MODEL are not set; bash tests/run.sh sets them)")
        sys.exit(77)
    unittest.main()
