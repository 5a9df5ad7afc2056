"""Harbor's folders become tasks, field by field; what cannot be one is told by its folder, table and field."""
import base64
import contextlib
import hashlib
import io
import json
import os
import shutil
import sys
import tempfile
import unittest

SOURCE = os.environ["SLUICE_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "client", "python"))
try:
    from sluice.importers.harbor import HarborChoices, import_folders
    from sluice.importers.harbor.choices import Notes
    from sluice.importers.harbor.command import main
    from sluice.importers.harbor.tree import ignored
    import tomllib  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)

BASE = {"instruction.md": "Do it.\n", "task.toml": 'version = "1.0"\n', "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n"}
MADE = {"image": "/images/base", "prebuilt": True}


class Folders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-harbor-")
        self.addCleanup(folder.cleanup)
        self.root, self.notes = folder.name, Notes()

    def write(self, files, name="one"):
        for path, content in files.items():
            whole = os.path.join(self.root, name, path)
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            with open(whole, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        return os.path.join(self.root, name)

    def one(self, files, **choices):
        (found,) = import_folders([self.write({**BASE, **files})], HarborChoices(**{**MADE, **choices}), self.notes)
        return found

    def task(self, toml="", files=None, **choices):
        found = self.one({"task.toml": toml, **(files or {})}, **choices)
        self.assertIsNone(found.why)
        return json.loads(found.text)

    def refused(self, toml="", files=None, **choices):
        found = self.one({"task.toml": toml, **(files or {})}, **choices)
        self.assertIsNone(found.text)
        return found.why


STEPS = {"instruction.md": "", "steps/first/instruction.md": "<!-- canary x -->\n\nDo a.\n", "steps/second/instruction.md": "Do b.\n"}


class Steps(Folders):
    def test_each_step_is_its_folder(self):
        task = self.task('multi_step_reward_strategy = "final"\n[agent]\ntimeout_sec = 50\n[verifier]\nenv = { A = "1" }\n[solution]\nenv = { S = "s" }\n'
                         '[[steps]]\nname = "first"\nmin_reward = { safe = 1 }\n[[steps]]\nname = "second"\n[steps.agent]\ntimeout_sec = 9.5\n'
                         '[steps.verifier]\ntimeout_sec = 7\nenv = { B = "2" }\n[steps.healthcheck]\ncommand = "true"\n',
                         {**STEPS, "steps/second/workdir/setup.sh": "true\n", "steps/second/workdir/x": "y", "steps/second/tests/test.sh": "t\n",
                          "steps/second/solution/solve.sh": "s\n"})
        self.assertNotIn("prompt", task)
        self.assertEqual((task["eval"]["sandbox"], task["steps_reward"], task["limits"]["run_s"]), ("agent", "final", 60))
        first, second = task["steps"]
        self.assertEqual(first, {"name": "first", "prompt": "Do a.", "min_reward": {"safe": 1}, "limits": {"run_s": 50}})
        self.assertEqual([file["path"] for file in second["files"]], ["./setup.sh", "./x"])
        self.assertEqual((second["setup"][0], len(second["setup"])), ("bash setup.sh", 2))
        self.assertEqual(second["eval"], {"files": [{"path": "/tests/test.sh", "text": "t\n"}], "env": {"A": "1", "B": "2"}})
        self.assertEqual(second["limits"], {"run_s": 10, "eval_s": 7})
        self.assertEqual(second["solution"]["commands"], ["bash /solution/solve.sh"])
        self.assertEqual(second["solution"]["env"]["S"], "s")

    def test_a_step_is_evaluated_apart_where_the_task_says_so_or_it_does(self):
        apart = {"sandbox": "fresh", "artifacts": ["/logs/artifacts", "/app"]}
        both = '[[steps]]\nname = "first"\n[[steps]]\nname = "second"\nartifacts = ["own"]\n'
        tests = [{"path": "/tests/test.sh", "text": BASE["tests/test.sh"]}]
        task = self.task('artifacts = ["/app"]\n[verifier]\nenvironment_mode = "separate"\nuser = "judge"\nenv = { A = "1" }\n' + both, STEPS)
        self.assertEqual(task["eval"], {"kind": "verifier", "sandbox": "agent", "files": tests, "env": {"A": "1"}})
        self.assertEqual(task["steps"][0]["eval"], {**apart, "user": "judge", "env": {"A": "1"}})
        self.assertEqual(task["steps"][1]["eval"]["artifacts"], ["/logs/artifacts", "/app", "own"])
        self.assertEqual([line for line in self.notes.lines() if "artifacts" in line], [])
        for more in ('[steps.verifier]\nenvironment_mode = "separate"\n', '[steps.verifier.environment]\nworkdir = "/w"\n'):
            task = self.task('artifacts = ["/app"]\n[[steps]]\nname = "first"\n' + more + '[[steps]]\nname = "second"\n', STEPS)
            self.assertEqual(task["steps"][0]["eval"], {**apart, **({"workdir": "/w"} if "workdir" in more else {})})
            self.assertNotIn("eval", task["steps"][1])
        task = self.task('artifacts = ["/app"]\n[verifier.environment]\n[[steps]]\nname = "first"\n[steps.verifier]\nenvironment_mode = "shared"\n', STEPS)
        self.assertNotIn("eval", task["steps"][0])

    def test_each_step_has_an_image_of_its_own_with_its_tests(self):
        files = {**STEPS, "steps/first/tests/Dockerfile": "FROM judge\nCOPY test.sh /tests/\n", "steps/first/tests/test.sh": "f\n", "environment/Dockerfile": "FROM base\n"}
        toml = ('[environment]\nworkdir = "/app"\nenv = { T = "1" }\n[verifier]\nenvironment_mode = "separate"\nenv = { A = "1" }\n[[steps]]\nname = "first"\n'
                '[steps.verifier]\nenv = { B = "2" }\n[[steps]]\nname = "second"\n')
        task = self.task(toml, files, image=None, prebuilt=False)
        first, second = (step["eval"] for step in task["steps"])
        self.assertEqual((first["build"]["dockerfile"], [file["path"] for file in first["build"]["files"]]), ("FROM judge\nCOPY test.sh /tests/\n", ["Dockerfile", "test.sh"]))
        self.assertEqual((first["workdir"], first["env"], "files" in first), ("/app", {"T": "1", "A": "1", "B": "2"}, False))
        self.assertEqual((second["files"], "build" in second, "files" in task["eval"]), ([{"path": "/tests/test.sh", "text": BASE["tests/test.sh"]}], False, False))
        image = '[[steps]]\nname = "first"\n[steps.verifier.environment]\ndocker_image = "judge:1"\n'
        task = self.task(image, STEPS, images={"judge:1": "/images/judge"})
        self.assertEqual(task["steps"][0]["eval"], {"sandbox": "fresh", "image": "/images/judge", "artifacts": ["/logs/artifacts"], "user": "root"})
        shutil.rmtree(os.path.join(self.root, "one", "steps", "first", "tests"))
        shared = self.task('[verifier]\nenvironment_mode = "separate"\n[[steps]]\nname = "first"\n[[steps]]\nname = "second"\n',
                           {**STEPS, "tests/Dockerfile": "FROM judge\n", "environment/Dockerfile": "FROM base\n"}, image=None, prebuilt=False)
        self.assertEqual([step["eval"]["build"]["dockerfile"] for step in shared["steps"]], ["FROM judge\n"] * 2)
        self.assertIn("--prebuilt executes no Dockerfile, and steps/first/tests/Dockerfile makes the verifier's image", self.refused(toml, files))

    def test_what_is_collected_is_of_all_steps_or_of_one(self):
        task = self.task('[[verifier.collect]]\ncommand = "all"\n[[steps]]\nname = "first"\n[[steps]]\nname = "second"\n[[steps.verifier.collect]]\n'
                         'command = "own"\nuser = "db"\n', STEPS)
        self.assertEqual(task["eval"]["collect"], [{"command": "all", "timeout_s": 60}])
        self.assertNotIn("eval", task["steps"][0])
        self.assertEqual(task["steps"][1]["eval"], {"collect": [{"command": "own", "timeout_s": 60, "user": "db"}]})

    def test_what_steps_cannot_have_is_told_by_its_field(self):
        one = '[[steps]]\nname = "first"\n'
        for more, why in (('[[steps]]\nname = "../x"\n', "steps[0].name must be the name of a folder below steps/"),
                          ('[[steps]]\nname = "third"\n', "instruction.md: No such file or directory"),
                          (one + '[steps.agent]\nuser = "bob"\n', "steps[0].agent.user is not supported: all steps are one sandbox"),
                          (one + '[steps.verifier]\nenvironment_mode = "shared"\n[steps.verifier.environment]\ncpus = 1\n', "steps[0].verifier.environment_mode says shared"),
                          (one + '[verifier]\nuser = "bob"\n', "verifier.user and network_mode must be the agent's where a step's verifier is shared"),
                          (one + '[steps.verifier]\nuser = "bob"\n', "steps[0].verifier.user must be the agent's where a step's verifier is shared"),
                          (one + '[steps.verifier.environment]\nhealthcheck = { command = "x" }\n', "steps[0].verifier.environment.healthcheck is not supported"),
                          (one + '[steps.verifier.environment]\ndocker_image = "x"\n', "steps[0].verifier.environment.docker_image is x: --image x=PATH"),
                          (one + one, "steps[1]: the name first is given twice")):
            with self.subTest(more):
                self.assertIn(why, self.refused(more, STEPS))
        self.assertIn("neither steps/first/tests/ nor tests/ has a test.sh", self.bare())

    def bare(self):
        folder = self.write({**STEPS, "task.toml": '[[steps]]\nname = "first"\n'}, "bare")
        (found,) = import_folders([folder], HarborChoices(**MADE), self.notes)
        return found.why


class Fields(Folders):
    def test_the_smallest_folder(self):
        task = self.task()
        self.assertEqual((task["task"], task["prompt"], task["image"], task["user"]), ("one", "Do it.", "/images/base", "root"))
        self.assertEqual((task["eval"]["kind"], task["eval"]["sandbox"]), ("verifier", "agent"))
        self.assertEqual(task["eval"]["files"], [{"path": "/tests/test.sh", "text": BASE["tests/test.sh"]}])
        self.assertEqual(task["limits"], {"eval_s": 600})
        self.assertNotIn("solution", task)

    def test_each_table_has_its_place_in_the_task(self):
        task = self.task("""
schema_version = "1.4"
[task]
name = "org/one"
[metadata]
difficulty = "easy"
tags = ["a"]
[agent]
timeout_sec = 90.5
user = "agent"
[verifier]
timeout_sec = 240.0
user = 0
env = { KEY = "${SET_HERE}", OTHER = "${UNSET:-spare}", PLAIN = "a ${b}" }
[environment]
cpus = 1.5
memory_mb = 4096
storage_mb = 10240
workdir = "/app"
env = { A = "1" }
[solution]
env = { S = "2" }
""", {"solution/solve.sh": "true\n"}, variables={"SET_HERE": "x"})
        self.assertEqual((task["user"], task["workdir"], task["env"]), ("agent", "/app", {"A": "1"}))
        self.assertEqual(task["limits"], {"cpus": 2, "memory_mib": 4096, "disk_mib": 10240, "run_s": 91, "eval_s": 240})
        self.assertEqual((task["eval"]["user"], task["eval"]["env"]), ("0", {"KEY": "x", "OTHER": "spare", "PLAIN": "a ${b}"}))
        self.assertEqual(task["solution"], {"files": [{"path": "/solution/solve.sh", "text": "true\n"}], "commands": ["bash /solution/solve.sh"],
                                            "env": {"DEBIAN_FRONTEND": "noninteractive", "S": "2"}})
        self.assertEqual(task["metadata"], {"harbor": "org/one", "difficulty": "easy", "tags": ["a"]})

    def test_sizes_of_the_old_schema(self):
        limits = self.task('[environment]\nmemory = "2G"\nstorage = "512M"\n')["limits"]
        self.assertEqual((limits["memory_mib"], limits["disk_mib"]), (2048, 512))

    def test_a_canary_is_cut_off_and_other_comments_stay(self):
        for text, prompt in (("<!-- Canary GUID 1 -->\n# canary 2\n\n\nDo.", "Do."), ("# Title\nDo.", "# Title\nDo."), ("Do.\n# canary", "Do.\n# canary")):
            self.assertEqual(self.task(files={"instruction.md": text})["prompt"], prompt)

    def test_modes_bytes_and_directories_go_along(self):
        folder = self.write({**BASE, "tests/deep/run": b"\xff\0"})
        os.chmod(os.path.join(folder, "tests", "deep", "run"), 0o755)
        files = self.task()["eval"]["files"]
        self.assertEqual(files[1], {"path": "/tests/deep/run", "base64": base64.b64encode(b"\xff\0").decode(), "mode": "0755"})

    def test_large_folders_are_sources_and_so_is_all_that_is_asked_for(self):
        task = self.task(files={"tests/large": "x" * (300 << 10), "solution/solve.sh": "true"})
        self.assertEqual(task["eval"]["files"], [{"path": "/tests", "source": os.path.join(os.path.realpath(self.root), "one", "tests")}])
        self.assertIn("text", task["solution"]["files"][0])
        (found,) = import_folders([os.path.join(self.root, "one")], HarborChoices(**MADE, files="source"))
        self.assertIn("source", json.loads(found.text)["solution"]["files"][0])

    def test_harborignore_leaves_files_out(self):
        files = self.task(files={".harborignore": "*.log\n/tests/private/\n!keep.log\n", "tests/a.log": "", "tests/keep.log": "k", "tests/private/x": ""})["eval"]["files"]
        self.assertEqual(sorted(file["path"] for file in files), ["/tests/keep.log", "/tests/test.sh"])
        self.assertTrue(ignored(["a/"], "x/a", True))
        self.assertFalse(ignored(["a/"], "x/a", False))

    def test_a_healthcheck_is_set_up(self):
        task = self.task('[environment.healthcheck]\ncommand = "test -e \'/a b\'"\nretries = 2\ninterval_sec = 1\ntimeout_sec = 4\n')
        self.assertEqual(task["setup"], ["for try in $(seq 2); do timeout 4 bash -c 'test -e '\\''/a b'\\''' && exit 0; sleep 1; done; echo 'the healthcheck has failed' >&2; exit 1"])
        self.assertEqual(task["limits"]["init_s"], 130)

    def test_fields_are_set_from_outside(self):
        task = self.task(fields={"agent.max_turns": 50, "sampling.max_tokens": 9})
        self.assertEqual((task["agent"], task["sampling"]), ({"kind": "bash", "max_turns": 50}, {"max_tokens": 9}))

    def test_unknown_fields_are_told_once_for_all_folders(self):
        for name in ("a", "b"):
            self.write({**BASE, "task.toml": '[environment]\nframes = 3\nallow_internet = false\n[odd]\nx = 1\n'}, name)
        found = list(import_folders([self.root], HarborChoices(**MADE), self.notes))
        self.assertEqual([one.why for one in found], [None, None])
        lines = self.notes.lines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[0], r"^warning: task.toml: environment.frames is not known, and is passed over \(.*/a and 1 more\)$")
        self.assertIn("task.toml: odd is not known", lines[1])


    def test_a_dockerfile_is_built(self):
        dockerfile = {"environment/Dockerfile": "FROM python:3.12-slim\nRUN true\n", "environment/a.txt": "a"}
        task = self.task("[environment]\nbuild_timeout_sec = 60.0\n", dockerfile, image=None, prebuilt=False, network_grant="web")
        self.assertEqual(task["build"], {"dockerfile": dockerfile["environment/Dockerfile"], "network": ["web"], "timeout_s": 60, "files": [
            {"path": "Dockerfile", "text": dockerfile["environment/Dockerfile"]}, {"path": "a.txt", "text": "a"}]})
        self.assertFalse({"image", "user", "files"} & set(task))
        self.assertEqual(self.task(files=dockerfile, prebuilt=False)["image"], "/images/base")
        self.assertNotIn("build", self.task(files=dockerfile))
        self.assertIn("--prebuilt takes --image PATH", self.refused(files=dockerfile, image=None))

    def test_a_context_goes_along_where_it_is_small_and_holds_files_alone(self):
        place = os.path.join(os.path.realpath(self.root), "one", "environment")
        given = {"image": None, "prebuilt": False}
        small = {"environment/Dockerfile": "FROM a\n", "environment/app/run.sh": "#!/bin/sh\n"}
        large = {"environment/Dockerfile": "FROM a\n", "environment/data": "x" * (256 << 10)}
        self.write({**BASE, **small})
        os.chmod(os.path.join(place, "app", "run.sh"), 0o755)
        build = self.task(files=small, **given)["build"]
        self.assertEqual((build["files"][1:], build.get("context")), ([{"path": "app/run.sh", "text": "#!/bin/sh\n", "mode": "0755"}], None))
        (found,) = import_folders([os.path.dirname(place)], HarborChoices(**{**MADE, **given}, files="source"), self.notes)
        self.assertEqual(json.loads(found.text)["build"]["context"], place)
        for make in (lambda: os.symlink("app", os.path.join(place, "link")), lambda: os.mkdir(os.path.join(place, "empty"))):
            self.write({**BASE, **small})
            make()
            build = self.task(files=small, **given)["build"]
            self.assertEqual((build["context"], "files" in build), (place, False))
            shutil.rmtree(place)
        build = self.task(files=large, **given)["build"]
        self.assertEqual((build["context"], "files" in build), (place, False))

    def test_host_is_the_workers_own_root_and_no_path(self):
        self.assertEqual(self.task(image="host")["image"], "host")


