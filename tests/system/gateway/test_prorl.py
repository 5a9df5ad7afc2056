"""ProRL's API to the letter: each test is one row of its conformance list, by its number."""
import json
import os
import resource
import shutil
import socket
import tempfile
import threading
import unittest

from prorl_world import KEYS, PYTHON, SOURCE, World, call, job, math, memory_bound, send, wait_until, write_model

NOT_RUNNING = "Server is not running. Please start the server first."
SLOW = {"if": "slow", "path": "/completion", "delay_ms": 4000, "reply": "It is \\boxed{2}."}
LONG = {"if": "forever", "path": "/completion", "delay_ms": 600000, "reply": "never"}


def asks(text, number=1, **more):
    return math(number, prompt=[{"role": "user", "content": text}], **more)


class New(World):
    """Before /start."""

    def test_p1_status_of_a_new_server_is_503(self):
        answer = self.get("/status")
        self.assertEqual((answer.status, answer.json), (503, {"detail": NOT_RUNNING}))

    def test_p2_a_schema_error_is_found_before_the_state(self):
        answer = self.post("/process", {})
        self.assertEqual(answer.status, 422, answer)
        self.assertEqual([(error["loc"], error["type"]) for error in answer.json["detail"]],
                         [(["body", "instance"], "missing"), (["body", "sampling_params"], "missing")])
        wrong = self.post("/process", {"instance": [], "sampling_params": {}, "job_id": 7})
        self.assertEqual([(error["loc"][-1], error["type"]) for error in wrong.json["detail"]],
                         [("instance", "dict_type"), ("job_id", "string_type")])
        self.assertEqual(self.post("/cancel", {}).json["detail"][0]["loc"], ["body", "job_id"])
        self.assertEqual(self.post("/add_llm_server", {"address": 1}).status, 422)

    def test_p3_process_before_start_is_503(self):
        answer = self.post("/process", {"instance": {}, "sampling_params": {}})
        self.assertEqual((answer.status, answer.json), (503, {"detail": NOT_RUNNING}))
        self.assertEqual(self.post("/stop").status, 503)

    def test_p4_an_engine_is_buffered_once(self):
        for _ in range(2):
            answer = self.post("/add_llm_server", {"address": self.engine.url + "/v1"})
            self.assertEqual(answer.status, 200, answer)
            self.assertTrue(answer.json["status"].startswith("Buffered LLM server address: "), answer)
        self.assertEqual(self.post("/start").status, 200)
        engines = self.fleet.status()["engines"]
        self.assertEqual([engine["url"] for engine in engines], [self.engine.url])
        elsewhere = self.post("/add_llm_server", {"address": "http://192.0.2.7:8000/v1"})
        self.assertEqual(elsewhere.status, 403, elsewhere)

    def test_p5_buffered_engines_are_cleared(self):
        self.post("/add_llm_server", {"address": self.engine.url + "/v1"})
        answer = self.post("/clear_llm_server")
        self.assertEqual((answer.status, answer.json), (200, {"status": "Cleared buffered LLM server addresses"}))

    def test_p6_start_twice(self):
        first, second = self.post("/start"), self.post("/start")
        self.assertEqual((first.status, first.json), (200, {"status": "Server started successfully"}))
        self.assertEqual((second.status, second.json), (400, {"detail": "Server is already running"}))

    def test_p8_process_without_an_engine_is_503(self):
        for engine in self.fleet.status()["engines"]:
            self.fleet.run("engine", "remove", engine["url"])
        self.assertEqual(self.post("/start").status, 200)
        answer = self.post("/process", job(math()))
        self.assertEqual(answer.status, 503, answer)
        self.assertIn("detail", answer.json)


