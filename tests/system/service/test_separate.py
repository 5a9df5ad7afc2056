"""Harbor's separate verifier through a real service: a folder is imported, solved, left alone, cheated, and its worker killed."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest
import uuid

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import PYTHON, SOURCE, Service, wait_until  # noqa: E402

sys.path += [os.path.join(SOURCE, "client", "python")]
try:
    import tomllib  # noqa: F401
    from sluice import Client  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)

TOML = """
artifacts = ["/app/out", {source = "/app/answer", destination = "a/answer.txt"}, {source = "/app/src", exclude = ["*.o"]}]
[environment]
docker_image = "host"
workdir = "/app"
allow_internet = false
[verifier]
environment_mode = "separate"
[[verifier.collect]]
command = "echo q > /tmp/ask; cat /tmp/say > /logs/artifacts/state"
timeout_sec = 2
[[verifier.collect]]
command = "sleep WAIT; : MARK"
"""
# 1 where the word is right, the server's state was collected, and nothing but artifacts is there; 9 where what is expected was given as an answer.
TEST = """#!/bin/bash
reward=0
[ "$(</app/out/word)" = yes ] && [ "$(</logs/artifacts/state)" = alive ] && [ ! -e /app/private -a ! -e /app/src/x.o -a -e /app/src/x.c ] && reward=1
shopt -s nullglob
for file in /app/out/* /app/out/*/* /app/answer; do [ ! -d $file ] && read said < $file && [ "$said" = "$(</tests/expected)" ] && reward=9; done
[ $(ls /tests | wc -l) = 2 ] || reward=9
echo $reward > /logs/verifier/reward.txt
"""
SOLVE = """mkdir -p out src; echo yes > out/word; echo x > private; touch src/x.o src/x.c; mkfifo /tmp/ask /tmp/say
(setsid bash -c 'while read q < /tmp/ask; do echo alive > /tmp/say; done' > /dev/null 2>&1 &)
"""
FOLDER = {"instruction.md": "Write yes into /app/out/word.", "tests/test.sh": TEST, "tests/expected": "secret\n", "solution/solve.sh": SOLVE}
GIVEN = "mkdir -p /app/out; "
CHEATS = {
    "tests": "mkdir /tests; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh; echo secret > /tests/expected; touch /tests/conftest.py",
    "reward": "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json",
    "programs": "mkdir -p /usr/local/bin /root/bin ~/bin; for p in ls wc cat bash; do for d in /usr/local/bin ~/bin; do printf '#!/bin/sh\\necho 1 > "
                "/logs/verifier/reward.txt\\n' > $d/$p; chmod 755 $d/$p; done; done; true",
    "python": "mkdir -p ~/.local/lib/python3.11/site-packages; echo 'import os; os._exit(0)' > ~/.local/lib/python3.11/site-packages/sitecustomize.py; "
              "cp ~/.local/lib/python3.11/site-packages/sitecustomize.py /app/",
    "link": "ln -s /tests/expected /app/answer; " + GIVEN + "ln -s ../../tests/expected /app/out/a",
    "chain": GIVEN + "mkdir /app/out/sub; cd /app/out/sub; ln -s .. up; ln -s up/../../tests/expected a",
    "directory": "ln -s /tests /app/out",
    "way": "rm -rf /app; ln -s /tests /app",
    "fifo": "mkfifo /app/answer; " + GIVEN + "mkfifo /app/out/a",
    "huge": GIVEN + "head -c 2G /dev/zero > /app/out/word; true",
    "sparse": GIVEN + "truncate -s 2T /app/out/word",
}


JUDGE_TOML = """
artifacts = ["/app"]
[environment]
docker_image = "base:1"
workdir = "/app"
allow_internet = false
[verifier]
environment_mode = "separate"
"""
# Of the task's image /app/given, of the agent /app/word; the judge's own is /app/judges, which goes, and /judge, which only it has.
JUDGE_TEST = """#!/bin/bash
echo "$PWD $(id -u) $V $(ls /app | tr '\\n' ' ')"
reward=0
[ "$(</app/word)" = yes -a "$(</app/given)" = given -a "$(</judge)" = expected -a ! -e /app/judges ] && reward=1
for file in /app/* /app/*/*; do [ ! -d $file ] && read said < $file && [ "$said" = expected ] && reward=9; done
echo $reward > /logs/verifier/reward.txt
"""
JUDGE_CHEATS = {
    "tests": "mkdir /tests; echo 'echo 9 > /logs/verifier/reward.txt' | tee /tests/test.sh > /tests/conftest.py; echo expected > /judge",
    "link": "ln -s /judge /app/word; ln -s ../judge /app/a; mkdir s; ln -s .. s/up; ln -s up/../../judge s/a",
    "way": "cd /; rm -rf /app; ln -s / /app",
    "programs": "for p in ls tr cat bash id; do printf '#!/bin/sh\\necho 9 > /logs/verifier/reward.txt\\n' > /usr/bin/$p; done 2> /dev/null; true",
}
IMAGE = """mkdir -p {0}/usr/bin {0}/app && cd {0} && ln -s usr/bin bin && for p in bash cat ls mkdir rm id tr ln mkfifo sleep chmod; do
cp -L --parents $(ldd /usr/bin/$p | grep -o '/[^ ]*') . && cp -L /usr/bin/$p usr/bin/; done && ln -s bash usr/bin/sh && chmod -R u+w ."""


class Separate(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="sluice-separate-")
        self.addCleanup(scratch.cleanup)
        self.root, self.mark = os.path.realpath(scratch.name), f"sluice-{uuid.uuid4().hex}"

    def write(self, name, wait):
        for path, text in {**FOLDER, "task.toml": TOML.replace("WAIT", str(wait)).replace("MARK", self.mark)}.items():
            whole = os.path.join(self.root, name, path)
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            with open(whole, "w", encoding="utf-8") as file:
                file.write(text)
        return os.path.join(self.root, name)

    def service(self, *options):
        service = Service(options=options)
        service.environment.update(PYTHONPATH=os.path.join(SOURCE, "client", "python"), SLUICE_PYTHON=PYTHON, PYTHONDONTWRITEBYTECODE="1")
        return service

    def sandboxed(self):
        """Processes inside that the second command of verifier.collect started."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as text:
                    words = text.read().decode(errors="replace")
            except OSError:
                continue
            if self.mark in words and "bash" in words.split("\0")[0]:
                found.append(int(path.split("/")[2]))
        return found

    def test_the_solution_gets_1_nothing_gets_0_and_no_cheat_gets_anything(self):
        folder = self.write("separate", 0)
        with self.service() as service:
            checked = service.run("task", "check", folder, "--json", check=False)
            (row,) = map(json.loads, checked.stdout.splitlines())
            self.assertEqual((row["oracle"], row["nothing"], row["wrong"]), ([1.0, 1.0], 0.0, []), checked.stderr)
            imported = json.loads(service.run("task", "import", folder).stdout)
            self.assertEqual(imported["eval"]["artifacts"], ["/logs/artifacts", "/app/out", "/app/answer", {"path": "/app/src", "exclude": ["*.o"]}])
            tasks = [{**imported, "task": name, "solution": {"commands": [command]}, "agent": {"kind": "oracle"}} for name, command in CHEATS.items()]
            ended = {t["task"]: t for t in service.submit(tasks, "cheats")}
            self.assertEqual({name: t["reward"] for name, t in ended.items()}, dict.fromkeys(CHEATS, 0.0))
            self.assertEqual({name for name, t in ended.items() if t["outcome"] != "ok"}, {"sparse"})  # its command fails
            told = [message["content"] for message in ended["tests"]["messages"] if message["role"] == "system"]
            self.assertEqual([text.split(":")[0] for text in told][:1], ["eval.collect[0] exited with 1"], told)

    def make_image(self, name, **files):
        image = os.path.join(self.root, name)
        subprocess.run(["bash", "-c", IMAGE.format(image)], check=True)
        for path, text in files.items():
            with open(os.path.join(image, "app", path), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        return image

    def test_a_verifier_on_an_image_of_its_own_has_the_artifacts_and_its_tests(self):
        base, judge = self.make_image("base", given="given"), self.make_image("judge", judges="mine")
        folder = os.path.join(self.root, "task")
        files = {"task.toml": JUDGE_TOML, "instruction.md": "Write yes into word.", "solution/solve.sh": "echo yes > word; echo x > /private\n",
                 "tests/test.sh": JUDGE_TEST, "tests/expected": "expected\n",
                 "tests/Dockerfile": "FROM judge:1\nENV V=built\nRUN mkdir /there\nCOPY expected /judge\nCOPY test.sh /tests/\n"}
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(text)
        with self.service("--images", self.root, "--task-dir", self.root, "--image-name", f"judge:1={judge}") as service:
            given = ["--image", f"base:1={base}"]
            (row,) = map(json.loads, service.run("task", "check", folder, "--json", *given).stdout.splitlines())
            self.assertEqual((row["oracle"], row["nothing"], row["wrong"]), ([1.0, 1.0], 0.0, []))
            imported = json.loads(service.run("task", "import", folder, *given).stdout)
            solved = {**imported, "agent": {"kind": "oracle"}}
            cheats = [{**solved, "task": name, "solution": {"commands": [command]}} for name, command in JUDGE_CHEATS.items()]
            ended = {t["task"]: t for t in service.submit([solved, *cheats], "own")}
            self.assertEqual({name: t["reward"] for name, t in ended.items()}, {"task": 1.0, **dict.fromkeys(JUDGE_CHEATS, 0.0)})
            self.assertIn("/app 0 built given word", ended["task"]["detail"])
            bad = {**solved, "task": "bad", "eval": {**imported["eval"], "build": {**imported["eval"]["build"], "dockerfile": "FROM judge:1\nRUN exit 7\n"}}}
            (failed,) = service.submit([bad], "bad")
            self.assertEqual((failed["outcome"], failed["reward"]), ("task", None))
            self.assertIn("eval.build: the Dockerfile, line 2: RUN exited with 7", failed["detail"])

    def test_a_run_worker_killed_while_it_collects_loses_the_run_which_begins_again(self):
        folder = self.write("slow", 6)
        with self.service() as service:
            tasks = os.path.join(self.root, "slow.jsonl")
            service.run("task", "import", folder, "-o", tasks)
            with open(tasks, encoding="utf-8") as file:
                task = {**json.load(file), "agent": {"kind": "oracle"}}
            waiting, out = service.submit([task], "slow", wait=False)
            inside = wait_until(self.sandboxed, 60, "the second command runs")
            wait_until(lambda: "eval.collect" in service.run("list", "--stream", "slow").stdout, 10, "the list says what it is at")
            service.kill("sluice-worker", "run")
            wait_until(lambda: not set(inside) & set(self.sandboxed()), 10, "what it ran is gone")
            wait_until(self.sandboxed, 60, "it runs again")
            (ended,) = service.finish(waiting, out)
            self.assertEqual((ended["outcome"], ended["reward"], service.status()["counters"]["lost"]), ("ok", 1.0, 1))
            self.assertEqual(self.sandboxed(), [])
            self.assertEqual(glob.glob(os.path.join(service.data, "**", ".packing.*"), recursive=True), [])


if __name__ == "__main__":
    unittest.main()
