"""A small real model as the judge of another's answers: what it says may be wrong or unreadable, the protocol never is."""
import json
import os
import sys
import unittest

from test_real_model import MODEL, SERVER, Llama

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import Engine, Service  # noqa: E402

CRITERIA = [{"name": "correct", "text": "Does it say that the sum of 2 and 2 is 4?"}]
TASK = {"task": "sum", "prompt": "What is 2+2? Answer in one sentence.", "agent": {"kind": "chat"},
        "sampling": {"max_tokens": 48}, "limits": {"eval_s": 300}}


def judged(name, **judge):
    return dict(TASK, task=name, eval={"kind": "judge", "judge": dict(judge, max_tokens=160)})


class RealJudge(unittest.TestCase):
    def test_a_real_model_judges_and_none_of_its_tokens_is_in_a_record(self):
        tasks = [judged("rubric", criteria=CRITERIA, samples=2, temperature=0.5), judged("reference", reference="4")]
        with Llama() as llama, Engine(proxy=llama.url) as judge, \
                Service(engines=[llama.url], options=["--judge", judge.url]) as service:
            ended = service.submit(tasks, "train", samples=2, timeout=600)
            calls = [line for line in judge.log() if line["path"] == "/completion" and line["status"] == 200]
        replies = [json.loads(line["answer"]) if isinstance(line["answer"], str) else line["answer"] for line in calls]
        self.assertGreaterEqual(len(replies), 6, "each rubric was asked about twice, each reference at least once")
        self.assertEqual(len(ended), 4)
        for t in ended:
            self.check(t, llama.url)
        ids = [trace["token_ids"] for t in ended for trace in t["traces"]]
        for reply in replies:
            if len(reply["tokens"]) > 48:  # longer than what the agent may sample: it is not the same by chance
                self.assertFalse(any(contains(trace, reply["tokens"][:49]) for trace in ids), reply["content"])
        print([(t["task"], t["outcome"], t.get("reward"), t["detail"][:120]) for t in ended], flush=True)

    def check(self, t, engine):
        """A verdict, or none and no reward."""
        self.assertEqual((len(t["traces"]), t["engine"]), (1, engine), t)
        if t["outcome"] == "ok":
            self.assertTrue(t["trainable"] and 0 <= t["reward"] <= 1, t)
            self.assertTrue({"judge_calls", "judge_tokens"} <= {metric["name"] for metric in t["metrics"]})
        else:
            self.assertEqual((t["outcome"], t.get("reward"), t["trainable"]), ("task", None, False), t)
            self.assertIn("the judge gave no verdict", t["detail"])


def contains(ids, part):
    return any(ids[at:at + len(part)] == part for at in range(len(ids) - len(part) + 1))


if __name__ == "__main__":
    if not (SERVER and MODEL and os.path.exists(SERVER) and os.path.exists(MODEL)):
        print("skipped: no real engine (SLUICE_LLAMA_SERVER and SLUICE_MODEL are not set; bash tests/run.sh sets them)")
        sys.exit(77)
    unittest.main(verbosity=2)