class Up(World):
    rules = (SLOW, LONG, {"if": "wrong", "path": "/completion", "reply": "It is \\boxed{3}."})

    def setUp(self):
        super().setUp()
        self.up()

    def test_p7_status_counts(self):
        answer = self.get("/status")
        self.assertEqual((answer.status, answer.json["status"]), (200, "running"), answer)
        for key in ("pending_jobs", "running", "jobs", "init", "run", "eval"):
            self.assertIsInstance(answer.json[key], int, key)

    def test_p9_an_unknown_data_source_is_400(self):
        answer = self.post("/process", job(math(data_source="astrology")))
        self.assertEqual(answer.status, 400, answer)
        self.assertIn("astrology", answer.json["detail"])

    def test_p10_a_result_has_all_keys_and_both_ids_as_they_came(self):
        for number, trajectory in ((1, 7), (2, "seven"), (3, "007")):
            answer = self.post("/process", job(math(number, trajectory_id=trajectory)))
            self.assertEqual(answer.status, 200, answer)
            result = answer.json
            self.assertLessEqual(KEYS, set(result))
            self.assertEqual((result["instance_id"], result["trajectory_id"]), (f"math-{number}", trajectory))
            self.assertEqual((result["success"], result["resolved"], result["finish"], result["critical_error"], result["error"],
                              result["filter"], result["git_patch"]), (True, True, True, None, None, False, None), result)
            self.assertLessEqual({"init_time", "run_time", "eval_time", "others_time", "counted_elapsed", "timeout_triggered"},
                                 set(result["timing"]))
            self.assertEqual(result["messages"][-1]["role"], "assistant")
        wrong = self.post("/process", job(asks("a wrong one", 4)))
        self.assertEqual((wrong.json["success"], wrong.json["resolved"], wrong.json["filter"]), (True, False, False), wrong)

    def test_p12_one_job_id_eight_times_at_once(self):
        askings = [self.begin(job(asks("a slow one"), "same")) for _ in range(8)]
        results = [asking.get().json for asking in askings]
        self.assertEqual([result["resolved"] for result in results], [True] * 8)
        self.assertEqual(len({result["rollout"] for result in results}), 8)

    def test_p13_a_cancelled_job_ends_with_a_result(self):
        asking = self.begin(job(asks("one that takes forever"), "to-cancel"))
        self.wait_running(1)
        answer = self.post("/cancel", {"job_id": "to-cancel"})
        self.assertEqual((answer.status, answer.json), (200, {"status": "Cancel requested for job to-cancel"}))
        result = asking.get(5)
        self.assertEqual(result.status, 200, result)
        self.assertEqual((result.json["success"], result.json["filter"], result.json["resolved"]), (False, True, False))
        self.assertTrue(result.json["error"].startswith("cancelled"), result)

    def test_p14_an_unknown_job_is_404(self):
        answer = self.post("/cancel", {"job_id": "nobody's"})
        self.assertEqual(answer.status, 404, answer)
        self.assertIn("detail", answer.json)

    def test_p16_a_set_up_that_fails(self):
        answer = self.post("/process", job(math(docker_image="/nowhere/at-all.sif")))
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual((answer.json["critical_error"], answer.json["messages"], answer.json["filter"], answer.json["success"]),
                         ("init", [], True, False), answer)
        self.assertTrue(answer.json["error"])

    def test_p17_stop_ends_all_that_wait(self):
        askings = [self.begin(job(asks("one that takes forever", number))) for number in range(3)]
        self.wait_running(3)
        self.assertEqual(self.post("/stop").json, {"status": "Server stopped successfully"})
        for asking in askings:
            answer = asking.get(5)
            self.assertEqual(answer.status, 500, answer)
            self.assertIn("detail", answer.json)
        self.assertEqual(self.get("/status").status, 503)
        self.wait_running(0)

    def test_p20_bodies_large_and_wrong(self):
        large = self.post("/process", job(math(1, trash="x" * (10 << 20))))
        self.assertEqual((large.status, large.json.get("resolved")), (200, True), large)
        over = call(self.gateway.port, "POST", "/process", b'{"instance": "' + b"x" * (33 << 20) + b'"}')
        self.assertEqual(over.status, 413, over)
        for body in (b"{", b"[1]", b"", b"null", b'{"instance": {}, "sampling_params": {}', b"\xff\xfe"):
            answer = call(self.gateway.port, "POST", "/process", body)
            self.assertIn(answer.status, (400, 422), (body, answer))
            self.assertTrue(answer.json["detail"], body)

    def test_what_data_frames_lack_is_no_error(self):
        body = job(math(1, image_assets=float("nan"), patch=None, score=float("-inf")))
        self.assertEqual(self.post("/process", body).json["resolved"], True)

    def test_a_clear_waits_for_calls_in_flight(self):
        asking = self.begin(job(asks("a slow one", 6)))
        self.wait_running(1)
        wait_until(lambda: self.fleet.status()["engines"][0]["calls"] > 0, 10, "a call is in flight")
        self.assertEqual(self.post("/clear_llm_server").status, 200)
        self.assertEqual(self.fleet.status()["engines"][0]["calls"], 0)
        self.assertTrue(asking.get(20).json["resolved"])
        self.post("/add_llm_server", {"address": self.engine.url + "/v1"})

    def test_cleared_engines_go_on_as_another_version(self):
        self.assertEqual(self.post("/clear_llm_server").json, {"status": "Cleared all LLM server addresses"})
        asking = self.begin(job(math(5)))
        wait_until(lambda: self.get("/status").json["pending_jobs"] == 1, 10, "the job waits")
        self.assertEqual(self.fleet.status()["engines"][0]["state"], "paused")
        added = self.post("/add_llm_server", {"address": self.engine.url + "/v1"})
        self.assertTrue(added.json["status"].startswith("Added LLM server address: "), added)
        self.assertTrue(asking.get(20).json["resolved"])
        self.assertTrue(self.fleet.status()["engines"][0]["version"].startswith("prorl-"))