class SeparateVerifiers(Folders):
    SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'

    def test_artifacts_lie_where_they_lay_and_the_convention_is_one(self):
        task = self.task('artifacts = ["/app/out", {source = "model.bin", destination = "m/x.bin"}, {source = "/app/src", exclude = ["*.o"]}]\n' + self.SEPARATE)
        self.assertEqual(task["eval"]["artifacts"], ["/logs/artifacts", "/app/out", "model.bin", {"path": "/app/src", "exclude": ["*.o"]}])
        self.assertNotIn("sandbox", task["eval"])
        explicit = self.task('artifacts = [{source = "/logs/artifacts/", exclude = ["tmp"]}]\n' + self.SEPARATE)
        self.assertEqual(explicit["eval"]["artifacts"], [{"path": "/logs/artifacts/", "exclude": ["tmp"]}])
        self.assertNotIn("artifacts", self.task('artifacts = ["/app/out"]\n')["eval"])

    def test_an_environment_of_its_own_says_network_and_variables(self):
        toml = ('[environment]\nnetwork_mode = "no-network"\nmemory_mb = 1024\n[verifier]\nenv = { B = "2" }\n'
                '[verifier.environment]\nenv = { A = "1", B = "1" }\nmemory_mb = 2048\n')
        found = self.task(toml, network_grant="web")
        self.assertEqual((found["eval"]["env"], found["eval"]["network"], found.get("network")), ({"A": "1", "B": "2"}, ["web"], None))
        self.assertEqual((found["eval"]["artifacts"], found["limits"]["memory_mib"]), (["/logs/artifacts"], 1024))
        self.assertIn("verifier.environment has other limits: its sandbox has those of environment", "\n".join(self.notes.lines()))
        self.assertNotIn("network", self.task(toml + 'network_mode = "no-network"\n', network_grant="web")["eval"])

    def test_an_image_of_its_own_has_the_tests_in_it(self):
        found = self.task('[environment]\nworkdir = "/app"\nenv = { T = "1" }\n[verifier.environment]\ndocker_image = "judge:1"\nworkdir = "/j"\nenv = { J = "1" }\n',
                          images={"judge:1": "/images/judge"})
        self.assertEqual(found["eval"], {"kind": "verifier", "image": "/images/judge", "artifacts": ["/logs/artifacts"], "workdir": "/j", "user": "root",
                                         "env": {"J": "1"}})
        self.assertEqual((found["image"], found["workdir"]), ("/images/base", "/app"))
        found = self.task('[environment]\ndocker_image = "host"\n[verifier]\nuser = "bob"\n[verifier.environment]\ndocker_image = "host"\n', image=None)
        self.assertEqual((found["eval"]["image"], found["eval"]["user"]), ("host", "bob"))

    def test_a_dockerfile_in_tests_makes_one_with_tests_as_its_context(self):
        files = {"tests/Dockerfile": "FROM judge\nCOPY test.sh /tests/\n", "tests/big": "x" * 300000, "environment/Dockerfile": "FROM base\n"}
        choices = {"image": None, "prebuilt": False, "network_grant": "web"}
        found = self.task('[environment]\nworkdir = "/app"\nenv = { T = "1" }\nbuild_timeout_sec = 9.5\n[verifier]\nenvironment_mode = "separate"\nenv = { V = "2" }\n',
                          files, **choices)
        self.assertEqual(found["eval"]["build"], {"dockerfile": files["tests/Dockerfile"], "timeout_s": 10, "network": ["web"],
                                                  "context": os.path.join(os.path.realpath(self.root), "one", "tests")})
        self.assertEqual((found["eval"]["workdir"], found["eval"]["env"]), ("/app", {"T": "1", "V": "2"}))
        self.assertFalse({"files", "image", "user"} & set(found["eval"]))
        own = self.task('[environment]\nworkdir = "/app"\nenv = { T = "1" }\n[verifier.environment]\nbuild_timeout_sec = 7\n', files, **choices)["eval"]
        self.assertEqual((own["build"]["timeout_s"], own.get("workdir"), own.get("env")), (7, None, None))
        self.assertNotIn("build", self.task("", files, **choices)["eval"])
        small = self.task(self.SEPARATE, {**files, "tests/big": "x"}, **choices)["eval"]["build"]
        self.assertEqual(([file["path"] for file in small["files"]], "context" in small), (["Dockerfile", "big", "test.sh"], False))
        os.unlink(os.path.join(self.root, "one", "tests", "test.sh"))
        (baked,) = import_folders([os.path.join(self.root, "one")], HarborChoices(**choices), self.notes)
        self.assertIsNone(baked.why)
        self.write({"task.toml": ""})
        (bare,) = import_folders([os.path.join(self.root, "one")], HarborChoices(**choices), self.notes)
        self.assertIn("it has no tests/test.sh", bare.why)

    def test_an_environment_of_its_own_may_start_elsewhere(self):
        found = self.task('[environment]\nworkdir = "/app"\n[verifier.environment]\nworkdir = "/x"\n')
        self.assertEqual((found["workdir"], found["eval"]["workdir"]), ("/app", "/x"))
        self.assertNotIn("workdir", self.task('[environment]\nworkdir = "/app"\n' + self.SEPARATE)["eval"])

    def test_collect_is_run_with_the_home_of_its_user(self):
        toml = '[[verifier.collect]]\ncommand = "redis-cli save"\n[[verifier.collect]]\ncommand = "true"\ntimeout_sec = 0.5\nuser = "%s"\n'
        self.assertEqual(self.task(toml % "root")["eval"]["collect"],
                         [{"command": "redis-cli save", "timeout_s": 60}, {"command": "true", "timeout_s": 1}])
        self.assertEqual([line for line in self.notes.lines() if "collect" in line], [])
        self.assertEqual(self.task(toml % "redis" + self.SEPARATE)["eval"]["collect"][1],
                         {"command": "true", "timeout_s": 1, "user": "redis"})
        self.assertIn("verifier.collect[1].user is redis: it has the home of that user, and the id of the agent's", "\n".join(self.notes.lines()))


