"""What `bash client/package.sh` makes, as its users have it: the wheel in a fresh environment, the archive unpacked
anywhere; each runs a service and ends rollouts, and the tests of the Python client run against the wheel."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BINARY = os.environ["SLUICE_SOURCE_DIR"], os.environ["SLUICE_BINARY_DIR"]
sys.path.append(os.path.join(SOURCE, "tests", "system"))
from harness import Engine, free_ports  # noqa: E402

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
PROGRAMS = ["sluice", "sluice-broker", "sluice-grade", "sluice-image", "sluice-simulate", "sluice-verify", "sluice-worker"]
NEEDS = ["zmq", "msgpack", "numpy", "lz4"]
# Those that show that package and programs are whole, in seconds: the others run from the sources.
CLIENT_TESTS = ["test_python_wire.py", "test_python_groups.py", "test_python_local.py"]
RUN = """
import sluice
with sluice.local() as client:
    client.submit([{"task": "t", "agent": {"kind": "none"}, "eval": {"kind": "command", "command": "true"}}], stream="s", samples=2)
    print([(t.outcome, t.reward) for t in client.trajectories("s", until_idle=True)])
"""


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def run(*command, check=True, timeout=600, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **more)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-6000:]}{done.stderr[-6000:]}")
    return done


def clean(path):
    """An environment that knows of these programs alone, and of no others of ours."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SLUICE_SANITIZE")}
    return dict(kept, PATH=f"{path}:/usr/bin:/bin", PYTHONDONTWRITEBYTECODE="1")


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="sluice-package-", ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.root = folder.name
        said = run("bash", os.path.join(SOURCE, "client", "package.sh"), "--out", os.path.join(cls.root, "out"), cwd="/").stdout
        cls.made = {os.path.basename(path): path for path in said.split()}
        cls.empty = os.path.join(cls.root, "empty")
        os.mkdir(cls.empty)

    def find(self, pattern):
        found = [path for name, path in self.made.items() if re.fullmatch(pattern, name)]
        self.assertEqual(len(found), 1, (pattern, sorted(self.made)))
        return found[0]

    def environment(self, name, *packages):
        """A venv with them, of Debian's own Python, whose packages are those that the client needs."""
        where = os.path.join(self.root, name)
        run(PYTHON, "-m", "venv", "--system-site-packages", where)
        run(os.path.join(where, "bin", "pip"), "install", "-q", "--no-index", "--no-deps", *packages, cwd=self.empty)
        return os.path.join(where, "bin")

    def check_programs(self, folder):
        for program in PROGRAMS:
            path = os.path.join(folder, program)
            self.assertRegex(run(path, "--version").stdout, rf"^{program} \d+\.\d+\.\d+\n$")
            self.assertNotIn("NEEDED", run("readelf", "-d", path).stdout)
            self.assertNotIn("INTERP", run("readelf", "-l", path).stdout)

    def test_the_wheel_is_all_that_a_user_installs(self):
        wheel = self.find(r"sluice_rollouts-[\d.]+-py3-none-manylinux\S+x86_64\.whl")
        folder = self.environment("wheel", wheel)
        self.check_programs(folder)
        done = run(os.path.join(folder, "python"), "-c", RUN, cwd=self.empty, env=clean(folder))
        self.assertEqual(done.stdout, "[('ok', 1.0), ('ok', 1.0)]\n")
        self.check_readme(folder)
        env = dict(clean(folder), SLUICE_PYTHON_INSTALLED="1")
        for test in CLIENT_TESTS:
            run(os.path.join(folder, "python"), os.path.join(SOURCE, "tests", "client", "python", test), cwd=self.empty, env=env)
        self.assertTrue(os.path.exists(os.path.join(folder, "..", "share", "man", "man1", "sluice-up.1")))
        run(os.path.join(folder, "pip"), "uninstall", "-q", "-y", "sluice-rollouts")
        self.assertEqual(glob.glob(os.path.join(folder, "sluice*")) + glob.glob(os.path.join(folder, "..", "**", "sluice*"), recursive=True), [])

    def test_the_client_alone_is_a_wheel_and_a_source_distribution(self):
        folder = self.environment("client", self.find(r"sluice_rollouts-[\d.]+-py3-none-any\.whl"))
        done = run(os.path.join(folder, "python"), "-c", RUN, cwd=self.empty, env=clean(folder), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"ServiceError: there is no program 'sluice': .*the client alone")
        names = run("tar", "-tzf", self.find(r"sluice.rollouts-[\d.]+\.tar\.gz")).stdout
        for name in ("sluice/protocol/messages.json", "sluice/task/tasks.json", "sluice/py.typed", "sluice/service.py"):
            self.assertIn(name, names)

    def test_the_archive_runs_wherever_it_is_unpacked(self):
        run("tar", "-xzf", self.find(r"sluice-[\d.]+-linux-\w+\.tar\.gz"), "-C", self.root)
        unpacked = glob.glob(os.path.join(self.root, "sluice-*-linux-*"))[0]
        moved = os.path.join(self.root, "a-place-of-my-own")
        shutil.move(unpacked, moved)
        self.check_programs(os.path.join(moved, "bin"))
        self.end_rollouts(os.path.join(moved, "bin"))
        self.check_units(moved)
        self.assertIn("openssl", run("ls", os.path.join(moved, "share/doc/sluice-rollouts/licences")).stdout.replace("libssl-dev", "openssl"))

    def end_rollouts(self, folder):
        port = free_ports(3)
        env = dict(clean(folder), SLUICE_BROKER=f"tcp://127.0.0.1:{port}")
        up = subprocess.Popen([os.path.join(folder, "sluice"), "up", "--front", str(port), "--data", os.path.join(self.root, "data"),
                               "--with-parent"], env=env, stdout=subprocess.PIPE, text=True, cwd=self.empty)
        try:
            self.assertTrue(up.stdout.readline().startswith("up front="))
            tasks = os.path.join(self.root, "tasks.jsonl")
            with open(tasks, "w", encoding="utf-8") as file:
                file.write(json.dumps({"task": "n", "kind": "noop"}) + "\n")
                file.write(json.dumps({"task": "s", "agent": {"kind": "none"}, "eval": {"kind": "command", "command": "true"}}) + "\n")
            out = os.path.join(self.root, "out.jsonl")
            run(os.path.join(folder, "sluice"), "submit", tasks, "--stream", "s", "--samples", "2", "--wait", "--out", out, env=env)
            with open(out, encoding="utf-8") as file:
                self.assertEqual({json.loads(line)["outcome"] for line in file}, {"ok"})
        finally:
            up.terminate()
            self.assertEqual(up.wait(60), 0)
            up.stdout.close()

    def check_readme(self, folder):
        """Its first task, with an engine whose every reply is the right command."""
        code = re.search(r"```python\n(import sluice\n.*?)```", read("README.md"), re.S).group(1)
        with Engine({"rules": [{"path": "/completion", "reply": "```bash\necho hello > answer.txt\n```"}]}) as engine:
            done = run(os.path.join(folder, "python"), "-c", code.replace("http://127.0.0.1:8080", engine.url), cwd=self.empty, env=clean(folder))
        self.assertEqual(len(re.findall(r"^(?:ok|agent) 1\.0 \[\(\d+, \d+\)\]$", done.stdout, re.M)), 4, done.stdout + done.stderr)

    def check_units(self, prefix):
        """Each unit names a program that is there, once its prefix is filled in as docs/install.md says."""
        home = os.path.join(self.root, "home")
        run("bash", "-ec", re.search(r"\n## Units\n.*?```sh\n(.*?)```", read("docs", "install.md"), re.S).group(1),
            env=dict(os.environ, HOME=home, PREFIX=prefix))
        units = glob.glob(os.path.join(home, ".config", "systemd", "user", "*.service"))
        self.assertEqual(len(units), 2)
        for unit in units:
            with open(unit, encoding="utf-8") as file:
                program = re.search(r"^ExecStart=(\S+)", file.read(), re.M).group(1)
            self.assertTrue(os.access(program, os.X_OK), program)


