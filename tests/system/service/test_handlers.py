"""Handlers as docs/handlers.md shows them: Python beside the workers and inside a sandbox, an agent whose ids are the engine's,
and a handler that is killed while it works."""
import json
import os
import re
import shlex
import signal
import sys
import tempfile
import unittest

import test_service

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import PYTHON, SOURCE, Engine, Service, wait_until  # noqa: E402

sys.path.append(os.path.join(SOURCE, "client", "python"))
from sluice import Client  # noqa: E402

SCRIPT = {"rules": [{"path": "/completion", "if": "Are you sure", "reply": "2"},
                    {"path": "/completion", "if": "1+1", "reply": "It is 2."}]}
MORE = '''
import json
import os

@evaluator
async def left(job):
    """What the agent left in its sandbox."""
    out = await job.exec("cat made.txt; cat /run/sluice/answer")
    return {"parts": {"made": float("hello" in out.text), "said": (float("said" in out.text), 0.5)}, "lines": len(out.text)}

@agent
def peeks(job):
    return json.dumps(job.task)

@evaluator
def shown(answer, task, job):
    """Whether nobody was shown what is not his."""
    inside = job.exec("cat /run/sluice/task.json").text
    assert "secret" not in answer and json.loads(answer)["eval"] == {"kind": "shown"}, answer
    assert "solution" not in task and "solution" not in json.loads(inside), inside
    return float(task["eval"]["answer"] == "secret" and "secret" in inside)

@tool
def tick(times: int, job) -> str:
    """Ticks.

    times: how often
    """
    job.note("ticked", ticks=times, found=1)
    return "ticked"

@agent
async def noter(job):
    await job.note("a plan", found=2, lines=99, refused=0)
    await job.note(found=3, odd=0.5)
    await job.write_file("made.txt", "hello")
    try:
        await job.note(**{f"n{i}": i for i in range(300)})
    except Exception as why:
        await job.note(refused=float("more than 256 metrics" in str(why)))
    return "said"

@evaluator
def broken():
    return {}["gold"]

@agent
def maker(job):
    job.write_file("made.txt", "hello")
    return "said"

@evaluator
def dies_once():
    flag = os.path.join(os.path.dirname(__file__), "died")
    if not os.path.exists(flag):
        open(flag, "w").close()
        os.kill(os.getpid(), 9)
    return 1
'''
OWN = '''
import msgpack, socket, struct
worker = socket.socket(fileno=3)
def send(wire, **fields):
    message = msgpack.packb(wire) + msgpack.packb(fields)
    worker.sendall(struct.pack(">I", len(message)) + message)
send("handler.hello", protocol=1, offers='[{"role": "evaluator", "name": "mine"}]')
while True:
    head = worker.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        break
    unpacker = msgpack.Unpacker()
    unpacker.feed(worker.recv(struct.unpack(">I", head)[0], socket.MSG_WAITALL))
    wire, told = unpacker.unpack(), unpacker.unpack()
    if wire == "handler.begin":
        send("handler.score", id=told["id"], reward=float(told["answer"] == "said"))
'''


def example():
    """The Python of the page, as it stands there."""
    with open(os.path.join(SOURCE, "docs", "handlers.md"), encoding="utf-8") as page:
        return re.search(r"```python\n(.*?)```", page.read(), re.S).group(1)