class Networks(Folders):
    def test_public_is_a_grant_and_no_network_is_none(self):
        task = self.task(network_grant="web")
        self.assertEqual((task["network"], task["eval"]["sandbox"], task["eval"].get("network")), (["web"], "agent", None))
        self.assertEqual(self.notes.lines(), [])
        task = self.task('[environment]\nnetwork_mode = "no-network"\n[verifier]\nnetwork_mode = "public"\n', network_grant="web")
        self.assertEqual((task.get("network"), task["eval"]["network"], task["eval"].get("sandbox")), (None, ["web"], None))
        for who, user in (("root", None), ("0", None), ("agent", "agent")):
            said = f'[agent]\nuser = "{user}"\n' if user else ""
            self.assertEqual(self.task(f'{said}[verifier]\nuser = "{who}"\n')["eval"]["sandbox"], "agent")
        self.assertEqual(self.task('[verifier]\nuser = "judge"\n')["eval"]["user"], "judge")
        self.assertIn("the verifier's network is not the agent's: it is evaluated in a fresh sandbox", self.notes.lines()[0])
        task = self.task('[agent]\nnetwork_mode = "no-network"\n', network_grant="web")
        self.assertEqual((task.get("network"), task["init"]), (None, {"network": ["web"]}))
        self.assertNotIn("network", self.task('[environment]\nallow_internet = false\n', network_grant="web"))

    def test_public_without_a_grant_is_told(self):
        self.assertNotIn("network", self.task())
        self.assertIn("--network-grant NAME says which grant stands for it", self.notes.lines()[0])

    def test_hosts_are_grants(self):
        toml = '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["pypi.org", "*.x.org"]\n'
        self.assertIn("environment.allowed_hosts: *.x.org: --network-grant HOST=NAME", self.refused(toml, host_grants={"pypi.org": "pip"}))
        self.assertEqual(self.task(toml, host_grants={"pypi.org": "pip", "*.x.org": "pip"})["network"], ["pip"])


