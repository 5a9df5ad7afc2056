#!/usr/bin/env python3
"""NeMo Gym's head server and agent in one: G0 to G7, by their names, and what rows may hold."""
import json
import os
import subprocess
import unittest

from gateway_world import Events, wait_until
from gym_world import GatewayCase

LONG = "at length, " * 7000
SCRIPT = {"context": 1 << 17, "rules": [
    {"path": "/completion", "if": "Be broken", "fault": "500"},
    {"path": "/completion", "if": "Speak at length", "reply": LONG},
    {"path": "/completion", "if": "take your time", "reply": "It is \\boxed{2}.", "delay_ms": 4000},
    {"path": "/completion", "if": "forever", "reply": "It is \\boxed{2}.", "delay_ms": 60000},
    {"path": "/completion", "if": "write hello", "replies": ["I write it.\n```bash\necho hello >answer.txt\n```\n", "TASK_DONE"]},
    {"path": "/completion", "if": "<returncode>", "reply": "TASK_DONE"},
    {"path": "/completion", "if": "capital", "reply": "It is \\boxed{B}."},
    {"path": "/completion", "if": "program", "reply": "```python\nprint(int(input()) * 2)\n```"},
    {"path": "/completion", "reply": "It is \\boxed{2}."}]}
TOKENS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
COLLECTOR = os.environ.get("SLUICE_NEMO_GYM")  # the folder of a virtual environment that has nemo-gym


def row(number, text="What is 1+1?", **more):
    return dict({"responses_create_params": {"input": [{"role": "user", "content": text}]}, "expected_answer": "2", "id": f"q{number}",
                 "_ng_task_index": number, "_ng_rollout_index": 0, "agent_ref": {"name": "sluice"}}, **more)


def shell(number, text="Please write hello.", **more):
    return row(number, "", responses_create_params={"input": []}, task=dict(
        {"task": "shell", "prompt": text, "agent": {"kind": "bash", "max_turns": 4}, "setup": ["echo seed >seed.txt"],
         "eval": {"kind": "command", "command": "grep -qx hello answer.txt && grep -qx seed seed.txt"}}, **more))


def with_tokens(answer):
    return [item for item in answer["response"]["output"] if "prompt_token_ids" in item]


