"""A bridge: the routes that a run worker asks of a plain function, what the function must return, and how calls end."""
import asyncio
import base64
import http.client
import json
import math
import os
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

import python_world  # before all that it finds

sys.path.insert(0, os.path.join(python_world.SOURCE, "tests", "engines"))
import scripted_engine  # noqa: E402  (its tokenizer and its model)

from sluice import BadArgument  # noqa: E402
from sluice.bridge import Bridge, BridgeError, Sampled  # noqa: E402
from sluice.bridge.sampled import Part, Rules, check_part, sample  # noqa: E402

END = scripted_engine.SPECIALS["<|im_end|>"]
SETTINGS = {"max_tokens": 8, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "stop_token_ids": [END]}
RULES = Rules(scripted_engine.VOCABULARY, frozenset(scripted_engine.SPECIALS.values()))


class Tokenizer:
    """Bytes and four special tokens, with the calls of transformers' tokenizers."""

    all_special_ids = list(scripted_engine.SPECIALS.values())

    def __len__(self):
        return scripted_engine.VOCABULARY

    def encode(self, text, add_special_tokens=True):
        return scripted_engine.encode(text, True)

    def decode(self, ids, skip_special_tokens=False):
        return scripted_engine.decode(ids, specials=not skip_special_tokens)

    def apply_chat_template(self, messages, tokenize=True, add_generation_prompt=False):
        if any(message["content"] == "template raises" for message in messages):
            raise ValueError("no such conversation")
        text = scripted_engine.chatml(messages)
        return text if add_generation_prompt else text[:text.rindex("<|im_start|>")]


def says(reply=b"fine", end=END):
    """A policy that always says this: its log-probabilities are a function of place and id."""
    def generate(ids, sampling):
        sampled = [*reply, end][:sampling["max_tokens"]]
        logprobs = [scripted_engine.logprob(len(ids) + place, id) for place, id in enumerate(sampled)]
        return sampled, logprobs, "stop" if sampled[-1] == end else "length", 7
    return generate


def score(ids):
    return [scripted_engine.logprob(place, id) for place, id in enumerate(ids)][1:]


def returns(*value):
    return lambda ids, sampling: value


def bridge(generate=None, **options):
    return Bridge(generate or says(), tokenizer=Tokenizer(), max_model_len=512, logprobs_mode="raw", **options)


