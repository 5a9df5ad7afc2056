#!/usr/bin/env python3
"""Switches each mechanism off, one at a time, and sees its test fail: a test that cannot fail proves nothing.

  python3 tests/mutants.py                  all of tests/mutants_table.py
  python3 tests/mutants.py --only lease     those whose row, file or test holds the word (a regular expression)
  python3 tests/mutants.py --check          only that each text is found once and each test exists; builds nothing

Works in a git worktree of its own with the tree as it is, uncommitted changes of tracked files included. First every
test that is named must pass. Then for each row: the text is replaced, what the test needs is built, the test is run and
must fail. Exit status: 0 all were found out, 1 one survived, does not build, or its text is not there, 2 wrong usage.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import named_tests
from mutants_table import MUTANTS

PROGRAMS = ["sluice", "sluice-broker", "sluice-worker", "client_fake_broker", "chaos_trainer", "kill_at"]
SECONDS_MAX = 150  # of one test; one that hangs has failed
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run(arguments, **keywords):
    return subprocess.run(arguments, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **keywords)


def find_faults(mutants):
    """Sentences about rows that cannot be used as they are."""
    for row, path, text, replacement, test in mutants:
        where = os.path.join(named_tests.SOURCE, path)
        count = read(where).count(text) if os.path.exists(where) else 0
        if count != 1:
            yield f"{row}: {path} holds the text {count} times: {text!r}"
        if text == replacement:
            yield f"{row}: the replacement changes nothing"
        try:
            named_tests.NamedTest(test)
        except ValueError as why:
            yield f"{row}: {why}"


class Tree:
    """A worktree and a build of it."""

    def __init__(self, root):
        self.root, self.source, self.build = root, os.path.join(root, "source"), os.path.join(root, "build")

    def make(self):
        stash = run(["git", "-C", named_tests.SOURCE, "stash", "create"]).stdout.strip()
        run(["git", "-C", named_tests.SOURCE, "worktree", "add", "--detach", self.source, stash or "HEAD"], check=True)
        os.mkdir(os.path.join(self.root, "t"))
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        self.environment = dict(os.environ, SLUICE_SOURCE_DIR=self.source, SLUICE_BINARY_DIR=self.build,
                                CCACHE_NOHASHDIR="1", CCACHE_BASEDIR=self.source, PYTHONDONTWRITEBYTECODE="1",
                                TMPDIR=os.path.join(self.root, "t"),
                                SLUICE_FAKE_BROKER=os.path.join(self.build, "tests", "client", "client_fake_broker"),
                                SLUICE_PROGRAM=os.path.join(self.build, "client", "sluice"))
        done = run(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                    "-DSLUICE_WERROR=OFF", *launcher], env=self.environment)
        if done.returncode:
            raise SystemExit(done.stdout)

    def remove(self):
        run(["git", "-C", named_tests.SOURCE, "worktree", "remove", "--force", self.source])
        shutil.rmtree(self.root, ignore_errors=True)

    def make_targets(self, test):
        done = run(["ninja", "-C", self.build, *(test.target or PROGRAMS)], env=self.environment)
        return None if done.returncode == 0 else done.stdout

    def try_test(self, test):
        """(whether it passed, what it said)"""
        command = ([PYTHON, test.path.replace(named_tests.SOURCE, self.source), "-k", test.test] if test.is_python else
                   [os.path.join(self.build, "tests", test.ctest.split("/")[0], test.target[0])])
        if not test.is_python and not os.path.exists(command[0]):
            command = [os.path.join(self.build, "tests", test.target[0])]
        process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env=self.environment, start_new_session=True, cwd=self.build)
        try:
            said, _ = process.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return False, "it hung"
        if process.returncode == 77:
            return None, said
        return process.returncode == 0, said


def judge(tree, mutant):
    """(good, words) of one row."""
    _, path, text, replacement, test_name = mutant
    test, where = named_tests.NamedTest(test_name), os.path.join(tree.source, path)
    whole = read(where)
    write(where, whole.replace(text, replacement))
    try:
        broken = tree.make_targets(test)
        if broken:
            return False, "does not build: " + " ".join(re.findall(r"error: .*", broken)[:2])
        passed, said = tree.try_test(test)
    finally:
        write(where, whole)
    if passed or passed is None:
        return False, "SURVIVED" if passed else "its test was skipped"
    failed = set(re.findall(r"\[  FAILED  \] (\w+)", said)) | set(re.findall(r"^(?:FAIL|ERROR): (\w+)", said, re.M))
    if test.test in failed:
        return True, "found out"
    return True, f"found out by {', '.join(sorted(failed)[:2]) or 'its crash'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="REGEX", default="")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep", action="store_true", help="leave the worktree and its build")
    options = parser.parse_args()
    mutants = [m for m in MUTANTS if re.search(options.only, " ".join((m[0], m[1], m[4])))]
    faults = list(find_faults(mutants))
    for fault in faults:
        print(f"TABLE  {fault}")
    if options.check or not mutants:
        return bool(faults)
    usable = [m for m in mutants if not list(find_faults([m]))]
    tree, bad = Tree(tempfile.mkdtemp(prefix="sluice-mutants-")), len(faults)
    try:
        tree.make()
        tests = {m[4]: named_tests.NamedTest(m[4]) for m in usable}
        failing = set()
        for name, test in tests.items():
            broken = tree.make_targets(test)
            passed, said = (False, broken) if broken else tree.try_test(test)
            if passed is False:
                failing.add(name)
                print(f"BASE   {name} fails without any change:\n{said[-2000:]}", flush=True)
        for mutant in usable:
            began = time.monotonic()
            good, words = judge(tree, mutant) if mutant[4] not in failing else (False, "its test fails anyway")
            bad += not good
            print(f"{'ok    ' if good else 'BAD   '} {time.monotonic() - began:4.0f} s  {mutant[0]:45}  {mutant[1]:28} "
                  f"{mutant[4]}: {words}", flush=True)
    finally:
        if not options.keep:
            tree.remove()
    print(f"{len(mutants)} mutants, {bad} bad")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