class Gym(GatewayCase):
    script = SCRIPT
    extra = {"settings": {"infra_budget": 2, "retry_first": "50ms", "retry_last": "100ms", "beat_timeout": "2000ms", "breaker_faults": 100}}

    def run_row(self, body, **more):
        answer = self.ask("POST", "/run", body, **more)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def test_g1_the_agent_is_there(self):
        answer = self.ask("GET", "/")
        self.assertEqual((answer.status, answer.json), (200, {"status": "ok"}))

    def test_the_head_server_names_the_gateway_as_its_client_calls_it(self):
        port = self.gateway.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
            config = self.ask("GET", "/global_config_dict_yaml", headers={"Host": host}).json
            place = {"host": host.partition(":")[0], "port": port}
            self.assertEqual(config, {"head_server": place, "sluice": {"responses_api_agents": {"sluice": place}}})
        [instance] = self.ask("GET", "/server_instances").json
        self.assertEqual((instance["name"], instance["server_type"], instance["url"]),
                         ("sluice", "responses_api_agents", f"http://127.0.0.1:{port}"))

    def test_g2_a_row_whose_task_is_inline(self):
        body = dict(shell(2), column={"any": ["thing", None]})
        answer = self.run_row(body)
        for name in ("responses_create_params", "task", "_ng_task_index", "agent_ref", "id", "column"):
            self.assertEqual(answer[name], body[name])
        self.assertEqual(answer.get("error"), None)
        self.assertEqual((answer["reward"], answer["mask_sample"], answer["outcome"]), (1.0, False, "ok"))
        self.assertNotIn("_ng_failure_class", answer)
        items = with_tokens(answer)
        self.assertEqual(len(items), 2)
        for item in items:
            self.assertEqual(len(item["generation_token_ids"]), len(item["generation_log_probs"]))
            self.assertGreater(len(item["prompt_token_ids"]), 0)

    def test_g3_each_prompt_extends_what_was_seen(self):
        answer = self.run_row(shell(3))
        items, seen = answer["response"]["output"], []
        self.assertEqual([item["type"] for item in items], ["message", "function_call", "function_call_output", "message"])
        self.assertEqual([all(name in item for name in TOKENS) for item in items], [False, True, False, True])
        for item in with_tokens(answer):
            self.assertEqual(item["prompt_token_ids"][:len(seen)], seen)
            seen = item["prompt_token_ids"] + item["generation_token_ids"]
        self.assertEqual(json.loads(items[1]["arguments"]), {"command": "echo hello >answer.txt"})
        self.assertEqual(items[1]["call_id"], items[2]["call_id"])
        usage = answer["response"]["usage"]
        self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])
        self.assertEqual(usage["output_tokens"], sum(len(item["generation_token_ids"]) for item in with_tokens(answer)))

    def test_g4_a_set_up_that_fails_is_a_terminal_failure(self):
        answer = self.run_row(shell(4, setup=["exit 3"]))
        self.assertEqual((answer["_ng_failure_class"], answer["_ng_failure_terminal"]), ("sluice:task", True))
        self.assertEqual((answer["reward"], answer["mask_sample"], answer["response"]["output"]), (0.0, True, []))
        self.assertIn("exit", answer["error"])

    def test_g4_a_cancelled_rollout_is_asked_for_again(self):
        waiting = self.later("POST", "/run", row(40, "Think forever.", _ng_rollout_id="g4-cancelled"))
        [running] = self.wait_running()
        self.ask("DELETE", f"/api/v1/rollouts/{running['rollout']}")
        answer = waiting.get()
        self.assertEqual(answer.status, 200)
        self.assertEqual((answer.json["_ng_failure_class"], answer.json["_ng_no_persist"]), ("sluice:cancelled", True))

    def test_g4_an_engine_that_fails_for_good_is_a_failure_that_may_be_tried_again(self):
        answer = self.run_row(row(41, "Be broken."))
        self.assertEqual((answer["_ng_failure_class"], answer["outcome"], answer["mask_sample"]), ("sluice:infra", "infra", True))
        self.assertNotIn("_ng_failure_terminal", answer)
        self.assertNotIn("_ng_no_persist", answer)

    def test_g4_a_worker_that_is_drained_or_lost_ends_nothing(self):
        waiting = self.later("POST", "/run", row(42, "Please take your time: 1+1?"))
        self.wait_running()
        self.fleet["run-1"].kill()
        self.fleet["run-1"].start()
        answer = waiting.get().json
        self.assertEqual((answer["reward"], answer["outcome"]), (1.0, "ok"))
        self.assertNotIn("_ng_no_persist", answer)

    def test_g5_a_gateway_that_was_killed_answers_with_the_same_rollout(self):
        body = row(5, "Please take your time: 1+1?", _ng_rollout_id="g5", _ng_attempt_index=1)
        first = self.later("POST", "/run", body)
        [running] = self.wait_running()
        self.restart_gateway()
        self.assertRaises(AssertionError, first.get)
        answer = self.run_row(body)
        self.assertEqual((answer["rollout"], answer["reward"]), (running["rollout"], 1.0))
        again = self.run_row(dict(body, _ng_attempt_index=2))
        self.assertNotEqual(again["rollout"], answer["rollout"])

    def test_a_client_that_hangs_up_and_comes_again_takes_its_rollout_over(self):
        body = row(51, "Please take your time: 1+1?", _ng_rollout_id="hang-up")
        self.assertRaises(AssertionError, self.later("POST", "/run", body, timeout=1.5).get)
        [running] = self.wait_running()
        self.assertEqual(self.run_row(body)["rollout"], running["rollout"])

    def test_what_was_had_is_not_had_again(self):
        body = row(52)
        self.assertNotEqual(self.run_row(body)["rollout"], self.run_row(body)["rollout"])

    def test_g6_metrics_leave_failed_ones_out(self):
        answers = [dict(_ng_task_index=k // 2, _ng_rollout_index=k % 2, reward=reward, truncated=k == 1, note="x",
                        response={"usage": {"output_tokens": 10 * k}}) for k, reward in enumerate((1.0, 0.0, 0.5))]
        answers += [dict(_ng_task_index=1, _ng_rollout_index=1, reward=0.0, _ng_failure_class="sluice:infra"),
                    dict(_ng_task_index=2, _ng_rollout_index=0, reward=0.0, _ng_no_persist=True)]
        told = self.ask("POST", "/aggregate_metrics", {"verify_responses": answers})
        self.assertEqual(told.status, 200, told.body)
        agent, key, groups = (told.json[name] for name in ("agent_metrics", "key_metrics", "group_level_metrics"))
        self.assertEqual((agent["mean/reward"], agent["max/reward"], agent["min/reward"], agent["median/reward"], agent["std/reward"]),
                         (0.5, 1.0, 0.0, 0.5, 0.5))
        self.assertAlmostEqual(agent["mean/truncated"], 1 / 3)
        self.assertEqual(agent["mean/output_tokens"], 10)
        self.assertEqual(key["mean/reward"], 0.5)
        self.assertTrue(all(name.startswith("mean/") for name in key))
        self.assertEqual([(one["_ng_task_index"], one["mean/reward"], one["num_rollouts"]) for one in groups], [(0, 0.5, 2), (1, 0.5, 1)])
        self.assertEqual(groups[0]["std/reward"], 0.5 ** 0.5)
        nothing = self.ask("POST", "/aggregate_metrics", {"verify_responses": []}).json
        self.assertEqual(nothing, {"agent_metrics": {}, "key_metrics": {}, "group_level_metrics": []})
        self.assertEqual(self.ask("POST", "/aggregate_metrics", {}).status, 422)

    def test_g7_a_request_alone(self):
        body = {"input": "What is 1+1?", "temperature": 0.5, "max_output_tokens": 64, "model": "any"}
        answer = self.ask("POST", "/v1/responses", body)
        self.assertEqual(answer.status, 200, answer.body)
        [item] = answer.json["output"]
        self.assertEqual(item["content"], [{"type": "output_text", "text": "It is \\boxed{2}.", "annotations": []}])
        self.assertEqual((answer.json["object"], answer.json["model"], answer.json["status"]), ("response", "any", "completed"))
        self.assertFalse(any(name in item for name in TOKENS))
        plain = self.ask("POST", "/ng-rollout/7-0/v1/responses", body).json["output"][0]
        self.assertFalse(any(name in plain for name in TOKENS))
        [item] = self.ask("POST", "/ng-rollout/7-0/training-token-capture/v1/responses", body).json["output"]
        self.assertEqual(len(item["generation_token_ids"]), len(item["generation_log_probs"]))
        self.assertEqual(bytes(item["generation_token_ids"][:16]), b"It is \\boxed{2}.")

    def test_g7_a_request_as_a_stream(self):
        with Events(self.gateway, "/v1/responses", body={"input": "What is 1+1?", "stream": True}) as events:
            told = [(name, data) for name, _, data in events]
        self.assertEqual([name for name, _ in told], ["response.created", "response.output_item.added", "response.output_item.done",
                                                      "response.completed"])
        self.assertEqual(told[-1][1]["response"]["output"], [told[1][1]["item"]])
        self.assertEqual([data["sequence_number"] for _, data in told], [0, 1, 2, 3])

    def test_g7_a_long_reply_comes_whole_as_a_stream_whatever_its_events_repeat(self):
        body = {"input": "Speak at length.", "max_output_tokens": len(LONG) + 100, "stream": True}
        with Events(self.gateway, "/ng-rollout/7-9/training-token-capture/v1/responses", body=body) as events:
            told = [(name, data) for name, _, data in events]
        self.assertEqual([name for name, _ in told], ["response.created", "response.output_item.added", "response.output_item.done",
                                                      "response.completed"])
        item = told[1][1]["item"]
        self.assertEqual(item["content"][0]["text"], LONG)
        self.assertGreater(len(json.dumps(item)), 1 << 20)  # by itself as much as may wait for a client
        self.assertEqual((told[2][1]["item"], told[3][1]["response"]["output"]), (item, [item]))

    def test_g7_what_cannot_be_asked_is_refused_in_the_api_s_own_words(self):
        for more, field in (({"tool_choice": "required"}, "tool_choice"), ({"text": {"format": {"type": "json_object"}}}, "text.format"),
                            ({"input": [{"type": "input_image"}]}, "input[0]"), ({"input": []}, "input")):
            answer = self.ask("POST", "/v1/responses", dict({"input": "What is 1+1?"}, **more))
            self.assertEqual(answer.status, 400, answer.body)
            self.assertIn(field, answer.json["error"]["message"])

    def test_rows_of_the_importer_s_kinds(self):
        choice = row(60, "Which is the capital of France?\nA: Lyon\nB: Paris", options=[{"A": "Lyon"}, {"B": "Paris"}], expected_answer="B")
        self.assertEqual(self.run_row(choice)["reward"], 1.0)
        self.assertEqual(self.run_row(dict(choice, expected_answer="A", grading_mode="lenient_boxed"))["reward"], 0.0)
        tests = {"inputs": ["2\n", "5\n"], "outputs": ["4\n", "10\n"]}
        for form in (tests, json.dumps(tests), [{"input": "2\n", "output": "4\n", "testtype": "stdin"}]):
            code = row(61, "Write a program that doubles.", verifier_metadata={"unit_tests": form})
            del code["expected_answer"]
            self.assertEqual(self.run_row(code)["reward"], 1.0, form)
        self.assertEqual(self.run_row(row(62, expected_answer=2))["reward"], 1.0)
        self.assertEqual(self.run_row(row(63, expected_answer="3"))["reward"], 0.0)

    def test_a_task_may_be_text_and_tables_put_null_where_nothing_is(self):
        task = {"task": "sum", "prompt": "What is 1+1?", "messages": None, "eval": {"kind": "math", "answer": "2", "tolerance": None}}
        body = row(64, extra_info={"task": json.dumps(task)}, responses_create_params={"input": [], "max_output_tokens": 4})
        answer = self.run_row(body)
        self.assertEqual((answer["outcome"], answer["truncated"]), ("agent", True))
        self.assertEqual(len(with_tokens(answer)[0]["generation_token_ids"]), 4)
        self.assertEqual(answer["response"]["incomplete_details"], {"reason": "max_output_tokens"})

    def test_bad_rows_are_failures_that_name_the_column_and_end_no_collection(self):
        nothing = row(70)
        del nothing["expected_answer"]
        for body, words in (
                (nothing, "expected_answer"), (row(71, expected_answer=[]), "expected_answer"), ({"a": 1}, "responses_create_params"),
                (row(72, responses_create_params={"input": [{"role": "tool", "content": "x"}]}), "input[0]"),
                (row(73, responses_create_params={"input": [{"role": "user", "content": [{"type": "input_image"}]}]}), "input[0].content"),
                (row(74, options=[{"A": "x"}], expected_answer="B"), "options"), (row(75, grading_mode="other", options=[{"2": "x"}]), "grading_mode"),
                (row(76, verifier_metadata={"unit_tests": {"inputs": ["1"], "outputs": []}}), "unit_tests"),
                (row(77, verifier_metadata={"unit_tests": "not json"}), "unit_tests"),
                (shell(78, limits={"run_s": "9"}), "limits.run_s"), (shell(79, nonsense=1), "nonsense"),
                (row(80, responses_create_params={"input": "1+1?", "tools": [{"type": "web_search"}]}), "tools"),
                (row(81, responses_create_params={"input": "1+1?", "tool_choice": {"name": "x"}}), "tool_choice")):
            answer = self.run_row(body)
            self.assertTrue(answer["_ng_failure_terminal"], answer)
            self.assertIn(words, answer["error"])
            self.assertEqual(answer["response"]["output"], [])
            json.dumps(answer)

    def test_a_broker_that_is_away_is_waited_for(self):
        self.fleet.broker.kill()
        waiting = self.later("POST", "/run", row(90, "Please take your time: 1+1?"))
        self.assertEqual(self.ask("GET", "/").status, 200)
        self.fleet.broker.start()
        self.assertEqual(waiting.get().json["reward"], 1.0)

    @unittest.skipUnless(COLLECTOR, "SLUICE_NEMO_GYM names no environment that has nemo-gym")
    def test_g0_the_collector_s_own_command(self):
        root = os.path.join(self.fleet.root, "g0")
        os.makedirs(os.path.join(root, "out"))
        with open(os.path.join(root, "in.jsonl"), "w", encoding="utf-8") as file:
            for number in range(20):
                body = row(number)
                del body["_ng_task_index"], body["_ng_rollout_index"], body["agent_ref"]
                file.write(json.dumps(body) + "\n")
        done = subprocess.run(
            [os.path.join(COLLECTOR, "bin", "gym"), "eval", "run", "--no-serve", "+agent_name=sluice", "+input_jsonl_fpath=in.jsonl",
             "+output_jsonl_fpath=out/r.jsonl", "+num_repeats=4", "++head_server.host=127.0.0.1", f"++head_server.port={self.gateway.port}"],
            cwd=root, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        with open(os.path.join(root, "out", "r.jsonl"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        self.assertEqual(len(rows), 80)
        for one in rows:
            self.assertEqual(one["reward"], 1.0)
            self.assertTrue(with_tokens(one))
        self.assertEqual(len({one["rollout"] for one in rows}), 80)
        self.assertTrue([name for name in os.listdir(os.path.join(root, "out")) if "metrics" in name])


CALL = '<tool_call>\n{"name": "look_up", "arguments": {"word": "two"}}\n</tool_call>'


class Model(GatewayCase):
    """G7 for a loop of the caller's, whose functions the caller runs: one turn a request."""
    script = {"template": "qwen", "rules": [
        {"path": "/completion", "if": "tool_response", "reply": "It is 2."}, {"path": "/completion", "if": "forever", "reply": "never", "delay_ms": 60000},
        {"path": "/completion", "if": "two", "reply": "I look.\n" + CALL}, {"path": "/completion", "reply": "fine"}]}
    run_options = ("--sessions", "0")
    tools = [{"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}]

    def respond(self, path, **body):
        answer = self.ask("POST", path, dict({"tools": self.tools}, **body))
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def test_g7_calls_are_the_caller_s_to_make_and_each_turn_has_its_tokens(self):
        path, said = "/ng-rollout/7-1/training-token-capture/v1/responses", [{"role": "user", "content": "What is two?"}]
        first = self.respond(path, input=said, temperature=0.5)
        self.assertEqual([item["type"] for item in first["output"]], ["message", "function_call"])
        call = first["output"][-1]
        self.assertEqual((call["name"], json.loads(call["arguments"])), ("look_up", {"word": "two"}))
        self.assertEqual([all(name in item for name in TOKENS) for item in first["output"]], [False, True])
        self.assertEqual(bytes(call["generation_token_ids"][:7]), b"I look.")
        self.assertEqual(len(call["generation_token_ids"]), len(call["generation_log_probs"]))
        bare = [{name: value for name, value in item.items() if name not in TOKENS} for item in first["output"]]
        second = self.respond(path, input=said + bare + [{"type": "function_call_output", "call_id": call["call_id"], "output": "2"}])
        self.assertEqual(second["output"][-1]["content"][0]["text"], "It is 2.")
        self.assertIn("prompt_token_ids", second["output"][-1])

    def test_g7_without_capture_there_are_no_tokens_and_it_may_be_streamed(self):
        plain = self.respond("/v1/responses", input="What is two?")
        self.assertFalse(any(name in item for item in plain["output"] for name in TOKENS))
        with Events(self.gateway, "/v1/responses", body={"input": "What is two?", "stream": True, "tools": self.tools}) as events:
            told = [(name, data) for name, _, data in events]
        self.assertEqual([name for name, _ in told], ["response.created"] + ["response.output_item.added", "response.output_item.done"] * 2 + ["response.completed"])
        self.assertEqual([item["type"] for item in told[-1][1]["response"]["output"]], ["message", "function_call"])

    def test_g7_who_hangs_up_has_no_turn_sampled(self):
        self.assertRaises(AssertionError, self.later("POST", "/v1/responses", {"input": "think forever", "tools": self.tools}, timeout=3).get)
        wait_until(lambda: not self.rollouts(), 30, "nothing at work")

    def test_g7_what_the_session_refuses_is_told(self):
        answer = self.ask("POST", "/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}], "tools": self.tools})
        self.assertEqual(answer.status, 400, answer.body)
        self.assertIn("image", answer.json["error"]["message"])
        wait_until(lambda: not self.rollouts(), 30, "nothing at work")


if __name__ == "__main__":
    unittest.main()
