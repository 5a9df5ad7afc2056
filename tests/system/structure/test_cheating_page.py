"""docs/tasks/cheating.md: each way to cheat names the tests that try it, they are there and run, and none is left out."""
import os
import re
import subprocess
import sys
import unittest

sys.path += [__file__.rsplit("/", 2)[0], __file__.rsplit("/", 3)[0]]  # tests/system, tests
from harness import BINARY  # noqa: E402
from texts import cells, read  # noqa: E402

from named_tests import NamedTest  # noqa: E402

PAGE = read("docs", "tasks", "cheating.md")
WAYS_AND_MORE, TESTS = PAGE.split("\n## The tests\n")
# What is known from other systems, by words that a row of a way has.
MUST_HAVE = """a link|a FIFO|a directory|1 GiB|read-only|immutable|`reward.json`|leaves a process|while the verifier runs|`bash`|`python`|`git`
`/etc/ld.so.preload`|`sitecustomize.py`|`.pth`|`usercustomize.py`|`~/.bashrc`|`BASH_ENV`|`PATH`|`/etc/profile.d`|`conftest.py`|`pytest.ini`
git hooks|`core.fsmonitor`|reads the tests|PASSED lines|twice|`ctrf.json`|`junit.xml`|`os._exit(0)`|forks|sleeps|fills the disk|`__import__('os')`
several boxes|all choices|`A or B`|`[[A=B]]`|`score: 10`"""


def ways():
    """Of the tables of ways: (name, all of the row)."""
    for row in cells(WAYS_AND_MORE):
        match = re.match(r"\*\*([^*]+)\*\*: ", row[0])
        if match:
            yield match[1], " ".join(row)


def told():
    """(way, names of its tests) of each row."""
    for row in cells(TESTS):
        if row[0] != "way":
            yield row[0], re.findall(r"`([a-z]+/\w+: \w+)`", row[2])


class Page(unittest.TestCase):
    def test_each_way_names_a_test_and_no_other_way_does(self):
        names = [name for name, _ in ways()]
        self.assertGreater(len(names), 20)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({way for way, _ in told()} - {"all of them"}, set(names))

    def test_each_named_test_is_there_and_is_run_by_ctest(self):
        said = subprocess.run(["ctest", "--test-dir", BINARY, "-N"], capture_output=True, text=True, check=True).stdout
        registered = set(re.findall(r"Test\s+#\d+: (\S+)", said))
        for way, tests in told():
            self.assertTrue(tests, way)
            for test in tests:
                self.assertIn(NamedTest(test).ctest, registered, way)

    def test_each_row_has_names_of_tests_and_nothing_else(self):
        for row in cells(TESTS):
            if row[0] != "way":
                self.assertRegex(row[2], r"^`[^`]+`(, `[^`]+`)*$", row[0])
                self.assertEqual(len(re.findall("`[^`]+`", row[2])), len(re.findall(r"`[a-z]+/\w+: \w+`", row[2])), row[2])

    def test_no_way_that_is_known_is_missing(self):
        rows = "\n".join(row for _, row in ways())
        for words in re.split(r"[|\n]", MUST_HAVE):
            self.assertIn(words, rows)

    def test_each_test_that_tries_a_way_is_named(self):
        named = {test for _, tests in told() for test in tests}
        for program in ("test_cheating", "test_cheating_host"):
            listed = re.findall(r"^        TEST\((\w+)\),$", read("tests", "workers", "stages", f"{program}.c"), re.M)
            self.assertGreater(len(listed), 10)
            for test in listed:
                self.assertIn(f"workers/{program}: {test}", named)
        for path in ("test_code.c", "sandbox/test_own_image.c", "test_steps.c"):
            program = os.path.basename(path)[:-2]
            for test in re.findall(r"^FIBER_TEST\((cheating_\w+)\)", read("tests", "workers", "stages", path), re.M):
                self.assertIn(f"workers/{program}: {test}", named)


if __name__ == "__main__":
    unittest.main()