class Refusals(Folders):
    def test_limits_beyond_what_a_task_may_have_are_named_by_table_and_field(self):
        nines = "9" * 60
        for toml, why in ((f'[environment]\nmemory = "{nines}G"\n', f"environment.memory is {nines[:40]}, and the most there may be is 16777216 MiB"),
                          ("[environment]\nmemory_mb = 1e300\n", "environment.memory_mb is 1e+300, and the most there may be is 16777216 MiB"),
                          ('[environment]\nstorage = "17T"\n', "environment.storage is 17T, and the most there may be is 16777216 MiB"),
                          ("[environment]\nstorage_mb = 16777217\n", "environment.storage_mb is 16777217, and the most there may be is 16777216 MiB"),
                          ("[environment]\ncpus = 1e30\n", "environment.cpus is 1e+30, and the most there may be is 4096"),
                          ("[environment]\ngpus = 65\n", "environment.gpus is 65, and the most there may be is 64"),
                          ('[verifier.environment]\nmemory = "17T"\n', "verifier.environment.memory is 17T, and the most there may be is 16777216 MiB")):
            self.assertEqual(self.refused(toml), why)
        self.assertEqual(self.task('[environment]\nmemory = "16T"\ngpus = 64\n')["limits"]["memory_mib"], 16777216)

    def test_wrong_types_are_named_by_table_and_field(self):
        for toml, why in (('[agent]\ntimeout_sec = "long"\n', "agent.timeout_sec must be a number that is not negative"),
                          ('[verifier]\nenv = { A = 1 }\n', "verifier.env must be a table of strings"),
                          ('[environment]\nos = "plan9"\n', "environment.os must be one of linux, windows"),
                          ('[environment]\ncpus = nan\n', "environment.cpus must be a number that is not negative"),
                          ('[environment]\nmemory = "much"\n', 'environment.memory must be a size such as "2G"'),
                          ('environment = 3\n', "environment must be a table"), ('[[verifier.collect]]\ncommand = 3\n', "verifier.collect[0].command must be a string"),
                          ('[environment]\nallow_internet = "yes"\n', "environment.allow_internet must be true or false"),
                          ('[[steps]]\nmin_reward = "x"\n', "steps[0].min_reward must be a number, or a table of numbers")):
            self.assertEqual(self.refused(toml), "task.toml: " + why)

    def test_what_is_not_done_is_named(self):
        for toml, files, why in (('[[environment.mcp_servers]]\nname = "m"\n', {}, "environment.mcp_servers is not supported"),
                                 ('[environment]\nos = "windows"\n', {}, "environment.os is windows"),
                                 ('[environment.tpu]\ntype = "v4"\n', {}, "environment.tpu is not supported"),
                                 ('[environment]\nskills_dir = "s"\n', {}, "environment.skills_dir is not supported"),
                                 ("", {"environment/docker-compose.yaml": "services: {}\n"}, "environment/docker-compose.yaml is not supported"),
                                 ('[verifier.environment]\ndocker_image = "x"\n', {}, "verifier.environment.docker_image is x: --image x=PATH says where"),
                                 ('[verifier.environment]\nhealthcheck = { command = "x" }\n', {}, "verifier.environment.healthcheck is not supported"),
                                 ('[verifier.environment]\nskills_dir = "/x"\n', {}, "verifier.environment.skills_dir is not supported"),
                                 ('[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\n', {}, "verifier.environment_mode says shared"),
                                 ('[verifier]\nenvironment_mode = "separate"\n', {"tests/Dockerfile": "FROM x\n"}, "--prebuilt executes no Dockerfile, and tests/Dockerfile"),
                                 ('[verifier]\nenvironment_mode = "separate"\n', {"tests/docker-compose.yaml": "services: {}\n"}, "tests/docker-compose.yaml is not supported"),
                                 ('artifacts = [{source = "/a", service = "db"}]\n[verifier]\nenvironment_mode = "separate"\n', {}, "artifacts[0].service is db"),
                                 ('artifacts = ["/a/../b"]\n[verifier]\nenvironment_mode = "separate"\n', {}, 'artifacts[0].source is /a/../b, and may have no ".."'),
                                 ('artifacts = [{destination = "a"}]\n[verifier.environment]\n', {}, "artifacts[0].source is missing"),
                                 ('artifacts = ["/"]\n[verifier.environment]\n', {}, "eval.artifacts[1] must name a file or a directory"),
                                 ('[[verifier.collect]]\ncommand = "true"\nservice = "db"\n', {}, "verifier.collect[0].service is db")):
            self.assertIn(why, self.refused(toml, files))
            for path in files:
                os.unlink(os.path.join(self.root, "one", path))

    def test_folders_that_lack_something(self):
        self.assertIn("instruction.md is empty", self.refused(files={"instruction.md": "# canary\n\n"}))
        self.assertIn("task.toml is not TOML", self.refused("a = \n"))
        self.assertIn("task.toml is not UTF-8", self.refused(files={"task.toml": b"\xff"}))
        self.assertIn("verifier.env.K is ${MISSING}, and MISSING is not set here", self.refused('[verifier.env]\nK = "${MISSING}"\n'))
        self.assertIn("environment.docker_image is org/x:1: --image org/x:1=PATH", self.refused('[environment]\ndocker_image = "org/x:1"\n', image=None))
        self.assertIn("it has neither environment/Dockerfile nor environment.docker_image", self.refused(image=None, prebuilt=False))
        folder = self.write(BASE)
        os.unlink(os.path.join(folder, "tests", "test.sh"))
        (found,) = import_folders([folder], HarborChoices(**MADE))
        self.assertEqual(found.why, "it has no tests/test.sh")

    def test_a_link_out_of_the_folder_and_a_fifo(self):
        folder = self.write(BASE)
        link = os.path.join(folder, "tests", "out")
        os.symlink("/etc/passwd", link)
        self.assertIn("tests/out is a link out of its folder, to /etc/passwd", self.refused())
        os.unlink(link)
        os.symlink("test.sh", link)
        self.assertEqual(self.task()["eval"]["files"][0]["path"], "/tests")  # a source, which keeps links
        os.unlink(link)
        os.mkfifo(link)
        self.assertIn("tests/out is neither a file nor a directory", self.refused())

    def test_what_is_read_of_a_folder_lies_in_it_and_is_a_plain_file(self):
        def why():
            (found,) = import_folders([folder], HarborChoices(**MADE))
            return found.why
        outside = os.path.join(self.root, "outside")
        os.mkdir(outside)
        for name in ("instruction.md", "tests", "solution", "environment", "steps"):
            folder = self.write(BASE)
            path = os.path.join(folder, name)
            if os.path.exists(path):
                os.rename(path, path + ".own")
            os.symlink(outside, path)
            self.assertEqual(why(), f"one/{name} is a link out of its folder, to {outside}")
            os.unlink(path)
        folder = self.write({**BASE, "steps/a/tests/x": ""})
        for path in ("tests/Dockerfile", "steps/a/tests/Dockerfile"):
            os.symlink(outside, os.path.join(folder, path))
            self.assertEqual(why(), f"one/{path} is a link out of its folder, to {outside}")
            os.unlink(os.path.join(folder, path))
        shutil.rmtree(os.path.join(folder, "steps"))
        folder = self.write(BASE)
        os.unlink(os.path.join(folder, "instruction.md"))
        os.mkfifo(os.path.join(folder, "instruction.md"))
        self.assertEqual(why(), "instruction.md is not a plain file")

    def test_paths_without_tasks(self):
        for path, why in ((os.path.join(self.root, "none"), "there is no such directory"), (self.root, "neither it nor a directory in it has a task.toml")):
            (found,) = import_folders([path])
            self.assertIn(why, found.why)


