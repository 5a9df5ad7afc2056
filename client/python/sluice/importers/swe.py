"""Rows of software engineering: a repository, an issue, and tests that a patch must make pass.

    SWE-bench, SWE-Gym      patch, test_patch, FAIL_TO_PASS, PASS_TO_PASS; since SWE-bench 5 eval_script_list, log_parser
    NeMo Gym swerl_gen      the same within instance, with scripts
    R2E-Gym                 docker_image, expected_output_json
    SWE-smith               patch makes the bug; there is no test_patch
    SWE-rebench V2          install_config.test_cmd

The gold patch is the task's solution; nothing that the agent can see has it.
"""

from __future__ import annotations

import json
import shlex
from typing import Any, Dict, List, Mapping, Optional

from ..task.task_rules import TASK_BYTES
from .row import Row, RowError, decoded, first, named, small_columns, text_of, within
from .swe_history import scrub
from .swe_images import find_image
from .swe_runners import ACTIVATE, PYTEST, RUNNERS, directives, files_of, parser_name

NAMES_MAX, NAME_MAX = 32768, 4096
BEGIN, END = ">>>>> Start Test Output", ">>>>> End Test Output"
LARGE = ("patch", "test_patch", "problem_statement", "hints_text", "FAIL_TO_PASS", "PASS_TO_PASS", "eval_script", "eval_script_list",
         "expected_output_json", "parsed_commit_content", "execution_result_content", "instance", "setup_script", "test_script",
         "regression_script", "relevant_file_contents", "modified_files", "install_config", "image_name", "docker_image")
PROTECTED = ["conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "sitecustomize.py",
             "usercustomize.py", "*.pth"]
ASK = ("The repository is in {repository}. Solve this issue by changing its files; the tests that judge it are hidden.\n\n"
       "{issue}")
LIMITS = {"init_s": 900, "run_s": 3600, "eval_s": 1800, "command_s": 300, "memory_mib": 8192, "disk_mib": 8192, "processes": 1024}


def _names(row: Row, column: str, required: bool) -> List[str]:
    """A list of test names, or its JSON as a text."""
    value = row.get(column)
    value = decoded(value, column) if value else []
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise RowError(f"{column} must be a list of names")
    if required and not value:
        raise RowError(f"no tests: {column} is empty")
    size = sum(len(name.encode(errors="replace")) for name in value)
    if len(value) > NAMES_MAX or size > TASK_BYTES:
        raise RowError(f"{column} has {len(value)} names of {size} bytes, and a task has at most {NAMES_MAX}, of {TASK_BYTES}")
    long = next((name for name in value if len(name.encode(errors="replace")) > NAME_MAX), None)
    if long is not None:
        raise RowError(f"{column} has a name of {len(long)} characters, {long[:40]}..., and a name has at most {NAME_MAX} bytes")
    return value


def _protected(gold: str, more: Optional[List[str]] = None) -> List[str]:
    """What no patch may change, but for what the gold patch does."""
    changed = {name.rpartition("/")[2] for name in files_of(gold)}
    return [name for name in PROTECTED if name not in changed] + (more or [])


def _witness(parser: str, possible: bool) -> Dict[str, str]:
    return {} if possible or not parser.startswith(("pytest", "matplotlib", "seaborn", "r2e")) else {"witness": "none"}


