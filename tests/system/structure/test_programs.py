"""The command line of each program: the same words, the same statuses, and docs/programs.md."""
import os
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import BINARY  # noqa: E402
from texts import ROOT, read  # noqa: E402

FOLDERS = {"sluice-broker": "broker", "sluice-worker": "workers", "sluice-verify": "workers", "sluice-grade": "workers", "sluice-simulate": "broker",
           "sluice-image": "workers",
           "sluice-gateway": "client"}
PAGE = [name for name in FOLDERS if name != "sluice-image"]  # which is in docs/images.md
HEAD = """# The programs

<!-- Each section is what `PROGRAM --help-markdown` prints; a test compares. -->

What `sluice up` starts, and what `sluice broker`, `sluice worker`, `sluice verify`, `sluice grade`, `sluice simulate` and `sluice gateway` hand their arguments to, each
with all of its options. `sluice` itself: [cli.md](cli.md); `sluice image`: [images.md](images.md).

A TIME is a number with its unit: 500ms, 90s, 10m, 1h30m, 2d. A SIZE is one, too: 512MiB, 64M (the same), 8GiB, 1000B. A value may
be given as `--grace 30s` or `--grace=30s`. Each program has `--help` and `--version`.
"""


def run(name, *arguments):
    return subprocess.run([os.path.join(BINARY, FOLDERS[name], name), *arguments], capture_output=True, text=True, timeout=60,
                          check=False)


def page_of_today():
    return HEAD + "".join(run(name, "--help-markdown").stdout for name in PAGE)


class Programs(unittest.TestCase):
    def test_a_wrong_command_line_is_2_and_names_what_is_wrong(self):
        for name in FOLDERS:
            for word, said in (("--no-such", "there is no option --no-such"), ("--json=yes", "--json takes no value"),
                               ("--help=me", "--help takes no value")):
                if word == "--json=yes" and name in ("sluice-broker", "sluice-gateway"):
                    continue
                done = run(name, word)
                self.assertEqual((done.returncode, done.stdout), (2, ""), name)
                self.assertEqual(done.stderr, f"{name}: {said} (see {name} --help)\n")

    def test_each_says_its_version(self):
        versions = {run(name, "--version").stdout.replace(name + " ", "") for name in FOLDERS}
        self.assertEqual(len(versions), 1)
        self.assertRegex(versions.pop(), r"^\d+\.\d+\.\d+\n$")

    def test_each_helps(self):
        for name in FOLDERS:
            for word in ("--help", "-h"):
                done = run(name, word)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)
                self.assertTrue(done.stdout.startswith(f"usage: {name}"), name)
                self.assertIn("\nexit status\n  0 ", done.stdout)
                self.assertIn("\n  2   the command line is wrong", done.stdout)

    def test_the_page_of_programs_is_the_tables(self):
        self.assertEqual(read("docs", "programs.md"), page_of_today(), "make it again: python3 tests/system/structure/test_programs.py --write")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with open(os.path.join(ROOT, "docs", "programs.md"), "w", encoding="utf-8") as file:
            file.write(page_of_today())
    else:
        unittest.main()
