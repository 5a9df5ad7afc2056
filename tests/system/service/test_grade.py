"""`sluice grade --task`: what an agent left, judged by any evaluator, without a service and with nothing left behind."""
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import PYTHON, SLUICE, SOURCE, Engine, command_of, environment_of, parent_of, wait_until  # noqa: E402

BOM = "\ufeff"
HELLO = {"task": "hello", "prompt": "Write hello into answer.txt.", "files": {"notes.txt": "a note"}, "agent": {"kind": "bash"},
         "solution": {"commands": ["echo hello > answer.txt"]},
         "eval": {"kind": "command", "command": "grep -q note notes.txt && [[ $(<answer.txt) == hello ]]; echo $(($? == 0)) > /tmp/reward",
                  "reward_file": "/tmp/reward"}}
SUM = {"task": "sum", "prompt": "3/6?", "eval": {"kind": "math", "answer": "\\frac12"}}
ECHO = {"task": "echo", "prompt": "Print the line.", "eval": {"kind": "code", "score": "fraction",
                                                              "tests": {"inputs": ["1\n", "2\n"], "outputs": ["1\n", "3\n"]}}}
BROKEN = dict(HELLO, task="broken", eval={"kind": "command", "command": "no-such-grader"})
VERIFIED = {"task": "verified", "prompt": "p", "agent": {"kind": "bash"},
            "eval": {"kind": "verifier", "sandbox": "agent",
                     "command": "echo '{\"exact\": 1, \"style\": 0.25}' > /logs/verifier/reward.json"}}
REPOSITORY = ["git init -q .", "git config user.email a@b", "git config user.name a", "printf 'def add(a, b):\\n    return a - b\\n' > calc.py",
              "mkdir tests", "printf 'import sys; sys.path.insert(0, \".\")\\nfrom calc import add\\nprint(\"PASSED tests/t.py::add\" "
              "if add(1, 2) == 3 else \"FAILED tests/t.py::add\")\\n' > tests/t.py", "git add -A", "git commit -qm base"]
MEND = {"task": "mend", "prompt": "Mend add.", "agent": {"kind": "bash"}, "setup": REPOSITORY,
        "solution": {"commands": ["sed -i 's/a - b/a + b/' calc.py"]},
        "eval": {"kind": "swe", "swe": {"repository": "/workspace", "test_command": "python3 tests/t.py", "witness": "none",
                                        "fail_to_pass": ["tests/t.py::add"]}}}
JUDGED = {"task": "judged", "prompt": "2+2?", "eval": {"kind": "judge", "judge": {"criteria": [{"name": "right", "text": "Is it right?"}]}}}
YES = {"context": 16384, "model": "judge.gguf", "rules": [{"path": "/completion", "reply": "Yes.\n{verdict} {\"right\": \"yes\"}"}]}
HANDLER = """
from sluice.handlers import evaluator

@evaluator
def looks(answer, job):
    if answer == "silence":
        return 0.5
    return {"parts": {"said": float("hi" in answer), "left": (float("hello" in job.exec("cat answer.txt").text), 0.5)}, "n": 3, "detail": "looked"}
"""