class Sources(World):
    """Each kind of instance, to its reward."""

    rules = ({"if": "their sum", "path": "/completion", "reply": "```python\nprint(sum(map(int, input().split())))\n```"},
             {"if": "Which part", "path": "/completion", "reply": "The answer is B."},
             {"if": "my own", "path": "/completion", "reply": "forty-two"})

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="sluice-handler-")
        cls.addClassCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "mine.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("from sluice.handlers import evaluator\n\n@evaluator\ndef mine(answer, config):\n"
                       "    return float(answer == config['ground_truth'] and config['data_source'] == 'mine')\n")
        package = os.path.join(SOURCE, "client", "python")
        cls.handler = ("--handler", f"mine=PYTHONPATH={package} {PYTHON} -m sluice.handlers {path}")
        super().setUpClass()

    def test_programs_choices_and_handlers(self):
        self.up()
        code = {"inputs": ["1 2\n", "20 22\n"], "outputs": ["3\n", "42\n"]}
        for instance, resolved in ((math(1, "B", data_source="stem", prompt="Which part of a cell?"), True),
                                   (math(2, "C", data_source="stem", prompt="Which part of a cell?"), False),
                                   (math(3, json.dumps(code), data_source="taco", prompt="Print their sum."), True),
                                   (math(4, "forty-two", data_source="mine", prompt="my own"), True),
                                   (math(5, "other", data_source="mine", prompt="my own"), False)):
            result = self.post("/process", job(instance)).json
            self.assertEqual((result.get("resolved"), result.get("critical_error")), (resolved, None), result)


class Tokens(World):
    """An engine that tells ids and texts."""

    address = "/v1"
    rules = ({"if": "1+1", "delay_ms": 1000,  # in which whoever reads the stream is there
              "reply": "<tool_call>\n{\"name\": \"think\", \"arguments\": {\"thought\": \"hm\"}}\n</tool_call>"},
             {"reply": "It is \\boxed{2}."})

    def check(self, result, trace):
        messages = result["messages"]
        joined = [token for message in messages for token in message["token_ids"]]
        mask = [int(message["role"] == "assistant") for message in messages for _ in message["token_ids"]]
        self.assertEqual(joined, trace["token_ids"])
        self.assertEqual(mask, trace["mask"])
        self.assertEqual(messages[-1]["role"], "assistant")
        for message in messages:
            self.assertLessEqual({"role", "content", "token_ids", "input_ids", "logprobs"}, set(message))
            if message["role"] == "assistant":
                self.assertEqual(len(message["logprobs"]), len(message["token_ids"]))
        return messages

    def test_p11_messages_hold_the_trace(self):
        self.up(self.engine.url + self.address)
        trajectories = {}

        def listen():
            for trajectory in self.client(self.fleet).trajectories(f"prorl-{self.number}", timeout=60):
                trajectories[trajectory.rollout] = trajectory
                return
        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        result = self.post("/process", job(math(1), token_level_generation=True, custom_tokenizer="Qwen/Qwen3-8B")).json
        self.assertTrue(result["resolved"], result)
        listening.join(60)
        trace = trajectories[result["rollout"]].traces[-1]
        messages = self.check(result, {"token_ids": trace.token_ids.tolist(), "mask": trace.mask.tolist()})
        replies = [message for message in messages if message["role"] == "assistant"]
        self.assertEqual(len(replies), 2)  # a thought, and the answer
        self.assertEqual(replies[0]["tool_calls"][0]["name"], "think")
        before = []
        for message in messages:
            if message["role"] == "assistant":
                self.assertEqual(message["input_ids"], before)
            else:
                self.assertIsNone(message["input_ids"])
                self.assertIsNone(message["logprobs"])
            before += message["token_ids"]

    def test_p11_input_ids_may_be_null(self):
        self.gateway.end()
        type(self).number += 1
        self.gateway = self.open("--prorl-input-ids", "null")
        self.up(self.engine.url + self.address)
        result = self.post("/process", job(math(2))).json
        self.assertEqual({message["input_ids"] for message in result["messages"]}, {None})


