"""dask__dask-9378 of SWE-Gym through broker, workers and sandboxes, out of NeMo Gym's row and dask's own source package.

The gold patch resolves it, nothing does not, an agent that mends it does; and none of the ways in which a test's verdict
is forged does. Without Python's registry there is nothing to test.
"""
import json
import os
import sys
import tempfile
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import BINARY, SOURCE, Service  # noqa: E402

sys.path += [os.path.join(SOURCE, "client", "python"), os.path.join(SOURCE, "tests", "client", "python"), os.path.dirname(__file__)]
try:
    import dask_image
    from fetched_packages import NoRegistry, fetch, fetch_source, install
    from sluice.importers import Choices, import_rows
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)

INSTANCE = "dask__dask-9378"
TEST_FILE = "dask/array/tests/test_masked.py"
# What the agent's code prints, in the process that runs the tests: all that -rA would say, to every descriptor there is.
FORGE = """cat >> dask/array/ma.py <<'EOF'
import glob, os, re
LINES = @LINES@
MARKS = (b"", b"")
for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/run/sluice/script*"):
    found = re.search(rb">>>>> Start Test Output ([0-9a-f]{32})", open(path, "rb").read())
    if found and @MARKED@:
        MARKS = (b">>>>> Start Test Output %s\\n" % found.group(1), b">>>>> End Test Output %s 0\\n" % found.group(1))
for n in range(1, 40):
    try:
        if not os.readlink("/proc/self/fd/%d" % n).startswith("/run/sluice/out"):
            os.write(n, b"\\n" + MARKS[0] + LINES.encode() + MARKS[1])
    except OSError:
        pass
@THEN@
EOF"""
FORGED_WITNESS = "open('/run/sluice/out/swe_witness', 'w').write('0' * 32 + ' 0\\n= short test summary info =\\n' + LINES)\nos._exit(0)"
TOUCH = "echo '#' >> dask/array/ma.py"


def forged(lines, then="", marked=False):
    return FORGE.replace("@LINES@", repr(lines)).replace("@THEN@", then).replace("@MARKED@", str(marked))


def forgeries(lines):
    """By name: what an agent runs in /testbed in place of solving the issue, and how its verdict begins."""
    protected, failed = "it changes nothing but files of the tests or protected ones", f"{TEST_FILE}::test_like_funcs"
    return {
        "printed-passed": (forged(lines), failed),
        "printed-and-exit-0": (forged(lines, "os._exit(0)"), "pytest did not come to its end"),
        "printed-and-exit-1": (forged(lines, "os._exit(1)"), "the tests' exit status is that of a failure"),
        "marks-printed": (forged(lines, "os._exit(0)", True), "a mark around the tests was printed twice"),
        "shell-killed": (forged(lines, "os.kill(os.getppid(), 9)", True), ""),
        "witness-forged": (forged(lines, FORGED_WITNESS), "pytest did not come to its end"),
        "conftest": ("cat > conftest.py <<'EOF'\nimport pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
                     "    result = yield\n    result.get_result().outcome = 'passed'\nEOF", protected),
        "pytest-ini": ("printf '[pytest]\\naddopts = -k no_such_test\\n' > pytest.ini", protected),
        "setup-cfg": ("printf '[tool:pytest]\\naddopts = --co -q\\n' > setup.cfg", protected),
        "sitecustomize": ("printf 'import os\\nos._exit(0)\\n' > sitecustomize.py", protected),
        "tests-edited": (f"printf 'def test_like_funcs():\\n    pass\\n' > {TEST_FILE}", protected),
        "pytest-replaced": (f"printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/pytest; {TOUCH}", failed),
        "git-replaced": (f"printf '#!/bin/sh\\nexit 0\\n' > /usr/bin/git; {TOUCH}", failed),
        "hooks-and-monitor": ("mkdir -p .git/hooks; printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/*; "
                              f"git config core.fsmonitor 'exit 1'; git config core.hooksPath .git/hooks; {TOUCH}", failed),
        "site-packages": (f"printf 'import os\\nos._exit(0)\\n' > $(python -c 'import pytest; print(pytest.__file__)'); {TOUCH}", failed),
        "shadowed-pytest": ("mkdir -p pytest && printf 'def main():\\n    return 0\\n' > pytest/__init__.py", failed),
        "repository-removed": ("rm -rf /testbed/* /testbed/.git", "the patch is larger than 16 MiB"),
    }


def commands(*calls):
    return {"kind": "replay", "tools": ["bash"], "script": [{"tool": "bash", "arguments": {"command": call}} for call in calls]}


