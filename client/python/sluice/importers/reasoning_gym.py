"""reasoning-gym: its generators' problems, and the evaluator that asks the generator's own verifier.

    python -m sluice.importers reasoning-gym leg_counting --limit 100 -o tasks.jsonl
    sluice up --engine URL --handler gym='python3 -m sluice.handlers sluice.importers.reasoning_gym'

The package reasoning-gym is needed where problems are made and where they are judged.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Iterator, Mapping

from ..handlers import evaluator
from .row import Row, RowError, asked, named, within
from .row_files import FileError, Numbered

ASKED = "{}\n\nEnd with a line 'Answer: ' and your answer."


def _package() -> Any:
    import reasoning_gym
    return reasoning_gym


def generate(name: str, size: int, seed: int) -> Iterator[Numbered]:
    """(number, row) of a generator's problems. FileError where there is no such generator."""
    try:
        problems = _package().create_dataset(name, size=size, seed=seed)
    except ImportError as why:
        raise FileError(f"it is not a file, and a generator needs the package reasoning-gym (pip install reasoning-gym): {why}") from None
    except (ValueError, KeyError, AssertionError) as why:
        raise FileError(f"reasoning-gym makes no problems of it: {why}") from None
    for number in range(1, size + 1):
        yield number, json.loads(json.dumps(problems[number - 1], default=str))


def reasoning_gym_row(row: Row, default: str) -> Dict[str, Any]:
    """question, answer, metadata.source_dataset; a file of them, or a generator's name."""
    source = within(row, "metadata.source_dataset")
    if not isinstance(source, str):
        raise RowError("it has no metadata.source_dataset, the generator's name")
    question = asked(row.get("question"), "question")
    index = within(row, "metadata.source_index")
    return {"task": named(f"{source}-{index}" if isinstance(index, int) else None, default), "prompt": ASKED.format(question["prompt"]),
            "eval": {"kind": "reasoning-gym", "config": {"question": row["question"], "answer": row.get("answer"),
                                                         "metadata": row["metadata"]}},
            "metadata": {"source_dataset": source}}


def final_answer(text: str) -> str:
    """What follows the last 'Answer:' after any thinking; all of it where there is none."""
    text = text.rpartition("</think>")[2]
    return text.rpartition("Answer:")[2].strip()


_scorers: Dict[str, Callable[[str, Mapping[str, Any]], float]] = {}


@evaluator("reasoning-gym")
def score(config: Dict[str, Any], answer: str) -> float:
    """The verifier of the generator that made the problem: 0 to 1. Some raise where an answer is not of the form that they expect:
    0, if the verifier takes its own answer."""
    name = config["metadata"]["source_dataset"]
    if name not in _scorers:
        _scorers[name] = _package().get_score_answer_fn(name)
    scorer, gold = _scorers[name], config.get("answer")
    try:
        return float(scorer(final_answer(answer or ""), config))
    except Exception:
        if not isinstance(gold, str) or scorer(gold, config) != 1:
            raise
        return 0.0
