"""The parsers of logs and the grading of the evaluator "swe", and those of the package swebench, on the same logs.

The logs are made here, of lines such as each runner prints and of others that are nearly such. Without Python's registry
there is nothing to compare with.
"""
import importlib
import importlib.machinery
import json
import os
import random
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock
import zipfile

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import BINARY, SOURCE  # noqa: E402

sys.path += [os.path.join(SOURCE, "tests", "client", "python")]
from fetched_packages import NoRegistry, fetch_wheel  # noqa: E402

PROGRAM = os.path.join(BINARY, "tests", "workers_test_log_parser")
LOGS, LINES = 6, 120
STATUSES = ("PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL")

# Ours, and the module and function of theirs.
PARSERS = {"pytest": "python.parse_log_pytest", "pytest_options": "python.parse_log_pytest_options",
           "pytest_v2": "python.parse_log_pytest_v2", "matplotlib": "python.parse_log_matplotlib", "seaborn": "python.parse_log_seaborn",
           "django": "python.parse_log_django", "sympy": "python.parse_log_sympy", "gotest": "go.parse_log_gotest",
           "maven": "java.parse_log_maven", "ant": "java.parse_log_ant", "gradle": "java.parse_log_gradle_custom",
           "jest": "javascript.parse_log_jest", "jest_json": "javascript.parse_log_jest_json", "jest_files": "javascript.parse_log_react_pdf",
           "vitest": "javascript.parse_log_vitest", "karma": "javascript.parse_log_karma", "tap": "javascript.parse_log_tap",
           "phpunit": "php.parse_log_phpunit", "minitest": "ruby.parse_log_minitest", "cucumber": "ruby.parse_log_cucumber",
           "ruby_unit": "ruby.parse_log_ruby_unit", "rspec": "ruby.parse_log_rspec_transformed_json", "cargo": "rust.parse_log_cargo",
           "redis": "c.parse_log_redis", "jq": "c.parse_log_jq", "micropython": "c.parse_log_micropython_test",
           "googletest": "c.parse_log_googletest"}
# What version 5 reads otherwise than version 4; ours follow 5.
SINCE_5 = ("pytest_v2", "maven", "gradle", "jest")

NAMES = ("a.py::t", "a.py::t[x-1]", "a.py::t[/p/q/r.txt]", "a.py::t[//p]", "a.py::t[a b]", "a.py::t[x - y]", "test_a (m.C)", "test_b",
         "Suite.name", "adds two", "a/b.test.js", "x > y", "com.A > b()", "T#test_c", "name [with] [more]", "MouseButton.LEFT", "-", "é✓ ü", "[3]")