class Grade(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="sluice-test-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.tmp = os.path.join(self.root, "tmp")
        os.mkdir(self.tmp)
        self.mark = f"sluice-test-{os.urandom(8).hex()}"
        self.environment = dict(os.environ, TMPDIR=self.tmp, SLUICE_TEST_MARK=self.mark, SLUICE_BROKER="tcp://127.0.0.1:1",
                                SLUICE_STORE="/nonexistent", PYTHONPATH=os.path.join(SOURCE, "client", "python"))
        self.addCleanup(self.expect_nothing_left)

    def expect_nothing_left(self):
        wait_until(lambda: not self.processes(), 20, f"all is gone; left: {[command_of(pid) for pid in self.processes()]}")
        self.assertEqual(os.listdir(self.tmp), [])

    def processes(self):
        pids = [int(path[6:]) for path in glob.glob("/proc/[0-9]*")]
        return [pid for pid in pids if pid != os.getpid() and self.mark.encode() in environment_of(pid)]

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def tasks(self, *tasks):
        return self.write("tasks.jsonl", "".join(json.dumps(task) + "\n" for task in tasks))

    def grade(self, *words, status=0, stdin=None):
        done = subprocess.run([SLUICE, "grade", *words], env=self.environment, capture_output=True, text=True, timeout=180,
                              cwd=self.root, input=stdin)
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        return done

    def rows(self, *words, status=0, stdin=None):
        return [json.loads(line) for line in self.grade(*words, status=status, stdin=stdin).stdout.splitlines()]

    def test_files_are_judged_and_stay_as_they_are(self):
        task = self.write("task.json", BOM + json.dumps(HELLO, indent=1))
        answer = self.write("left/answer.txt", "hello\n")
        os.chmod(os.path.dirname(answer), 0o555)
        self.addCleanup(os.chmod, os.path.dirname(answer), 0o755)
        before = os.stat(answer)
        done = self.grade("command", "--task", task, "--files", "left")
        self.assertEqual((done.stdout, done.stderr), ("verdict  hello: reward 1\nwhy      the reward file says 1\n", ""))
        after = os.stat(answer)
        self.assertEqual((before.st_mtime_ns, before.st_ino, before.st_mode), (after.st_mtime_ns, after.st_ino, after.st_mode))
        self.grade("--task", task, "--files", "left/answer.txt")
        self.grade("--task", task, "--files", "answer.txt=left/answer.txt")
        self.grade("--task", task, "--files", "elsewhere=left", status=1)

    def test_the_solution_and_an_agent_that_does_nothing_are_judged(self):
        tasks = self.tasks(HELLO, MEND, VERIFIED)
        self.assertRegex(self.grade("--task", tasks, "--solution", "--id", "hello", "--id", "mend").stdout,
                         "^verdict  hello: reward 1\nwhy      the reward file says 1\n"
                         "verdict  mend: reward 1\nmetrics  .*\ntests    1 passed, 0 failed, 0 with errors, 0 skipped\n"
                         "why      resolved: 1 of 1 tests that must pass, and 0 of 0 that must not fail\n$")
        verdicts = [json.loads(line) for line in self.grade("--task", tasks, "--nothing", "--json", status=1).stdout.splitlines()]
        self.assertEqual([(v["task"], v["reward"]) for v in verdicts[:2]], [("hello", 0), ("mend", 0)])
        self.assertEqual(verdicts[2]["eval_sandbox"], "agent")
        self.assertEqual({part["name"]: part["value"] for part in verdicts[2]["parts"]}, {"exact": 1, "style": 0.25})

    def test_a_repository_as_an_agent_left_it_is_judged_by_its_tests(self):
        tasks = self.tasks(MEND)
        self.write("left/calc.py", "def add(a, b):\n    return b + a\n")
        self.write("left/.GIT/config", "git adds no file of such a name, and all others\n")
        self.assertIn("verdict  mend: reward 1\n", self.grade("swe", "--task", tasks, "--files", "left").stdout)
        self.write("left/calc.py", "def add(a, b):\n    return 4\n")
        self.assertIn("1 failed", self.grade("swe", "--task", tasks, "--files", "left", status=1).stdout)

    def test_rows_are_judged_in_their_order_and_a_bad_one_stops_no_other(self):
        self.write("left/answer.txt", "hello\n")
        rows = [{"task": "sum", "text": "so \\boxed{0.5}"}, {"task": "sum", "text": ""}, {"task": "hello", "files": "left"},
                {"task": "echo", "text": "```python\nprint(input())\n```"}, {"task": "broken", "files": ["left"]},
                {"task": "nowhere", "text": "a"}, {"task": "sum"}, "nonsense", {"task": "sum", "txt": "a"},
                {"task": "hello", "files": "missing"}, {"task": "hello", "files": "/proc"}, {"task": "hello", "files": "/"},
                {"task": "hello", "files": [self.tmp]}]
        found = self.rows("--task", self.tasks(HELLO, SUM, ECHO, BROKEN), "--rows", "-", status=3,
                          stdin=BOM + "\n".join(json.dumps(row) for row in rows) + "\n\n")
        self.assertEqual([row["row"] for row in found], list(range(1, 14)))
        self.assertEqual([row.get("reward", "none") for row in found[:5]], [1, 0, 1, 0.5, None])
        self.assertEqual(found[3]["tests"]["pass_fraction"], 0.5)
        self.assertRegex(found[4]["why"], "^the evaluator is broken, it exited with 127")
        self.assertEqual([row["error"].split(os.sep)[-1] for row in found[5:10]],
                         ["tasks.jsonl", "it has neither files nor text", "it is not a JSON object", "a row has no field 'txt': task, files and text",
                          "missing: No such file or directory"])
        for row, words in zip(found[10:], ["what is the host's own", "what is the host's own", "in which this command works"]):
            self.assertIn(words, row["error"])

    def test_a_judge_is_asked_through_an_engine(self):
        tasks = self.tasks(JUDGED)
        with Engine(YES) as engine:
            done = self.grade("judge", "--task", tasks, "--text", "4", "--engine", engine.url)
        self.assertRegex(done.stdout, r"^verdict  judged: reward 1\nparts    right 1\nmetrics  .*judge_calls 1.*\nwhy      right 1; judged by judge.gguf")
        self.assertIn("a model judges it: --engine URL names its engine", self.grade("--task", tasks, "--text", "4", status=3).stderr)
        self.assertIn("the engine http://127.0.0.1:1 does not answer",
                      self.grade("--task", tasks, "--text", "4", "--engine", "http://127.0.0.1:1", status=3).stderr)

    def test_a_handler_judges_and_what_ails_one_is_said(self):
        tasks = self.tasks(dict(HELLO, eval={"kind": "looks"}))
        self.write("left/answer.txt", "hello\n")
        self.write("mine.py", HANDLER)
        command = f"mine={PYTHON} -m sluice.handlers "
        done = self.grade("--task", tasks, "--files", "left", "--text", "hi", "--handler", command + "mine.py")
        self.assertEqual(done.stdout, "verdict  hello: reward 1.5\nparts    said 1, left 1 (weight 0.5)\nmetrics  n 3\nwhy      looked\n")
        quiet = self.grade("--task", tasks, "--text", "silence", "--handler", command + "mine.py", status=1)
        self.assertEqual(quiet.stdout, "verdict  hello: reward 0.5\nwhy      looks says 0.5\n")
        self.assertIn("the evaluator looks comes from a handler: --handler NAME='COMMAND' starts one",
                      self.grade("--task", tasks, "--files", "left", status=3).stderr)
        said = self.grade("--task", tasks, "--files", "left", "--handler", command + "nosuch.py", status=3).stderr
        self.assertRegex(said, "^sluice: no handler offers the evaluator looks; the last that one said: .*nosuch.py")

    def images(self):
        """Debian as a directory and as a SIF."""
        made = subprocess.run(["bash", os.path.join(SOURCE, "client", "demo", "image.sh")], capture_output=True, text=True, timeout=600, check=False)
        if made.returncode != 0:
            self.skipTest(f"no image can be made: {made.stderr.strip().splitlines()[-1:]}")
        told = dict(line.split("=", 1) for line in made.stdout.splitlines())
        return told["SLUICE_IMAGE_DIR"], told["SLUICE_IMAGE_SIF"]

    def test_a_dockerfile_and_a_sif_are_stood_on_as_a_worker_does(self):
        directory, sif = self.images()
        self.write("left/answer.txt", "hello\n")
        judged = {"kind": "command", "command": "[[ $(<baked.txt)$(<answer.txt) == bakedhello ]]; echo $(($? == 0)) > /tmp/reward", "reward_file": "/tmp/reward"}
        built = self.tasks(dict(HELLO, eval=judged, build={"dockerfile": "FROM base:1\nWORKDIR /app\nRUN printf baked > baked.txt\n"}))
        named = ["--images", directory, "--image-name", f"base:1={directory}"]
        for left, status in ((["--files", "left"], 0), (["--solution"], 0), (["--nothing"], 1), (["--files", "/app=left"], 0), (["--files", "/srv=left"], 1)):
            with self.subTest(left=left):
                self.assertIn("the reward file says", self.grade("--task", built, *left, *named, status=status).stdout)
        self.assertRegex(self.grade("--task", built, "--solution", "--images", directory, status=3).stdout, "^verdict  hello: no reward, outcome task\nwhy      .*base:1.*--image-name")
        packed = self.tasks(dict(HELLO, image=sif))
        self.grade("--task", packed, "--files", "left", "--images", sif)
        self.grade("--task", packed, "--nothing", "--images", sif, status=1)

    def test_artifacts_and_what_is_collected_are_as_of_an_agent(self):
        self.write("left/answer.txt", "hello\n")
        self.write("left/notes.txt", "forged")
        tasks = self.tasks(dict(HELLO, task="given", eval=dict(HELLO["eval"], artifacts=["answer.txt"])),
                           dict(HELLO, task="collected", eval=dict(HELLO["eval"], artifacts=["answer.txt"], collect=[{"command": "cat answer.txt notes.txt > answer.txt.new; mv answer.txt.new answer.txt"}],
                                                                   command="grep -q forged answer.txt; echo $(($? == 0)) > /tmp/reward")))
        self.grade("--task", tasks, "--id", "given", "--files", "left")  # the note is the task's own: only the answer came
        self.grade("--task", tasks, "--id", "collected", "--files", "left")
        self.grade("--task", tasks, "--id", "given", "--id", "collected", "--nothing", status=1)

    def test_steps_are_graded_by_their_solutions_and_refused_with_files(self):
        test = {"files": {"/tests/test.sh": "grep -q \"$(cat /tests/word)\" word.txt; echo $(($? == 0)) > /logs/verifier/reward.txt\n"}}
        steps = [{"name": word, "prompt": "p", "solution": {"commands": [f"echo {word} > word.txt"]}, "eval": {"files": {**test["files"], "/tests/word": word}}} for word in ("one", "two")]
        tasks = self.tasks({"task": "steps", "agent": {"kind": "bash"}, "eval": {"kind": "verifier", "sandbox": "agent"}, "steps": steps})
        self.write("left/word.txt", "two\n")
        self.assertIn("parts    reward 1, step.one 1 (weight 0), step.two 1 (weight 0)", self.grade("--task", tasks, "--solution").stdout)
        self.assertIn("0 is the mean of 2 of 2 steps: one 0, two 0", self.grade("--task", tasks, "--nothing", status=1).stdout)
        for given in (["--files", "left"], ["--text", "two"]):
            self.assertIn("a task of steps is graded by --solution or --nothing: files do not say which step left them", self.grade("--task", tasks, *given, status=3).stderr)
        self.assertIn("a task of steps is graded by --solution or --nothing: files do not say which step left them", self.rows("--task", tasks, "--rows", "-", status=3, stdin='{"files": "left"}')[0]["error"])

    def test_the_text_of_an_option_is_as_good_as_its_letter(self):
        tasks = self.tasks({"task": "city", "prompt": "p", "eval": {"kind": "choice", "answer": "B", "options": {"A": "Lyon", "B": "Paris"}}})
        self.assertEqual(self.grade("choice", "--task", tasks, "--text", "Answer: paris.").stdout, "verdict  city: reward 1\nwhy      paris. is the text of B\n")
        self.assertIn("has a letter and the text of another option", self.grade("--task", tasks, "--text", "A) Paris", status=1).stdout)

    def test_what_cannot_be_is_refused_by_name(self):
        tasks = self.tasks(HELLO, SUM, {"task": "free", "prompt": "p"})
        for words, status, said in (
                (["--task", tasks, "--files", "left"], 3, "tasks.jsonl has 3 tasks: --id says whose files or words these are, --rows gives each its own"),
                (["--task", tasks, "--id", "helo", "--text", "a"], 3, "--id helo: there is no such task in .*; did you mean 'hello'?"),
                (["--task", tasks, "--id", "free", "--text", "a"], 3, "it has no evaluator .eval.kind.: nothing can grade it"),
                (["math", "--task", tasks, "--id", "hello", "--text", "a"], 3, "the evaluator of hello is command, not math"),
                (["--task", tasks, "--id", "hello", "--files", "missing"], 3, "missing: No such file or directory"),
                (["--task", tasks, "--rows", self.root], 3, "--rows .*: it is a directory; rows are a file, a JSON object a line"),
                (["--task", self.root, "--solution"], 3, "is a directory: sluice task import .* makes tasks of it"),
                (["--task", tasks, "--id", "hello", "--nothing", "--images", "/nowhere"], 3,
                 "the service of this command did not start: sluice-worker: --images /nowhere: No such file or directory"),
                (["--task", tasks, "--id", "hello", "--nothing", "--log", "/nowhere/log"], 3, "cannot write /nowhere/log: No such file or directory")):
            self.assertRegex(self.grade(*words, status=status).stderr, said)

    def test_an_image_that_is_not_there_is_no_verdict_and_is_not_tried_again(self):
        done = self.grade("--task", self.tasks(dict(HELLO, image="/nowhere/image")), "--nothing", status=3)
        self.assertRegex(done.stdout, "^verdict  hello: no reward, outcome task\nwhy      .*/nowhere/image.*--images DIR")

    def begin(self):
        """One at work in a sandbox that waits for ever."""
        flag = os.path.join(self.root, "log")
        command = [SLUICE, "grade", "--task", self.tasks(dict(BROKEN, eval={"kind": "command", "command": "sleep 1000"})), "--nothing", "--log", flag]
        process = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        wait_until(lambda: any(command_of(pid)[:2] == ["sleep", "1000"] for pid in self.sandboxed()), 60, "the evaluator runs")
        self.assertEqual(len(os.listdir(self.tmp)), 1)
        return process

    def sandboxed(self):
        """Below the worker; what runs inside has an environment of its own."""
        known, parents = set(self.processes()), {}
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path, encoding="utf-8", errors="replace") as stat:
                    parents[int(path.split("/")[2])] = int(stat.read().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
        found, size = set(known), -1
        while len(found) != size:
            size = len(found)
            found |= {pid for pid, parent in parents.items() if parent in found}
        return found

    def test_a_signal_ends_all_and_kill_9_does_so_too(self):
        for number in (signal.SIGINT, signal.SIGKILL):
            process = self.begin()
            inside = self.sandboxed()
            process.send_signal(number)
            self.assertEqual(process.wait(30), -number)
            wait_until(lambda: not os.listdir(self.tmp), 20, "its directory is gone")
            wait_until(lambda: not [pid for pid in inside if re.match("sleep|sluice", (command_of(pid) or [""])[0])], 20, "its processes are gone")

    def test_a_keeper_that_is_killed_leaves_nothing_and_with_its_command_what_the_next_one_sweeps(self):
        process = self.begin()
        keeper = self.keeper_of(process)
        os.kill(keeper, signal.SIGKILL)
        self.assertEqual(process.wait(90), 3)
        self.assertIn("the service of this command ended", process.stderr.read())
        self.assertEqual(os.listdir(self.tmp), [])
        process = self.begin()
        keeper, left = self.keeper_of(process), os.path.join(self.tmp, os.listdir(self.tmp)[0])
        process.send_signal(signal.SIGSTOP)  # it may not clean up after its keeper
        os.kill(keeper, signal.SIGKILL)
        process.kill()
        process.wait(30)
        wait_until(lambda: not self.processes(), 60, "all has stopped")
        other = os.path.join(self.tmp, "sluice-grade-alive")
        os.makedirs(other)
        with open(os.path.join(other, "lock"), "w", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            for name in ("lock", "log"):
                for folder in (left, other):
                    if os.path.exists(os.path.join(folder, name)):
                        os.utime(os.path.join(folder, name), (1, 1))
            self.grade("--task", self.tasks(SUM), "--nothing", status=1)
            self.assertEqual(os.listdir(self.tmp), ["sluice-grade-alive"])
        self.grade("--task", self.tasks(SUM), "--nothing", status=1)

    def keeper_of(self, process):
        children = [pid for pid in self.processes() if parent_of(pid) == process.pid]
        self.assertEqual(len(children), 1, [command_of(pid) for pid in children])
        return children[0]

    def test_layers_stay_where_that_is_wished(self):
        data = os.path.join(self.root, "data")
        for _ in range(2):
            self.grade("--task", self.tasks(HELLO), "--solution", "--data", data)
        self.assertIn("ledger.db", os.listdir(data))


if __name__ == "__main__":
    unittest.main(verbosity=2)