class Handlers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "mine.py")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(example() + MORE)

    def service(self, engines=()):
        package = shlex.quote(os.path.join(SOURCE, "client", "python"))
        command = f"PYTHONPATH={package} {PYTHON} -m sluice.handlers {shlex.quote(self.path)}"
        return Service(engines=engines, options=["--handler", f"mine={command}"])

    def run_tasks(self, service, *tasks):
        return {t["task"]: t for t in service.submit(list(tasks), "train")}

    def test_the_pages_agent_samples_exactly_and_its_evaluator_scores(self):
        task = {"task": "sum", "prompt": "What is 1+1?", "metadata": {"gold": "2"}, "agent": {"kind": "twice"}, "eval": {"kind": "same_words"}}
        with Engine(SCRIPT) as engine, self.service([engine.url]) as service:
            ended = self.run_tasks(service, task, dict(task, task="by-a-built-in", eval={"kind": "exact", "answer": "2"}))
            test_service.WithEngine.check_tokens(self, ended.values(), engine)
        for t in ended.values():
            self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), t)
            self.assertEqual([turn["role"] for turn in t["traces"][0]["turns"]], ["prompt", "assistant", "user", "assistant"])

    def test_the_demos_tasks_use_the_pages_agent_tool_and_evaluator(self):
        with open(os.path.join(SOURCE, "client", "demo", "handlers.jsonl"), encoding="utf-8") as lines:
            tasks = [json.loads(line) for line in lines]
        with Engine(SCRIPT) as engine, self.service([engine.url]) as service:
            ended = self.run_tasks(service, *tasks)
        self.assertEqual([(t["outcome"], t["reward"]) for t in ended.values()], [("ok", 1.0)] * 2, ended)
        self.assertIn("look_up: ", json.dumps(ended["handler-tool"]["messages"]))
        self.assertFalse(any("differs" in t["detail"] for t in ended.values()), ended)

    def test_files_parts_and_exceptions(self):
        maker = {"prompt": "p", "agent": {"kind": "maker", "engine": "none"}}
        with self.service() as service:
            ended = self.run_tasks(service, dict(maker, task="left", eval={"kind": "left"}),
                                   dict(maker, task="broken", eval={"kind": "broken"}))
        self.assertEqual((ended["left"]["outcome"], ended["left"]["reward"]), ("ok", 1.5), ended["left"])
        self.assertEqual((ended["broken"]["outcome"], ended["broken"]["reward"]), ("task", None))
        self.assertIn("KeyError: 'gold'", ended["broken"]["detail"])
        self.assertIn("mine.py", ended["broken"]["detail"])

    def test_what_agents_and_tools_note_is_kept_and_the_evaluators_number_comes_first(self):
        task = {"prompt": "p", "eval": {"kind": "left"}}
        script = [{"tool": "tick", "arguments": {"times": 7}}, {"tool": "bash", "arguments": {"command": "echo hello > made.txt"}},
                  {"tool": "tick", "arguments": {"times": 8}}]
        with self.service() as service:
            ended = self.run_tasks(service, dict(task, task="noter", agent={"kind": "noter", "engine": "none"}),
                                   dict(task, task="ticker", agent={"kind": "replay", "script": script}))
            with Client(service.url) as client:
                read = {t.task: t for t in client.trajectories("train", from_seq=1, until_idle=True)}
        for name, noted in (("noter", {"found": 3, "odd": 0.5, "refused": 1}), ("ticker", {"ticks": 8, "found": 1})):
            t = ended[name]
            self.assertEqual(t["outcome"], "ok", t)
            metrics = {metric["name"]: metric["value"] for metric in t["metrics"]}
            self.assertEqual(len(metrics), len(t["metrics"]))
            self.assertEqual(read[name].metrics, metrics)
            self.assertEqual(metrics["lines"], len("hello") + (0 if name == "ticker" else len("said")) + (name == "ticker"))
            self.assertEqual({key: value for key, value in metrics.items() if key in noted}, noted)
        self.assertEqual([m["content"] for m in ended["noter"]["messages"] if m["role"] == "note"], ["a plan"])
        self.assertEqual([m["content"] for m in ended["ticker"]["messages"] if m["role"] == "note"], ["ticked", "ticked"])

    def test_no_agent_is_shown_how_it_is_judged_and_nobody_the_solution(self):
        task = {"task": "shown", "prompt": "p", "agent": {"kind": "peeks", "engine": "none"}, "solution": {"answer": "the secret"},
                "eval": {"kind": "shown", "answer": "secret", "files": {"/eval/key": "secret"}}}
        with self.service() as service:
            ended = self.run_tasks(service, task, dict(task, task="oracle", agent={"kind": "oracle"}, eval={"kind": "exact", "answer": "the secret"}))
        self.assertEqual((ended["shown"]["outcome"], ended["shown"]["reward"]), ("ok", 1.0), ended["shown"])
        self.assertEqual((ended["oracle"]["outcome"], ended["oracle"]["reward"]), ("ok", 1.0), ended["oracle"])

    def test_a_handler_that_dies_costs_a_try_and_is_started_again(self):
        task = {"task": "dies", "prompt": "p", "agent": {"kind": "none"}, "eval": {"kind": "dies_once"}}
        with self.service() as service:
            ended = self.run_tasks(service, task)
            self.assertIn("handler.died", service.read_log())
        self.assertEqual((ended["dies"]["outcome"], ended["dies"]["reward"]), ("ok", 1.0), ended["dies"])
        self.assertGreater(ended["dies"]["attempt"], 1)

    def test_a_handler_that_comes_with_its_task_runs_in_the_sandbox(self):
        task = {"task": "own", "prompt": "p", "agent": {"kind": "maker", "engine": "none"},
                "handlers": [{"name": "mine", "command": "python3 /eval/mine.py"}],
                "eval": {"kind": "mine", "files": {"/eval/mine.py": OWN}}}
        with self.service() as service:
            ended = self.run_tasks(service, task)
        self.assertEqual((ended["own"]["outcome"], ended["own"]["reward"]), ("ok", 1.0), ended["own"])

    def test_nothing_of_a_handler_is_left_when_its_worker_is_killed(self):
        with self.service() as service:
            handlers = wait_until(lambda: pids_of(self.path), 20, "the handlers run")
            for pid in service.processes("sluice-worker"):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not set(handlers) & set(pids_of(self.path)), 20, "they end with their workers")


def pids_of(path):
    """The handlers' processes that have it on their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                argv = file.read().split(b"\0")
                if argv[1:3] == [b"-m", b"sluice.handlers"] and path.encode() in argv:
                    found.append(int(pid))
        except OSError:
            pass
    return found


if __name__ == "__main__":
    unittest.main()