class DataSets(Folders):
    def test_dataset_toml_says_which_folders_and_their_digests(self):
        for name in ("a", "b"):
            self.write({**BASE, "task.toml": f'[task]\nname = "org/{name}"\n'}, name)
        listed = hashlib.sha256()
        for path in sorted(BASE):
            with open(os.path.join(self.root, "a", path), "rb") as file:
                listed.update(f"{path}\0{hashlib.sha256(file.read()).hexdigest()}\n".encode())
        rows = f'[dataset]\nname = "org/set"\n[[tasks]]\nname = "org/a"\ndigest = "sha256:{listed.hexdigest()}"\n[[tasks]]\nname = "org/c"\n'
        self.write({"dataset.toml": rows}, "")
        found = list(import_folders([os.path.join(self.root, "dataset.toml")], HarborChoices(**MADE, network_grant="web"), self.notes))
        self.assertEqual([bool(one.text) for one in found], [True, False])
        self.assertIn("dataset.toml lists it, and no folder has that name", found[1].why)
        self.assertEqual([line.split(" (")[0] for line in self.notes.lines()], ["warning: dataset.toml does not list it, and it is left out"])
        self.write({"tests/test.sh": "changed"}, "a")
        list(import_folders([self.root], HarborChoices(**MADE), self.notes))
        self.assertTrue(any("its content is not that of the digest" in line for line in self.notes.lines()))

    def test_an_old_folder(self):
        try:
            import yaml  # noqa: F401
        except ImportError:
            (found,) = import_folders([self.write({"task.yaml": "instruction: x\n"})], HarborChoices(**MADE))
            self.assertEqual(found.why, "task.yaml needs the package PyYAML: pip install PyYAML")
            return
        old = {"task.yaml": "instruction: |-\n  Do it.\ndifficulty: easy\nparser_name: pytest\nmax_agent_timeout_sec: 100\n",
               "run-tests.sh": "bash $TEST_DIR/x.sh\n", "tests/x.sh": "true\n", "solution.sh": "true\n",
               "docker-compose.yaml": "services:\n  client:\n    working_dir: /work\n    environment:\n      - A=1\n      - L=${T_BENCH_LOGS}\n"}
        (found,) = import_folders([self.write(old)], HarborChoices(**MADE))
        task = json.loads(found.text)
        self.assertEqual((task["prompt"], task["workdir"], task["env"]), ("Do it.", "/work", {"A": "1"}))
        self.assertEqual(sorted(file["path"] for file in task["eval"]["files"]), ["/tests/run-tests.sh", "/tests/test.sh", "/tests/x.sh"])
        self.assertEqual((task["limits"], task["solution"]["commands"]), ({"run_s": 100, "eval_s": 60}, ["bash /solution/solution.sh"]))
        self.write({"docker-compose.yaml": "services: {a: {}, b: {}}\n"})
        (found,) = import_folders([os.path.join(self.root, "one")], HarborChoices(**MADE))
        self.assertIn("docker-compose.yaml has several services", found.why)


class Command(Folders):
    def test_the_command_writes_tasks_and_says_what_was_refused(self):
        self.write(BASE, "good")
        self.write({**BASE, "task.toml": "cpus = [\n"}, "bad")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main([self.root, "--image", "/images/base", "--prebuilt", "--network-grant", "web", "--set", "samples=4"])
        self.assertEqual((status, json.loads(out.getvalue())["samples"]), (1, 4))
        self.assertRegex(err.getvalue(), r"/bad: task.toml is not TOML")
        self.assertIn("tasks written: 1; folders refused: 1", err.getvalue())


if __name__ == "__main__":
    unittest.main()
