"""How a trainer samples against how its tasks do, and whether what was sampled can be learned from: pure."""

from __future__ import annotations

import numbers
from typing import Any, Container, Dict, Mapping

import numpy as np

from ...arguments import shown
from ...errors import BadArgument, SluiceError
from ...trajectory import Trace, Trajectory
from ..tasks import part_of

DEFAULTS = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}  # a task's, where it says nothing
FILTERS = {name: value for name, value in DEFAULTS.items() if name != "temperature"}  # all off
NEUTRAL = {"repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "n": 1}  # values that change nothing


def require_same(what: str, said: Mapping[str, float], wanted: Mapping[str, float], whose: str) -> None:
    """BadArgument, with both numbers: `what` samples otherwise than `whose` say. Only names of both are compared."""
    for name, value in said.items():
        if name in wanted and float(value) != float(wanted[name]):
            raise BadArgument(f"{what} samples with sampling.{name} {value:g}, where {whose} have {name} "
                              f"{wanted[name]:g}, by which log-probabilities are computed: set both alike", name)


def _require_numbers(whose: str, said: Mapping[str, Any]) -> None:
    """BadArgument: one of these is none."""
    for name, value in said.items():
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            raise BadArgument(f"{name} is {shown(value)} in {whose}, where a number is wanted", name)


def asked_of(params: Mapping[str, Any], most: str, harmless: Container[str] = ()) -> Dict[str, Any]:
    """The `sampling` of a task that says what a trainer's parameters for vLLM or SGLang do.

    Where they say nothing it is said that nothing is filtered, at temperature 1. most: what max_tokens is called there.
    harmless: names that may say anything. BadArgument: another parameter is set that a task has no field for.
    """
    if not isinstance(params, Mapping):
        raise BadArgument(f"the trainer's sampling parameters are {shown(params)}, where a dict is wanted", "sampling")
    for name, value in params.items():
        is_known = name in DEFAULTS or name == most or name in harmless
        if not is_known and value not in (None, [], {}) and value != NEUTRAL.get(name):
            raise BadArgument(f"{name} is {shown(value)} in the trainer's sampling parameters, and a task of Sluice has no "
                              "such field: leave it out", name)
    said = {name: params[name] for name in (*DEFAULTS, most) if params.get(name) is not None}
    _require_numbers("the trainer's sampling parameters", said)
    bound = {"max_tokens": said.pop(most)} if most in said else {}
    told = {**DEFAULTS, **said}
    told["top_k"] = max(told["top_k"], 0)
    return {**told, **bound}


def sampled_as(task: Mapping[str, Any], asked: Mapping[str, Any], whose: str) -> Dict[str, Any]:
    """The task with the trainer's sampling, where it says none of its own.

    Its own max_tokens counts. BadArgument: it says another temperature or filter than `whose`.
    """
    said, what = part_of(task, "sampling"), f"the task {task.get('task')!r}"
    own = {name: said[name] for name in DEFAULTS if name in said}
    _require_numbers(f"the sampling of {what}", own)
    require_same(what, own, asked, whose)
    return {**task, "sampling": {**asked, **said}}


def require_finite(trajectory: Trajectory, trace: Trace) -> None:
    """SluiceError: a sampled token's log-probability is none."""
    if not np.isfinite(trace.logprobs[trace.mask == 1]).all():
        raise SluiceError(f"{trajectory.rollout} has log-probabilities that are not finite: the engine "
                          f"{trajectory.engine} computes wrong ones; nothing was learned from this batch")


def require_comparable(trajectory: Trajectory, temperature: float) -> None:
    """SluiceError: its log-probabilities are those at temperature 1, and a trainer's are those at another."""
    if trajectory.logprobs_mode == "raw" and temperature != 1:
        raise SluiceError(f"{trajectory.rollout} was sampled at temperature {temperature:g} by an engine whose "
                          "log-probabilities are those at 1, so that the ratio would be biased: sample at 1, or have "
                          "the engine give processed ones (docs/engines.md)")


def require_ratio(trajectory: Trajectory, trace: Trace) -> None:
    """Both of a trace, at the temperature of each of its sampled tokens, where that is known."""
    require_finite(trajectory, trace)
    temperatures = trace.temperatures()[trace.mask == 1]
    for temperature in set(temperatures[~np.isnan(temperatures)].tolist()):
        require_comparable(trajectory, temperature)
