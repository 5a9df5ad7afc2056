"""`eval.tests` of the ways in which rows hold a program's tests.

    {"inputs": [...], "outputs": [...], "fn_name": NAME}       APPS, TACO, PRIME, NeMo Gym, LiveCodeBench's samples
    {"assert_case": [...]}                                     verl
    [{"input": ..., "output": ..., "fn_name" or "testtype": ...}]      LiveCodeBench, verifiable-coding
    {"test_cases": [as above]}                                 verifiable-coding

each as it is or as JSON in a text.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any, Dict, List, Mapping, Optional

from .pickled import read_pickled
from .row import RowError, check_size, decoded

TESTS_MAX, UNPACKED_MAX = 4096, 16 << 20
EVAL_S, TEST_S, MORE_S = 120, 7, 5  # of the eval stage: at least, for each test, and beyond


def _text(value: Any, place: str) -> str:
    """What goes into standard input, or is expected from standard output: a text, or lines of it."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise RowError(f"{place} must be a text or lines of it, not {type(value).__name__}")
    return value


def _arguments(value: Any, place: str) -> List[Any]:
    """All arguments of a call: of a text each line is one, as JSON."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise RowError(f"{place} must be a list of arguments or a text, not {type(value).__name__}")
    try:
        return [json.loads(line) for line in value.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        raise RowError(f"{place} is not one JSON value a line") from None


def _of_pairs(inputs: Any, outputs: Any, name: Any, place: str) -> Dict[str, Any]:
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise RowError(f"{place} must have inputs and outputs, as lists")
    if len(inputs) != len(outputs):
        raise RowError(f"{place} has {len(inputs)} inputs and {len(outputs)} outputs")
    if not name:
        return {"inputs": [_text(one, f"{place}.inputs[{i}]") for i, one in enumerate(inputs)],
                "outputs": [_text(one, f"{place}.outputs[{i}]") for i, one in enumerate(outputs)]}
    if not isinstance(name, str):
        raise RowError(f"{place}.fn_name must be a text")
    return {"inputs": [_arguments(one, f"{place}.inputs[{i}]") for i, one in enumerate(inputs)], "outputs": outputs,
            "fn_name": name}


def _of_cases(cases: List[Any], name: Optional[str], place: str) -> Dict[str, Any]:
    kinds = set()
    for i, case in enumerate(cases):
        if not isinstance(case, Mapping) or "input" not in case or "output" not in case:
            raise RowError(f"{place}[{i}] must have an input and an output")
        if not isinstance(case.get("fn_name") or "", str):
            raise RowError(f"{place}[{i}].fn_name must be a text")
        is_call = case.get("testtype", case.get("type")) in ("functional", "function_call") or bool(case.get("fn_name"))
        kinds.add((case.get("fn_name") or name or "") if is_call else None)
    if len(kinds) > 1:
        raise RowError(f"{place} has tests of several kinds or functions")
    if kinds == {""}:
        raise RowError(f"{place} calls a function, and no fn_name or metadata.func_name says which")
    return _of_pairs([case["input"] for case in cases], [case["output"] for case in cases], kinds.pop() if kinds else None,
                     place)


def read_tests(value: Any, place: str, name: Optional[str] = None) -> Dict[str, Any]:
    """`eval.tests` of any of these forms; `name` is the function's where the tests do not say it. RowError where there are none."""
    value = decoded(value, place) if value else value
    if isinstance(value, Mapping) and value.get("test_cases"):
        value, place = decoded(value["test_cases"], f"{place}.test_cases"), f"{place}.test_cases"
    if not value:
        raise RowError(f"no tests: {place} is empty")
    if isinstance(value, list):
        tests = _of_cases(value, name, place)
    elif not isinstance(value, Mapping):
        raise RowError(f"{place} must be tests, not {type(value).__name__}")
    elif isinstance(value.get("assert_case"), list):
        tests = {"asserts": [_text(one, f"{place}.assert_case") for one in value["assert_case"]]}
    else:
        tests = _of_pairs(value.get("inputs"), value.get("outputs"), value.get("fn_name") or name, place)
    return checked(tests, place)


def checked(tests: Dict[str, Any], place: str) -> Dict[str, Any]:
    """The same, if a task can hold them."""
    count = len(tests.get("asserts", tests.get("inputs", ())))
    if count == 0:
        raise RowError(f"no tests: {place} is empty")
    if count > TESTS_MAX:
        raise RowError(f"{place} has {count} tests, and a task has at most {TESTS_MAX}")
    check_size(tests)
    return tests


def unpacked(value: Any, place: str) -> Any:
    """LiveCodeBench's private tests: JSON, or base64 of zlib of a pickle of it, which is read and never unpickled."""
    if not isinstance(value, str) or value.lstrip()[:1] in ("[", "{", ""):
        return value
    try:
        packed = base64.b64decode(value, validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, UNPACKED_MAX)
    except (binascii.Error, ValueError, zlib.error) as why:
        raise RowError(f"{place} is neither JSON nor base64 of zlib: {why}") from None
    if unpacker.unconsumed_tail:
        raise RowError(f"{place} is more than {UNPACKED_MAX} bytes, unpacked")
    try:
        return read_pickled(data)
    except RowError as why:
        raise RowError(f"the pickle in {place} is refused: {why}") from None


def code(tests: Dict[str, Any]) -> Dict[str, Any]:
    """The parts of a task that say how a program is judged."""
    count = len(tests.get("asserts", tests.get("inputs", ())))
    return {"eval": {"kind": "code", "tests": tests}, "limits": {"eval_s": min(86400, max(EVAL_S, TEST_S * count + MORE_S))}}
