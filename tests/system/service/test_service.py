"""Tasks go in, trajectories come out: the whole service with a scripted engine, checked against the engine's own log."""
import json
import os
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import PYTHON, SLUICE, SOURCE, Engine, Service, check_trajectories  # noqa: E402

SCRIPT = {"rules": [
    {"path": "/completion", "if": "write hello", "replies": ["I write it.\n```bash\necho hello >answer.txt\n```\n", "TASK_DONE"]},
    {"path": "/completion", "if": "<returncode>", "reply": "TASK_DONE"},
    {"path": "/completion", "if": "1+1", "reply": "It is \\boxed{2}."},
    {"path": "/completion", "if": "wrong", "reply": "It is \\boxed{3}."},
]}
MATH = {"task": "add", "prompt": "What is 1+1?", "agent": {"kind": "chat"}, "eval": {"kind": "math", "answer": "2"}}
WRONG = {"task": "miss", "prompt": "Be wrong.", "agent": {"kind": "chat"}, "eval": {"kind": "math", "answer": "2"}}
SHELL = {"task": "hello", "prompt": "Please write hello.", "agent": {"kind": "bash", "max_turns": 4},
         "setup": ["echo seed >seed.txt"],
         "eval": {"kind": "command", "command": "grep -qx hello answer.txt && grep -qx seed seed.txt"}}


def sampled_by(engine):
    """The ids and log-probabilities of each completion, as the engine's own log has them."""
    calls = set()
    for line in engine.log():
        if line["path"] == "/completion" and line["status"] == 200:
            answer = line["answer"] if isinstance(line["answer"], dict) else json.loads(line["answer"])
            calls.add((tuple(line["request"]["prompt"] if isinstance(line["request"], dict)
                             else json.loads(line["request"])["prompt"]), tuple(answer["tokens"])))
        if line["path"] == "/v1/completions" and line["status"] == 200:
            calls.add((tuple(line["request"]["prompt"]), tuple(line["answer"]["choices"][0]["token_ids"])))
    return calls


class WithEngine(unittest.TestCase):
    def check_tokens(self, trajectories, engine):
        """Each sampled turn is a call in the engine's log: its prompt is all that stands before it, its ids are its ids."""
        calls = sampled_by(engine)
        turns = 0
        for t in trajectories:
            for trace in t["traces"]:
                for turn in trace["turns"]:
                    ids = trace["token_ids"][turn["offset"]:turn["offset"] + turn["length"]]
                    mask = set(trace["mask"][turn["offset"]:turn["offset"] + turn["length"]])
                    if turn["role"] == "assistant":
                        turns += 1
                        self.assertEqual(mask, {0} if turn.get("masked") else {1})
                        self.assertIn((tuple(trace["token_ids"][:turn["offset"]]), tuple(ids)), calls)
                    elif ids:
                        self.assertEqual(mask, {0})
        self.assertGreater(turns, 0)

    def test_a_group_of_each_kind(self):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url]) as service:
            trajectories = service.submit([MATH, WRONG, SHELL], "train", samples=4)
            check_trajectories(self, trajectories, 3, 4)
            rewards = {}
            for t in trajectories:
                self.assertEqual(t["outcome"], "ok", t)
                self.assertTrue(t["trainable"])
                rewards.setdefault(t["task"], set()).add(t["reward"])
            self.assertEqual(rewards, {"add": {1.0}, "miss": {0.0}, "hello": {1.0}})
            self.check_tokens(trajectories, engine)
            shell = [t for t in trajectories if t["task"] == "hello"]
            self.assertEqual(len({t["init_layer"] for t in shell}), 1)
            self.assertTrue(shell[0]["init_layer"].startswith("sha256:"))

            shown = service.run("show", shell[0]["rollout"]).stdout
            self.assertIn("echo hello", shown)
            self.assertIn("reward", shown)
            again = service.submit([MATH, WRONG, SHELL], "train", samples=4)
            self.assertEqual({t["rollout"] for t in again}, {t["rollout"] for t in trajectories})

    def test_an_engine_that_is_away_for_a_while_costs_no_reward(self):
        script = {"rules": [{"path": "/completion", "fault": "500", "times": 3}] + SCRIPT["rules"]}
        with Engine(script) as engine, Service(engines=[engine.url]) as service:
            trajectories = service.submit([MATH], "faults", samples=4)
            check_trajectories(self, trajectories, 1, 4)
            self.assertEqual({t["reward"] for t in trajectories}, {1.0})

    def test_an_engine_that_stays_broken_is_infra_without_reward(self):
        settings = os.environ.get("SLUICE_INFRA_TASK_SECONDS", "4")
        task = dict(MATH, limits={"run_s": int(settings)})
        script = {"rules": [{"path": "/completion", "fault": "garbage"}]}
        with Engine(script) as engine, Service(engines=[engine.url]) as service:
            waiting, out = service.submit([task], "broken", samples=1, wait=False)
            trajectories = service.finish(waiting, out, timeout=400)
            self.assertEqual(waiting.returncode, 3)
            for t in trajectories:
                self.assertEqual((t["outcome"], t["trainable"], t.get("reward")), ("infra", False, None), t)

    def test_cancel_ends_what_runs(self):
        script = {"rules": [{"path": "/completion", "delay_ms": 60000, "reply": "late"}]}
        with Engine(script) as engine, Service(engines=[engine.url]) as service:
            waiting, out = service.submit([MATH], "cancelled", samples=3, wait=False)
            while service.status()["stages"]["run"]["leased"] < 3:
                self.assertIsNone(waiting.poll())
            service.run("cancel", "--stream", "cancelled")
            trajectories = service.finish(waiting, out, timeout=60)
            self.assertEqual({(t["outcome"], t["trainable"]) for t in trajectories}, {("cancelled", False)})

    def test_python_reads_the_same_trajectories(self):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url]) as service:
            program = (
                "from sluice import Client\n"
                f"client = Client('{service.url}')\n"
                f"client.submit([{MATH!r}, {SHELL!r}], stream='py', samples=2)\n"
                "for t in client.trajectories('py', until_idle=True, timeout=60):\n"
                "    trace = t.traces[0]\n"
                "    assert trace.token_ids.dtype == 'uint32' and trace.logprobs.dtype == 'float32'\n"
                "    assert trace.token_ids.size == trace.mask.size == trace.logprobs.size > 0\n"
                "    print(t.seq, t.task, t.reward, int(trace.mask.sum()))\n")
            done = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, timeout=120,
                                  env=dict(service.environment, PYTHONPATH=os.path.join(SOURCE, "client", "python")))
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = [line.split() for line in done.stdout.splitlines()]
            self.assertEqual([int(line[0]) for line in lines], [1, 2, 3, 4])
            self.assertEqual({(line[1], line[2]) for line in lines}, {("add", "1.0"), ("hello", "1.0")})

    def test_a_malformed_line_is_named_and_nothing_is_submitted(self):
        with Service() as service:
            path = os.path.join(service.root, "bad.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"task": "good", "kind": "noop"}\n{"task": "bad", "kind": "noop", "samples": -1}\n{"oops\n')
            done = service.run("submit", path, "--stream", "bad", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"bad\.jsonl:2: samples")
            self.assertRegex(done.stderr, r"bad\.jsonl:3: ")
            self.assertEqual(service.status()["rollouts"]["accepted"], 0)



if __name__ == "__main__":
    unittest.main()
