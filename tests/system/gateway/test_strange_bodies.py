#!/usr/bin/env python3
"""Bodies that no client means, at NeMo Gym's and Polar's paths: each is answered with a status that says so, and the gateway lives."""
import json
import random
import unittest

from gym_world import GatewayCase

ROW = {"responses_create_params": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}], "instructions": "y",
                                   "tools": [{"type": "function", "name": "bash"}], "temperature": 1, "text": {"format": {"type": "text"}}},
       "expected_answer": "2", "options": [{"A": "x", "B": "y"}], "grading_mode": "lenient_boxed", "id": 3, "_ng_rollout_id": "a",
       "_ng_task_index": 1, "template_metadata": {"output_regex": "boxed"}, "task": {"task": "t", "prompt": "p", "agent": {"kind": "none"}},
       "verifier_metadata": {"unit_tests": [{"input": "1", "output": "2", "fn_name": "f", "testtype": "functional"}]}, "extra_info": {"task": "{}"}}
TASK = {"task_id": "t", "instruction": "x", "num_samples": 1, "dispatch_priority": 3, "early_stop_min_usable_sessions": 1, "timeout_seconds": 1.5,
        "runtime": {"image": "/no/such", "prepare": [{"type": "exec", "command": "x", "cwd": "/", "env": {"A": "b"}, "max_attempts": 2,
                                                      "retry_backoff_seconds": 1}, {"type": "upload_dir", "source": "/a", "target": "/b"}],
                    "env": {"A": "b"}, "network": "n", "workdir": "/", "cpus": 1, "memory_mb": 1, "storage_mb": 1},
        "agent": {"harness": "shell", "custom_shell": {"command": ["a", "b"]}, "settings": {"temperature": 1, "max_turns": 3}, "env": {"B": "c"}},
        "builder": {"strategy": "per_request"}, "callback_url": "http://127.0.0.1:1/x", "metadata": {"agent_timeout": 3, "eval_sampling_seed_base": 1},
        "evaluator": {"strategy": "test_on_output", "env": {"A": "b"}, "refresh_runtime": True, "config": {
            "test_command": "x", "expected_output_json": "{\"a\": \"PASSED\"}", "repo_dir": "/r", "exclude_patterns": ["a"], "test_timeout": 3}}}
ANSWERS = {"verify_responses": [{"_ng_task_index": 1, "_ng_rollout_index": 2, "reward": 0.5, "flag": True, "response": {"usage": {"a": 1}}}] * 3}
VALUES = (None, True, 0, -1, 2 ** 62, 1e308, "", "x", "\u0001\uffff", "{", "[" * 50, "9" * 400, [], {}, [[]], [None], {"": None}, {"kind": "session"}, ["a", 1])


def strange(value, dice, chance):
    """The same with a few things changed, left out, doubled or moved."""
    if dice.random() < chance:
        return dice.choice(VALUES)
    if isinstance(value, dict):
        kept = {name: strange(one, dice, chance) for name, one in value.items() if dice.random() > chance / 2}
        return kept if dice.random() > chance / 4 else list(kept)
    if isinstance(value, list):
        return [strange(one, dice, chance) for one in value for _ in range(dice.choice((1, 1, 1, 2)))]
    return value


class StrangeBodies(GatewayCase):
    script = {"rules": [{"path": "/completion", "reply": "It is \\boxed{2}."}]}
    slots = 16

    def send(self, path, like, count, statuses):
        dice, waiting = random.Random(path), 0
        for _ in range(count):
            body = strange(like, dice, dice.choice((0.02, 0.1, 0.3)))
            try:
                answer = self.ask("POST", path, body, timeout=10)
            except TimeoutError:  # it is a task, and waits for what nobody offers
                waiting += 1
                continue
            self.assertIn(answer.status, statuses, (body, answer.body[:500]))
            json.loads(answer.body)
        self.assertLess(waiting, 5)
        self.assertEqual(self.ask("GET", "/").status, 200)

    def test_rows(self):
        self.send("/run", ROW, 150, (200, 400))

    def test_requests(self):
        self.send("/v1/responses", dict(ROW["responses_create_params"], stream=False), 100, (200, 400))

    def test_answers(self):
        self.send("/aggregate_metrics", ANSWERS, 150, (200, 400, 422))

    def test_tasks(self):
        self.send("/rollout/task/submit", TASK, 300, (200, 400, 409, 422))

    def test_a_body_of_values_without_end(self):
        many = [1] * (1 << 21)
        for path, body in (("/run", many), ("/run", dict(ROW, expected_answer=many)), ("/rollout/task/submit", dict(TASK, metadata=many))):
            answer = self.ask("POST", path, body)
            self.assertEqual(answer.status, 400)
            self.assertIn(b"it holds more than 1048576 values", answer.body)

    def test_ids(self):
        for name in ("x" * 300, "%00", "%ff", "a%0ab", "..", "a b", "%E2%82%AC"):
            for method in ("GET", "DELETE"):
                self.assertIn(self.ask(method, f"/rollout/task/{name.replace(' ', '%20')}").status, (400, 404))
        for query in ("limit=x", "limit=-1", "limit=99999999999999999999", "since=x&status=%20", "harness="):
            self.assertIn(self.ask("GET", f"/tasks?{query}").status, (200, 422))


if __name__ == "__main__":
    unittest.main()
