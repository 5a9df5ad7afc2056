"""`sluice verify` against a scripted engine, whose log-probabilities are known: what is right passes, each lie is named."""
import copy
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import scripted_engine  # noqa: E402
from harness import SLUICE, Engine  # noqa: E402

START, END = 256, 257
ERRORS = ("damaged", "not_in_mask", "not_sampled", "breaks", "counts", "values", "strangers")


def make_trajectory(name, parts):
    """parts: (role, ids). As the scripted engine would have sampled it."""
    trace = {"token_ids": [], "mask": [], "logprobs": [], "turns": [], "reason": "", "template_digest": "", "tokenizer_digest": ""}
    for role, ids in parts:
        at, said = len(trace["token_ids"]), role == "assistant"
        finish = "" if not said else "stop" if ids[-1] == END else "length"
        trace["turns"].append({"role": role, "offset": at, "length": len(ids), "finish": finish, "prompt_tokens": at * said,
                               "cached_tokens": at // 2 * said, "seconds": 0.5})
        trace["token_ids"] += ids
        trace["mask"] += [int(said)] * len(ids)
        trace["logprobs"] += [scripted_engine.logprob(at + k, id) if said else 0 for k, id in enumerate(ids)]
    return {"rollout": name, "logprobs_mode": "raw", "traces": [trace]}


def two_turns(name="g/0"):
    return make_trajectory(name, [("prompt", [START, *b"user\nhi", END, START, *b"assistant\n"]),
                                  ("assistant", [*"caf\u00e9 \U0001f600".encode(), END]),
                                  ("tool", [10, START, *b"user\nout", END, 10, START, *b"assistant\n"]),
                                  ("assistant", [*b"done", END])])


class Verify(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = cls.enterClassContext(Engine())
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.path = os.path.join(cls.folder, "t.jsonl")

    def run_verify(self, lines, *options, engine=None):
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        return subprocess.run([SLUICE, "verify", self.path, "--engine", engine or self.engine.url, *options], capture_output=True,
                              text=True, timeout=120, check=False)

    def totals(self, lines, *options, status, engine=None):
        done = self.run_verify(lines, "--json", *options, engine=engine)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_what_the_engine_says_too_is_good(self):
        *each, totals = self.totals([two_turns("g/0"), two_turns("g/1"), two_turns("g/2")], status=0)
        self.assertEqual(sorted(one["rollout"] for one in each), ["g/0", "g/1", "g/2"])
        sampled = 3 * sum(two_turns()["traces"][0]["mask"])
        self.assertEqual((totals["trajectories"], totals["turns"], totals["sampled"], totals["verdict"]), (3, 6, sampled, "good"))
        self.assertEqual(totals["errors"], dict.fromkeys(ERRORS, 0))
        for kind in ("recorded", "again"):
            self.assertEqual(totals[kind]["tokens"], sampled)
            self.assertLess(totals[kind]["max"], 1e-6)
        told = self.run_verify([two_turns()])
        self.assertEqual(told.returncode, 0)
        self.assertRegex(told.stdout, r"(?s)1 trajectories: 1 traces.*mean .* nats.*not_in_mask +0\n.*\ngood ")

    def test_differences_are_averaged_and_their_greatest_is_told(self):
        t = two_turns()
        trace, said = t["traces"][0], [k for k, bit in enumerate(t["traces"][0]["mask"]) if bit]
        trace["logprobs"][said[0]] -= 0.5
        trace["logprobs"][said[3]] -= 0.25
        totals = self.totals([t], status=1)[-1]
        self.assertAlmostEqual(totals["recorded"]["mean"], 0.75 / len(said), 6)
        self.assertAlmostEqual(totals["recorded"]["max"], 0.5, 6)
        self.assertLess(totals["again"]["max"], 1e-6)
        self.assertEqual(totals["verdict"], "wrong")
        self.assertEqual(self.totals([t], "--tolerance", "0.2", status=0)[-1]["verdict"], "good")
        few = self.totals([t], "--tokens", "3", "--tolerance", "1", status=0)[-1]
        self.assertEqual((few["recorded"]["tokens"], few["again"]["tokens"], few["sampled"]), (3, 3, len(said)))
        self.assertNotIn("again", self.totals([t], "--once", "--tolerance", "1", status=0)[-1])

    def test_each_lie_is_named_and_counted(self):
        said = two_turns()["traces"][0]["turns"][1]["offset"]

        def second_trace(t, reason):
            t["traces"].append(dict(copy.deepcopy(t["traces"][0]), reason=reason))

        def leak(t):
            """The template's newline after the end token, taken for sampled."""
            trace = t["traces"][0]
            turn, tool = trace["turns"][1], trace["turns"][2]
            turn["length"], tool["offset"], tool["length"] = turn["length"] + 1, tool["offset"] + 1, tool["length"] - 1
            trace["mask"][tool["offset"] - 1] = 1
            trace["logprobs"][tool["offset"] - 1] = scripted_engine.logprob(tool["offset"] - 1, 10)

        def put(key, place, value):
            return lambda t: t["traces"][0][key].__setitem__(place, value)

        def turn(place, **more):
            return lambda t: t["traces"][0]["turns"][place].update(more)

        lies = [
            ("not_in_mask", 1, put("mask", said, 0)),
            ("not_sampled", 1, put("mask", 2, 1)),
            ("not_sampled", 1, leak),
            ("breaks", 1, lambda t: second_trace(t, "")),
            ("counts", 1, turn(1, prompt_tokens=said + 1)),
            ("counts", 1, turn(1, cached_tokens=said + 1)),
            ("counts", 1, turn(1, finish="length")),
            ("counts", 1, turn(2, offset=0)),
            ("counts", 1, lambda t: t["traces"][0]["turns"].pop()),
            ("values", 1, put("logprobs", 0, -1.0)),
            ("values", 1, put("logprobs", said, 0.5)),
            ("strangers", 1, lambda t: t["traces"][0].update(tokenizer_digest="sha256:other")),
            ("strangers", 1, lambda t: t["traces"][0].update(template_digest="sha256:other")),
            ("strangers", 1, lambda t: t.update(logprobs_mode="processed")),
        ]
        for name, count, lie in lies:
            t = two_turns()
            lie(t)
            totals = self.totals([t], status=1)[-1]
            self.assertEqual(totals["errors"][name], count, (name, totals))
            self.assertTrue(totals["first"], name)
        t = two_turns()
        second_trace(t, "the template moved")
        self.assertEqual(self.totals([t], status=0)[-1]["new_traces"], 1)

    def test_lines_that_are_no_trajectory_are_counted_and_passed_over(self):
        t = json.dumps(two_turns())
        damaged = ["", "not JSON", "[]", "{}", t[:-2], t.replace('"mask": [0', '"mask": [0, 0'), t.replace('"mask": [0', '"mask": [2'),
                   t.replace('"token_ids": [256', '"token_ids": [-1'), t.replace('"logprobs": [0', '"logprobs": [null'),
                   t.replace('"turns": [', '"turns": [7, '), t.replace('"role": "prompt"', '"role": "' + "p" * 99 + '"'),
                   "[" * 100000, '{"rollout": "x", "traces": [{}]}']
        *each, totals = self.totals([*damaged, t], status=1)
        self.assertEqual((totals["errors"]["damaged"], totals["trajectories"]), (len(damaged), len(damaged) + 1))
        self.assertEqual(totals["recorded"]["tokens"], sum(two_turns()["traces"][0]["mask"]))
        self.assertIn("line 2", [one["rollout"] for one in each])

    def test_what_cannot_be_scored_is_no_success(self):
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))  # held, and not listened to
            done = self.run_verify([two_turns()], engine=f"http://127.0.0.1:{deaf.getsockname()[1]}")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("it could not go on", done.stderr)
        self.assertEqual(self.totals([], status=3)[-1]["trajectories"], 0)
        long = make_trajectory("g/long", [("prompt", [65] * 5000), ("assistant", [66, END])])
        totals = self.totals([long, two_turns()], status=3)[-1]
        self.assertEqual((totals["unscored"], totals["trajectories"]), (2, 2))
        self.assertIn("5002 tokens do not fit a context of 4096", totals["first"])
        self.assertEqual(subprocess.run([SLUICE, "verify", "/nowhere", "--engine", self.engine.url], capture_output=True,
                                        check=False).returncode, 3)

    def test_a_wrong_command_line_is_told(self):
        for words in ([], ["f"], ["f", "--engine", "here"], ["f", "g", "--engine", "http://x"], ["f", "--engine", "http://x", "--what"],
                      ["f", "--engine", "http://x", "--parallel", "0"], ["f", "--engine", "http://x", "--tolerance", "nan"]):
            done = subprocess.run([SLUICE, "verify", *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn("sluice-verify --help", done.stderr)

    def test_the_picture_shows_every_token(self):
        t = two_turns()
        said = [k for k, bit in enumerate(t["traces"][0]["mask"]) if bit]
        for place, nudge in zip(said, (0.3, 0.02, 0.001, 1e-5)):
            t["traces"][0]["logprobs"][place] -= nudge
        picture = os.path.join(self.folder, "p.svg")
        self.totals([t], "--plot", picture, "--tolerance", "1", status=0)
        root = xml.etree.ElementTree.parse(picture).getroot()
        self.assertTrue(root.tag.endswith("svg"))
        titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(sum(int(text.split()[0]) for text in titles), 2 * len(said))
        self.assertEqual(len(titles), 6)  # four sizes and what is less, and all that is less when scored again
        self.totals([t], "--plot", "/nowhere/p.svg", "--tolerance", "1", status=3)


if __name__ == "__main__":
    unittest.main()
