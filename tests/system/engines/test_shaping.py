"""DAPO's overlong penalty and filtering, all the way: what the engine samples, what the evaluator says, what the trainer reads."""
import os
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import SOURCE, Engine, Service  # noqa: E402

sys.path.append(os.path.join(SOURCE, "client", "python"))
from sluice import Client  # noqa: E402

RIGHT = "Let me think. " + "Two and two are four. " * 8 + "So it is \\boxed{4}"
WRONG = "It is \\boxed{5}"
SCRIPT = {"rules": [{"path": "/completion", "if": "wrong", "reply": WRONG}, {"path": "/completion", "reply": RIGHT}]}
BUFFER = 64


def task(name, shaping, prompt="2+2?", **sampling):
    return {"task": name, "prompt": prompt, "agent": {"kind": "chat"}, "sampling": dict({"max_tokens": 1024}, **sampling),
            "eval": {"kind": "math", "answer": "4"}, "shaping": shaping}


def penalty(tokens, most, buffer, whole):
    """Of DAPO's soft overlong punishment (arXiv 2503.14476, equation 13), 0 or less."""
    over = tokens - (most - buffer)
    return -whole * min(max(over / buffer, 0), 1)


class Shaping(unittest.TestCase):
    def run_tasks(self, *tasks):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url]) as service, Client(service.url) as client:
            client.submit(list(tasks), stream="train")
            found = {t.task: t for t in client.trajectories("train", from_seq=1, until_idle=True)}
            shown = service.run("show", found[tasks[0]["task"]].rollout).stdout
        self.assertEqual(len(found), len(tasks))
        return found, shown

    def sampled(self, trajectory):
        return sum(int(trace.mask.sum()) for trace in trajectory.traces)

    def test_a_penalty_bites_by_the_length_and_the_raw_reward_is_kept(self):
        length = self.sampled(self.run_tasks(task("plain", {"max_tokens": 4096, "buffer_tokens": 64}))[0]["plain"])
        self.assertGreater(length, BUFFER)
        most = {"free": length + BUFFER, "first": length + BUFFER - 1, "half": length + BUFFER // 2, "last": length, "beyond": length - 10}
        tasks = [task(name, {"max_tokens": most[name], "buffer_tokens": BUFFER, "penalty": 0.5}) for name in most]
        tasks.append(task("wrong", {"max_tokens": 8, "buffer_tokens": 8}, prompt="wrong: 2+2?"))
        found, shown = self.run_tasks(*tasks)
        for name, bound in most.items():
            t = found[name]
            self.assertEqual((t.outcome, t.trainable, t.raw_reward, self.sampled(t)), ("ok", True, 1.0, length), t)
            self.assertAlmostEqual(t.reward, 1 + penalty(length, bound, BUFFER, 0.5), places=12, msg=name)
        self.assertEqual([found[name].reward for name in ("free", "half", "last", "beyond")], [1.0, 0.75, 0.5, 0.5])
        self.assertEqual(found["first"].reward, 1 - 0.5 / BUFFER)
        self.assertEqual((found["wrong"].raw_reward, found["wrong"].reward), (0.0, -1.0))
        self.assertIn("reward", shown)

    def test_what_a_limit_cut_off_is_filtered_where_the_task_says_so(self):
        cut = {"max_tokens": 32, "buffer_tokens": 16, "truncated": "filter"}
        found, _ = self.run_tasks(task("filtered", cut, max_tokens=32), task("kept", dict(cut, truncated="keep"), max_tokens=32),
                                  task("whole", dict(cut, max_tokens=1024)))
        self.assertEqual([(found[name].truncated, found[name].trainable) for name in ("filtered", "kept", "whole")],
                         [(True, False), (True, True), (False, True)])
        self.assertEqual([(found[name].raw_reward, found[name].reward) for name in ("filtered", "kept", "whole")],
                         [(0.0, -1.0), (0.0, -1.0), (1.0, 1.0)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