class Install(unittest.TestCase):
    """From a build: cmake --install and cpack."""

    def test_a_debian_package_depends_on_the_libraries_it_uses(self):
        with tempfile.TemporaryDirectory(prefix="sluice-deb-") as folder:
            run("cpack", "-G", "DEB", "--config", os.path.join(BINARY, "CPackConfig.cmake"), cwd=folder)
            package = glob.glob(os.path.join(folder, "*.deb"))[0]
            for wanted in ("libzmq5", "libcurl4", "libsqlite3-0", "libc6"):
                self.assertRegex(run("dpkg-deb", "-f", package, "Depends").stdout, rf"\b{wanted} \(>= ")
            names = set(re.findall(r" \./(\S+)", run("dpkg-deb", "-c", package).stdout))
            for name in [f"usr/bin/{program}" for program in PROGRAMS] + [
                    "usr/share/man/man1/sluice.1", "usr/share/man/man1/sluice-submit.1", "usr/share/bash-completion/completions/sluice",
                    "usr/share/zsh/vendor-completions/_sluice", "usr/lib/systemd/user/sluice-worker@.service",
                    "usr/share/doc/sluice-rollouts/copyright", "usr/include/sluice.h"]:
                self.assertIn(name, names)
            run("dpkg-deb", "-x", package, os.path.join(folder, "root"))
            with open(os.path.join(folder, "root/usr/lib/systemd/user/sluice-broker.service"), encoding="utf-8") as file:
                self.assertIn("ExecStart=/usr/bin/sluice-broker ", file.read())

    def test_what_was_not_built_is_not_installed_and_what_was_installed_can_be_removed(self):
        with tempfile.TemporaryDirectory(prefix="sluice-install-") as folder:
            build, prefix = os.path.join(folder, "build"), os.path.join(folder, "prefix")
            run("cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", "-DBUILD_TESTING=OFF", "-DCMAKE_BUILD_TYPE=Debug")
            run("cmake", "--build", build, "--target", "sluice-simulate")
            said = run("cmake", "--install", build, "--prefix", prefix).stdout
            for name in ("sluice", "sluice-broker", "sluice-worker", "libsluice"):
                self.assertIn(f"Not built, so not installed: {name}\n", said)
            self.assertEqual(os.listdir(os.path.join(prefix, "bin")), ["sluice-simulate"])
            run("cmake", "--build", build, "--target", "uninstall")
            self.assertEqual([names for _, _, names in os.walk(prefix) if names], [])
            done = run("cmake", "--build", build, "--target", "uninstall", check=False)
            self.assertIn("Nothing was installed from here", done.stdout + done.stderr)


if __name__ == "__main__":
    missing = [name for name in NEEDS if subprocess.run([PYTHON, "-c", f"import {name}"], check=False, stderr=subprocess.DEVNULL).returncode]
    if missing:
        print(f"skipped: {PYTHON} has no {', '.join(missing)}; .ci/packages.sh installs what the Python client needs")
        sys.exit(77)
    unittest.main()
