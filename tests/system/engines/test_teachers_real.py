"""A real engine as the teacher of the same model: what it says is what the policy said, and what `sluice verify` finds."""
import json
import os
import sys
import unittest

from test_real_model import MODEL, SERVER, Llama

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import Engine, Service, wait_until  # noqa: E402

EXACT = ["--ubatch-size", "1"]  # each token is computed alone: the same to the last digit (docs/verify.md)
PROMPTS = ["Name a river in Europe.", "Say hello in \u65e5\u672c\u8a9e with an emoji.", "Count from one to five."]
TASKS = [{"task": f"t{i}-{top_k}", "prompt": prompt, "agent": {"kind": "chat"}, "sampling": {"max_tokens": 24},
          "limits": {"eval_s": 300}, "score": {"engine": "teacher", "top_k": top_k}}
         for top_k in (0, 4) for i, prompt in enumerate(PROMPTS)]


class RealTeacher(unittest.TestCase):
    def test_the_same_model_says_the_same_also_when_the_eval_worker_is_killed(self):
        with Llama(options=EXACT) as policy, Llama(options=EXACT) as llama, Engine(proxy=llama.url) as teacher, \
                Service(engines=[policy.url], options=["--teacher", teacher.url]) as service:
            waiting, out = service.submit(TASKS, "train", wait=False)
            scores = lambda: sum(line["path"] == "/completion" for line in teacher.log())
            wait_until(lambda: scores() >= 20, 300, "a scoring is on its way")
            service.kill("sluice-worker", "eval")
            ended = service.finish(waiting, out, timeout=600)
            self.assertEqual(len(ended), len(TASKS))
            sampled = sum(self.check(t) for t in ended)
            report = self.verify(service, out, llama.url)
        self.assertEqual((report["recorded"]["tokens"], sum(report["errors"].values())), (sampled, 0), report)
        self.assertLess(report["recorded"]["mean"], 1e-4, report)
        print(f"{sampled} tokens, verify: {report['recorded']}", flush=True)

    def check(self, t):
        """Its number of sampled tokens."""
        self.assertTrue(t["trainable"], t)
        trace, = t["traces"]
        columns = {column["name"]: column for column in trace["columns"]}
        first, sampled = trace["mask"].index(1), sum(trace["mask"])
        self.assertEqual({column["offset"] for column in columns.values()}, {first})
        told = columns["teacher_logprobs"]["values"]
        self.assertEqual(len(told), sampled)
        if t["task"].endswith("-0"):
            self.assertEqual((told, list(columns)), (trace["logprobs"][first:first + sampled], ["teacher_logprobs"]))
            return sampled
        for at, value in enumerate(told):
            # The server adds up all probabilities in an order that depends on how many of the likeliest it tells.
            self.assertAlmostEqual(value, trace["logprobs"][first + at], 3)
            ids, logprobs = (columns[name]["values"][4 * at:4 * at + 4] for name in ("top_ids", "top_logprobs"))
            self.assertEqual((logprobs, len(set(ids))), (sorted(logprobs, reverse=True), 4))
            id = trace["token_ids"][first + at]
            self.assertLessEqual(value, logprobs[0] + 1e-6)
            if id in ids:
                self.assertAlmostEqual(logprobs[ids.index(id)], value, 5)
        return sampled

    def verify(self, service, out, url):
        done = service.run("verify", out, "--engine", url, "--once", "--json", check=False, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    if not (SERVER and MODEL and os.path.exists(SERVER) and os.path.exists(MODEL)):
        print("skipped: no real engine (SLUICE_LLAMA_SERVER and SLUICE_MODEL are not set; bash tests/run.sh sets them)")
        sys.exit(77)
    unittest.main(verbosity=2)
