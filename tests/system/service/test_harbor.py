"""Harbor's folders through a real service: each field in a folder of the test's own, and the 351 tasks of harness-bench-fast.

Those come from the package of that name, fetched from Python's registry; without one there is nothing to test. Of them every
tenth is checked; with SLUICE_TEST_WHOLE=1 all are. Their Dockerfiles stand on python:3.12-slim and install four packages: an image of
that name is made here, of Debian's Python, with these packages in it. So `pip install` finds them there; a test reaches no network.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import PYTHON, SOURCE, Service  # noqa: E402

sys.path += [os.path.join(SOURCE, "client", "python"), os.path.join(SOURCE, "tests", "client", "python")]
try:
    import tomllib  # noqa: F401
    from fetched_packages import PIP, NoRegistry
    from sluice import Client  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)

PACKAGE, TASKS, UNTOUCHED = "harness-bench-fast==0.1.0", 351, "task_335_adv_missing_config_file"
INSTALLED = ["pytest", "openpyxl", "PyYAML", "python-dotenv", "et_xmlfile", "iniconfig", "pluggy", "packaging", "tzdata", "pygments", "pip"]
TEST_SH = "#!/bin/bash\nread word < /app/word.txt\n[ \"$word\" = yes ] && [ \"$KEY\" = k ]\necho $(($? == 0)) > /logs/verifier/reward.txt\nexit 7\n"


def folder(root, name, files):
    for path, text in files.items():
        whole = os.path.join(root, name, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as file:
            file.write(text)
    return os.path.join(root, name)


def parts(trajectory):
    return {part["name"]: part["value"] for part in trajectory["parts"]}


class Harbor(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="sluice-harbor-")
        self.addCleanup(scratch.cleanup)
        self.root = os.path.realpath(scratch.name)

    def service(self, *more, shared=True):
        """shared: the workers may read the folders."""
        service = Service(options=["--images", os.path.join(self.root, "image"), *(["--task-dir", self.root] if shared else []), *more])
        service.environment.update(PYTHONPATH=os.path.join(SOURCE, "client", "python"), SLUICE_PYTHON=PYTHON, PYTHONDONTWRITEBYTECODE="1")
        return service

    def make_image(self):
        """Debian's own: what the image host shows, so far as it is read."""
        made = subprocess.run(["bash", os.path.join(SOURCE, "client", "demo", "image.sh")], capture_output=True, text=True, timeout=600, check=False)
        if made.returncode != 0:
            self.skipTest(f"no image can be made: {made.stderr.strip().splitlines()[-1:]}")
        base = made.stdout.split("SLUICE_IMAGE_DIR=")[1].splitlines()[0]
        image = os.path.join(self.root, "image")
        subprocess.run(["cp", "-a", base, image], check=True)
        if not os.path.lexists(os.path.join(image, "usr", "bin", "python")):
            os.symlink("python3", os.path.join(image, "usr", "bin", "python"))
        return image

    STEPS = {"environment/note.txt": "here\n", "tests/test.sh": "#!/bin/bash\nread -r said < word.txt\n[ \"$said\" = \"$(cat /tests/word)\" ]\necho $(($? == 0)) > /logs/verifier/reward.txt\n",
             "steps/first/instruction.md": "Write one.", "steps/first/tests/word": "one\n", "steps/first/solution/solve.sh": "echo one > word.txt\n",
             "steps/second/instruction.md": "Write two.", "steps/second/tests/word": "two\n", "steps/second/workdir/setup.sh": "cat word.txt > before.txt || true\n",
             "steps/second/solution/solve.sh": "[ ! -e /tests/word ] && grep -q one before.txt && echo two > word.txt\n"}
    STEPS_TOML = '[environment]\nworkdir = "/app"\ndocker_image = "base:1"\nallow_internet = false\n[[steps]]\nname = "first"\n%s[[steps]]\nname = "second"\n'

    def test_steps_are_done_one_after_the_other_in_one_sandbox(self):
        image = self.make_image()
        half = {**self.STEPS, "steps/second/solution/solve.sh": "true\n"}
        none = {**self.STEPS, "steps/first/solution/solve.sh": "true\n", "steps/second/solution/solve.sh": "echo two > word.txt\n"}
        folder(self.root, "steps/whole", {**self.STEPS, "task.toml": self.STEPS_TOML % ""})
        folder(self.root, "steps/half", {**half, "task.toml": self.STEPS_TOML % ""})
        folder(self.root, "steps/last", {**half, "task.toml": 'multi_step_reward_strategy = "final"\n' + self.STEPS_TOML % ""})
        folder(self.root, "steps/gated", {**none, "task.toml": self.STEPS_TOML % "min_reward = 1.0\n"})
        with self.service() as service:
            out = os.path.join(self.root, "out.jsonl")
            service.run("submit", os.path.join(self.root, "steps"), "--agent", "oracle", "--stream", "s", "--image", f"base:1={image}", "--wait", "--out", out)
            with open(out, encoding="utf-8") as lines:
                ended = {one["task"]: one for one in map(json.loads, lines)}
            checked = json.loads(service.run("task", "check", os.path.join(self.root, "steps", "whole"), "--image", f"base:1={image}", "--json").stdout)
        rewards = {task: one["reward"] for task, one in ended.items()}
        self.assertEqual(rewards, {"whole": 1, "half": 0.5, "last": 0, "gated": 0}, ended)
        self.assertEqual(parts(ended["half"]), {"reward": 0.5, "step.first": 1, "step.second": 0})
        self.assertEqual(parts(ended["gated"]), {"reward": 0, "step.first": 0})
        self.assertIn("step first is the last: reward is 0, below its min_reward of 1", ended["gated"]["detail"])
        self.assertEqual({one["eval_sandbox"] for one in ended.values()}, {"agent"})
        self.assertEqual((checked["oracle"], checked["nothing"], checked["wrong"]), ([1, 1], 0, []))

    def test_a_folder_of_each_kind_is_submitted_and_checked(self):
        image = self.make_image()
        good = {"instruction.md": "Write yes into word.txt.", "tests/test.sh": TEST_SH, "solution/solve.sh": "echo \"$WORD\" > word.txt\n",
                "environment/note.txt": "here\n",
                "task.toml": '[environment]\nworkdir = "/app"\ndocker_image = "base:1"\nallow_internet = false\n[environment.healthcheck]\ncommand = "test -e note.txt"\n'
                             '[verifier]\nenv = { KEY = "k" }\n[solution]\nenv = { WORD = "yes" }\n'}
        folder(self.root, "set/good", good)
        folder(self.root, "set/unsolved", {**good, "solution/solve.sh": "echo no > word.txt\n"})
        folder(self.root, "set/generous", {**good, "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n"})
        folder(self.root, "set/silent", {**good, "tests/test.sh": "exit 0\n"})
        shutil.rmtree(os.path.join(folder(self.root, "set/hidden", good), "solution"))
        given = ["--image", f"base:1={image}"]
        with self.service() as service:
            checked = service.run("task", "check", os.path.join(self.root, "set"), *given, "--json", check=False)
            rows = {row["task"]: row for row in map(json.loads, checked.stdout.splitlines())}
            self.assertEqual((checked.returncode, len(rows)), (1, 5), checked.stderr)
            self.assertEqual((rows["good"]["oracle"], rows["good"]["nothing"], rows["good"]["wrong"]), ([1.0, 1.0], 0.0, []))
            self.assertIn("the solution got 0:", rows["unsolved"]["wrong"][0])
            self.assertEqual(rows["generous"]["wrong"], ["an agent that does nothing got 1"])
            self.assertIn("the solution got no reward (task):", rows["silent"]["wrong"][0])
            self.assertEqual(rows["hidden"]["wrong"], ["it has no solution"])
            table = service.run("task", "check", os.path.join(self.root, "set", "good"), *given)
            self.assertEqual(table.stdout, "1 of 1 tasks are sound\n")
            tasks = os.path.join(self.root, "tasks.jsonl")
            service.run("task", "import", os.path.join(self.root, "set", "good"), *given, "-o", tasks)
            service.run("submit", tasks, "--stream", "file", "--agent", "oracle", "--wait")
            out = os.path.join(self.root, "out.jsonl")
            service.run("submit", os.path.join(self.root, "set", "good"), *given, "--set", "samples=2", "--stream", "folder", "--agent",
                        "oracle", "--wait", "--out", out)
            with open(out, encoding="utf-8") as lines:
                self.assertEqual([json.loads(line)["reward"] for line in lines], [1.0, 1.0])
            folder(self.root, "set/bad", {**good, "task.toml": "[agent]\ntimeout_sec = true\n"})
            refused = service.run("submit", os.path.join(self.root, "set"), *given, "--stream", "bad", check=False)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("/set/bad: task.toml: agent.timeout_sec must be a number that is not negative", refused.stderr)
            self.assertIn("nothing was submitted", refused.stderr)
            service.environment["SLUICE_PYTHON"] = "/bin/false"
            refused = service.run("submit", os.path.join(self.root, "set"), *given, "--stream", "bad", check=False)
            self.assertIn("/bin/false cannot import sluice.importers, which this command needs: install the Python package", refused.stderr)

    def test_a_small_folder_is_built_by_workers_that_cannot_see_it(self):
        image = self.make_image()
        files = {"instruction.md": "Write it.", "tests/test.sh": TEST_SH, "solution/solve.sh": "cat noted > word.txt\n", "environment/app/note.txt": "yes\n",
                 "environment/Dockerfile": "FROM base:1\nCOPY app /app\nWORKDIR /app\nRUN [ ! -e Dockerfile ] && mv note.txt noted\n",
                 "task.toml": '[environment]\nallow_internet = false\n[verifier]\nenv = { KEY = "k" }\n'}
        folder(self.root, "inline", files)
        with self.service("--image-name", f"base:1={image}", shared=False) as service:
            checked = service.run("task", "check", os.path.join(self.root, "inline"), "--json")
        row = json.loads(checked.stdout)
        self.assertEqual((row["oracle"], row["nothing"], row["wrong"]), ([1.0, 1.0], 0.0, []))

    def fetch(self, packages, into, version):
        """Unpacks wheels of the registry."""
        pip = [f"--python-version={version}" if word.startswith("--python-version") else word for word in PIP]
        scratch = tempfile.mkdtemp(dir=self.root)
        done = subprocess.run([*pip, "--platform=manylinux2014_x86_64", f"--dest={scratch}", *packages], capture_output=True, text=True, timeout=250, check=False)
        if done.returncode != 0:
            raise NoRegistry(f"no registry that has {packages[0]}: {(done.stderr.strip().splitlines() or ['pip said nothing'])[-1]}")
        for wheel in glob.glob(os.path.join(scratch, "*.whl")):
            with zipfile.ZipFile(wheel) as file:
                file.extractall(into)

    def export(self, image):
        """The set's folders, and what its Dockerfile installs in the image."""
        packages = os.path.join(image, "usr", "local", "lib", f"python3.{sys.version_info[1]}", "dist-packages")
        bench = os.path.join(self.root, "bench")
        for rule in glob.glob(os.path.join(image, "usr", "lib", "python3*", "EXTERNALLY-MANAGED")):
            os.unlink(rule)  # Debian's pip is to leave Debian's packages alone; here all are pip's
        with open(os.path.join(image, "usr", "bin", "pip"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexec python3 -m pip \"$@\"\n")
        os.chmod(os.path.join(image, "usr", "bin", "pip"), 0o755)
        try:
            self.fetch(INSTALLED, packages, f"3.{sys.version_info[1]}")
            self.fetch([PACKAGE], bench, "3.12")
        except NoRegistry as why:
            self.skipTest(str(why))
        code = ("import sys\nfrom harness_bench.harbor_export import export_harbor_dataset\nfrom harness_bench.tasks import ALL_TASKS\n"
                "ids = [task.id for task in ALL_TASKS]\nstep = int(sys.argv[2])\n"
                f"chosen = None if step == 1 else sorted({{*ids[::step], *(i for i in ids if i.startswith(('{UNTOUCHED}', 'task_351_')))}})\n"
                "print(export_harbor_dataset(sys.argv[1], task_ids=chosen).task_count)\n")
        step = "1" if os.environ.get("SLUICE_TEST_WHOLE") else "10"
        made = subprocess.run([PYTHON, "-c", code, os.path.join(self.root, "tasks"), step], capture_output=True, text=True, timeout=600,
                              env=dict(os.environ, PYTHONPATH=f"{bench}:{packages}", PYTHONDONTWRITEBYTECODE="1"), check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        return int(made.stdout)

    def test_the_gold_of_harness_bench_is_1_and_nothing_is_less(self):
        image = self.make_image()
        count = self.export(image)
        self.assertTrue(count == TASKS or 30 < count < 50, count)
        with self.service("--image-name", f"python:3.12-slim={image}") as service:
            begin = time.monotonic()
            checked = service.run("task", "check", os.path.join(self.root, "tasks"), "--json", check=False, timeout=880)
            seconds = time.monotonic() - begin
        rows = [json.loads(line) for line in checked.stdout.splitlines()]
        self.assertEqual(len(rows), count, checked.stderr)
        self.assertEqual([row for row in rows if row["oracle"] != [1.0, 1.0]], [])
        self.assertEqual([(row["task"], row["wrong"]) for row in rows if row["wrong"]], [(UNTOUCHED, ["an agent that does nothing got 1"])])
        print(f"{count} tasks checked in {seconds:.0f} s: {3 * count / seconds:.1f} rollouts a second")


if __name__ == "__main__":
    unittest.main()