# @N a name, @S a status of pytest's, @D a duration.
SHAPES = {
    "pytest": ("@S @N", "@S @N - assert 1 - 2", "@S  @N", "@S - @N", "@S", "@S@N", " @S @N", "@N @S", "@S\t@N", "FAILED @N - x", "SKIPPED [3] a.py:1: no"),
    "pytest_v2": ("\x1b[32m@S\x1b[0m @N", "@S \x1b[1m@N\x1b[0m", "@N @S", "@N  x @S", "@S @N - why", "[31m@S @N", "@N@S"),
    "seaborn": ("@N PASSED x", "FAILED @N", "PASSED @N", "@N FAILED", " @N PASSED "),
    "django": ("@N ... ok", "@N ... OK", "@N ...  OK", "@N ... FAIL", "@N ... ERROR", "@N ... skipped 'x'", "FAIL: @N", "ERROR: @N", "@N ... noise", "ok", "okay",
               "@N ... Testing against Django installed in 'x' (1 silenced).", "@N ... Internal Server Error: /a/", "silenced).",
               "@N ... System check identified no issues (0 silenced)", "--version is equivalent to version", "Applying sites.0002_alter_domain_unique...test_no_migrations (m.C) ... ok"),
    "sympy": ("test_a ok", "test_b F", "test_c[1] E", "____ sympy/a.py:test_b ____", "_ a.py:t _ x", "a b.py:c d", " test_d ok "),
    "gotest": ("--- PASS: @N @D", "    --- FAIL: @N @D", "--- SKIP: @N (1) @D", "--- PASS: @N", "--- OK: @N @D"),
    "maven": ("+ mvn -Dtest=A#b -q", "mvn -Dtest=A -Dtest=B", "BUILD SUCCESS", "[INFO] BUILD FAILURE", "-Dtest= x"),
    "ant": ("[junit] [PASS] @N", "  [junit]  [FAIL] @N", "[junit] [ERR] @N", "[junit] [PASS]"),
    "gradle": ("@N PASSED", "@N  FAILED", "A > b", "PASSED", "FAILED", "> @N PASSED", "A > b c"),
    "jest": ("  ✓ @N @D", "✕ @N", "○ @N", "✓ @N (3 x)", "✓  @D", "✓@N"), "jest_json": ("[PASSED] @N", " [FAILED] @N", "[PASSED]@N"),
    "jest_files": ("PASS @N @D", "FAIL @N", "PASS @N (1.2 s)", "PASS @N (3s) x", " PASS @N"),
    "vitest": (" ✓ @N 12ms", "× @N", "↓ @N [skipped]", "✓ @N 3 s", "✓ @N 5", "✓ @N 12 34"),
    "karma": ("Starting browser", "  @N", "    @N", "      @N", "    ✔ @N", "  ✖ @N", " ✔ @N", "✔ @N", "x"),
    "tap": ("ok 1 @N", "not ok 2 @N", "ok @N", " ok 3 @N # skip"),
    "phpunit": ("@N (Tests\\A)", " ✔ @N", "✘ @N", " ↩ @N", "A B (C) (@D)"),
    "minitest": ("@N. = 0.1 s = .", "@N. = 0.1 s = F", "@N. x = E y", "@N = ."),
    "cucumber": ("@N ....", "@N ..F.", "@N .", "@N ... x"), "ruby_unit": ("test: @N: .: (1)", "  @N:  F", "@N: E", "@N: O x", "@N: Ex"),
    "rspec": ("@N - passed", "@N - failed - passed", "@N - pending"), "cargo": ("test @N ... ok", "test a::b ... FAILED", "test  a  ...  ok", "test a ... ignored"),
    "redis": ("[ok]: @N @D", "[err]: @N in tests/a.tcl", "[skip]: @N", "[ignore]: @N", "[err]: @N in a @D"),
    "jq": ("PASS: @N", "  FAIL: @N"), "micropython": ("pass  @N", "FAIL @N", "skip  @N"),
    "googletest": ("[       OK ] @N @D", "[  FAILED  ] @N @D", "x [ OK ] @N (1) @D", "[ OK ] @N"),
}
SHAPES["pytest_options"] = SHAPES["matplotlib"] = SHAPES["pytest"]


class Mocks:
    """Packages that swebench imports and no parser uses."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.startswith("swebench") else importlib.machinery.ModuleSpec(name, Mocks)

    @staticmethod
    def create_module(spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: mock.MagicMock()
        return module

    @staticmethod
    def exec_module(module):
        pass


def theirs(folder, name):
    """A module of the package, without what its packages' own __init__ do."""
    for known in [known for known in sys.modules if known.split(".")[0] == "swebench" and not getattr(sys.modules[known], "of", folder) == folder]:
        del sys.modules[known]
    for package in ("swebench", "swebench.harness"):
        if package not in sys.modules:
            module = sys.modules[package] = types.ModuleType(package)
            module.__path__, module.of = [os.path.join(folder, *package.split("."))], folder
    return importlib.import_module("swebench.harness." + name)


