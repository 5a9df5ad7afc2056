"""Rows of a question and its answer, as most sets on a hub are: GSM8K, MATH, AIME and their like; and verl's rows."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Tuple

from .code_tests import code, read_tests
from .row import Row, RowError, asked, first, gold_of, named, small_columns, text_of

QUESTIONS = ("prompt", "messages", "problem", "question", "Question")
GOLDS = ("answer", "final_answer", "expected_answer", "ground_truth", "Correct Answer", "solution")
BUILT_IN = ("math", "choice", "exact")
EXTRACTS = ("auto", "box", "hashes", "answer", "number", "letter", "all")

# Of verl's data_source, whole or by its beginning (a '*' at the end): the evaluator, and where it finds the answer.
ROUTES: Dict[str, str] = {
    "openai/gsm8k": "math:hashes",
    "lighteval/MATH": "math:box", "DigitalLearningGmbH/MATH-lighteval": "math:box", "HuggingFaceH4/MATH-500": "math:box",
    "math_dapo": "math:answer", "math": "math:answer", "math_dapo_reasoning": "math:answer", "aime*": "math:answer",
    "numina_*": "math:auto",
    "codecontests": "code", "apps": "code", "codeforces": "code", "taco": "code",
}
_WORDS = {"searchR1_*": "its answers stand in <answer>, which no extractor reads", "hiyouga/geometry3k": "it asks about images"}


def last_box(text: str) -> Optional[str]:
    """What the last \\boxed{} holds, braces within it included."""
    at = text.rfind("\\boxed{")
    if at < 0:
        return None
    depth = 0
    for i in range(at + 6, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[at + 7:i]
    return None


def _gold(row: Row) -> str:
    column = next((name for name in GOLDS if first(row, name) is not None), GOLDS[0])
    text = gold_of(row.get(column), column)
    if "####" in text:
        text = gold_of(text.rpartition("####")[2], column)
    box = last_box(text)
    if column == "solution" and box is None:
        raise RowError("no gold: its solution has no \\boxed{}")
    return text if box is None else gold_of(box, column)


def judged(route: str, gold: str) -> Dict[str, Any]:
    """`eval` of KIND or KIND:EXTRACT, which is a built-in kind or the name of a handler's evaluator."""
    kind, _, extract = route.partition(":")
    if extract and (kind not in BUILT_IN or extract not in EXTRACTS):
        raise RowError(f"no evaluator {route}: an extractor ({', '.join(EXTRACTS)}) goes with {', '.join(BUILT_IN)}")
    found = {"kind": kind, "answer": gold}
    return {**found, "extract": extract} if extract and extract != "auto" else found


def question(row: Row, default: str, route: str = "math") -> Dict[str, Any]:
    """A question (prompt, messages, problem, question) and its answer (answer, final_answer, ground_truth, solution; of GSM8K
    what follows ####, of a solution its last box)."""
    column = next((name for name in QUESTIONS if first(row, name) is not None), QUESTIONS[0])
    name = first(row, "task", "task_id", "unique_id", "uuid", "id")
    name = f"row-{name}" if isinstance(name, int) else name
    return {"task": named(name, default), **asked(row.get(column), column), "eval": judged(route, _gold(row)),
            "metadata": small_columns(row, QUESTIONS + GOLDS)}


def _of_source(source: str, table: Mapping[str, str]) -> Optional[str]:
    begins = (said for name, said in table.items() if name.endswith("*") and source.startswith(name[:-1]))
    return table.get(source) or next(begins, None)


def _route(source: str, routes: Mapping[str, str]) -> str:
    for table in (routes, ROUTES):
        found = _of_source(source, table)
        if found:
            return found
    why = _of_source(source, _WORDS)
    raise RowError(f"unknown data_source {source}" + (f": {why}" if why else "") + f"; --route '{source}=KIND' says how it is judged")


def _truth(row: Row) -> Tuple[Any, str]:
    model = row.get("reward_model")
    if isinstance(model, Mapping):
        return model.get("ground_truth"), "reward_model.ground_truth"
    return row.get("ground_truth"), "reward_model.ground_truth"


def verl(row: Row, default: str, routes: Optional[Mapping[str, str]] = None) -> Dict[str, Any]:
    """data_source, prompt[{role, content}], reward_model.ground_truth, extra_info, ability."""
    source = text_of(row, "data_source")
    route = _route(source, routes or {})
    truth, place = _truth(row)
    extra = row.get("extra_info")
    extra = dict(extra) if isinstance(extra, Mapping) else {}
    if route == "code":
        parts = code(read_tests(truth, place))
    elif route.split(":")[0] in BUILT_IN:
        parts = {"eval": judged(route, gold_of(truth, place))}
    else:
        parts = {"eval": {"kind": route, "config": {"data_source": source, "ground_truth": truth}}}
    index = extra.get("index")
    name = "-".join(str(part) for part in (source, extra.get("split"), index) if part is not None) if index is not None else None
    return {"task": named(name, default), **asked(row.get("prompt"), "prompt"), **parts,
            "metadata": {**small_columns(row, ("prompt",)), "extra_info": extra}}