class IdsAlone(Tokens):
    """verl's engine, which has POST /generate alone: tokenizer and template are in a directory of the workers'."""

    address = ""
    dialect = {"dialect": "generate"}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="sluice-model-")
        cls.addClassCleanup(shutil.rmtree, folder)
        write_model(folder)
        cls.run_options = ("--model-dir", folder)
        super().setUpClass()


class Orphans(World):
    options = ("--orphan", "2s")
    rules = (SLOW, LONG)

    def setUp(self):
        super().setUp()
        self.up()

    def test_p15_a_job_whose_caller_hung_up_is_taken_over(self):
        body = job(asks("a slow one"), "once")
        send(self.gateway.port, "/process", body).close()
        self.wait_running(1)
        result = self.post("/process", body).json
        self.assertTrue(result["resolved"], result)
        self.assertEqual(len(self.fleet.run("list", "--stream", f"prorl-{self.number}", "--json").stdout.splitlines()), 0)
        self.assertEqual(result["rollout"].split("/")[0][-2:], "-0")
        again = self.post("/process", body).json
        self.assertEqual(again["rollout"].split("/")[0][-2:], "-1")  # that answer was had

    def test_p15_nobody_comes_back_and_the_job_is_cancelled(self):
        connection = send(self.gateway.port, "/process", job(asks("one that takes forever"), "gone"))
        self.wait_running(1)
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()
        self.wait_running(0)

    def test_the_same_again_and_again_is_another_rollout_each_time(self):
        body = job(math(30, is_reasoning_task=True), "epochs")
        for number in range(12):
            if number == 6:
                self.get("/status")  # by now it is written down that the last answer was had
                self.gateway.kill()
                self.gateway.start()
            result = self.post("/process", body).json
            self.assertEqual(result["rollout"].split("/")[0].rsplit("-", 1)[1], str(number), result)

    def test_the_broker_is_killed_and_the_call_is_answered(self):
        asking = self.begin(job(asks("a slow one", 40), "patient"))
        self.wait_running(1)
        self.fleet.broker.kill()
        self.fleet.broker.start()
        result = asking.get(60)
        self.assertEqual((result.status, result.json.get("resolved")), (200, True), result)
        self.assertEqual(self.post("/process", job(math(41))).json["resolved"], True)

    def test_while_the_broker_is_away_it_is_503(self):
        self.fleet.broker.kill()
        try:
            away = self.post("/process", job(math(42)))
            self.assertEqual(away.status, 503, away)
            self.assertTrue(away.headers["Retry-After"], away)
        finally:
            self.fleet.broker.start()
        self.fleet.wait_for_workers()
        self.assertEqual(self.post("/process", job(math(42))).json["resolved"], True)

    def test_p18_kill_9_and_the_one_rollout_is_answered(self):
        body = job(asks("a slow one", 18), "survivor")
        asking = self.begin(body)
        self.wait_running(1)
        self.gateway.kill()
        asking.join(10)
        self.gateway.start()
        result = self.post("/process", body)
        self.assertEqual((result.status, result.json.get("resolved")), (200, True), result)
        self.assertEqual(result.json["rollout"].split("/")[0][-2:], "-0")
        counted = self.fleet.status()["streams"]
        head = next(stream["head"] for stream in counted if stream["name"] == f"prorl-{self.number}")
        self.assertEqual(head, 1)


class Many(World):
    slots = 64

    def test_p19_two_thousand_calls_wait(self):
        count = 2000
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.up()
        self.fleet.run("policy", "pause", "--bound", "5m")
        before = self.gateway.resident_kib()
        connections = [send(self.gateway.port, "/process", job(math(number), is_reasoning_task=True, timeout=300)) for number in range(count)]
        self.addCleanup(lambda: [connection.close() for connection in connections])
        wait_until(lambda: self.get("/status").json["pending_jobs"] == count, 60, "all wait")
        grown = self.gateway.resident_kib() - before
        print(f"{count} calls: {grown / count:.1f} KiB each", flush=True)
        self.fleet.run("policy", "resume")
        answers = [self.read(connection) for connection in connections]
        self.assertEqual([answer.count(b'"resolved":true') for answer in answers], [1] * count)
        self.assertLess(grown, memory_bound(count * 20, address=count * 200))

    @staticmethod
    def read(connection):
        with connection:
            got = b""
            while b"\r\n\r\n" not in got:
                got += connection.recv(65536)
            head, _, body = got.partition(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            while len(body) < length:
                body += connection.recv(65536)
            return head + body


if __name__ == "__main__":
    unittest.main(verbosity=2)
