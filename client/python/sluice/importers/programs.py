"""Rows whose tests are inputs and outputs of a program or a function: LiveCodeBench, APPS, TACO, verifiable-coding."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from .code_tests import code, read_tests, unpacked
from .row import Row, RowError, asked, decoded, first, named, small_columns, text_of

LARGE = ("question", "question_content", "prompt", "problem", "solutions", "input_output", "starter_code", "public_test_cases",
         "private_test_cases", "metadata", "verification_info", "gold_standard_solution")
STDIN = "Answer with a Python program in one ```python block. It reads standard input and prints the answer."
CALL = "Answer with a Python program in one ```python block. It defines {}."


def _question(text: str, tests: Mapping[str, Any], starter: Optional[Any]) -> str:
    """The problem, and what kind of program it wants: rows keep that apart."""
    parts = [text.strip()]
    if isinstance(starter, str) and starter.strip():
        parts.append(f"Begin with:\n\n```python\n{starter.strip()}\n```")
    parts.append(CALL.format(f"`{tests['fn_name']}`") if "fn_name" in tests else STDIN)
    return "\n\n".join(parts)


def _task(row: Row, name: Any, text: str, tests: Dict[str, Any], default: str) -> Dict[str, Any]:
    return {"task": named(name, default), "prompt": _question(text, tests, row.get("starter_code")), **code(tests),
            "metadata": small_columns(row, LARGE)}


def _cases(row: Row) -> List[Any]:
    """LiveCodeBench's public tests, then its private ones."""
    found: List[Any] = []
    for column in ("public_test_cases", "private_test_cases"):
        cases = decoded(unpacked(row.get(column), column) or [], column)
        if not isinstance(cases, list):
            raise RowError(f"{column} must be a list, not {type(cases).__name__}")
        found += cases
    return found


def live_code_bench(row: Row, default: str) -> Dict[str, Any]:
    """question_id, question_content, starter_code, public_test_cases, private_test_cases, metadata (func_name); or input_output."""
    about = decoded(row.get("metadata") or {}, "metadata")
    name = about.get("func_name") if isinstance(about, Mapping) else None
    if not isinstance(name or "", str):
        raise RowError("metadata.func_name must be a text")
    whole = first(row, "input_output")
    tests = read_tests(whole, "input_output") if whole else read_tests(_cases(row), "test_cases", name)
    return _task(row, row.get("question_id"), text_of(row, "question_content"), tests, default)


def apps(row: Row, default: str) -> Dict[str, Any]:
    """question, input_output (inputs, outputs, fn_name); problem_id, starter_code."""
    tests = read_tests(row.get("input_output"), "input_output")
    name = first(row, "problem_id", "id", "task_id")
    name = f"{row.get('source') or 'problem'}-{name}" if isinstance(name, int) else name
    return _task(row, name, text_of(row, "question", "problem", "prompt"), tests, default)


def verifiable_coding(row: Row, default: str) -> Dict[str, Any]:
    """prompt, verification_info (language, test_cases[{input, output, fn_name, type}]); problem_id."""
    info = decoded(row.get("verification_info"), "verification_info")
    language = info.get("language", "python") if isinstance(info, Mapping) else "python"
    if language != "python":
        raise RowError(f"its language is {language}; programs are judged in python")
    tests = read_tests(info, "verification_info")
    return {"task": named(first(row, "problem_id", "id"), default), **asked(row.get("prompt"), "prompt"), **code(tests),
            "metadata": small_columns(row, LARGE)}
