"""The forms of rows that become tasks, by the names that `python -m sluice.importers` knows."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple

from .answers import question, verl
from .asserts import human_eval, mbpp
from .nemo_gym import nemo_gym
from .programs import apps, live_code_bench, verifiable_coding
from .reasoning_gym import reasoning_gym_row
from .swe import swe


class Form(NamedTuple):
    read: Callable[..., Dict[str, Any]]  # (row, the task's name if it has none): a task; RowError
    judged: str                          # by which evaluators
    of: str                              # sets that have it

    def columns(self) -> str:
        """What it reads, as its own words say."""
        return " ".join((self.read.__doc__ or "").split()).rstrip(".")


FORMS: Dict[str, Form] = {
    "question": Form(question, "math; --eval", "GSM8K, MATH, AIME, DeepScaleR, and most sets of a question and an answer"),
    "verl": Form(verl, "math, code, by data_source; --route", "verl, DAPO-Math-17k, Eurus and PRIME"),
    "nemo-gym": Form(nemo_gym, "math, choice, code", "NeMo Gym: math_with_judge, mcqa, gpqa_diamond, code_gen"),
    "humaneval": Form(human_eval, "code", "HumanEval, HumanEval+"),
    "mbpp": Form(mbpp, "code", "MBPP, MBPP+"),
    "livecodebench": Form(live_code_bench, "code", "LiveCodeBench"),
    "apps": Form(apps, "code", "APPS, TACO"),
    "verifiable-coding": Form(verifiable_coding, "code", "PrimeIntellect's verifiable-coding, SYNTHETIC"),
    "swe": Form(swe, "swe; --image-template", "SWE-bench, SWE-Gym, R2E-Gym, SWE-smith, SWE-rebench V2, NeMo Gym: swerl_gen"),
    "reasoning-gym": Form(reasoning_gym_row, "reasoning-gym, a handler", "reasoning-gym"),
}
