"""NeMo Gym's rows: responses_create_params.input, judged by what else the row holds.

    verifier_metadata.unit_tests                    code
    options and expected_answer                     choice; grading_mode and template_metadata say where the letter stands, and whether
                                                    an option's text counts as its letter
    expected_answer                                 math
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping

from .code_tests import code, read_tests
from .row import Row, RowError, asked, first, gold_of, named, small_columns, within

MODES = {"strict_single_letter_boxed": "box", "lenient_boxed": "box", "lenient_answer_colon": "answer"}
SAMPLING = (("temperature", "temperature"), ("top_p", "top_p"), ("max_output_tokens", "max_tokens"))


def _extract(row: Row) -> str:
    pattern = within(row, "template_metadata.output_regex")
    if isinstance(pattern, str):
        word = "box" if "boxed" in pattern else "answer" if "answer" in pattern.lower() else None
        if word is None:
            raise RowError(f"its answer stands where template_metadata.output_regex says, and no extractor is {pattern}")
        return word
    mode = row.get("grading_mode")
    if mode is not None and (not isinstance(mode, str) or mode not in MODES):
        raise RowError(f"unknown grading_mode {mode}; known are {', '.join(MODES)}")
    return MODES.get(str(mode), "auto")


def _texts(row: Row, options: Mapping[Any, Any]) -> Dict[str, Any]:
    """Where an option's text counts as its letter: not of rows that ask for the letter alone."""
    asks_letter = row.get("grading_mode") == "strict_single_letter_boxed" or within(row, "template_metadata.output_regex") is not None
    are_texts = all(re.fullmatch("[A-Z]", str(letter)) and isinstance(text, str) and text.strip() for letter, text in options.items())
    return {"options": dict(options)} if are_texts and not asks_letter else {}


def _judged(row: Row) -> Dict[str, Any]:
    tests = within(row, "verifier_metadata.unit_tests")
    if tests is not None:
        return code(read_tests(tests, "verifier_metadata.unit_tests"))
    if first(row, "expected_answer") is None:
        raise RowError("no gold: it has neither verifier_metadata.unit_tests nor expected_answer")
    gold = gold_of(row["expected_answer"], "expected_answer")
    if not row.get("options"):
        return {"eval": {"kind": "math", "answer": gold}}
    if not isinstance(row["options"], list):
        raise RowError("options must be a list")
    options = {letter: text for option in row["options"] if isinstance(option, Mapping) for letter, text in option.items()}
    if gold not in options:
        raise RowError(f"no gold: expected_answer {gold[:40]} is not one of its options {', '.join(map(str, options))}")
    extract = _extract(row)
    return {"eval": {"kind": "choice", "answer": gold, **_texts(row, options), **({} if extract == "auto" else {"extract": extract})}}


def _tools(parameters: Mapping[str, Any]) -> List[str]:
    given = parameters.get("tools")
    tools = [tool for tool in given if isinstance(tool, Mapping)] if isinstance(given, list) else []
    return [str(tool.get("name")) for tool in tools]


def nemo_gym(row: Row, default: str) -> Dict[str, Any]:
    """responses_create_params.input, and verifier_metadata.unit_tests, options and expected_answer, or expected_answer."""
    parameters = row.get("responses_create_params")
    if not isinstance(parameters, Mapping):
        raise RowError("it has no responses_create_params")
    sampling = {ours: parameters[theirs] for theirs, ours in SAMPLING if parameters.get(theirs) is not None}
    metadata = small_columns(row, ("question", "expected_answer"))
    tools = _tools(parameters)
    if tools:
        metadata["tools"] = tools
    name = first(row, "uuid", "id", "hash_id")
    task = {"task": named(f"row-{name}" if isinstance(name, int) else name, default),
            **asked(parameters.get("input"), "responses_create_params.input"), **_judged(row), "metadata": metadata}
    return {**task, "sampling": sampling} if sampling else task
