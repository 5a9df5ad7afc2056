#!/usr/bin/env python3
"""Polar's rollout API: Q1 to Q8, by their names, what of a request becomes what of a task, and what a restart leaves as it was."""
import atexit
import http.server
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest

from gateway_world import Case, Events, Fleet, add_gateway, call, wait_until
from gym_world import GatewayCase

sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "harnesses"))
from loops import SAID  # noqa: E402

SCRIPT = {"template": "qwen", "rules": [
    {"path": "/completion", "if": "forever", "reply": "never", "delay_ms": 60000},
    {"path": "/completion", "if": "take your time", "reply": "fine", "delay_ms": 3000},
    {"path": "/completion", "if": "one is fast", "times": 1, "reply": "fine"},
    {"path": "/completion", "if": "one is fast", "reply": "never", "delay_ms": 60000},
    {"path": "/completion", "reply": "fine"}]}
LOOP = "prompt = open(os.environ['SLUICE_PROMPT']).read()\nfirst = chat([user(prompt)])\n"
SHELL = "exec python3 - <<'EOF'\n%sEOF\n"
POLAR = os.environ.get("SLUICE_POLAR")  # the folder that has Polar's own `polar`, as a package


def task(task_id, instruction="say it", loop=LOOP, **more):
    return dict({"task_id": task_id, "instruction": instruction, "agent": {"harness": "shell", "custom_shell": SHELL % (SAID + loop)},
                 "evaluator": {"strategy": "session_completed"}}, **more)


class Listener:
    """Takes one POST after the other, and answers none while it holds them."""

    def __init__(self):
        taken, holds = self.taken, self.holds = [], threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                taken.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                while holds.is_set():
                    time.sleep(0.02)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/results"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


SHARED = tempfile.mkdtemp(prefix="sluice-polar-")  # what tasks may take files of
atexit.register(shutil.rmtree, SHARED, True)


