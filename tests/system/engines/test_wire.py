"""The recording proxy and the comparison with it, themselves tested: every byte is written down, and no lie passes."""
import copy
import json
import os
import random
import socket
import struct
import sys
import tempfile
import threading
import unittest
import urllib.request

sys.path += [__file__.rsplit("/", 2)[0], __file__.rsplit("/", 3)[0] + "/engines"]  # tests/system, tests/engines
import scripted_engine  # noqa: E402
import wire  # noqa: E402
from harness import Engine, wait_until  # noqa: E402
from proof_tokens import Proxy  # noqa: E402


class Echo:
    """Answers every byte with its complement, in parts of other sizes."""

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        with client:
            while data := client.recv(777):
                client.sendall(bytes(255 - byte for byte in data))

    def __exit__(self, *_):
        self.socket.close()


def address_of(url):
    host, port = url.removeprefix("http://").split(":")
    return host, int(port)


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def ended(directory, count):
    """Whether so many connections are written down to their ends."""
    names = sorted(os.listdir(directory))
    return len(names) == count and all(wire.frames(os.path.join(directory, name))[-1:] == [(b"|", b"")] for name in names)


class Recording(unittest.TestCase):
    def test_every_byte_is_written_down_both_ways_per_connection_and_in_order(self):
        chance = random.Random(7)
        with tempfile.TemporaryDirectory() as into, Echo() as echo, Proxy(echo.url, into) as proxy:
            clients = [socket.create_connection(address_of(proxy.url)) for _ in range(3)]
            said = [[] for _ in clients]
            for _ in range(60):
                which = chance.randrange(3)
                data = chance.randbytes(chance.randint(1, 5000))
                said[which].append(data)
                clients[which].sendall(data)
                heard = b""
                while len(heard) < len(data):
                    heard += clients[which].recv(len(data) - len(heard))
                self.assertEqual(heard, bytes(255 - byte for byte in data))
            for client in clients:
                client.close()
            wait_until(lambda: ended(into, 3), 30, "the proxy saw the connections end")
            files = [wire.frames(os.path.join(into, name)) for name in sorted(os.listdir(into))]
            self.assertEqual(sorted(b"".join(part for way, part in frames if way == b">") for frames in files),
                             sorted(b"".join(parts) for parts in said))
            for frames in files:
                sent = heard = b""
                for way, part in frames:
                    sent += part if way == b">" else b""
                    heard += part if way == b"<" else b""
                    self.assertEqual(heard, bytes(255 - byte for byte in sent[: len(heard)]))  # never before its cause
                self.assertEqual(len(heard), len(sent))

    def test_an_engine_that_is_not_there_ends_the_connection(self):
        with tempfile.TemporaryDirectory() as into, socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))  # held, so that nobody else gets the port, and not listened to
            with Proxy(f"http://127.0.0.1:{deaf.getsockname()[1]}", into) as proxy:
                with socket.create_connection(address_of(proxy.url)) as client:
                    client.settimeout(30)
                    self.assertEqual(client.recv(1), b"")
                wait_until(lambda: ended(into, 1), 30, "it is written down")

    def test_http_is_read_in_all_its_forms(self):
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"
        plain = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"
        continues = b"HTTP/1.1 100 Continue\r\n\r\n"
        self.assertEqual(wire.read_messages(continues + chunked + plain),
                         [(b"HTTP/1.1 200 OK", b"hello world"), (b"HTTP/1.1 404 Not Found", b"no")])
        for cut in range(1, len(chunked)):
            self.assertEqual(wire.read_messages(chunked[:-cut]), [])


