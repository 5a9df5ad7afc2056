"""Harnesses of a node (--harness NAME=DIR, and those that are installed): read-only in the sandboxes of their rollouts, and in no
other; and what is said where there is none."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "service"))
from harness import SLUICE, WORKER, Engine, Service, free_ports  # noqa: E402
from loops import SAID, said, task  # noqa: E402

SCRIPT = {"template": "qwen", "rules": [{"reply": "fine"}]}
LOOK = '''
def refused(act):
    try:
        act()
    except OSError as why:
        return why.strerror
own = "/opt/harness/" + sys.argv[1]
say(text=chat([user("x")])["content"], seen=sorted(os.listdir("/opt/harness")), version=open(own + "/version").read(),
    write=refused(lambda: open(own + "/new", "w")), remove=refused(lambda: os.remove(own + "/version")))
'''
ELSEWHERE = '''
say(text=chat([user("x")])["content"], seen=os.path.exists("/opt/harness/codex/version"))
'''


def make(root, name, program, version="1.0"):
    """A directory of the harness `name`: its program is the loop above."""
    os.makedirs(os.path.join(root, "bin"))
    for path, text in (("version", version), ("loop.py", SAID + LOOK), ("bin/" + program, f"#!/bin/bash\nexec python3 /opt/harness/{name}/loop.py {name}\n")):
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)
    os.chmod(os.path.join(root, "bin", program), 0o755)
    return root


def of(harness, name=None):
    return {"task": name or harness, "prompt": "go", "agent": {"kind": "harness", "harness": harness}, "eval": {"kind": "command", "command": "true"}}


class Dirs(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="sluice-test-")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.root], check=True)
        self.cache = os.path.join(self.root, "cache")
        self.codex = make(os.path.join(self.root, "codex"), "codex", "codex")

    def run_all(self, tasks, *options):
        with Engine(SCRIPT) as engine:
            service = Service(engines=[engine.url], options=["--tries", "1", *options])
            service.environment["SLUICE_CACHE"] = self.cache
            with service:
                return service.submit(tasks, "train")

    def install(self, name, program, version):
        place = os.path.join(self.cache, "harness", name)
        make(os.path.join(place, version), name, program, version)
        os.symlink(version, os.path.join(place, "current"))

    def test_each_rollout_sees_its_own_read_only_and_others_see_none(self):
        claude = make(os.path.join(self.root, "claude"), "claude-code", "claude", "2.0")
        ended = self.run_all([of("codex", "one"), of("codex", "two"), of("claude-code"), task("other", ELSEWHERE)],
                             "--harness", f"codex={self.codex}", "--harness", f"claude-code={claude}")
        self.assertEqual([t["outcome"] for t in ended], ["ok"] * 4, [t["detail"] for t in ended])
        refused = {"write": "Read-only file system", "remove": "Read-only file system", "text": "fine"}
        by_task = {t["task"]: said(t) for t in ended}
        for name in ("one", "two"):
            self.assertEqual(by_task[name], dict(refused, seen=["codex"], version="1.0"))
        self.assertEqual(by_task["claude-code"], dict(refused, seen=["claude-code"], version="2.0"))
        self.assertEqual(by_task["other"], {"text": "fine", "seen": False})
        self.assertEqual(sorted(os.listdir(self.codex)), ["bin", "loop.py", "version"])

    def test_what_is_installed_is_found_and_what_is_given_comes_first(self):
        self.install("codex", "codex", "7.0")
        self.install("claude-code", "claude", "8.0")
        ended = self.run_all([of("codex"), of("claude-code")], "--harness", f"codex={self.codex}")
        self.assertEqual({t["task"]: said(t)["version"] for t in ended}, {"codex": "1.0", "claude-code": "8.0"})

    def test_one_that_is_nowhere_is_the_tasks_fault_and_the_words_say_what_would_help(self):
        ended = self.run_all([of("qwen-code")])
        self.assertEqual((ended[0]["outcome"], ended[0]["reward"]), ("task", None), ended[0]["detail"])
        self.assertIn("there is no qwen in /opt/harness/qwen-code/bin nor on the PATH: install it on the node of the run worker "
                      "(sluice harness install qwen-code) or in the image, or name its directory there (--harness qwen-code=DIR)",
                      ended[0]["detail"])

    def refuse(self, *arguments):
        run = subprocess.run([WORKER, *arguments, "--data", os.path.join(self.root, "data")], capture_output=True, text=True, timeout=60, check=False)
        return run.returncode, run.stderr.splitlines()[-1]

    def test_a_worker_that_is_told_nonsense_does_not_start(self):
        empty = os.path.join(self.root, "empty")
        os.mkdir(empty)
        names = "mini-swe-agent, claude-code, codex, opencode, qwen-code, openhands, terminus-2, pi"
        for given, words in ((f"codex={empty}", "it has no bin/codex (sluice harness install codex makes such a directory)"),
                             (f"codex={self.root}/no", "No such file or directory"),
                             (f"codex={self.codex}/version", "it is not a directory"),
                             ("codex", "not NAME=DIR"), (f"aider={self.codex}", f"there is no harness of that name; there are: {names}"),
                             ("codex=/etc", "it is, holds or lies in what is the host's or the worker's own")):
            self.assertEqual(self.refuse("run", "--harness", given), (3, f"sluice-worker: --harness {given}: {words}"))
        twice = ["--harness", f"codex={self.codex}"] * 2
        self.assertEqual(self.refuse("run", *twice), (3, f"sluice-worker: --harness codex={self.codex}: its directory was given before"))
        for stage in ("init", "eval"):
            self.assertEqual(self.refuse(stage, *twice), (2, "sluice-worker: --harness goes with run (see sluice-worker --help)"))

    def test_up_that_is_told_nonsense_says_it_and_ends(self):
        run = subprocess.run([SLUICE, "up", "--front", str(free_ports(3)), "--data", os.path.join(self.root, "data"), "--harness", "codex=/nowhere"],
                             capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("--harness codex=/nowhere: No such file or directory", run.stderr)


if __name__ == "__main__":
    unittest.main()
