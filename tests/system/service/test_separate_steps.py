"""Harbor's tasks of several steps with separate verifiers through a real service: imported, solved, left alone, not ending, and a worker killed."""
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
artifacts = ["/app/out"]
[environment]
docker_image = "host"
workdir = "/app"
allow_internet = false
[verifier]
environment_mode = "separate"
[[steps]]
name = "serve"
min_reward = 1.0
[[steps.verifier.collect]]
command = "echo q > /tmp/ask; cat /tmp/say > /logs/artifacts/state"
timeout_sec = 2
[[steps]]
name = "say"
artifacts = ["/app/answer"]
"""
# The server is none of the verifier's processes; what it says was collected, and is of the first step alone.
SERVE_TEST = """#!/bin/bash
bash -c 'sleep WAIT; : MARK'
reward=0
[ "$(</app/out/word)" = yes ] && [ "$(</logs/artifacts/state)" = alive ] && [ ! -e /app/private ] && ! pgrep -f MARK && reward=1
[ -e /tests/shared ] || reward=9
echo $reward > /logs/verifier/reward.txt
"""
SAY_TEST = """#!/bin/bash
[ "$(</app/answer)" = alive ] && [ ! -e /tests/expected ] && echo '{"reward": 1, "said": 1}' > /logs/verifier/reward.json
[ -e /logs/verifier/reward.json ] || echo 0 > /logs/verifier/reward.txt
exit 1
"""
SERVE = """mkdir -p out; echo yes > out/word; echo x > private; mkfifo /tmp/ask /tmp/say
(setsid bash -c 'while read q < /tmp/ask; do echo alive > /tmp/say; done; : MARK' > /dev/null 2>&1 &)
"""
# What the first step's verifier had is nowhere; its agent's server is.
SAY = "ls /tests /logs/verifier/* 2> /dev/null && exit 1; echo q > /tmp/ask; cat /tmp/say > answer\n"
FOLDER = {"task.toml": TOML, "tests/shared": "", "steps/serve/instruction.md": "Serve.", "steps/serve/tests/test.sh": SERVE_TEST,
          "steps/serve/tests/expected": "secret", "steps/serve/solution/solve.sh": SERVE, "steps/say/instruction.md": "Say what it says.",
          "steps/say/tests/test.sh": SAY_TEST, "steps/say/solution/solve.sh": SAY}

OWN_TOML = """
artifacts = ["/app"]
[environment]
docker_image = "base:1"
workdir = "/app"
allow_internet = false
[verifier]
environment_mode = "separate"
[[steps]]
name = "one"
[[steps]]
name = "two"
[steps.verifier]
environment_mode = "shared"
[[steps]]
name = "three"
"""
OWN_TEST = """#!/bin/bash
echo "$PWD $(id -u) $(ls /app | tr '\\n' ' ')"
[ "$(</app/word)" = "$(</judge)" ] && [ ! -e /private ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
"""
IMAGE = """mkdir -p {0}/usr/bin {0}/app && cd {0} && ln -s usr/bin bin && for p in bash cat ls mkdir rm id tr; do
cp -L --parents $(ldd /usr/bin/$p | grep -o '/[^ ]*') . && cp -L /usr/bin/$p usr/bin/; done && ln -s bash usr/bin/sh && chmod -R u+w ."""


class SeparateSteps(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="sluice-steps-")
        self.addCleanup(scratch.cleanup)
        self.root, self.mark = os.path.realpath(scratch.name), f"sluice-{uuid.uuid4().hex}"

    def write(self, files, wait=0):
        for path, text in files.items():
            whole = os.path.join(self.root, "task", path)
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            with open(whole, "w", encoding="utf-8") as file:
                file.write(text.replace("WAIT", str(wait)).replace("MARK", self.mark))
        return os.path.join(self.root, "task")

    def service(self, *options):
        service = Service(options=options)
        service.environment.update(PYTHONPATH=os.path.join(SOURCE, "client", "python"), SLUICE_PYTHON=PYTHON, PYTHONDONTWRITEBYTECODE="1")
        return service

    def checked(self, service, folder, *options):
        done = service.run("task", "check", folder, "--json", *options, check=False)
        (row,) = map(json.loads, done.stdout.splitlines())
        self.assertEqual((row["oracle"], row["nothing"], row["wrong"]), ([1.0, 1.0], 0.0, []), done.stderr)
        return {**json.loads(service.run("task", "import", folder, *options).stdout), "agent": {"kind": "oracle"}}

    def changed(self, task, name, i, **fields):
        steps = [dict(step) for step in task["steps"]]
        steps[i].update(fields)
        return {**task, "task": name, "steps": steps}

    def sandboxed(self, word):
        """Processes inside that have the mark, and the word."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as text:
                    words = text.read().decode(errors="replace")
            except OSError:
                continue
            if self.mark in words and word in words and "bash" in words.split("\0")[0]:
                found.append(int(path.split("/")[2]))
        return found

    def test_the_solution_gets_1_nothing_gets_0_and_a_step_below_its_minimum_is_the_last(self):
        folder = self.write(FOLDER)
        with self.service() as service:
            task = self.checked(service, folder)
            self.assertEqual([step["eval"]["artifacts"] for step in task["steps"]], [["/logs/artifacts", "/app/out"], ["/logs/artifacts", "/app/out", "/app/answer"]])
            endless = {**task["steps"][1]["eval"], "files": {"/tests/test.sh": "echo 1 > /logs/verifier/reward.txt; sleep 1000"}}
            tasks = [task, self.changed(task, "below", 0, solution={"commands": ["mkdir out; echo no > out/word"]}),
                     self.changed(task, "half", 1, solution={"commands": ["echo dead > answer"]}),
                     self.changed(task, "endless", 1, eval=endless, limits={"eval_s": 2}),
                     self.changed(task, "cheat", 0, solution={"commands": ["mkdir -p /tests /app/out; ln -s /tests/expected /app/out/word; "
                                                                            "echo 1 | tee /logs/verifier/reward.txt > /tests/test.sh"]})]
            ended = {t["task"]: t for t in service.submit(tasks, "steps")}
            self.assertEqual({name: t["reward"] for name, t in ended.items()}, {"task": 1.0, "below": 0.0, "half": 0.5, "endless": None, "cheat": 0.0})
            self.assertIn("step serve is the last: reward is 0, below its min_reward of 1; 0 is the mean of 1 of 2 steps", ended["below"]["detail"])
            self.assertEqual(ended["endless"]["outcome"], "task")
            self.assertIn("step say: the verifier was stopped after", ended["endless"]["detail"])
            self.assertIn("1 is the mean of 2 of 2 steps: serve 1, say 1", ended["task"]["detail"])
            self.assertIsNone(ended["task"].get("eval_sandbox"))
            parts = {part["name"]: part["value"] for part in ended["task"]["parts"]}
            self.assertEqual((parts["said"], parts["step.serve"], parts["step.say"]), (0.5, 1.0, 1.0))
            self.assertEqual(self.sandboxed(""), [])

    def make_image(self, name, **files):
        image = os.path.join(self.root, name)
        subprocess.run(["bash", "-c", IMAGE.format(image)], check=True)
        for path, text in files.items():
            with open(os.path.join(image, "app", path), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        return image

    def test_each_step_has_an_image_of_its_own_and_one_is_shared(self):
        base, judge = self.make_image("base", given="given"), self.make_image("judge", judges="mine")
        files = {"task.toml": OWN_TOML}
        for name in ("one", "two", "three"):
            files.update({f"steps/{name}/instruction.md": f"Write {name}.", f"steps/{name}/tests/test.sh": OWN_TEST,
                          f"steps/{name}/solution/solve.sh": f"echo {name} > word; echo x > /private; ls /judge && exit 1; true\n"})
            if name != "two":
                files[f"steps/{name}/tests/Dockerfile"] = f"FROM judge:1\nRUN echo {name} > /judge\nCOPY test.sh /tests/\n"
        files["steps/two/tests/test.sh"] = "[ $(cat word) = two -a -e /private ]; echo $(($? == 0)) > /logs/verifier/reward.txt\n"
        folder = self.write(files)
        with self.service("--images", self.root, "--task-dir", self.root, "--image-name", f"judge:1={judge}") as service:
            task = self.checked(service, folder, "--image", f"base:1={base}")
            bad = {**task["steps"][2]["eval"], "build": {"dockerfile": "FROM judge:1\nRUN exit 7\n"}}
            ended = {t["task"]: t for t in service.submit([task, self.changed(task, "bad", 2, eval=bad)], "own")}
            self.assertEqual((ended["task"]["reward"], ended["task"]["eval_sandbox"]), (1.0, "agent"))  # one of them was
            self.assertIn("/app 0 given word", ended["task"]["detail"])
            self.assertEqual((ended["bad"]["outcome"], ended["bad"]["reward"]), ("task", None))
            self.assertIn("step three: eval.build: the Dockerfile, line 2: RUN exited with 7", ended["bad"]["detail"])

    def test_a_run_worker_killed_while_a_step_is_verified_begins_again_and_leaves_nothing(self):
        folder = self.write(FOLDER, wait=6)
        with self.service() as service:
            task = {**json.loads(service.run("task", "import", folder).stdout), "agent": {"kind": "oracle"}}
            waiting, out = service.submit([task], "slow", wait=False)
            inside = wait_until(lambda: self.sandboxed("sleep 6"), 60, "the first step is verified")
            servers = self.sandboxed("read q")
            self.assertTrue(servers, "the agent's server lives on")
            service.kill("sluice-worker", "run")
            wait_until(lambda: not {*inside, *servers} & set(self.sandboxed("")), 10, "both sandboxes are gone")
            wait_until(lambda: self.sandboxed("sleep 6"), 60, "it is verified again")
            (ended,) = service.finish(waiting, out)
            self.assertEqual((ended["outcome"], ended["reward"], service.status()["counters"]["lost"]), ("ok", 1.0, 1))
            self.assertEqual(self.sandboxed(""), [])
            self.assertEqual(glob.glob(os.path.join(service.data, "**", ".packing.*"), recursive=True), [])


if __name__ == "__main__":
    unittest.main()
