"""`sluice export` and sluice.export of a real service's stream: what is in the files, and that they come out the same."""
import filecmp
import glob
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Client, Fleet  # noqa: E402
from harness import BINARY, SLUICE, SOURCE  # noqa: E402

sys.path.append(os.path.join(SOURCE, "tests", "client", "python"))
from fetched_packages import NoRegistry, install  # noqa: E402

from sluice.export import ExportError, export  # noqa: E402
from sluice.errors import BadArgument  # noqa: E402

ARROW = "pyarrow==20.0.0"


def has_arrow():
    try:
        importlib.import_module("pyarrow.parquet")
        return True
    except ImportError:
        return False


def find_arrow():
    """Why there is no pyarrow here; "": there is, for this process and those that it starts."""
    if has_arrow():
        return ""
    folder = os.path.join(BINARY, "packages", f"{ARROW}-{sys.version_info[0]}.{sys.version_info[1]}")
    try:
        if not os.path.isdir(folder):
            install([ARROW], folder + ".new")
            os.replace(folder + ".new", folder)
    except NoRegistry as why:
        return str(why)
    sys.path.append(folder)
    return "" if has_arrow() else f"{ARROW} cannot be imported here"


NO_ARROW = find_arrow()
WITH_ARROW = unittest.skipIf(NO_ARROW, NO_ARROW)
WITH_DATASETS = unittest.skipIf(NO_ARROW or not importlib.util.find_spec("datasets"), "datasets is not installed")


def sums(number, answers):
    """A group whose samples answer differently: right is 1, and wrong is 0."""
    return {"task": f"sum-{number}", "prompt": f"What is 1+1? ({number})", "agent": {"kind": "chat"}, "samples": answers,
            "eval": {"kind": "math", "answer": "2"}, "metadata": {"split": "test" if number % 3 == 0 else "train", "number": number}}


