"""[[steps]] and steps/: a task of several, one after the other in one environment."""

from __future__ import annotations

import math
import os
from typing import Any, Dict, List

from ..row import RowError
from .environment import Network, agents_user, healthcheck, seconds, user_of, variables
from .reading import instruction
from .schema import Table
from .tree import Budget, files_of
from .verifier import SOLUTION, TESTS, collect, solution_of

RUN_S, RUN_S_MAX, EVAL_S_MAX = 600, 604800, 86400


def _check_agent(step: Table, place: str, task: Table, network: Network) -> None:
    """Who works, and what is reached, is the same in all steps: they share a sandbox."""
    for owner in ("agent", "verifier"):
        said = step.get(owner, {})
        user = user_of(said.get("user"))
        if user is not None and {"0": "root"}.get(user, user) != agents_user(task):
            raise RowError(f"{place}.{owner}.user is not supported: all steps are one sandbox, whose user is the task's agent.user")
        if ("network_mode" in said or "allowed_hosts" in said) and network.grants(said, f"{place}.{owner}") != task.get("network", []):
            raise RowError(f"{place}.{owner}.network_mode is not supported: all steps are one sandbox, which reaches what the task's agent does")


def _check_verifier(verifier: Table, place: str) -> None:
    if verifier.get("environment_mode") == "separate" or verifier.get("environment"):
        raise RowError(f"{place}.environment_mode separate is not supported: each step is evaluated in the agent's sandbox")


def check_shared(found: Table, verifier: Table) -> None:
    """What eval_fields found of the whole."""
    _check_verifier(verifier, "verifier")
    if found.get("sandbox") != "agent":
        raise RowError("verifier.user and network_mode must be the agent's where there are steps: each is evaluated in the agent's sandbox")


def _files(root: str, into: str, rules: List[str], budget: Budget) -> List[Dict[str, Any]]:
    return files_of(root, into, rules, budget) if os.path.isdir(root) else []


def _limits(step: Table, config: Table) -> Table:
    found: Table = {}
    timeout = step.get("agent", {}).get("timeout_sec") or config.get("agent", {}).get("timeout_sec")
    if timeout:
        found["run_s"] = seconds(timeout, RUN_S_MAX)
    if step.get("verifier", {}).get("timeout_sec"):
        found["eval_s"] = seconds(step["verifier"]["timeout_sec"], EVAL_S_MAX)
    return found


def _evaluation(folder: str, place: str, step: Table, task: Table, config: Table, network: Network, host: Dict[str, str], rules: List[str],
                budget: Budget) -> Table:
    tests, verifier = os.path.join(folder, "tests"), step.get("verifier", {})
    _check_verifier(verifier, f"{place}.verifier")
    if not any(os.path.isfile(os.path.join(root, "test.sh")) for root in (tests, os.path.join(folder, "..", "..", "tests"))):
        raise RowError(f"neither steps/{step['name']}/tests/ nor tests/ has a test.sh")
    found: Table = {}
    files = _files(tests, TESTS, rules, budget)
    if files:
        found["files"] = files
    if verifier.get("env"):
        said = {**config.get("verifier", {}).get("env", {}), **verifier["env"]}
        found["env"] = variables(said, f"{place}.verifier.env", host)
    if verifier.get("collect"):
        found["collect"] = collect(verifier["collect"], f"{place}.verifier.collect", task, network)
    return found


def _step(folder: str, i: int, task: Table, config: Table, network: Network, host: Dict[str, str], rules: List[str], budget: Budget) -> Table:
    step, place = config["steps"][i], f"steps[{i}]"
    name = step.get("name", "")
    if not name or name in (".", "..") or "/" in name:
        raise RowError(f"{place}.name must be the name of a folder below steps/")
    root = os.path.join(folder, "steps", name)
    _check_agent(step, place, task, network)
    found: Table = {"name": name, "prompt": instruction(os.path.join(root, "instruction.md"))}
    if not found["prompt"]:
        raise RowError(f"steps/{name}/instruction.md is empty")
    files = _files(os.path.join(root, "workdir"), ".", rules, budget)
    setup = ["bash setup.sh"] if os.path.isfile(os.path.join(root, "workdir", "setup.sh")) else []
    if step.get("healthcheck"):
        setup.append(healthcheck(step["healthcheck"]))
    parts = {"files": files, "setup": setup, "solution": solution_of(os.path.join(root, "solution"), config, host, rules, budget),
             "eval": _evaluation(root, place, step, task, config, network, host, rules, budget), "limits": _limits(step, config)}
    found.update((key, value) for key, value in parts.items() if value)
    if "min_reward" in step:
        found["min_reward"] = step["min_reward"]
    if step.get("artifacts"):
        network.notes.add(folder, "steps[].artifacts are not kept")
    return found


def steps_fields(folder: str, task: Table, config: Table, network: Network, host: Dict[str, str], rules: List[str], budget: Budget) -> Table:
    """steps and steps_reward, with limits.run_s of all together; RowError says what cannot be."""
    if os.path.isfile(os.path.join(folder, SOLUTION[1:], "solve.sh")):
        network.notes.add(folder, "solution/ is passed over: each step has its own")
    steps = [_step(folder, i, task, config, network, host, rules, budget) for i in range(len(config["steps"]))]
    run_s = sum(step.get("limits", {}).get("run_s", RUN_S) for step in steps)
    task["limits"]["run_s"] = min(math.ceil(run_s), RUN_S_MAX)
    return {"steps": steps, "steps_reward": config.get("multi_step_reward_strategy", "mean")}