class Comparison(unittest.TestCase):
    """Two turns of a scripted engine through the proxy, and lies about them."""

    @classmethod
    def setUpClass(cls):
        cls.into = tempfile.TemporaryDirectory()
        script = {"rules": [{"replies": ["caf\u00e9 \U0001f600", "done"]}]}
        with Engine(script) as engine, Proxy(engine.url, cls.into.name) as proxy:
            prompt = post(proxy.url, "/tokenize", {"content": "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
                                                   "parse_special": True})["tokens"]
            bridge = post(proxy.url, "/tokenize", {"content": "\n<|im_start|>user\nout<|im_end|>\n<|im_start|>assistant\n",
                                                   "parse_special": True})["tokens"]
            cls.trajectory = cls.converse(proxy.url, prompt, bridge)
            wait_until(lambda: ended(cls.into.name, len(os.listdir(cls.into.name))), 30, "all is written down")

    @classmethod
    def tearDownClass(cls):
        cls.into.cleanup()

    @staticmethod
    def converse(url, prompt, bridge):
        trace = {"token_ids": [], "mask": [], "logprobs": [], "turns": [], "reason": ""}

        def add(role, ids, logprobs=None, **more):
            trace["turns"].append(dict(role=role, offset=len(trace["token_ids"]), length=len(ids), **more))
            trace["token_ids"] += ids
            trace["mask"] += [int(role == "assistant")] * len(ids)
            trace["logprobs"] += logprobs or [0] * len(ids)

        def one(ids, at, id):
            """A token that the engine reports nothing for is asked for."""
            answer = post(url, "/completion", {"prompt": ids[:at], "n_predict": 1, "n_probs": 260,
                                               "logit_bias": [[ord("x"), 10000]]})
            tops = answer["completion_probabilities"][0]["top_logprobs"]
            return next(top["logprob"] for top in tops if top["id"] == id)

        for given, role in ((prompt, "prompt"), (bridge, "tool")):
            add(role, given)
            ids = list(trace["token_ids"])
            answer = post(url, "/completion", {"prompt": ids, "n_predict": 64, "n_probs": 1})
            stated, logprobs = list(answer["completion_probabilities"]), []
            whole, text = ids + answer["tokens"], b""
            for at in range(len(ids), len(whole)):
                text += scripted_engine.token_bytes(whole[at])
                is_cut = scripted_engine.is_cut(text)  # within a character: nothing is stated
                logprobs.append(one(whole, at, whole[at]) if is_cut else stated.pop(0)["logprob"])
            add("assistant", answer["tokens"], [struct.unpack("<f", struct.pack("<f", value))[0] for value in logprobs],
                prompt_tokens=len(ids), cached_tokens=0)
        return {"rollout": "g/0", "traces": [trace]}

    def verdict(self, change=None):
        trajectory = copy.deepcopy(self.trajectory)
        if change:
            change(trajectory["traces"][0])
        return wire.check(wire.Wire(self.into.name), [trajectory])

    def test_what_crossed_the_wire_passes(self):
        verdict = self.verdict()
        self.assertEqual((verdict.errors, verdict.unclaimed), ([], 0))
        self.assertEqual((verdict.turns, verdict.tools), (2, 1))
        self.assertGreater(len(wire.Wire(self.into.name).asked), 0)  # some were asked for apart

    def test_no_lie_passes(self):
        said = self.trajectory["traces"][0]["turns"][1]["offset"]

        def nudge(trace):
            value = trace["logprobs"][said + 1]
            bits, = struct.unpack("<i", struct.pack("<f", value))
            trace["logprobs"][said + 1], = struct.unpack("<f", struct.pack("<i", bits + 1))

        def other_id(place):
            return lambda trace: trace["token_ids"].__setitem__(place, 65)

        lies = {
            "never crossed": (other_id(said), other_id(said + 2), other_id(0), other_id(said - 1)),
            "other log-probabilities": (nudge, lambda t: t["logprobs"].__setitem__(said, t["logprobs"][said] - 0.5)),
            "mask": (lambda t: t["mask"].__setitem__(0, 1), lambda t: t["mask"].__setitem__(said, 0)),
            "a prompt of": (lambda t: t["turns"][1].update(prompt_tokens=said + 1),),
            "cached": (lambda t: t["turns"][1].update(cached_tokens=said + 1),),
            "of what was not sampled": (lambda t: t["logprobs"].__setitem__(0, -1.0),),
            "different lengths": (lambda t: t["mask"].pop(),),
            "do not cover": (lambda t: t["turns"].pop(),),
        }
        for words, changes in lies.items():
            for change in changes:
                errors = self.verdict(change).errors
                self.assertTrue(any(words in error for error in errors), (words, errors))

    def test_a_turn_that_no_trajectory_has_is_seen(self):
        self.assertEqual(wire.check(wire.Wire(self.into.name), []).unclaimed, 2)

    def test_one_call_is_one_turn(self):
        verdict = wire.check(wire.Wire(self.into.name), [self.trajectory, dict(self.trajectory, rollout="g/1")])
        self.assertEqual(len([error for error in verdict.errors if "g/1" in error and "never crossed" in error]), 2)


if __name__ == "__main__":
    unittest.main()