def setUpModule():
    """80 rollouts of chats, whose every fourth reply is wrong, and one that talks to a shell: what all tests read."""
    ExportCase.fleet = fleet = Fleet(slots=4)
    fleet.add_engine({"rules": [
        {"path": "/completion", "if": "Please look", "reply": "```bash\necho hi; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
        *({"path": "/completion", "call": call, "reply": "It is \\boxed{3}."} for call in range(2, 200, 4)),
        {"path": "/completion", "reply": "It is \\boxed{2}."}]})
    fleet.__enter__()
    unittest.addModuleCleanup(fleet.__exit__, None, None, None)
    with Client(fleet.url, allow_plaintext=True, timeout=60) as client:
        client.submit([sums(k, 4) for k in range(20)], stream="train")
        client.submit([{"task": "talk", "prompt": "Please look.", "agent": {"kind": "bash"}}], stream="train")
        ExportCase.all = list(client.trajectories("train", timeout=60, until_idle=True))
    assert len(ExportCase.all) == 81, len(ExportCase.all)


class ExportCase(Case):
    def setUp(self):
        self.root = os.path.join(self.fleet.root, self._testMethodName)
        os.mkdir(self.root)
        self.reader = self.client(self.fleet, timeout=60)

    def at(self, name):
        return os.path.join(self.root, name)

    def export(self, name, **options):
        return export(self.reader, "train", self.at(name), **options)

    def lines(self, name):
        rows = []
        for path in sorted(glob.glob(self.at(name) + "/data/*")) if os.path.isdir(self.at(name)) else [self.at(name)]:
            with open(path, encoding="utf-8") as file:
                rows += [json.loads(line) for line in file]
        return rows

    def environment(self):
        """The fleet's, in which a pyarrow that was fetched is found, too."""
        paths = os.pathsep.join([self.fleet.environment["PYTHONPATH"], *(p for p in sys.path if "/packages/pyarrow" in p)])
        return dict(self.fleet.environment, PYTHONPATH=paths)

    def run_command(self, *arguments, check=True, **environment):
        done = subprocess.run([SLUICE, "export", "train", *arguments], capture_output=True, text=True, timeout=120, check=False,
                              env=dict(self.environment(), SLUICE_PYTHON=sys.executable, **environment))
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def assert_same(self, one, other):
        """Both directories hold the same files, byte for byte."""
        names = [sorted(os.path.relpath(path, self.at(folder)) for path in glob.glob(self.at(folder) + "/**", recursive=True)
                        if os.path.isfile(path)) for folder in (one, other)]
        self.assertEqual(names[0], names[1])
        self.assertIn("README.md", names[0])
        self.assertEqual(filecmp.cmpfiles(self.at(one), self.at(other), names[0], shallow=False)[1:], ([], []))


class Lines(ExportCase):
    def test_json_lines_hold_every_trajectory_as_the_command_line_writes_it(self):
        counts = self.export("out", format="jsonl", shard=25)
        self.assertEqual((counts.rows, counts.files, counts.from_seq, counts.to_seq), (81, 4, 1, 81))
        rows = self.lines("out")
        wanted = [json.loads(line) for line in self.fleet.run("watch", "train", "--json", "--count", "81").stdout.splitlines()]
        for row, whole in zip(rows, wanted):
            for name in ("rollout", "seq", "reward", "raw_reward", "outcome", "end", "detail", "engine", "run_ms", "ended_ms", "parts"):
                self.assertEqual(row[name], whole[name], name)
            self.assertEqual(json.loads(row["metadata"]), whole.get("metadata", {}))
            self.assertEqual([m["content"] for m in row["messages"]], [m["content"] for m in whole["messages"]])
            for trace, told in zip(row["traces"], whole["traces"]):
                for name in ("token_ids", "mask", "logprobs", "reason"):
                    self.assertEqual(trace[name], told[name])
                self.assertEqual([turn["seconds"] for turn in trace["turns"]], [turn["seconds"] for turn in told["turns"]])
        self.assertEqual(sorted(os.listdir(self.at("out/data")))[0], "000000000001-000000000025.jsonl")

    def test_columns_and_filters_choose(self):
        self.export("some.jsonl", format="jsonl", columns=["rollout", "reward"], filter=["reward>=1", "metadata.split=train"])
        wanted = [{"rollout": t.rollout, "reward": t.reward} for t in self.all if t.reward == 1 and t.metadata.get("split") == "train"]
        self.assertEqual(self.lines("some.jsonl"), wanted)
        self.assertGreater(len(wanted), 20)
        self.assertEqual(os.listdir(self.root), ["some.jsonl"])  # nothing is left beside it
        self.export("other.jsonl", format="jsonl", columns=["seq"], filter="metadata.number<3")
        self.assertEqual(len(self.lines("other.jsonl")), 12)

    def test_a_part_of_the_stream(self):
        self.export("part", format="jsonl", from_seq=11, to_seq=40, columns=["seq"], shard=20)
        self.assertEqual([row["seq"] for row in self.lines("part")], list(range(11, 41)))
        self.assertEqual(len(os.listdir(self.at("part/data"))), 2)

    def test_it_goes_on_after_the_last_number_and_says_what_is_not_there(self):
        self.export("grown", format="jsonl", columns=["seq"], to_seq=30, shard=20)
        self.export("grown", format="jsonl", columns=["seq"], shard=20)
        self.assertEqual([row["seq"] for row in self.lines("grown")], list(range(1, 82)))
        with self.assertRaisesRegex(ExportError, "has come to number 81, and not to 999 yet"):
            self.export("grown", format="jsonl", columns=["seq"], to_seq=999, shard=20)
        with self.assertRaisesRegex(ExportError, "another columns: name another directory"):
            self.export("grown", format="jsonl", columns=["task"], shard=20)
        with self.assertRaisesRegex(ExportError, "nothing has been submitted to the stream nowhere"):
            export(self.reader, "nowhere", self.at("x"), format="jsonl")
        os.makedirs(self.at("mine/data"))
        with open(self.at("mine/data/thesis.tex"), "w", encoding="utf-8"):
            pass
        with self.assertRaisesRegex(ExportError, "holds thesis.tex"):
            self.export("mine", format="jsonl")

    def test_what_is_no_longer_kept_is_said_with_what_is(self):
        self.reader.submit([{"task": f"noop-{k}", "kind": "noop"} for k in range(30)], stream="short")
        for _ in self.reader.trajectories("short", timeout=60, until_idle=True):
            pass
        export(self.reader, "short", self.at("out"), format="jsonl", columns=["seq"], to_seq=10)
        self.reader.ack("short", 20)
        with self.assertRaisesRegex(ExportError, "number 11 of stream short is no longer kept: the oldest is 21"):
            export(self.reader, "short", self.at("out"), format="jsonl", columns=["seq"])
        export(self.reader, "short", self.at("rest.jsonl"), format="jsonl", columns=["seq"])
        self.assertEqual([row["seq"] for row in self.lines("rest.jsonl")], list(range(21, 31)))

    def test_what_is_wrong_is_refused_before_anything_is_written(self):
        for options, words in (({"format": "xml"}, "format wants one of"), ({"columns": ["nothing"]}, "there is none named nothing"),
                               ({"filter": "reward~1"}, "filter wants FIELD=VALUE"), ({"filter": "reward>much"}, "with a number"),
                               ({"filter": "traces=1"}, "no field that can be compared"), ({"shard": 0}, "shard"),
                               ({"format": "sft", "columns": ["task"]}, "not of sft"), ({"from_seq": 5, "to_seq": 4}, "to_seq")):
            with self.assertRaisesRegex(BadArgument, words):
                self.export("no", **dict({"format": "jsonl"}, **options))
        self.assertEqual(os.listdir(self.root), [])

    def test_one_export_at_a_time_writes_to_a_directory(self):
        self.export("out", format="jsonl", to_seq=1, columns=["seq"])
        holder = subprocess.Popen([sys.executable, "-c", "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()",
                                   self.at("out/.sluice-export.lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdout.readline()
        with self.assertRaisesRegex(ExportError, "another export writes to"):
            self.export("out", format="jsonl", columns=["seq"])
        holder.communicate(b"\n", timeout=30)


class Pairs(ExportCase):
    def test_sft_has_conversations_of_rollouts_with_enough_reward(self):
        self.export("sft.jsonl", format="sft")
        rows, by_name = self.lines("sft.jsonl"), {t.rollout: t for t in self.all}
        self.assertEqual([row["rollout"] for row in rows], [t.rollout for t in self.all if t.outcome == "ok" and t.reward == 1])
        for row in rows:
            said = [message for message in by_name[row["rollout"]].messages if message.role != "note"]
            self.assertEqual([m["content"] for m in row["messages"]], [m.content for m in said[:len(row["messages"])]])
            self.assertEqual(row["messages"][-1]["role"], "assistant")

    def test_results_told_in_the_users_turns_are_the_users(self):
        self.export("sft.jsonl", format="sft", min_reward=-10, filter="task=talk")
        talk = next(t for t in self.all if t.task == "talk")
        self.assertIn("tool", {m.role for m in talk.messages})
        self.assertNotIn("tool", {m["role"] for row in self.lines("sft.jsonl") for m in row["messages"]})

    def test_dpo_has_the_best_and_the_worst_of_each_group_that_differ(self):
        counts = self.export("dpo.jsonl", format="dpo", shard=7)
        rows, groups = self.lines("dpo.jsonl"), {}
        for t in self.all:
            groups.setdefault(t.group, []).append(t)
        wanted = {name for name, own in groups.items() if len({t.reward for t in own if t.reward is not None}) > 1}
        self.assertEqual({row["group"] for row in rows}, wanted)
        self.assertGreater(len(wanted), 3)
        self.assertEqual(counts.rows + counts.left_out, len(groups))
        for row in rows:
            rewards = {t.rollout: t.reward for t in groups[row["group"]]}
            self.assertEqual(row["chosen_reward"], max(rewards.values()))
            self.assertEqual(rewards[row["rejected_rollout"]], min(rewards.values()))
            self.assertEqual([m["role"] for m in row["prompt"]][-1], "user")
            self.assertIn("boxed{2}", row["chosen"][0]["content"])
            self.assertIn("boxed{3}", row["rejected"][0]["content"])
        self.export("far.jsonl", format="dpo", margin=2)
        self.assertEqual(self.lines("far.jsonl"), [])

    def test_a_group_that_began_before_the_first_number_makes_no_pair(self):
        first = self.all[0]
        self.export("late.jsonl", format="dpo", from_seq=2)
        self.assertNotIn(first.group, {row["group"] for row in self.lines("late.jsonl")})


class Killed(ExportCase):
    def test_killed_at_any_moment_and_started_again_the_files_are_the_same(self):
        for format in ("jsonl", "dpo") + (() if NO_ARROW else ("parquet",)):
            with self.subTest(format):
                self.export(f"{format}-whole", format=format, shard=20)
                self.kill_and_go_on(f"{format}-cut", format)
                self.assert_same(f"{format}-whole", f"{format}-cut")

    def kill_and_go_on(self, name, format):
        """kill -9 behind each step that a file goes through, again and again until it ends by itself."""
        killed = 0
        for point in range(1000):
            program = ("import os, sys\n"
                       "from sluice import Client\n"
                       "from sluice.export import export, folder\n"
                       "left = [1]\n"
                       "def dies(call):\n"
                       "    def step(*arguments, **more):\n"
                       "        value = call(*arguments, **more)\n"
                       "        left[0] -= 1\n"
                       "        if not left[0]: os.kill(os.getpid(), 9)\n"
                       "        return value\n"
                       "    return step\n"
                       "left[0] = int(sys.argv[4])\n"
                       "os.replace, os.fsync = dies(os.replace), dies(os.fsync)\n"
                       "export(Client(sys.argv[1], allow_plaintext=True), 'train', sys.argv[2], format=sys.argv[3], shard=20)\n")
            done = subprocess.run([sys.executable, "-c", program, self.fleet.url, self.at(name), format, str(3 + point % 7)],
                                  capture_output=True, text=True, timeout=120, check=False,
                                  env=self.environment())
            if done.returncode == 0:
                break
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
            killed += 1
        self.assertGreater(killed, 4)

    def test_the_same_stream_and_options_are_the_same_bytes(self):
        self.export("one", format="jsonl", shard=30)
        self.run_command("--format", "jsonl", "--shard", "30", "--output", self.at("two"))
        self.assert_same("one", "two")


class Command(ExportCase):
    def test_its_options_are_those_of_the_module(self):
        from sluice.export.__main__ import parser
        own = set(parser()._option_string_actions) - {"-h"}
        said = self.fleet.run("export", "--help").stdout
        listed = {word for line in said.splitlines() if line.startswith("  --") for word in line.split()[:1]} - {"--version"}
        self.assertEqual(listed, own)

    def test_it_says_what_it_did_and_what_is_wrong(self):
        done = self.run_command("--format", "sft", "--min-reward", "-1", "--output", self.at("sft"))
        self.assertRegex(done.stdout, rf"^\d+ rows in {self.at('sft')}, of numbers 1 to 81; \d+ left out\n$")
        done = self.run_command("--format", "jsonl", "--to", "500", "--output", self.at("more"), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("sluice export: stream train has come to number 81, and not to 500 yet", done.stderr)
        done = self.run_command("--format", "jsonl", "--filter", "reward~1", "--output", self.at("more"), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("filter wants FIELD=VALUE", done.stderr)

    def test_without_pyarrow_a_sentence_says_what_to_install(self):
        os.makedirs(self.at("none/pyarrow"))
        with open(self.at("none/pyarrow/__init__.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('hidden')\n")
        path = os.pathsep.join([self.at("none"), self.fleet.environment["PYTHONPATH"]])
        done = subprocess.run([SLUICE, "export", "train", "--output", self.at("out")], capture_output=True, text=True, timeout=60,
                              env=dict(self.fleet.environment, PYTHONPATH=path, SLUICE_PYTHON=sys.executable), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("pip install pyarrow", done.stderr)
        self.assertFalse(os.path.exists(self.at("out")))


class Columns(ExportCase):
    @WITH_ARROW
    def test_parquet_holds_every_trajectory(self):
        from pyarrow import parquet
        self.export("out", shard=40)
        self.export("out.parquet")
        rows = parquet.read_table(self.at("out/data")).to_pylist()
        self.assertEqual(rows, parquet.read_table(self.at("out.parquet")).to_pylist())
        self.assertEqual([row["seq"] for row in rows], list(range(1, 82)))
        for row, t in zip(rows, self.all):
            self.assertEqual((row["rollout"], row["reward"], row["trainable"], json.loads(row["metadata"])),
                             (t.rollout, t.reward, t.trainable, t.metadata))
            self.assertEqual([trace["token_ids"] for trace in row["traces"]], [trace.token_ids.tolist() for trace in t.traces])
            self.assertEqual([trace["logprobs"] for trace in row["traces"]], [trace.logprobs.tolist() for trace in t.traces])
            self.assertEqual([trace["turns"][-1]["role"] for trace in row["traces"]], [trace.turns[-1].role for trace in t.traces])
            self.assertEqual([m["content"] for m in row["messages"]], [m.content for m in t.messages])

    @WITH_ARROW
    def test_pairs_may_be_parquet(self):
        from pyarrow import parquet
        self.export("dpo.parquet", format="dpo")
        self.export("dpo.jsonl", format="dpo")
        self.assertEqual(parquet.read_table(self.at("dpo.parquet")).to_pylist(), self.lines("dpo.jsonl"))

    @WITH_DATASETS
    def test_datasets_reads_the_directory(self):
        import datasets
        datasets.disable_progress_bars()
        self.export("all", shard=40)
        self.export("sft", format="sft")
        rows = datasets.load_dataset(self.at("all"), split="train", cache_dir=self.at("cache"))
        self.assertEqual(list(rows["seq"]), list(range(1, 82)))
        self.assertEqual(rows[5]["traces"][0]["token_ids"], self.all[5].traces[0].token_ids.tolist())
        pairs = datasets.load_dataset(self.at("sft"), split="train", cache_dir=self.at("cache"))
        self.assertEqual(pairs[0]["messages"][-1]["role"], "assistant")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