def _task(row: Row, default: str, template: str, swe: Dict[str, Any], gold: str, reverse: bool = False,
          hidden: Optional[List[str]] = None, setup: Optional[List[str]] = None, issue: str = "problem_statement") -> Dict[str, Any]:
    """The task of a row whose `swe` says how its patch is judged."""
    instance = str(first(row, "instance_id") or default)
    repository = swe.get("repository", "/testbed")
    task: Dict[str, Any] = {
        "task": named(instance, default), "prompt": ASK.format(repository=repository, issue=text_of(row, issue)),
        "image": find_image(row, instance, template), "workdir": repository,
        "setup": [*(setup or []), *scrub(repository, swe.get("base_commit", "HEAD"))],
        "eval": {"kind": "swe", "swe": swe}, "limits": dict(LIMITS), "metadata": small_columns(row, LARGE)}
    if hidden:
        task["agent"] = {"hidden": hidden}
    if gold:
        apply = f"git -c safe.directory='*' apply {'--reverse ' if reverse else ''}/tmp/solution.patch && rm /tmp/solution.patch"
        task["solution"] = {"files": {"/tmp/solution.patch": gold if gold.endswith("\n") else gold + "\n"},
                            "commands": [f"cd {shlex.quote(repository)} && {apply}"]}
    return task


def _lists(row: Row) -> Dict[str, Any]:
    passing = _names(row, "PASS_TO_PASS", False)
    return {"fail_to_pass": _names(row, "FAIL_TO_PASS", True), **({"pass_to_pass": passing} if passing else {})}


def _commit(row: Row) -> Dict[str, str]:
    commit = first(row, "base_commit")
    return {"base_commit": str(commit)} if commit else {}


# ---- SWE-bench and what is made like it -------------------------------------------------------------------


def _script(row: Row) -> Optional[str]:
    """Of SWE-bench 5: a whole script."""
    lines, script = row.get("eval_script_list"), row.get("eval_script")
    lines = decoded(lines, "eval_script_list") if lines else None
    if isinstance(lines, list) and lines:
        return "\n".join(["#!/bin/bash", "set -uxo pipefail", *map(str, lines)]) + "\n"
    return script if isinstance(script, str) and BEGIN in script and END in script else None


def _judged(row: Row, repository: str) -> Dict[str, Any]:
    """What runs the tests, and what reads them: as the row says, else by its repository."""
    runner, test_patch = RUNNERS.get(repository, PYTEST), str(row.get("test_patch") or "")
    parser, script = row.get("log_parser"), _script(row)
    parser = parser_name(parser) if isinstance(parser, str) and parser else runner.parser
    how: Dict[str, Any] = {"log_parser": parser, **_witness(parser, runner.witness)}
    if test_patch:
        how["test_patch"] = test_patch
    if row.get("eval_type") == "fail_only":
        how["eval_type"] = "fail_only"
    if script:
        return {**how, "script": script}
    tests = " ".join(map(shlex.quote, directives(repository, test_patch)))
    return {**how, "prepare": ACTIVATE, "test_command": f"{runner.command} {tests}".strip()}


def _swe_bench(row: Row, default: str, template: str) -> Dict[str, Any]:
    gold = str(row.get("patch") or "")
    if not row.get("test_patch") and _script(row) is None:
        raise RowError("no tests: it has no test_patch and no eval_script")
    swe = {**_commit(row), **_judged(row, str(row.get("repo") or "")), **_lists(row), "protected": _protected(gold)}
    return _task(row, default, template, swe, gold)


def _nemo_gym(row: Row, default: str, template: str) -> Dict[str, Any]:
    """Its scripts make the test patch themselves, and say nothing of where the tests' output begins."""
    instance = decoded(row["instance"], "instance")
    if not isinstance(instance, Mapping):
        raise RowError("instance must be an object")
    inner = {**instance, "image": within(row, "metadata.image")}
    setup, tests = (str(inner.get(name) or "") for name in ("setup_script", "test_script"))
    if not tests:
        return _swe_bench(inner, default, template)
    image = first(inner, "image")
    if template and isinstance(image, str):
        inner["image"] = image.rpartition("/")[2].rpartition(".sif")[0] or image
    marked = f"{setup}\necho '{BEGIN}'\n(\n{tests}\n)\necho '{END}'\n"
    return _swe_bench({**inner, "eval_script": marked, "eval_script_list": None}, default, template)


