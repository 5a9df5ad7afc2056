"""One task's folder as a task."""

from __future__ import annotations

import os
from typing import Any, Dict, List

from ..row import RowError, named
from .choices import HarborChoices, Notes
from .environment import INIT_S, Network, healthcheck, image_fields, limits, refuse_undone, seconds, users, variables
from .reading import instruction, read_toml
from .schema import ROOT, Table, check, check_lists
from .steps import steps_fields
from .tree import Budget, check_own_links, read_rules
from .verifier import eval_fields, solution_of

RUN_S_MAX, EVAL_S_MAX, VERIFIER_S = 604800, 86400, 600


def _instruction(folder: str) -> str:
    text = instruction(os.path.join(folder, "instruction.md"))
    if not text:
        raise RowError("instruction.md is empty")
    return text


def _config(folder: str, notes: Notes) -> Table:
    config = read_toml(os.path.join(folder, "task.toml"))
    unknown: List[str] = []
    check(ROOT, config, "", unknown)
    check_lists(config, unknown)
    for path in unknown:
        notes.add(folder, f"task.toml: {path} is not known, and is passed over")
    return config


def _health_s(health: Table) -> float:
    once = float(health.get("timeout_sec", 30) + health.get("interval_sec", 5))
    return once * float(health.get("retries", 3)) + float(health.get("start_period_sec", 0))


def _limits(config: Table) -> Dict[str, int]:
    environment, agent, verifier = (config.get(name, {}) for name in ("environment", "agent", "verifier"))
    found = limits(environment)
    if agent.get("timeout_sec"):
        found["run_s"] = seconds(agent["timeout_sec"], RUN_S_MAX)
    found["eval_s"] = seconds(verifier.get("timeout_sec", VERIFIER_S), EVAL_S_MAX)
    checks = [owner["healthcheck"] for owner in (environment, *config.get("steps", [])) if owner.get("healthcheck")]
    if checks:
        found["init_s"] = seconds(INIT_S + max(map(_health_s, checks)), EVAL_S_MAX)
    return found


def _metadata(folder: str, config: Table) -> Dict[str, Any]:
    about = config.get("task", {})
    found = {"harbor": about.get("name", os.path.basename(folder)), **config.get("metadata", {})}
    return {name: value if isinstance(value, (str, int, float, bool)) or _is_plain(value) else str(value) for name, value in found.items()}


def _is_plain(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, (str, int, float, bool)) for one in value)


def task_of_folder(folder: str, choices: HarborChoices, notes: Notes) -> Dict[str, Any]:
    """RowError says why there is none."""
    check_own_links(folder)
    config = _config(folder, notes)
    environment = config.get("environment", {})
    refuse_undone(environment, folder)
    host, rules, budget = dict(choices.variables), read_rules(folder), Budget(choices.files)
    network = Network(environment, choices, notes, folder)
    steps = bool(config.get("steps"))
    task: Dict[str, Any] = {"task": named(os.path.basename(folder), "task"), **({} if steps else {"prompt": _instruction(folder)}),
                            **image_fields(folder, environment, choices, network, budget)}
    task.update(users(config, "build" in task))
    if environment.get("workdir"):
        task["workdir"] = environment["workdir"]
    env = variables(environment.get("env", {}), "environment.env", host)
    if env:
        task["env"] = env
    if environment.get("healthcheck"):
        task["setup"] = [healthcheck(environment["healthcheck"])]
    agents, base = network.grants(config.get("agent", {}), "agent"), network.grants()
    if agents:
        task["network"] = agents
    if agents != base:
        task["init"] = {"network": base}
    task["agent"] = {"kind": "bash"}
    solution = {} if steps else solution_of(os.path.join(folder, "solution"), config, host, rules, budget)
    if solution:
        task["solution"] = solution
    task["limits"] = _limits(config)
    fields = steps_fields(folder, task, config, network, host, rules, budget) if steps else {
        "eval": eval_fields(folder, task, config, network, host, rules, budget)}
    task.update(fields)
    task["metadata"] = _metadata(folder, config)
    return task