class Polar(GatewayCase):
    script, slots, extra = SCRIPT, 8, {"worker_options": ["--task-dir", SHARED]}

    def noted(self):
        with open(os.path.join(self.fleet.root, "state", "gateway.ids"), encoding="utf-8") as names:
            return names.read()

    def submit(self, body, status=200):
        answer = self.ask("POST", "/rollout/task/submit", body)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def get(self, task_id, status=200):
        answer = self.ask("GET", f"/rollout/task/{task_id}")
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def wait_over(self, task_id, *words):
        def over():
            told = self.get(task_id)
            return told if told["status"] in (words or ("completed",)) else None
        return wait_until(over, 60, f"{task_id} over")

    def wait_sessions(self, task_id, status, count):
        def reached():
            told = self.ask("GET", f"/tasks/{task_id}/sessions").json["sessions"]
            return told if sum(one["status"] == status for one in told) >= count else None
        return wait_until(reached, 60, f"{count} sessions of {task_id} {status}")

    def check_trace(self, trace):
        lengths = {len(trace[name]) for name in ("response_ids", "loss_mask", "response_logprobs")}
        self.assertEqual(len(lengths), 1)
        self.assertTrue(trace["prompt_ids"] and trace["response_ids"] and any(trace["loss_mask"]))
        self.assertLessEqual(set(trace["loss_mask"]), {0, 1})
        for mask, logprob in zip(trace["loss_mask"], trace["response_logprobs"]):
            self.assertTrue(mask or logprob == 0.0)

    def test_q1_a_task_of_four_samples(self):
        self.assertEqual(self.submit(task("q1", num_samples=4, metadata={"rollout_step": 7})), {"task_id": "q1", "status": "running"})
        told = self.wait_over("q1")
        self.assertEqual((told["task_id"], told["total_sessions"], told["completed_sessions"], told["result_paths"]), ("q1", 4, 4, []))
        self.assertEqual(len({one["session_id"] for one in told["results"]}), 4)
        for one in told["results"]:
            self.assertRegex(one["session_id"], "^sk-polar-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
            self.assertEqual((one["status"], one["task_id"], one["error"], one["metadata"]), ("COMPLETED", "q1", None, {"rollout_step": 7}))
            trajectory = one["trajectory"]
            self.assertEqual((trajectory["status"], trajectory["error"]), ("COMPLETED", None))
            self.assertEqual(trajectory["metadata"]["task_metadata"], {"rollout_step": 7})
            [trace] = trajectory["traces"]
            self.check_trace(trace)
            self.assertEqual((trace["reward"], trace["finish_reason"]), (1.0, "stop"))
            self.assertEqual(trace["prompt_messages"][-1], {"role": "user", "content": "say it"})
            self.assertEqual(trace["response_messages"], [{"role": "assistant", "content": "fine"}])

    def test_q2_an_id_that_runs_is_refused_and_one_that_ended_is_used_again(self):
        self.submit(task("q2", "take your time"))
        self.assertIn("already running", self.submit(task("q2"), 409)["detail"])
        first = self.wait_over("q2")["results"][0]
        self.submit(task("q2"))
        second = self.wait_over("q2")["results"][0]
        self.assertNotEqual(first["session_id"], second["session_id"])

    def test_q3_exactly_one_of_harness_and_import_path(self):
        for agent in ({}, {"harness": "shell", "import_path": "a:B", "custom_shell": "true"}):
            [problem] = self.submit(task("q3", agent=agent), 422)["detail"]
            self.assertEqual(problem["loc"], ["body", "agent"])
            self.assertIn("exactly one", problem["msg"])

    def test_q4_the_callback_is_one_post_equal_to_what_is_asked_for(self):
        with Listener() as listener:
            self.submit(task("q4", num_samples=2, callback_url=listener.url))
            told = self.wait_over("q4")
            wait_until(lambda: listener.taken, 10, "called back")
            wait_until(lambda: "polar-" in self.noted(), 10, "noted")
            self.restart_gateway()
            self.assertEqual(self.wait_over("q4"), told)
            self.submit(task("q4-after", callback_url=listener.url))
            self.wait_over("q4-after")
            wait_until(lambda: len(listener.taken) > 1, 10, "the next is called back")
            self.assertEqual([path for path, _ in listener.taken], ["/results"] * 2)
            self.assertEqual(listener.taken[0][1], told)
            self.assertEqual(listener.taken[1][1]["task_id"], "q4-after")

    def test_a_callback_that_nobody_knows_to_be_taken_is_made_again_by_the_next_gateway(self):
        with Listener() as listener:
            listener.holds.set()
            self.submit(task("unsure", callback_url=listener.url))
            wait_until(lambda: listener.taken, 60, "called back, and not answered")
            self.restart_gateway()
            listener.holds.clear()
            told = self.wait_over("unsure")
            wait_until(lambda: len(listener.taken) > 1, 10, "called back again")
            self.assertEqual([body for _, body in listener.taken], [told, told])
            group = told["results"][0]["trajectory"]["metadata"]["rollout"].split("/")[0]
            wait_until(lambda: group in self.noted(), 10, "noted")
            self.restart_gateway()
            self.submit(task("unsure-after", callback_url=listener.url))
            self.wait_over("unsure-after")
            wait_until(lambda: len(listener.taken) > 2, 10, "the next is called back")
            self.assertEqual(listener.taken[2][1]["task_id"], "unsure-after")

    def test_a_callback_goes_only_where_the_operator_lets_it(self):
        for url in ("http://192.0.2.1/", "http://metadata.internal/x", "file:///etc/passwd", "http://127.0.0.1/?a=b"):
            [problem] = self.submit(task("elsewhere", callback_url=url), 422)["detail"]
            self.assertEqual(problem["loc"], ["body", "callback_url"], url)

    def test_q5_a_task_that_is_cancelled_has_nothing_to_learn_from(self):
        self.submit(task("q5", "think forever", num_samples=2))
        self.wait_sessions("q5", "RUNNING", 2)
        told = self.ask("DELETE", "/rollout/task/q5").json
        self.assertIn(told["status"], ("cancelling", "cancelled"))
        told = self.wait_over("q5", "cancelled")
        self.assertEqual(len(told["results"]), 2)
        for one in told["results"]:
            self.assertEqual((one["status"], one["trajectory"]["traces"]), ("ERROR", []))
            self.assertIn("cancelled", one["error"])
        self.restart_gateway()
        self.assertEqual(self.get("q5")["status"], "cancelled")
        self.submit(task("q5"))
        self.assertEqual(self.wait_over("q5")["results"][0]["status"], "COMPLETED")

    def test_q6_a_task_that_was_cancelled_before_it_came_is_refused(self):
        self.assertEqual(self.ask("DELETE", "/rollout/task/q6").status, 404)
        told = self.ask("DELETE", "/rollout/task/q6?register_if_missing=true")
        self.assertEqual((told.status, told.json["status"], told.json["total_sessions"]), (200, "cancelled", 0))
        self.assertIn("cancelled before", self.submit(task("q6"), 409)["detail"])
        self.get("q6", 404)

    def test_q7_a_rollout_of_several_traces(self):
        loop = LOOP + "chat([user('another thing')])\nchat([user(prompt), {'role': 'assistant', 'content': first['content']}, user('go on')])\n"
        self.submit(task("q7", loop=loop))
        [one] = self.wait_over("q7")["results"]
        traces, metadata = one["trajectory"]["traces"], one["trajectory"]["metadata"]
        self.assertEqual((len(traces), metadata["trace_count"], metadata["record_count"]), (2, 2, 3))
        for trace in traces:
            self.check_trace(trace)
            self.assertEqual(trace["reward"], 1.0)
        self.assertEqual(sum(sum(trace["loss_mask"]) for trace in traces), 3 * len("fine<"))  # and its end token
        self.assertEqual({len(trace["response_messages"]) for trace in traces}, {1, 3})

    def test_q8_events_come_and_come_again(self):
        for number in range(2):
            with Events(self.gateway, "/events", timeout=60) as events:
                self.submit(task(f"q8-{number}"))
                told = []
                for name, _, data in events:
                    told.append((name, data.get("status")))
                    if name == "task.completed":
                        break
            self.assertEqual(told[:2] + told[-1:], [("task.created", "running"), ("session.state_changed", "REGISTERED"), ("task.completed", "completed")])
            self.assertIn(("session.state_changed", "COMPLETED"), told)
            if number == 0:
                self.restart_gateway()

    def test_q8_a_heartbeat_where_nothing_happens(self):
        with Events(self.gateway, "/events", comments=True) as events:
            self.assertEqual(next(iter(events))[0], None)

    def test_enough_usable_sessions_end_the_others(self):
        body = task("early", "one is fast", num_samples=3, early_stop_min_usable_sessions=1, metadata={"a": 1})
        self.submit(body)
        told = self.wait_over("early")
        self.assertEqual((told["status"], len(told["results"])), ("completed", 3))
        self.assertEqual(sorted(one["status"] for one in told["results"]), ["COMPLETED", "ERROR", "ERROR"])
        for one in told["results"]:
            if one["status"] == "ERROR":
                self.assertTrue(one["metadata"]["early_stop_cancelled"])
                self.assertEqual((one["trajectory"]["traces"], one["metadata"]["a"]), ([], 1))

    def test_a_gateway_that_starts_anew_knows_what_runs(self):
        with Listener() as listener:
            self.submit(task("anew", "take your time", num_samples=2, callback_url=listener.url))
            self.wait_sessions("anew", "RUNNING", 2)
            self.restart_gateway()
            self.assertEqual(self.get("anew")["status"], "running")
            self.submit(task("anew"), 409)
            told = self.wait_over("anew")
            self.assertEqual(len(told["results"]), 2)
            wait_until(lambda: listener.taken, 10, "called back")
            self.assertEqual(listener.taken[0][1], told)

    def test_a_submit_that_the_broker_did_not_answer_is_one_task_or_none(self):
        self.fleet.broker.send(signal.SIGSTOP)
        try:
            self.assertEqual(self.ask("POST", "/rollout/task/submit", task("unanswered")).status, 503)
        finally:
            self.fleet.broker.send(signal.SIGCONT)
        self.assertIn(self.ask("POST", "/rollout/task/submit", task("unanswered")).status, (200, 409))
        self.assertEqual(len(self.wait_over("unanswered")["results"]), 1)
        self.submit(task("unanswered"))
        self.wait_over("unanswered")

    def test_a_set_up_that_fails_is_an_error(self):
        self.submit(task("broken", runtime={"image": "host", "prepare": [{"type": "exec", "command": "exit 3"}]}))
        [one] = self.wait_over("broken")["results"]
        self.assertEqual((one["status"], one["trajectory"]["status"], one["trajectory"]["traces"]), ("ERROR", "ERROR", []))
        self.assertTrue(one["error"].startswith("task: "))

    def test_the_runtime_is_the_sandbox(self):
        prepare = [{"type": "exec", "command": "echo $A$(pwd) >out", "cwd": "/tmp", "env": {"A": "it's "}},
                   {"type": "exec", "command": "echo x >>/tmp/tries; [ $(wc -l </tmp/tries) = 3 ]", "max_attempts": 3}]
        loop = "chat([user(open('/tmp/out').read() + os.environ['B'] + os.environ['C'] + os.getcwd() + open('/tmp/tries').read())])\n"
        body = task("runtime", loop=loop, runtime={"image": "host", "prepare": prepare, "env": {"B": "b", "C": "?"}, "workdir": "/tmp",
                                                   "cpus": 1, "memory_mb": 512, "storage_mb": 64, "network": "host"})
        body["agent"]["env"] = {"C": "c"}
        self.submit(body)
        [one] = self.wait_over("runtime")["results"]
        self.assertIsNone(one["error"])
        self.assertEqual(one["trajectory"]["traces"][0]["prompt_messages"][-1]["content"], "it's /tmp\nbc/tmpx\nx\nx\n")

    def test_harbor_s_tests_score_in_the_agent_s_sandbox(self):
        tests = os.path.join(SHARED, "tests")
        os.makedirs(tests, exist_ok=True)
        with open(os.path.join(tests, "test.sh"), "w", encoding="utf-8") as file:
            file.write("grep -qx $WANTED /tmp/said && echo 0.75 >/logs/verifier/reward.txt\n")
        loop = LOOP + "open('/tmp/said', 'w').write(first['content'])\n"
        self.submit(task("harbor", loop=loop, evaluator={"strategy": "harbor", "env": {"WANTED": "fine"}, "config": {
            "tests_dir": tests, "verifier_timeout": 30}}))
        [one] = self.wait_over("harbor")["results"]
        self.assertEqual((one["error"], one["trajectory"]["traces"][0]["reward"]), (None, 0.75))

    def test_a_patch_is_judged_by_what_its_tests_print(self):
        prepare = [{"type": "exec", "cwd": "/workspace", "command": "git init -q . && echo old >a && git add a && "
                    "git -c user.name=x -c user.email=x@x commit -qm x"}]
        command = "if grep -qx new a; then echo 'PASSED t.py::a'; else echo 'FAILED t.py::a'; fi; echo 'PASSED t.py::b'"
        for wanted, reward in (({"t.py::a": "PASSED", "t.py::b": "PASSED"}, 1.0), ({"t.py::a": "FAILED", "t.py::b": "PASSED"}, 0.0)):
            self.submit(task("patch", loop=LOOP + "open('/workspace/a', 'w').write('new\\n')\n", runtime={"image": "host", "prepare": prepare}, evaluator={
                "strategy": "test_on_output", "refresh_runtime": True, "config": {
                    "repo_dir": "/workspace", "test_command": command, "expected_output_json": json.dumps(wanted)}}))
            [one] = self.wait_over("patch")["results"]
            self.assertEqual((one["error"], one["trajectory"]["traces"][0]["reward"]), (None, reward))

    def test_what_cannot_be_done_is_refused_by_its_field(self):
        shell = {"harness": "shell", "custom_shell": "true"}
        exec_, upload = {"type": "exec", "command": "true"}, {"type": "upload_file", "source": "/a", "target": "/b"}
        for more, place in (
                ({"task_id": ""}, ["task_id"]), ({"task_id": "x" * 257}, ["task_id"]), ({"instruction": None}, ["instruction"]), ({"num_samples": 0}, ["num_samples"]),
                ({"num_samples": "2"}, ["num_samples"]), ({"dispatch_priority": 101}, ["dispatch_priority"]),
                ({"early_stop_min_usable_sessions": 2}, ["early_stop_min_usable_sessions"]), ({"timeout_seconds": 0}, ["timeout_seconds"]),
                ({"agent": dict(shell, harness="vanillux2")}, ["agent", "custom_shell"]), ({"agent": {"harness": "vanillux2"}}, ["agent", "harness"]),
                ({"agent": {"harness": "shell"}}, ["agent", "custom_shell"]), ({"agent": {"import_path": "a:B"}}, ["agent", "import_path"]),
                ({"agent": dict(shell, mcp_servers=[{}])}, ["agent", "mcp_servers"]), ({"agent": dict(shell, settings={"x": 1})}, ["agent", "settings", "x"]),
                ({"agent": "shell"}, ["agent"]), ({"builder": {"strategy": "router_policy"}}, ["builder", "strategy"]),
                ({"evaluator": {"strategy": "harbor_rubric"}}, ["evaluator", "strategy"]), ({"evaluator": {"strategy": "harbor"}}, ["evaluator", "config", "tests_dir"]),
                ({"evaluator": {"strategy": "test_on_output", "config": {"test_command": "x"}}}, ["evaluator", "config", "expected_output_json"]),
                ({"runtime": {}}, ["runtime", "image"]), ({"runtime": {"image": "debian:12"}}, ["runtime", "image"]),
                ({"runtime": {"image": "host", "gpus": 1}}, ["runtime", "gpus"]), ({"runtime": {"image": "host", "kwargs": {"a": 1}}}, ["runtime", "kwargs"]),
                ({"runtime": {"image": "host", "prepare": [exec_, upload]}}, ["runtime", "prepare", 1, "type"]),
                ({"runtime": {"image": "host", "prepare": [{"type": "x"}]}}, ["runtime", "prepare", 0, "type"]),
                ({"runtime": {"image": "host", "prepare": [dict(exec_, max_attempts=11)]}}, ["runtime", "prepare", 0, "max_attempts"]),
                ({"runtime": {"image": "host", "prepare": [dict(exec_, cwd=3)]}}, ["runtime", "prepare", 0, "cwd"]),
                ({"evaluator": {"strategy": "harbor", "config": {"tests_dir": "/a", "tests_target": 1}}}, ["evaluator", "config", "tests_target"]),
                ({"runtime": {"image": "host", "cpus": "2"}}, ["runtime", "cpus"])):
            [problem] = self.submit(dict(task("bad"), **more), 422)["detail"]
            self.assertEqual(problem["loc"], ["body", *place], problem)
        self.get("bad", 404)

    def test_the_status_pages(self):
        self.assertEqual(self.ask("GET", "/health").json, {"status": "ok", "nodes": 1})
        [node] = self.ask("GET", "/nodes").json
        self.assertEqual((node["node_id"], node["healthy"], node["max_run_workers"]), ("sluice", True, 8))
        self.submit(task("pages", num_samples=2))
        self.wait_over("pages")
        one = next(one for one in self.ask("GET", "/tasks?status=completed&harness=shell").json["tasks"] if one["task_id"] == "pages")
        self.assertEqual((one["num_samples"], one["completed_sessions"], one["errored_sessions"], one["mean_reward"], one["mean_traces"]), (2, 2, 0, 1, 1))
        self.assertEqual(self.ask("GET", "/tasks?status=failed").json, {"tasks": []})
        self.assertEqual(self.ask("GET", "/tasks?limit=0").status, 422)
        self.assertEqual([(s["status"], s["reward"]) for s in self.ask("GET", "/tasks/pages/sessions").json["sessions"]], [("COMPLETED", 1.0)] * 2)
        self.assertEqual(self.ask("GET", "/tasks/nothing/sessions").status, 404)
        self.assertEqual(self.ask("GET", "/rollout/status").json["tasks"]["pages"], "completed")

    @unittest.skipUnless(POLAR, "SLUICE_POLAR names no folder that has Polar's package")
    def test_polar_s_own_models_take_what_is_answered(self):
        sys.path.insert(0, POLAR)
        try:
            import pydantic  # noqa: F401
        except ImportError:
            self.skipTest("this Python has no pydantic, which Polar's models are made of")
        from polar.rollout.models import GatewayNodeInfo, TaskRequest, TaskStatus
        body = task("models", num_samples=2)
        self.submit(TaskRequest.model_validate(dict(body, agent={"harness": "shell", "custom_shell": body["agent"]["custom_shell"]})).model_dump(mode="json"))
        self.wait_over("models")
        told = TaskStatus.model_validate(self.get("models"))
        self.assertEqual([str(one.status) for one in told.results], ["COMPLETED"] * 2)
        for node in self.ask("GET", "/nodes").json:
            GatewayNodeInfo.model_validate(node)


class Keys(Case):
    """With keys a task is its owner's, by its id, too."""

    def test_each_key_has_tasks_of_its_own(self):
        fleet = Fleet(keys=True, slots=4)
        fleet.add_engine(SCRIPT)
        gateway = add_gateway(fleet, "--key", fleet.add_key("admin", "gate"))
        tokens = {name: fleet.run("keys", "token", fleet.add_key("trainer", name)).stdout.strip() for name in ("alice", "bob")}

        def ask_as(name, method, path, body=None):
            return call(gateway.port, method, path, body, headers={"Authorization": f"Bearer {tokens[name]}"} if name else {})
        with fleet:
            self.assertEqual(ask_as(None, "POST", "/rollout/task/submit", task("same")).status, 401)
            self.assertEqual(ask_as(None, "GET", "/health").status, 200)
            self.assertEqual(ask_as("alice", "POST", "/rollout/task/submit", task("same", "take your time")).status, 200)
            self.assertEqual(ask_as("bob", "GET", "/rollout/task/same").status, 404)
            self.assertEqual(ask_as("bob", "POST", "/rollout/task/submit", task("same")).status, 200)
            gateway.kill()
            gateway.start()
            for name in tokens:
                wait_until(lambda n=name: ask_as(n, "GET", "/rollout/task/same").json["status"] == "completed", 60, f"{name}'s is over")
            sessions = {ask_as(name, "GET", "/rollout/task/same").json["results"][0]["session_id"] for name in tokens}
            self.assertEqual(len(sessions), 2)


if __name__ == "__main__":
    unittest.main()