class Bridges(unittest.TestCase):
    def ask(self, engine, path, body=None, method=None, headers=()):
        """(status, what the answer says)."""
        url = urllib.parse.urlsplit(engine.url)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
        self.addCleanup(connection.close)
        text = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method or ("GET" if body is None else "POST"), path, text, dict(headers))
        answer = connection.getresponse()
        told = answer.read()
        return answer.status, json.loads(told) if answer.headers["Content-Type"] == "application/json" else told.decode()

    def generate(self, engine, ids=(104, 105), **sampling):
        return self.ask(engine, "/inference/v1/generate", {
            "token_ids": list(ids), "sampling_params": {"max_tokens": 8, "stop_token_ids": [END], **sampling}})

    def test_an_answer_has_the_ids_the_log_probabilities_and_the_version_that_the_function_returned(self):
        with bridge() as engine:
            status, told = self.generate(engine)
        choice = told["choices"][0]
        self.assertEqual((status, choice["token_ids"], choice["finish_reason"]), (200, [*b"fine", END], "stop"))
        self.assertEqual([(e["token_id"], e["logprob"]) for e in choice["logprobs"]["content"]],
                         [(id, scripted_engine.logprob(2 + place, id)) for place, id in enumerate([*b"fine", END])])
        self.assertEqual(choice["weight_versions"], [{"version": "7", "start": 0, "end": 5}])
        self.assertEqual((choice["logprobs"]["mode"], told["usage"]["prompt_tokens"], told["prompt_logprobs"]),
                         ("raw", 2, None))

    def test_likeliest_tokens_of_a_prompt_are_refused_where_only_its_own_are_known(self):
        with bridge(score=lambda ids: [-1.0] * (len(ids) - 1)) as engine:
            status, told = self.generate(engine, max_tokens=1, prompt_logprobs=0)
            self.assertEqual((status, [one and one.keys() for one in told["prompt_logprobs"]]), (200, [None, {"105"}]))
            status, told = self.generate(engine, max_tokens=1, prompt_logprobs=3)
        self.assertEqual((status, "a bridge knows no likeliest tokens" in json.dumps(told)), (400, True), told)

    def test_completions_say_in_words_what_the_ids_say(self):
        with bridge() as engine:
            status, told = self.ask(engine, "/v1/completions", {
                "model": "policy", "prompt": [104, 105], "max_tokens": 3, "stop_token_ids": [END], "logprobs": 0})
        choice = told["choices"][0]
        self.assertEqual((status, choice["text"], choice["token_ids"], choice["prompt_token_ids"],
                          choice["finish_reason"]), (200, "fin", [*b"fin"], [104, 105], "length"))
        self.assertEqual(choice["logprobs"]["tokens"], ["token_id:102", "token_id:105", "token_id:110"])

    def test_text_and_conversations_become_ids_by_the_trainers_own_tokenizer(self):
        with bridge() as engine:
            self.assertEqual(self.ask(engine, "/tokenize", {"prompt": "a<|im_end|>", "add_special_tokens": False})[1]["tokens"],
                             [97, END])
            self.assertEqual(self.ask(engine, "/detokenize", {"tokens": [97, END]})[1], {"prompt": "a<|im_end|>"})
            messages = [{"role": "user", "content": "hi"}]
            self.assertEqual(self.ask(engine, "/tokenize", {"messages": messages})[1]["tokens"],
                             scripted_engine.encode(scripted_engine.chatml(messages), True))
            status, told = self.ask(engine, "/tokenize", {"messages": [{"role": "user", "content": "template raises"}]})
            self.assertEqual((status, told["error"]["message"]), (400, "the chat template refuses: ValueError: no such conversation"))

    def test_requests_that_cannot_be_kept_to_are_refused_with_the_reason(self):
        with bridge() as engine:
            for wanted, status, sampling in (("maximum context length is 512", 400, {"max_tokens": 511}),
                                             ("n is 1", 400, {"n": 2}), ("repetition_penalty is 1", 400, {"repetition_penalty": 1.1}),
                                             ("top_p wants", 400, {"top_p": 2}), ("max_tokens wants", 400, {"max_tokens": 0}),
                                             ("temperature wants", 400, {"temperature": math.nan})):
                got, told = self.generate(engine, **sampling)
                self.assertEqual(got, status)
                self.assertIn(wanted, told["error"]["message"])
            self.assertIn("token id 260 is out of the vocabulary of 260", self.generate(engine, [260])[1]["error"]["message"])
            self.assertIn("at least one", self.generate(engine, [])[1]["error"]["message"])
            self.assertEqual(self.ask(engine, "/v1/chat/completions", {})[0], 404)
            self.assertEqual(self.ask(engine, "/tokenize", None)[0], 405)
            self.assertEqual(self.ask(engine, "/tokenize", b"[" * 100000)[1]["error"]["message"], "the body is no JSON")
            self.assertEqual(self.ask(engine, "/tokenize", {"model": "other", "prompt": "x"})[0], 404)
            self.assertEqual(engine.error, None)

    def test_what_the_function_returns_is_checked_and_the_error_names_it_and_the_cure(self):
        for returned, sentence in (
                (([1, 2], [-1.0], "length", None), "1 log-probabilities for 2 ids: return one of each sampled id"),
                (([1], [math.nan], "length", None), "nan as log-probability 0: it is no number"),
                (([1], [-math.inf], "length", None), "-inf as log-probability 0: return natural logarithms"),
                (([1], [0.5], "length", None), "0.5 as log-probability 0: return natural logarithms"),
                (([260], [-1.0], "length", None), "260 as id 0, which is no id of a vocabulary of 260"),
                (([1.5], [-1.0], "length", None), "1.5 as id 0: return whole numbers"),
                (([1], [-1.0], "eos", None), "the finish 'eos': return 'stop', 'length' or 'abort'"),
                (([], [], "stop", None), "no ids with finish 'stop'"),
                (([1] * 9, [-1.0] * 9, "length", None), "9 ids where max_tokens is 8"),
                (([97], [-1.0], "stop", None), "finish 'stop' behind id 97, which ends no turn"),
                (([END, 97], [-1.0, -1.0], "length", None), f"1 ids behind {END}, which ends a turn"),
                (([97], [-1.0], "length", "a+b"), "the version 'a+b'"),
                (([97], [-1.0], "length", [1, 2]), "2 versions for 1 ids"),
                (([97], [-1.0]), "tuple of 2 where (ids, log-probabilities, finish, version) is wanted")):
            with self.assertRaises(BridgeError) as raised:
                check_part(returned, SETTINGS, RULES)
            self.assertIn(sentence, str(raised.exception))
        import numpy
        part = check_part(Sampled(numpy.array([97, END]), numpy.array([-1.0, 1e-5], dtype="f4"), "stop", numpy.int64(3)),
                          SETTINGS, RULES)
        self.assertEqual(part, Part([97, END], [-1.0, 0.0], "stop", [("3", 2)]))
        self.assertEqual(check_part(([97, 98, 99], [-1.0] * 3, "length", [3, 3, 4]), SETTINGS, RULES).versions, [("3", 2), ("4", 1)])

    def test_a_wrong_function_is_named_to_the_worker_in_the_log_and_to_the_trainer(self):
        with self.assertLogs("sluice.bridge") as logged, self.assertRaisesRegex(BridgeError, "nan as log-probability 0"):
            with bridge(returns([97], [math.nan], "length", None)) as engine:
                status, told = self.generate(engine)
                self.assertEqual(status, 500)
                self.assertIn("nan as log-probability 0", told["error"]["message"])
                self.assertRaises(BridgeError, engine.check)
        self.assertIn("nan as log-probability 0", logged.output[0])

    def test_a_function_that_raises_fails_that_call_alone(self):
        def generate(ids, sampling):
            if ids == [1]:
                raise RuntimeError("the actor died")
            return says()(ids, sampling)
        with self.assertLogs("sluice.bridge") as logged, bridge(generate) as engine:
            self.assertEqual(self.generate(engine, [1])[1]["error"]["message"], "RuntimeError: the actor died")
            self.assertEqual(self.generate(engine, [2])[0], 200)
            engine.check()
        self.assertIn("Traceback", logged.output[0])

    def test_parts_that_were_aborted_are_joined_with_a_span_for_each_version(self):
        calls, parts = [], [([97, 98], [-1, -2], "abort", "v1"), ([], [], "abort", None), ([99], [-3], "abort", "v1"),
                            ([100, END], [-4, -5], "stop", "v2")]

        async def generate(ids, sampling):
            calls.append((ids, sampling["max_tokens"], sampling["seed"]))
            return parts[len(calls) - 1]
        turn = asyncio.run(sample(generate, [1], dict(SETTINGS, seed=40), RULES))
        self.assertEqual(calls, [([1], 8, 40), ([1, 97, 98], 6, 42), ([1, 97, 98], 6, 42), ([1, 97, 98, 99], 5, 43)])
        self.assertEqual((turn.ids, turn.logprobs, turn.finish), ([97, 98, 99, 100, END], [-1, -2, -3, -4, -5], "stop"))
        self.assertEqual(turn.spans, [("v1", 0, 3), ("v2", 3, 5)])

    def test_a_part_that_was_aborted_at_the_last_token_is_whole(self):
        async def generate(ids, sampling):
            return [97] * 4, [-1.0] * 4, "abort", None
        turn = asyncio.run(sample(generate, [1], SETTINGS, RULES))
        self.assertEqual((len(turn.ids), turn.finish), (8, "length"))

    def test_a_turn_has_versions_for_all_of_its_parts_or_for_none(self):
        async def generate(ids, sampling):
            return [97], [-1.0], "abort", None if len(ids) == 1 else 2
        with self.assertRaisesRegex(BridgeError, "the versions None and '2' for parts of one turn"):
            asyncio.run(sample(generate, [1], SETTINGS, RULES))

    def test_a_call_whose_client_has_gone_is_cancelled(self):
        began, ended = threading.Event(), threading.Event()

        async def generate(ids, sampling):
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()
        with bridge(generate) as engine:
            url = urllib.parse.urlsplit(engine.url)
            connection = http.client.HTTPConnection(url.hostname, url.port)
            connection.request("POST", "/inference/v1/generate", json.dumps({"token_ids": [1], "sampling_params": {"max_tokens": 1}}))
            self.assertTrue(began.wait(10))
            self.assertIn("num_requests_running 1\n", self.ask(engine, "/metrics")[1])
            connection.close()
            self.assertTrue(ended.wait(10))
            self.assertIn("num_requests_running 0\n", self.ask(engine, "/metrics")[1])

    def test_leaving_a_bridge_cancels_what_is_under_way(self):
        ended = threading.Event()

        async def generate(ids, sampling):
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()

        async def main():
            async with bridge(generate) as engine:
                url = urllib.parse.urlsplit(engine.url)
                reader, writer = await asyncio.open_connection(url.hostname, url.port)
                body = json.dumps({"token_ids": [1], "sampling_params": {"max_tokens": 1}}).encode()
                writer.write(b"POST /inference/v1/generate HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                while engine._gate.running == 0:
                    await asyncio.sleep(0.01)
            with self.assertRaises(ConnectionError):
                if not await reader.read():
                    raise ConnectionError
            writer.close()
        asyncio.run(asyncio.wait_for(main(), 20))
        self.assertTrue(ended.is_set())

    def test_a_plain_function_is_called_once_at_a_time_unless_it_says_more(self):
        most, now, lock = [0], [0], threading.Lock()

        def generate(ids, sampling):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.02)
            with lock:
                now[0] -= 1
            return says()(ids, sampling)
        for concurrency in (None, 4):
            most[0] = 0
            with bridge(generate, concurrency=concurrency) as engine:
                threads = [threading.Thread(target=self.generate, args=(engine,)) for _ in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertLessEqual(most[0], concurrency or 1)
            self.assertGreaterEqual(most[0], 2 if concurrency else 1)

    def test_requests_that_are_none_or_too_large_lose_their_connection(self):
        with bridge() as engine:
            for head, status in ((b"nonsense\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
                                 (b"GET / HTTP/1.1\r\na: " + b"x" * 20000 + b"\r\n\r\n", 431),
                                 (b"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
                                 (b"POST /tokenize HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413)):
                async def told(head=head):
                    url = urllib.parse.urlsplit(engine.url)
                    reader, writer = await asyncio.open_connection(url.hostname, url.port)
                    writer.write(head)
                    answer = await asyncio.wait_for(reader.read(), 10)
                    writer.close()
                    return answer
                self.assertEqual(asyncio.run(told()).split(b" ")[1], str(status).encode())
            self.assertEqual(self.generate(engine)[0], 200)

    def test_beyond_this_machine_calls_want_the_credentials_of_its_url(self):
        with bridge(host="0.0.0.0", advertise="127.0.0.1") as engine:
            url = urllib.parse.urlsplit(engine.url)
            self.assertEqual(url.username, "sluice")
            self.assertEqual(self.ask(engine, "/health")[0], 401)
            basic = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
            self.assertEqual(self.ask(engine, "/health", headers={"Authorization": "Basic " + basic})[0], 200)

    def test_arguments_that_can_never_be_right_are_refused_at_once(self):
        for field, options in (("generate", {"generate": 7}), ("tokenizer", {"tokenizer": object()}), ("score", {"score": 7}),
                               ("logprobs_mode", {"logprobs_mode": "some"}), ("max_model_len", {"max_model_len": 0}),
                               ("concurrency", {"concurrency": 0}), ("credentials", {"credentials": "x"})):
            given = {"generate": says(), "tokenizer": Tokenizer(), "max_model_len": 8, "logprobs_mode": "raw", **options}
            with self.assertRaises(BadArgument) as raised:
                Bridge(given.pop("generate"), **given)
            self.assertEqual(raised.exception.field, field)
        with bridge() as engine, self.assertRaisesRegex(BadArgument, "cannot listen on 127.0.0.1"):
            bridge(port=urllib.parse.urlsplit(engine.url).port).__enter__()

    def check(self, engine):
        done = subprocess.run([os.environ["SLUICE_PROGRAM"], "engine", "check", engine.url, "--json"],
                              capture_output=True, text=True, timeout=120)
        told = {check["check"]: (check["verdict"], check["text"]) for check in json.loads(done.stdout)["checks"]}
        return done.returncode, told

    def test_an_engine_check_finds_nothing_amiss(self):
        async def generate(ids, sampling):
            if sampling["max_tokens"] > 256:  # long enough to be given up
                await asyncio.sleep(30)
            return says()(ids, sampling)
        with bridge(generate, score=score) as engine:
            status, told = self.check(engine)
        self.assertEqual({name: verdict for name, (verdict, _) in told.items() if verdict != "pass"}, {}, told)
        self.assertEqual(status, 0)
        self.assertIn("raw", told["logprobs"][1])
        self.assertEqual(told["version"][1], "7")

    def test_an_engine_check_finds_scores_of_another_model(self):
        with bridge(score=lambda ids: [value - 2 for value in score(ids)]) as engine:
            status, told = self.check(engine)
        self.assertEqual((status, told["scores"][0]), (1, "fail"))


if __name__ == "__main__":
    unittest.main()
