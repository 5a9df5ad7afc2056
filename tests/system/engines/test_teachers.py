"""Trajectories that another model scores: each sampled token has what an engine of the teacher's policy makes of it."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path += [__file__.rsplit("/", 2)[0], __file__.rsplit("/", 3)[0] + "/engines"]  # tests/system, tests/engines
import scripted_engine  # noqa: E402
from harness import PYTHON, SOURCE, Engine, Service, wait_until  # noqa: E402

PAGE = os.path.join(SOURCE, "docs", "trainers", "distillation.md")
TOOL_CALL = "I look.\n```bash\necho seen\n```"
BASH = {"rules": [{"path": "/completion", "replies": [TOOL_CALL, "I am done.\n```bash\nexit\n```"]}]}


def task(name="sum", **more):
    return {"task": name, "prompt": "What is 2+2?", "agent": {"kind": "chat"}, "score": {"engine": "teacher", "top_k": 3}, **more}


def columns(trace):
    return {column["name"]: column for column in trace.get("columns", [])}


def scored(engine):
    return [line for line in engine.log() if line["path"] == "/completion"]


class Teachers(unittest.TestCase):
    def open(self, *teachers, actor=None, **more):
        self.actor = self.enter(Engine(actor or {"rules": [{"path": "/completion", "reply": "It is 4."}]}))
        self.teachers = [self.enter(Engine(script)) for script in teachers]
        service = self.enter(Service(engines=[self.actor.url], **more))
        for engine in self.teachers:
            service.run("engine", "add", engine.url, "--policy", "teacher")
        return service

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def check_scored(self, t, top_k=3):
        """All of it, by the scripted model's formula, which is the policy's, too."""
        self.assertTrue(t["trainable"], t)
        for trace in t["traces"]:
            found, mask = columns(trace), trace["mask"]
            first, last = mask.index(1), len(mask) - mask[::-1].index(1)
            self.assertEqual(sorted(found), ["teacher_logprobs", "top_ids", "top_logprobs"][:3 if top_k else 1])
            for column in found.values():
                self.assertEqual((column["offset"], column["rows"]), (first, last - first))
            for at in range(first, last):
                told, row = found["teacher_logprobs"]["values"][at - first], slice((at - first) * top_k, (at - first + 1) * top_k)
                if not mask[at]:
                    self.assertEqual(told, 0)
                    continue
                self.assertAlmostEqual(told, trace["logprobs"][at], 4)
                best = sorted(range(scripted_engine.VOCABULARY), key=lambda id: -scripted_engine.logprob(at, id))[:top_k]
                self.assertEqual(found["top_ids"]["values"][row], best)
                for id, value in zip(best, found["top_logprobs"]["values"][row]):
                    self.assertAlmostEqual(value, scripted_engine.logprob(at, id), 4)

    def test_what_the_teacher_says_is_in_the_trajectory_beside_the_reward(self):
        service = self.open({"model": "big.gguf"}, actor=BASH)
        many = task("many", agent={"kind": "bash"}, eval={"kind": "command", "command": "true"})
        ended = {t["task"]: t for t in service.submit([many, task("one")], "train", timeout=120)}
        self.assertEqual((ended["many"]["reward"], ended["one"]["reward"]), (1.0, None))
        for t in ended.values():
            self.check_scored(t)
            self.assertEqual(t["engine"], self.actor.url)
            self.assertIn("tokens scored by big.gguf", t["detail"])
            metrics = {metric["name"]: metric["value"] for metric in t["metrics"]}
            self.assertEqual(metrics["teacher_tokens"], sum(sum(trace["mask"]) for trace in t["traces"]))
        self.assertGreater(len(ended["many"]["traces"][0]["turns"]), 3)
        shown = json.loads(service.run("show", ended["many"]["rollout"], "--json").stdout)
        self.check_scored(shown)

    def test_a_teacher_may_be_another_kind_of_server(self):
        service = self.open({"dialect": "vllm"})
        for t in service.submit([task()], "train", timeout=120):
            self.check_scored(t)
        self.assertEqual(len([line for line in self.teachers[0].log() if "prompt_logprobs" in json.dumps(line["request"])]), 1)

    def test_one_engine_judges_and_scores(self):
        judge = {"context": 16384, "rules": [{"path": "/completion", "if": "VERDICT-", "reply": "{verdict} {\"right\": \"yes\"}"}]}
        service = self.open(judge)
        judged = {"kind": "judge", "judge": {"policy": "teacher", "criteria": [{"name": "right", "text": "Is it?"}]}}
        t, = service.submit([task(eval=judged)], "train", timeout=120)
        self.assertEqual(t["reward"], 1.0, t)
        self.check_scored(t)

    def test_a_teacher_with_another_tokenizer_is_refused_by_name(self):
        service = self.open({"other_tokenizer": True})
        t, = service.submit([task()], "train", timeout=120)
        self.assertEqual((t["outcome"], t["reward"], t["trainable"]), ("task", None, False), t)
        self.assertIn("its tokenizer is not that of the policy", t["detail"])
        self.assertEqual([columns(trace) for trace in t["traces"]], [{}])
        self.assertEqual(scored(self.teachers[0]), [])

    def test_a_teacher_that_fails_costs_no_trajectory_and_another_is_asked(self):
        service = self.open({"rules": [{"path": "/completion", "times": 5}, {"path": "/completion", "fault": "500"}]}, {})
        ended = service.submit([task(f"t{i}") for i in range(4)], "train", timeout=200)
        self.assertEqual(len(ended), 4)
        for t in ended:
            self.check_scored(t)

    def test_tasks_that_are_too_impatient_do_not_get_a_teacher_set_aside(self):
        service = self.open({"rules": [{"path": "/completion", "delay_ms": 300}]})
        hasty = [task(f"hasty{i}", score={"engine": "teacher", "top_k": 3, "timeout_s": 1}) for i in range(5)]
        ended = {t["task"]: t for t in service.submit([*hasty, *(task(f"t{i}") for i in range(3))], "train", timeout=200)}
        for name, t in ended.items():
            if not name.startswith("hasty"):
                self.check_scored(t)
                continue
            self.assertEqual((t["outcome"], t["trainable"]), ("task", False), t)
            self.assertIn("score.timeout_s, 1 s, was over after ", t["detail"])
        teacher, = [e for e in service.status()["engines"] if e["url"] == self.teachers[0].url]
        self.assertNotIn("error", teacher)
        self.assertEqual(service.status()["counters"]["breaks"], 0)

    def test_without_a_teacher_evaluations_wait_and_the_service_says_for_what(self):
        service = self.open()
        waiting, out = service.submit([task()], "train", wait=False)
        advice = "evaluations need an engine of the policy teacher and none is registered: sluice engine add URL --policy teacher"
        wait_until(lambda: advice in (service.status() or {"advice": []})["advice"], 30, "status says what is missing")
        late = self.enter(Engine({}))
        service.run("engine", "add", late.url, "--policy", "teacher")
        for t in service.finish(waiting, out, timeout=60):
            self.check_scored(t)

    def test_over_a_kill_of_broker_and_worker_each_is_scored_whole_and_once(self):
        service = self.open({"rules": [{"path": "/completion", "delay_ms": 100}]})
        waiting, out = service.submit([task(f"t{i}") for i in range(6)], "train", wait=False)
        wait_until(lambda: len(scored(self.teachers[0])) >= 4, 60, "a scoring has begun")
        service.kill("sluice-worker", "eval")
        wait_until(lambda: len(scored(self.teachers[0])) >= 12, 60, "another has begun")
        service.kill("sluice-broker")
        ended = service.finish(waiting, out, timeout=200)
        self.assertEqual(len({t["rollout"] for t in ended}), 6)
        for t in ended:
            self.check_scored(t)

    def test_the_script_of_the_page_runs(self):
        with open(PAGE, encoding="utf-8") as text:
            programs = re.findall(r"^```python\n(.*?)^```$", text.read(), re.S | re.M)
        self.assertEqual(len(programs), 1)
        service = self.open({})
        environment = dict(service.environment, PYTHONPATH=os.path.join(SOURCE, "client", "python"), PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run([PYTHON, "-c", programs[0]], cwd=service.root, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("tokens, reverse KL 0.0000", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
