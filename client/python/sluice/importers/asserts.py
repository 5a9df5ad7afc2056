"""Rows whose tests are Python that raises where the program is wrong: HumanEval, HumanEval+, MBPP."""

from __future__ import annotations

from typing import Any, Dict, List

from .code_tests import checked, code
from .row import Row, RowError, first, named, small_columns, text_of

COMPLETE = "Complete this Python function. Answer with the whole program, imports included, in one ```python block.\n\n```python\n{}\n```"
WRITE = "{}\n\nAnswer with a Python program in one ```python block. It must pass these tests:\n\n```python\n{}\n```"


def human_eval(row: Row, default: str) -> Dict[str, Any]:
    """task_id, prompt, entry_point, test (defines check(candidate))."""
    test = first(row, "test")
    if not isinstance(test, str):
        raise RowError("no tests: test is missing")
    tests = checked({"asserts": [test], "entry_point": text_of(row, "entry_point")}, "test")
    return {"task": named(row.get("task_id"), default), "prompt": COMPLETE.format(text_of(row, "prompt").strip("\n")), **code(tests),
            "metadata": small_columns(row, ("prompt", "test", "canonical_solution"))}


def _list_of_texts(row: Row, column: str) -> List[str]:
    value = row.get(column) or []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise RowError(f"{column} must be a list of texts")
    return value


def mbpp(row: Row, default: str) -> Dict[str, Any]:
    """task_id, text or prompt, test_list[], test_setup_code or test_imports[], challenge_test_list[]."""
    shown = _list_of_texts(row, "test_list")
    if not shown:
        raise RowError("no tests: test_list is empty")
    setup = text_of(row, "test_setup_code") if first(row, "test_setup_code") else ""
    before = "\n".join([*_list_of_texts(row, "test_imports"), setup]).strip()
    lines = shown + _list_of_texts(row, "challenge_test_list")
    tests = checked({"asserts": [f"{before}\n{line}" if before else line for line in lines]}, "test_list")
    prompt = WRITE.format(text_of(row, "text", "prompt").strip(), "\n".join(shown))
    name = row.get("task_id")
    return {"task": named(f"mbpp-{name}" if isinstance(name, int) else name, default), "prompt": prompt, **code(tests),
            "metadata": small_columns(row, ("text", "prompt", "code"))}
