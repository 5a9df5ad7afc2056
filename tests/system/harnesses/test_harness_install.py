"""`sluice harness`: installed whole or not at all, from a registry on this machine, and the same version again has the same digests."""
import fcntl
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import PYTHON, SLUICE, SOURCE  # noqa: E402
from registry import Registry  # noqa: E402

sys.path.append(os.path.join(SOURCE, "client", "python"))
from sluice.harnesses.recipes import RECIPES  # noqa: E402

CODEX = f"@openai/codex-linux-{'arm64' if platform.machine() == 'aarch64' else 'x64'}"
AWAY = "http://127.0.0.1:9"


def program(says):
    return f"#!/bin/sh\necho {says}\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="sluice-test-")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.root], check=True)
        self.registry = self.enterContext(Registry()) if hasattr(self, "enterContext") else self.enter(Registry())
        self.place = os.path.join(self.root, "cache", "harness")
        self.env = {"PATH": os.environ["PATH"], "HOME": os.path.join(self.root, "home"), "SLUICE_CACHE": os.path.join(self.root, "cache"),
                    "PYTHONPATH": os.path.join(SOURCE, "client", "python"), "SLUICE_PYTHON": PYTHON, "PYTHONDONTWRITEBYTECODE": "1",
                    "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_CACHE_DIR": "1", "TMPDIR": self.root, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")}
        self.use(self.registry.url)

    def enter(self, manager):
        self.addCleanup(manager.__exit__, None, None, None)
        return manager.__enter__()

    def use(self, url):
        self.env.update(npm_config_registry=url + "/", npm_config_cache=os.path.join(self.root, "npm"), PIP_INDEX_URL=url + "/simple/")

    def call(self, *arguments, status=0, before=()):
        done = subprocess.run([*before, SLUICE, "harness", *arguments], env=self.env, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr or done.stdout

    def manifest(self, there):
        with open(f"{there}/manifest.json", encoding="utf-8") as file:
            return json.load(file)

    def entries(self, name):
        folder = os.path.join(self.place, name)
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


class Npm(Case):
    def setUp(self):
        super().setUp()
        if not shutil.which("npm"):
            self.skipTest("npm is not installed")
        self.publish("1.0.0")

    def publish(self, version, says="hello", broken=False):
        self.registry.add_npm("@openai/codex", version, {"README": "x"}, {CODEX: version})
        return self.registry.add_npm(CODEX, version, {"vendor/any/bin/codex": program(says)}, broken=broken)

    def test_it_is_there_whole_with_its_digests_and_workers_find_it(self):
        digest = self.publish("2.0.0", "two")
        self.assertEqual(self.call("install", "codex@1.0.0"), f"codex 1.0.0 was installed in {self.place}/codex/1.0.0\n")
        self.call("install", "codex@2.0.0")
        self.assertEqual(self.entries("codex"), ["1.0.0", "1.0.0.json", "2.0.0", "2.0.0.json", "current"])
        self.assertEqual(subprocess.check_output([f"{self.place}/codex/current/bin/codex"], text=True), "two\n")
        manifest = self.manifest(f"{self.place}/codex/2.0.0")
        self.assertEqual((manifest["harness"], manifest["version"], manifest["from"]), ("codex", "2.0.0", "npm"))
        self.assertIn({"name": CODEX, "version": "2.0.0", "digest": digest}, manifest["packages"])
        self.assertNotIn("127.0.0.1", json.dumps(manifest))
        rows = {row["harness"]: row for row in map(json.loads, self.call("list", "--json").splitlines())}
        self.assertEqual((rows["codex"]["installed"], rows["codex"]["current"]), (["1.0.0", "2.0.0"], "2.0.0"))
        self.assertEqual((rows["opencode"]["installed"], rows["opencode"]["path"]), ([], None))
        self.assertIn("1.0.0 2.0.0*", self.call("list"))

    def test_the_same_again_is_compared_without_asking_anybody(self):
        self.publish("2.0.0")
        self.call("install", "codex@1.0.0", "codex@2.0.0")
        self.registry.stop()
        self.assertEqual(self.call("install", "codex@1.0.0"), f"codex 1.0.0 is installed in {self.place}/codex/1.0.0\n")
        self.assertEqual(os.readlink(f"{self.place}/codex/current"), "1.0.0")
        self.assertIn("as it was installed", self.call("check", "codex"))

    def test_what_was_changed_is_found_and_said(self):
        self.call("install", "codex@1.0.0")
        there = f"{self.place}/codex/1.0.0"
        file = f"node_modules/{CODEX}/vendor/any/bin/codex"
        with open(f"{there}/{file}", "a", encoding="utf-8") as program_:
            program_.write("# more\n")
        self.assertEqual(self.call("install", "codex@1.0.0", status=1),
                         f"sluice: {there} is not what was installed: {file} was changed; remove it and install it again\n")
        os.remove(f"{there}/{file}")
        with open(f"{there}/new", "w", encoding="utf-8"):
            pass
        self.assertEqual(self.call("check", status=1),
                         f"codex: new is new\ncodex: {file} is gone\ncodex: {there}/bin/codex is no program\n"
                         f"codex in {there}: not as it was installed\n")

    def test_an_archive_that_is_not_what_the_registry_says_is_not_installed(self):
        self.publish("3.0.0", broken=True)
        said = self.call("install", "codex@3.0.0", status=1)
        self.assertRegex(said, r"^sluice: codex cannot be installed: a digest is not the one that is recorded \(.*EINTEGRITY")
        self.assertEqual(self.entries("codex"), [])

    def test_a_version_that_is_another_by_now_is_not_installed_again(self):
        self.call("install", "codex@1.0.0")
        shutil.rmtree(f"{self.place}/codex/1.0.0")
        shutil.rmtree(os.path.join(self.root, "npm"))
        self.publish("1.0.0", "something else")
        said = self.call("install", "codex@1.0.0", status=1)
        self.assertRegex(said, r"a digest is not the one that is recorded \(.*\); recorded in " + re.escape(f"{self.place}/codex/1.0.0.json"))
        self.assertEqual(self.entries("codex"), ["1.0.0.json", "current"])

    def test_what_is_removed_is_gone_and_the_same_again_has_the_same_digests(self):
        self.publish("2.0.0")
        self.call("install", "codex@1.0.0", "codex@2.0.0")
        self.assertEqual(self.call("remove", "codex@2.0.0"), f"codex 2.0.0 was removed from {self.place}/codex/2.0.0\n")
        self.assertEqual(self.entries("codex"), ["1.0.0", "1.0.0.json", "2.0.0.json"])
        self.call("install", "codex@2.0.0")
        self.call("remove", "codex@1.0.0")
        self.assertEqual(os.readlink(f"{self.place}/codex/current"), "2.0.0")
        self.call("install", "codex@1.0.0")
        self.assertEqual(len(self.call("remove", "codex").splitlines()), 2)
        self.assertEqual(self.entries("codex"), ["1.0.0.json", "2.0.0.json"])
        for word in ("codex", "codex@1.0.0"):
            self.assertEqual(self.call("remove", word, status=1), f"sluice: {word} is not installed in {self.place}/codex\n")
        shutil.rmtree(os.path.join(self.root, "npm"))
        self.publish("1.0.0", "something else")
        self.assertIn("a digest is not the one that is recorded", self.call("install", "codex@1.0.0", status=1))

    def test_what_a_worker_holds_is_not_removed(self):
        self.call("install", "codex@1.0.0")
        there = f"{self.place}/codex/1.0.0"
        held = os.open(there, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(held, fcntl.LOCK_SH)
        self.assertEqual(self.call("remove", "codex", status=1),
                         "sluice: codex 1.0.0 is in use: a run worker that found it when it started still runs\n")
        self.assertIn("as it was installed", self.call("check", "codex"))
        os.close(held)
        self.call("remove", "codex")
        self.assertFalse(os.path.exists(there))

    def test_the_lock_of_another_node_makes_the_same(self):
        self.call("install", "codex@1.0.0", "--dir", f"{self.root}/one")
        shutil.copy(f"{self.root}/one/manifest.json", f"{self.root}/lock")
        self.call("install", "codex@1.0.0", "--dir", f"{self.root}/two", "--lock", f"{self.root}/lock")
        self.assertEqual(self.manifest(f"{self.root}/one")["packages"], self.manifest(f"{self.root}/two")["packages"])
        self.publish("1.0.0", "something else")
        shutil.rmtree(os.path.join(self.root, "npm"))
        said = self.call("install", "codex@1.0.0", "--dir", f"{self.root}/three", "--lock", f"{self.root}/lock", status=1)
        self.assertIn(f"recorded in {self.root}/lock", said)
        self.assertFalse(os.path.exists(f"{self.root}/three"))
        self.assertEqual(self.call("install", "codex@2.0.0", "--lock", f"{self.root}/lock", status=1),
                         f"sluice: {self.root}/lock is of codex 1.0.0, not of codex 2.0.0\n")

    def test_names_that_would_end_a_line_are_listed_whole(self):
        names = ["a\rb", "a\r\nb", "a\nfile x\tb", "a\u2028b", "a\\nb"]
        archive = {"vendor/any/bin/codex": program("hello"), **{name: name for name in names}}
        self.registry.add_npm(CODEX, "1.0.0", archive)
        self.call("install", "codex@1.0.0")
        there = f"{self.place}/codex/1.0.0"
        for name in names:
            self.assertTrue(os.path.exists(f"{there}/node_modules/{CODEX}/{name}"), name)
        self.assertIn("is installed", self.call("install", "codex@1.0.0"))
        self.assertIn("as it was installed", self.call("check", "codex"))
        os.remove(f"{there}/node_modules/{CODEX}/a\rb")
        self.assertIn(f"codex: node_modules/{CODEX}/a\\u000db is gone\n", self.call("check", status=1))

    def test_a_broken_lock_is_refused_by_its_field_and_nothing_is_left(self):
        self.call("install", "codex@1.0.0", "--dir", f"{self.root}/one")
        whole, path = json.dumps(self.manifest(f"{self.root}/one")), f"{self.root}/lock"
        at = f"lock.packages['node_modules/{CODEX}']"
        for break_, words in (
                (lambda m, row: row.update(link=True, resolved="/etc"), f"{at}.link is there: a link leads to what has no digest"),
                (lambda m, row: row.update(resolved="file:/etc"), f"{at}.resolved is 'file:/etc', which is no resolved of a package"),
                (lambda m, row: row.pop("version"), f"{at}.version is missing"),
                (lambda m, row: m["lock"]["packages"].update({"../x": {}}), "lock.packages['../x'] is no place of a package"),
                (lambda m, row: m["lock"].pop("packages"), "lock.packages is None, not an object"),
                (lambda m, row: m["lock"].update(lockfileVersion=1), "lock.lockfileVersion is 1, not 2 or 3"),
                (lambda m, row: m.pop("lock"), "lock is None, not an object")):
            made = json.loads(whole)
            break_(made, made["lock"]["packages"][f"node_modules/{CODEX}"])
            with open(path, "w", encoding="utf-8") as file:
                json.dump(made, file)
            said = self.call("install", "codex@1.0.0", "--dir", f"{self.root}/two", "--lock", path, status=1)
            self.assertEqual(said, f"sluice: {path}: {words}\n")
            self.assertFalse(os.path.exists(f"{self.root}/two"))

    def test_a_registry_that_is_away_or_has_it_not_is_said_and_nothing_is_left(self):
        self.assertRegex(self.call("install", "codex@4.0.0", status=1), r"the registry of npm has no such version \(.*4\.0\.0")
        self.use(AWAY)
        self.assertRegex(self.call("install", "codex@1.0.0", status=1), r"the registry of npm cannot be reached \(.*ECONNREFUSED")
        self.assertEqual(self.entries("codex"), [])

    def test_a_full_disk_is_said_and_nothing_is_left(self):
        self.registry.add_npm(CODEX, "1.0.0", {"vendor/any/bin/codex": program("x"), "large": "x" * (4 << 20)})
        mount = f"mkdir -p {self.place}/codex && mount -t tmpfs -o size=2m none {self.place}/codex && \"$@\"; status=$?; ls -A {self.place}/codex; exit $status"
        before = ["unshare", "-Urm", "bash", "-c", mount, "bash"]
        if subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no namespaces to mount in")
        done = subprocess.run([*before, SLUICE, "harness", "install", "codex@1.0.0"], env=self.env, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, r"no room is left on (the|its) disk")

    def test_one_that_does_not_start_is_not_installed(self):
        self.registry.add_npm(CODEX, "1.0.0", {"vendor/any/bin/codex": "#!/bin/sh\necho no such machine >&2\nexit 3\n"})
        said = self.call("install", "codex@1.0.0", status=1)
        self.assertRegex(said, r"codex 1\.0\.0 was fetched and does not start: .*bin/codex --version ended with 3: no such machine")
        self.assertEqual(self.entries("codex"), [])

    def start(self):
        return subprocess.Popen([SLUICE, "harness", "install", "codex@1.0.0"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_one_that_is_stopped_leaves_nothing_and_one_that_is_killed_leaves_nothing_for_long(self):
        self.registry.stalls.set()
        for number, left in ((signal.SIGTERM, False), (signal.SIGKILL, True)):
            self.registry.asked.clear()
            with self.start() as started:
                self.assertTrue(self.registry.asked.wait(60))
                started.send_signal(number)
                started.wait(60)
                started.stdout.close()
            self.assertEqual(bool(self.entries("codex")), left, self.entries("codex"))
        self.registry.stalls.clear()
        self.call("install", "codex@1.0.0")
        self.assertEqual(self.entries("codex"), ["1.0.0", "1.0.0.json", "current"])

    def test_two_at_once_install_one(self):
        both = [self.start(), self.start()]
        said = sorted(one.communicate(timeout=120)[0].split(" ", 2)[2].split(" in ")[0] for one in both)
        self.assertEqual(said, ["is installed", "was installed"])

    def test_a_directory_that_is_something_else_is_left_alone(self):
        os.mkdir(f"{self.root}/mine")
        self.assertEqual(self.call("install", "codex@1.0.0", "--dir", f"{self.root}/mine", status=1),
                         f"sluice: {self.root}/mine is there already and is not codex 1.0.0; remove it, or name another directory\n")
        self.assertEqual(os.listdir(f"{self.root}/mine"), [])

    def test_what_cannot_be_meant_is_refused(self):
        names = ", ".join(RECIPES)
        for arguments, said in ((["kodex"], f"there is no harness 'kodex'; there are: {names}"),
                                (["codex@latest"], f"codex@latest: a version is named exactly, as in codex@{RECIPES['codex'].version}"),
                                (["codex@../x"], f"codex@../x: a version is named exactly, as in codex@{RECIPES['codex'].version}"),
                                (["codex", "opencode", "--dir", "/tmp/x"], "--dir and --lock go with one harness"),
                                (["codex", "--lock", "/nowhere"], "there is no /nowhere")):
            self.assertEqual(self.call("install", *arguments, status=1), f"sluice: {said}\n")
        self.env["PATH"] = "/nowhere"
        self.assertEqual(self.call("install", "codex", status=1), "sluice: codex is installed by npm, which is not on the PATH\n")


class Pypi(Case):
    CODE = "import json, sys\nimport mcp\ndef main():\n    print(json.dumps([sys.executable, sys.prefix, mcp.WORD, sys.argv[1:]]))\n"

    def setUp(self):
        super().setUp()
        self.registry.add_pypi("mini-swe-agent", "1.0.0", {"mini_swe.py": self.CODE}, "mini=mini_swe:main")
        self.digest = self.registry.add_pypi("mcp", "3.0", {"mcp.py": "WORD = 'there'\n"})

    def test_it_has_its_python_with_it_and_runs_anywhere_and_again_only_with_the_same_digests(self):
        self.call("install", "mini-swe-agent@1.0.0")
        there = f"{self.place}/mini-swe-agent/1.0.0"
        elsewhere = f"{self.root}/elsewhere"
        os.rename(there, elsewhere)
        said = json.loads(subprocess.check_output([f"{elsewhere}/bin/mini", "a b"], env={"PATH": ""}, text=True))
        self.assertEqual(said, [f"{elsewhere}/bin/python3", elsewhere, "there", ["a b"]])
        linked = f"{elsewhere}/bin/python3 -c 'print(open(\"/proc/self/maps\").read())' | grep -c ' /\\(usr/\\)\\?lib.*\\.so'"
        self.assertEqual(subprocess.run(["sh", "-c", linked], capture_output=True, text=True, check=False).stdout, "0\n")
        self.assertIn({"name": "mcp", "version": "3.0", "digest": f"sha256:{self.digest}"}, self.manifest(elsewhere)["packages"])
        self.registry.add_pypi("mcp", "3.0", {"mcp.py": "WORD = 'another'\n"})
        said = self.call("install", "mini-swe-agent@1.0.0", status=1)
        self.assertRegex(said, r"a digest is not the one that is recorded \(.*mcp.*\); recorded in " + re.escape(f"{there}.json"))
        self.assertEqual(self.entries("mini-swe-agent"), ["1.0.0.json", "current"])

    def test_a_broken_lock_is_refused_by_its_field(self):
        row, path = {"name": "mcp", "version": "3.0", "digest": f"sha256:{self.digest}"}, f"{self.root}/lock"
        for change, words in (({"name": "mcp\n--index-url http://elsewhere"}, "packages[0].name is 'mcp\\n--index-url http://elsewhere', which is no name"),
                              ({"version": "3.0\n-r /etc/passwd"}, "packages[0].version is '3.0\\n-r /etc/passwd', which is no version"),
                              ({"version": "3.0\n"}, "packages[0].version is '3.0\\n', which is no version"),
                              ({"digest": "sha256:1 -e /tmp"}, "packages[0].digest is 'sha256:1 -e /tmp', which is no digest"),
                              ({"name": None}, "packages[0].name is None, which is no name")):
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"harness": "mini-swe-agent", "version": "1.0.0", "packages": [dict(row, **change)]}, file)
            self.assertEqual(self.call("install", "mini-swe-agent@1.0.0", "--lock", path, status=1), f"sluice: {path}: {words} of a package\n")
        for rows, words in (([{"name": "mcp"}], "packages[0].version is missing"), (["mcp"], "packages[0] is 'mcp', not an object")):
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"harness": "mini-swe-agent", "version": "1.0.0", "packages": rows}, file)
            self.assertEqual(self.call("install", "mini-swe-agent@1.0.0", "--lock", path, status=1), f"sluice: {path}: {words}\n")

    def test_what_is_in_the_way_is_said_and_nothing_is_left(self):
        self.assertEqual(self.call("install", "mini-swe-agent", "--python", "/bin/false", status=1),
                         "sluice: mini-swe-agent needs Python 3.11 or newer: /bin/false does not start; name one with --python\n")
        self.assertRegex(self.call("install", "mini-swe-agent@7.0", status=1), r"the registry of PyPI has no such version \(.*7\.0")
        self.use(AWAY)
        self.assertRegex(self.call("install", "mini-swe-agent@1.0.0", status=1), "the registry of PyPI cannot be reached")
        self.assertEqual(self.entries("mini-swe-agent"), [])


class Tables(unittest.TestCase):
    def test_recipes_programs_and_the_words_of_tasks_are_of_the_same_harnesses(self):
        with open(os.path.join(SOURCE, "workers", "agents", "harnesses", "programs.c"), encoding="utf-8") as file:
            programs = dict(re.findall(r'^    \{"([a-z0-9-]+)", "([a-z0-9-]+)", ', file.read(), re.M))
        with open(os.path.join(SOURCE, "schemas", "task", "task.def"), encoding="utf-8") as file:
            words = re.search(r'"agent\.harness", agent_harness, OPTIONAL,\s*"([^"]+)"', file.read()).group(1).split("|")
        self.assertEqual(programs, {name: recipe.program for name, recipe in RECIPES.items()})
        self.assertEqual(words, ["command", *RECIPES])


if __name__ == "__main__":
    unittest.main()