def _rebench(row: Row, default: str, template: str) -> Dict[str, Any]:
    config = decoded(row["install_config"], "install_config")
    command = config.get("test_cmd") if isinstance(config, Mapping) else None
    command = "\n".join(map(str, command)) if isinstance(command, list) else command
    if not isinstance(command, str) or not command.strip():
        raise RowError("no tests: install_config has no test_cmd")
    parser = parser_name(str(row.get("log_parser") or config.get("log_parser") or "pytest"))
    gold, name = str(row.get("patch") or ""), str(row.get("repo") or "")
    swe = {"repository": "/" + name.rpartition("/")[2], **_commit(row), "log_parser": parser, "test_command": command,
           **_lists(row), "protected": _protected(gold), **_witness(parser, parser.startswith("pytest"))}
    if row.get("test_patch"):
        swe["test_patch"] = row["test_patch"]
    return _task(row, default, template, swe, gold)


# ---- R2E-Gym and SWE-smith ----------------------------------------------------------------------------------


def _plain(name: str) -> str:
    """Without colours and reasons."""
    return "".join(part if i == 0 else part.partition("m")[2] for i, part in enumerate(name.split("\x1b["))).split(" - ")[0]


def _r2e(row: Row, default: str, template: str) -> Dict[str, Any]:
    expected = decoded(row["expected_output_json"], "expected_output_json")
    if not isinstance(expected, Mapping) or not expected:
        raise RowError("no tests: expected_output_json is empty")
    issue = text_of(row, "problem_statement")
    issue = issue.partition("[ISSUE]")[2].partition("[/ISSUE]")[0].strip() or issue
    swe = {"log_parser": "r2e", "expected": {_plain(name): status for name, status in expected.items() if _plain(name)},
           "prepare": "export PATH=/testbed/.venv/bin:$PATH; ln -sfn /r2e_tests r2e_tests", "test_command": "bash run_tests.sh",
           "protected": [*PROTECTED, "run_tests.sh", "r2e_tests", "r2e_tests/*"]}
    name = f"{row.get('repo_name') or 'r2e'}-{str(row.get('commit_hash') or default)[:12]}"
    return _task({**row, "instance_id": name, "problem_statement": issue}, default, template, swe, "",
                 hidden=["/r2e_tests", "/testbed/r2e_tests", "/testbed/run_tests.sh"])


def _smith(row: Row, default: str, template: str) -> Dict[str, Any]:
    """The bug is a patch; the tests that find it are in the repository, and the agent does not see their files."""
    bug, lists = text_of(row, "patch"), _lists(row)
    files = sorted({name.partition("::")[0] for name in lists["fail_to_pass"] if "::" in name})
    every = sorted({name.partition("::")[0] for names in lists.values() for name in names if "::" in name})
    swe = {"log_parser": "pytest", "prepare": ACTIVATE, **lists, "protected": _protected(bug, files),
           "test_command": f"pytest -rA --color=no --tb=short {' '.join(map(shlex.quote, every))}".strip()}
    task = _task(row, default, template, swe, bug, reverse=True, hidden=[f"/testbed/{name}" for name in files],
                 setup=["cd /testbed && git -c safe.directory='*' apply /tmp/bug.patch && rm /tmp/bug.patch"])
    return {**task, "files": {"/tmp/bug.patch": bug if bug.endswith("\n") else bug + "\n"}}


# ---- all of them ------------------------------------------------------------------------------------------------


def swe(row: Row, default: str, template: str = "") -> Dict[str, Any]:
    """instance_id, repo, base_commit, problem_statement, patch, test_patch, FAIL_TO_PASS, PASS_TO_PASS, image_name; or instance; or expected_output_json."""
    if row.get("instance"):
        return _nemo_gym(row, default, template)
    if row.get("expected_output_json"):
        return _r2e(row, default, template)
    if row.get("install_config"):
        return _rebench(row, default, template)
    smith = not row.get("test_patch") and _script(row) is None and "swesmith" in json.dumps([row.get("image_name"), row.get("repo")])
    return (_smith if smith else _swe_bench)(row, default, template)
