"""An instance of software engineering over ProRL's API, from set-up to reward: a small repository in an image of its own, whose
tests speak as Django's do."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "service"))
from dask_image import fill_system, git, write  # noqa: E402
from prorl_world import World, job  # noqa: E402

RUNTESTS = r"""import importlib, sys
sys.path.insert(0, ".")
failed, count = 0, 0
for name in [word for word in sys.argv[1:] if not word.startswith("-") and not word.isdigit()]:
    module = importlib.import_module("tests." + name)
    for test in sorted(vars(module)):
        if test.startswith("test_"):
            count += 1
            try:
                getattr(module, test)()
                print(f"{test} (tests.{name}) ... ok")
            except AssertionError:
                failed += 1
                print(f"{test} (tests.{name}) ... FAIL")
print(f"\nRan {count} tests in 0.001s\n\n" + (f"FAILED (failures={failed})" if failed else "OK"))
sys.exit(failed > 0)
"""
TEST_PATCH = """diff --git a/tests/sums.py b/tests/sums.py
new file mode 100644
--- /dev/null
+++ b/tests/sums.py
@@ -0,0 +1,4 @@
+from add import add
+
+def test_sum():
+    assert add(20, 22) == 42
"""


def call(name, **arguments):
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def make_image(root):
    """The base commit."""
    fill_system(root)
    write(root + "/testbed/add.py", "def add(a, b):\n    return a + b - 1\n")
    write(root + "/testbed/tests/runtests.py", "#!/usr/local/bin/python3\n" + RUNTESTS, 0o755)
    write(root + "/testbed/tests/__init__.py", "")
    git(root + "/testbed", "init", "-q", "-b", "main")
    git(root + "/testbed", "add", "-A")
    git(root + "/testbed", "commit", "-q", "-m", "base")
    return subprocess.run(["git", "-c", "safe.directory=*", "rev-parse", "HEAD"], cwd=root + "/testbed", check=True, capture_output=True,
                          text=True).stdout.strip()


class Repositories(World):
    rules = ({"if": "1 too much", "reply": call("bash", command="sed -i 's/ - 1//' add.py && cat add.py && git log --oneline | wc -l")},
             {"if": "not a bug", "reply": call("submit")},
             {"reply": call("submit")})

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="sluice-swe-")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        os.chmod(folder, 0o755)
        cls.base = make_image(folder + "/own_image.sif")
        cls.worker_options = ("--images", folder)
        cls.images = folder
        super().setUpClass()

    def instance(self, number, issue):
        return {"data_source": "swebench", "instance_id": f"django__django-{number}", "trajectory_id": number, "repo": "django/django",
                "base_commit": self.base, "problem_statement": issue, "docker_image": "own/image:latest", "patch": "",
                "test_patch": TEST_PATCH, "FAIL_TO_PASS": '["test_sum (tests.sums)"]', "PASS_TO_PASS": []}

    def test_a_mended_repository_is_resolved_and_an_untouched_one_is_not(self):
        self.gateway.end()
        type(self).number += 1
        self.gateway = self.open("--prorl-images", self.images + "/{sif}")
        self.up()
        mended = self.post("/process", job(self.instance(1, "add() is 1 too much."), timeout=200)).json
        untouched = self.post("/process", job(self.instance(2, "This is not a bug."), timeout=200)).json
        self.assertEqual((mended["resolved"], mended["critical_error"]), (True, None), (mended["detail"], mended["messages"][2:]))
        self.assertEqual((untouched["resolved"], untouched["critical_error"]), (False, None), untouched)
        self.assertEqual(mended["messages"][-1]["tool_calls"][0]["name"], "submit")
        self.assertEqual(self.applied(mended["git_patch"]), "def add(a, b):\n    return a + b\n")
        self.assertEqual(untouched["git_patch"], "")

    def applied(self, patch):
        """What add.py is once the patch is applied to the base commit, as whoever has the result would."""
        folder = tempfile.mkdtemp(prefix="sluice-applied-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        git(folder, "clone", "-q", self.images + "/own_image.sif/testbed", "repository")
        subprocess.run(["git", "apply", "-"], cwd=folder + "/repository", input=patch, text=True, check=True)
        with open(folder + "/repository/add.py", encoding="utf-8") as file:
            return file.read()


if __name__ == "__main__":
    unittest.main(verbosity=2)
