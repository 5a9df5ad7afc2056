"""`sluice verify` against a scripted engine, whose log-probabilities are known: what is right passes, each lie is named."""
import copy
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request
import xml.etree.ElementTree

sys.path += [__file__.rsplit("/", 2)[0], __file__.rsplit("/", 3)[0] + "/engines"]  # tests/system, tests/engines
import scripted_engine  # noqa: E402
from harness import SLUICE, Engine  # noqa: E402

START, END = 256, 257
ERRORS = ("damaged", "not_in_mask", "not_sampled", "breaks", "counts", "values", "altered", "off", "drifted", "strangers")


def make_trajectory(name, parts, messages=None):
    """parts: (role, ids). As the scripted engine would have sampled it. messages: what they say, the roles' turn by turn."""
    trace = {"token_ids": [], "mask": [], "logprobs": [], "turns": [], "reason": "", "template_digest": "", "tokenizer_digest": ""}
    for role, ids in parts:
        at, said = len(trace["token_ids"]), role == "assistant"
        finish = "" if not said else "stop" if ids[-1] == END else "length"
        trace["turns"].append({"role": role, "offset": at, "length": len(ids), "finish": finish, "prompt_tokens": at * said,
                               "cached_tokens": at // 2 * said, "seconds": 0.5})
        trace["token_ids"] += ids
        trace["mask"] += [int(said)] * len(ids)
        trace["logprobs"] += [scripted_engine.logprob(at + k, id) if said else 0 for k, id in enumerate(ids)]
    roles = [dict(prompt="user").get(role, role) for role, _ in parts]
    told = {"messages": [{"role": role, "content": content} for role, content in zip(roles, messages)]} if messages else {}
    return {"rollout": name, "logprobs_mode": "raw", "traces": [trace], **told}


def two_turns(name="g/0"):
    return make_trajectory(name, [("prompt", [START, *b"user\nhi", END, 10, START, *b"assistant\n"]),
                                  ("assistant", [*"caf\u00e9 \U0001f600".encode(), END]),
                                  ("tool", [10, START, *b"user\nout", END, 10, START, *b"assistant\n"]),
                                  ("assistant", [*b"done", END])], ["hi", "caf\u00e9 \U0001f600", "out", "done"])


REAL = os.environ.get("SLUICE_LLAMA_SERVER"), os.environ.get("SLUICE_MODEL")


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def ids_of(url, text):
    return post(url, "/tokenize", {"content": text, "add_special": False, "parse_special": True})["tokens"]


def sample_real(url, name, words, seed):
    """A trajectory of two turns, an observation between, as a worker has them of a real server."""
    trace = {"token_ids": [], "mask": [], "logprobs": [], "turns": [], "reason": "", "template_digest": "", "tokenizer_digest": ""}
    messages = [{"role": "user", "content": f"Say a word that goes with {words}."}]

    def add(role, ids, logprobs=None, finish=""):
        said = int(role == "assistant")
        trace["turns"].append({"role": role, "offset": len(trace["token_ids"]), "length": len(ids), "finish": finish,
                               "prompt_tokens": len(trace["token_ids"]) * said, "cached_tokens": 0, "seconds": 0.1})
        trace["token_ids"] += ids
        trace["mask"] += [said] * len(ids)
        trace["logprobs"] += logprobs or [0] * len(ids)

    add("prompt", ids_of(url, post(url, "/apply-template", {"messages": messages})["prompt"]))
    for turn in range(2):
        got = post(url, "/completion", {"prompt": trace["token_ids"], "n_predict": 6, "return_tokens": True, "n_probs": 1, "temperature": 1.0,
                                        "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 2 * seed + turn, "logit_bias": [[2, -100], [0, -100]]})
        values = [entry["logprob"] for entry in got["completion_probabilities"]]
        if [entry["id"] for entry in got["completion_probabilities"]] != got["tokens"] or "\ufffd" in got["content"]:
            return sample_real(url, name, words, seed + 1000)  # a character in several tokens
        add("assistant", got["tokens"], values, "length")
        messages.append({"role": "assistant", "content": got["content"]})
        if turn == 0:
            messages.append({"role": "tool", "content": f"<returncode>0</returncode>\n<output>\nfile-{seed} {words} 17\n</output>"})
            end = ids_of(url, "<|im_end|>")
            trace["token_ids"] += end
            trace["mask"], trace["logprobs"] = trace["mask"] + [1], trace["logprobs"] + [forced(url, trace["token_ids"])]
            trace["turns"][-1].update(length=trace["turns"][-1]["length"] + 1, finish="stop")
            add("user", ids_of(url, f"\n<|im_start|>user\n{messages[-1]['content']}<|im_end|>\n<|im_start|>assistant\n"))
    return {"rollout": name, "logprobs_mode": "raw", "traces": [trace], "messages": messages}


def forced(url, ids):
    """The log-probability of the last one after those before."""
    got = post(url, "/completion", {"prompt": ids[:-1], "n_predict": 1, "return_tokens": True, "n_probs": 1, "temperature": 0.0,
                                    "logit_bias": [[ids[-1], 10000]]})
    return got["completion_probabilities"][0]["logprob"]


class Verifying(unittest.TestCase):
    """`sluice verify` of some lines, against the class's engine."""

    @classmethod
    def setUpClass(cls):
        cls.engine = cls.enterClassContext(cls.make_engine())
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.path = os.path.join(cls.folder, "t.jsonl")

    def run_verify(self, lines, *options, engine=None):
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        return subprocess.run([SLUICE, "verify", self.path, "--engine", engine or self.engine.url, *options], capture_output=True,
                              text=True, timeout=300, check=False)

    def totals(self, lines, *options, status, engine=None):
        done = self.run_verify(lines, "--json", *options, engine=engine)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


class Verify(Verifying):
    make_engine = Engine

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

        def drift(t):
            trace = t["traces"][0]
            trace["logprobs"] = [value - 0.5 * bit for value, bit in zip(trace["logprobs"], trace["mask"])]

        def put(key, place, value):
            return lambda t: t["traces"][0][key].__setitem__(place, value)

        def turn(place, **more):
            return lambda t: t["traces"][0]["turns"][place].update(more)

        def give(place, id):
            return lambda t: t["traces"][0]["token_ids"].__setitem__(place, id)

        def told(content):
            return lambda t: t["messages"][-2].update(content=content)

        unlike = max(range(97, 123), key=lambda id: abs(scripted_engine.logprob(said, id) - scripted_engine.logprob(said, ord("c"))))
        prompt, tool = [two_turns()["traces"][0]["turns"][k]["offset"] for k in (0, 2)]
        lies = [
            ("altered", 1, give(prompt + 6, ord("o"))),
            ("altered", 1, give(tool + 3, ord("S"))),
            ("altered", 1, give(tool + 7, ord("a"))),
            ("altered", 1, give(tool + 10, START)),
            ("altered", 1, told("not this")),
            ("off", 1, put("logprobs", said, scripted_engine.logprob(said, ord("c")) - 5)),
            ("off", 1, give(said, unlike)),
            ("drifted", 1, drift),
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

    def test_what_is_said_of_an_error_names_its_place_and_both_values(self):
        t = two_turns()
        said = t["traces"][0]["turns"][1]["offset"]
        t["traces"][0]["logprobs"][said + 1] -= 5
        recorded, scored = t["traces"][0]["logprobs"][said + 1], scripted_engine.logprob(said + 1, ord("a"))
        place = f"g/0, trace 0, token {said + 1} (id 97): recorded {recorded:.4f}, scored {scored:.4f}"
        one, totals = self.totals([t], "--tolerance", "9", status=1)
        for told in (one, totals):
            self.assertIn(place, told["first"])
            self.assertEqual((told["worst"]["rollout"], told["worst"]["trace"], told["worst"]["token"], told["worst"]["id"]),
                             ("g/0", 0, said + 1, 97))
            self.assertAlmostEqual(told["worst"]["recorded"] - told["worst"]["scored"], -5, 4)
        self.assertIn("wrong in 1 places: g/0: " + place, self.run_verify([two_turns("g/1"), t], "--tolerance", "9").stdout)
        self.totals([t], "--token-tolerance", "6", "--tolerance", "9", status=0)
        t, observed = two_turns(), two_turns()["traces"][0]["turns"][2]["offset"]
        t["traces"][0]["token_ids"][observed + 8] = ord("X")
        self.assertIn(f"g/0, trace 0, token {observed + 8}: 88, where template and messages have {ord('u')}",
                      self.totals([t], "--tolerance", "9", "--token-tolerance", "9", status=1)[-1]["first"])

    def test_a_file_without_messages_is_good(self):
        t = two_turns()
        del t["messages"]
        self.totals([t], status=0)

    def test_words_that_an_agent_puts_around_a_result_are_no_alteration(self):
        told = b"<tool_response>\nout\n</tool_response>"
        t = make_trajectory("g/0", [("prompt", [START, *b"user\nhi", END, 10, START, *b"assistant\n"]), ("assistant", [*b"call", END]),
                                    ("tool", [10, START, *b"user\n", *told, END, 10, START, *b"assistant\n"]), ("assistant", [*b"done", END])],
                            ["hi", "call", "out", "done"])
        self.totals([t], status=0)
        place = t["traces"][0]["turns"][2]["offset"] + 1
        t["traces"][0]["token_ids"][place] = END
        self.assertEqual(self.totals([t], status=1)[-1]["errors"]["altered"], 1)

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


@unittest.skipUnless(all(REAL), "no real engine (SLUICE_LLAMA_SERVER and SLUICE_MODEL are not set)")
class VerifyReal(Verifying):
    """Sixteen trajectories of a real model; one damage in one of them."""

    @staticmethod
    def make_engine():
        from test_real_model import Llama
        return Llama(4, ("-ub", "1"))  # each token is computed alone (docs/verify.md)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        words = ["apple", "river", "stone", "green", "seven", "paper", "cloud", "piano"]
        cls.sixteen = [sample_real(cls.engine.url, f"g/{k}", f"{words[k % 8]} and {words[k // 2]}", k) for k in range(16)]

    def damaged(self, damage):
        """The errors of the one, which are all there are; it is no mean of all that tells."""
        lines = copy.deepcopy(self.sixteen[4:6])
        place = damage(lines[1]["traces"][0])
        *each, totals = self.totals(lines, "--tolerance", "5", status=1)
        self.assertEqual([one["rollout"] for one in each if sum(one["errors"].values())], ["g/5"], totals)
        self.assertIn(f"g/5, trace 0, token {place}", totals["first"])
        return totals

    def test_sixteen_undamaged_ones_are_good(self):
        totals = self.totals(self.sixteen, "--tokens", "2", status=0)[-1]
        self.assertEqual((totals["errors"], totals["unscored"]), (dict.fromkeys(ERRORS, 0), 0))
        self.assertEqual(totals["recorded"]["tokens"], 32)

    def test_one_sampled_id_is_seen(self):
        def flip(trace):
            place = trace["turns"][1]["offset"] + 2
            trace["token_ids"][place] ^= 4096
            return place
        self.assertGreater(self.damaged(flip)["errors"]["off"], 0)

    def test_one_log_probability_is_seen(self):
        def nudge(trace):
            place = trace["turns"][3]["offset"] + 1
            trace["logprobs"][place] -= 5
            return place
        totals = self.damaged(nudge)
        self.assertEqual(totals["errors"]["off"], 1)
        self.assertAlmostEqual(totals["worst"]["recorded"] - totals["worst"]["scored"], -5, 1)

    def test_any_id_of_an_observation_or_a_prompt_is_seen(self):
        t = copy.deepcopy(self.sixteen[5])
        given = [k for k, bit in enumerate(t["traces"][0]["mask"]) if not bit]
        given = given[:40:8] + given[40::4]
        lines = []
        for place in given:
            lines.append(copy.deepcopy(t))
            lines[-1]["rollout"] = f"place/{place}"
            lines[-1]["traces"][0]["token_ids"][place] ^= 1
        *each, totals = self.totals(lines, "--tokens", "1", "--once", "--tolerance", "50", "--token-tolerance", "50", status=1)
        self.assertEqual(sorted(one["rollout"] for one in each if one["errors"]["altered"] != 1), [])
        self.assertEqual(totals["errors"]["altered"], len(given))
        for one in each:
            self.assertIn(f"{one['rollout']}, trace 0, token {one['rollout'].split('/')[1]}: ", one["first"])


if __name__ == "__main__":
    unittest.main()