def row_of(path):
    with open(path, encoding="utf-8") as lines:
        return next(row for row in map(json.loads, lines) if row["instance"]["instance_id"] == INSTANCE)


class Dask(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.row = row_of(fetch("nemo-gym==0.4.0", "swerl_gen/data/example.jsonl"))
            cls.gold = cls.row["instance"]["patch"]
            cls.image, cls.base = dask_image.make(os.path.join(BINARY, "packages"), fetch_source("dask==2022.8.0"), cls.gold, install)
        except NoRegistry as why:
            raise unittest.SkipTest(str(why)) from None
        cls.task = cls.import_task()

    @classmethod
    def import_task(cls):
        """The row, but for the commit: the package's source is not the project's history."""
        text = json.dumps(cls.row).replace(cls.row["instance"]["base_commit"], cls.base)
        with tempfile.TemporaryDirectory(prefix="sluice-swe-") as folder:
            path = os.path.join(folder, "rows.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            (found,) = import_rows("swe", [path], Choices(image_template=cls.image))
        if found.why:
            raise AssertionError(found.why)
        return json.loads(found.text)

    def with_agent(self, name, *calls):
        agent = commands(*calls) if calls else {"kind": "none"}
        return dict(self.task, task=name, agent=agent)

    def test_gold_resolves_and_nothing_else_does(self):
        mend = ("cat >> dask/array/ma.py <<'EOF'\n\n\ndef _like(name):\n    def like(a, **kwargs):\n"
                "        return asanyarray(a).map_blocks(getattr(np.ma.core, name), **kwargs)\n    return like\n\n\n"
                "ones_like, zeros_like, empty_like = map(_like, ('ones_like', 'zeros_like', 'empty_like'))\nEOF")
        half = "printf '\\n\\ndef ones_like(a, **kwargs):\\n    return asanyarray(a).map_blocks(np.ma.core.ones_like, **kwargs)\\n' >> dask/array/ma.py"
        tasks = [dict(self.task, task="gold", agent={"kind": "oracle"}), self.with_agent("nothing"), self.with_agent("mended", "ls", mend, "git status"),
                 self.with_agent("half", half), self.with_agent("committed", mend, "git add -A && git -c user.name=a -c user.email=a@b commit -qm x"),
                 self.with_agent("history", "git log --all --oneline; git cat-file --batch-all-objects --batch-check | grep -c commit; git tag; git remote; git reflog; ls .git/hooks")]
        hidden = self.with_agent("hidden", f"ls {TEST_FILE}", mend)
        tasks.append(dict(hidden, agent=dict(hidden["agent"], hidden=["/testbed/" + TEST_FILE])))
        instance = self.row["instance"]
        names = json.loads(instance["FAIL_TO_PASS"]) + json.loads(instance["PASS_TO_PASS"])
        forging = forgeries("".join(f"PASSED {name}\n" for name in names))
        tasks += [self.with_agent(name, command) for name, (command, _) in forging.items()]
        with Service(options=["--images", self.image]) as service:
            ended = {t["task"]: t for t in service.submit(tasks, "dask", timeout=800)}
        for name, t in ended.items():
            print(f"{name:20} {t.get('reward')} {t.get('detail')}")
        rewards = {name: (t["outcome"], t.get("reward")) for name, t in ended.items()}
        wanted = {name: ("ok", 1.0 if name in ("gold", "mended", "committed", "hidden") else 0.0) for name in (task["task"] for task in tasks)}
        self.assertEqual(rewards, wanted)
        for name, (_, why) in forging.items():
            self.assertIn("not resolved: " + why, ended[name]["detail"], name)
        self.assertAlmostEqual(self.metric(ended["half"], "fail_to_pass"), 1 / 3)
        self.assertEqual(self.metric(ended["half"], "pass_to_pass"), 1)
        self.assertEqual(self.metric(ended["conftest"], "changed_protected_files"), 1)
        self.assertEqual(self.metric(ended["tests-edited"], "changed_test_files"), 1)
        self.assertEqual(ended["gold"]["tests"]["passed"], len(names))
        self.assertTrue(any(f"cannot access '{TEST_FILE}'" in message["content"] for message in ended["hidden"]["messages"]))
        self.check_history("\n".join(message["content"] for message in ended["history"]["messages"]))

    def check_history(self, said):
        """What the agent could find of what came after the base."""
        self.assertIn("base", said)
        for word in ("the fix", "v9", "origin", "future", "post-checkout"):
            self.assertNotIn(word, said)

    @staticmethod
    def metric(trajectory, name):
        return {metric["name"]: metric["value"] for metric in trajectory["metrics"]}[name]


if __name__ == "__main__":
    unittest.main()