def one_log(chance, parser, skips):
    names = [one for one in NAMES if skips or one != "[3]"]
    shapes = [shape for shape in SHAPES[parser] if skips or not shape.startswith("SKIPPED [")]
    lines = []
    for _ in range(LINES):
        line = chance.choice(shapes) if chance.random() < 0.9 else "@N"
        for mark, words in (("@N", names), ("@S", STATUSES), ("@D", ("(3 ms)", "(0.01s)", "(1 s)", "(12ms)"))):
            line = line.replace(mark, chance.choice(words))
        lines.append(line)
    return "\n".join(lines) + chance.choice(("\n", ""))


class Agreement(unittest.TestCase):
    def setUp(self):
        sys.meta_path.append(Mocks)
        self.addCleanup(sys.meta_path.remove, Mocks)
        folder = tempfile.TemporaryDirectory(prefix="sluice-swe-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.log = os.path.join(self.root, "log")

    def unpack(self, version):
        try:
            wheel = fetch_wheel(f"swebench=={version}")
        except NoRegistry as why:
            self.skipTest(str(why))
        folder = os.path.join(self.root, version)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        for known in [known for known in sys.modules if known.split(".")[0] == "swebench"]:
            del sys.modules[known]
        return folder

    def ours(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    def write(self, text):
        with open(self.log, "w", encoding="utf-8") as file:
            file.write(text)

    def compare(self, folder, parser, skips):
        module, _, function = PARSERS[parser].partition(".")
        parse = getattr(theirs(folder, f"log_parsers.{module}"), function)
        chance, seen = random.Random(parser), 0
        for _ in range(LOGS):
            text = one_log(chance, parser, skips)
            self.write(text)
            try:
                wanted = {name: status if status in STATUSES else "OTHER" for name, status in parse(text, None).items()}
            except IndexError:
                continue  # a line that it does not expect
            self.assertEqual(json.loads(self.ours(parser, self.log)), wanted, f"{parser}:\n{text}")
            seen += len(wanted)
        self.assertGreater(seen, LOGS, parser)

    def test_logs_are_read_as_version_5_reads_them(self):
        folder = self.unpack("5.0.2")
        for parser in PARSERS:
            with self.subTest(parser=parser):
                self.compare(folder, parser, True)

    def test_logs_are_read_as_version_4_reads_them_but_for_what_5_reads_otherwise(self):
        folder = self.unpack("4.1.0")
        for parser in PARSERS:
            if parser not in SINCE_5:
                with self.subTest(parser=parser):
                    self.compare(folder, parser, False)

    def test_lists_are_graded_as_version_5_grades_them(self):
        folder = self.unpack("5.0.2")
        grading = theirs(folder, "grading")
        parse = theirs(folder, "log_parsers.python").parse_log_pytest_v2
        chance, resolved = random.Random(5), 0
        for _ in range(60):
            names = [f"a::t[{chance.choice('xyz')}{i % 4} {chance.choice('ab')}]" for i in range(8)]
            text = "".join(f"{chance.choice(('PASSED',) * 8 + STATUSES)} {name}\n" for name in names)
            lists = [chance.sample([*names, *(name[:7] for name in names), "gone"], chance.randint(1, 2)) for _ in range(2)]
            kind = chance.choice(("pass_and_fail", "pass_and_fail", "fail_only"))
            self.write(text)
            report = grading.get_eval_tests_report(parse(text, None), {"FAIL_TO_PASS": lists[0], "PASS_TO_PASS": lists[1]},
                                                   eval_type=grading.EvalType(kind))
            full = grading.get_resolution_status(report) == grading.ResolvedStatus.FULL.value
            said = self.ours("pytest_v2", self.log, json.dumps({"fail_to_pass": lists[0], "pass_to_pass": lists[1], "eval_type": kind}))
            self.assertEqual(said, f"{len(report['FAIL_TO_PASS']['success'])} {len(report['PASS_TO_PASS']['success'])} {int(full)}", f"{lists}\n{text}")
            resolved += full
        self.assertGreater(resolved, 10)


if __name__ == "__main__":
    unittest.main()
