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
from .verifier import SOLUTION, TESTS, collect, differs, has_own_image, says_separate, separate, solution_of

RUN_S, RUN_S_MAX, EVAL_S_MAX = 600, 604800, 86400


def _check_agent(step: Table, place: str, task: Table, network: Network) -> None:
    """Who works, and what is reached, is the same in all steps: they share a sandbox."""
    said = step.get("agent", {})
    user = user_of(said.get("user"))
    if user is not None and {"0": "root"}.get(user, user) != agents_user(task):
        raise RowError(f"{place}.agent.user is not supported: all steps are one sandbox, whose user is the task's agent.user")
    if ("network_mode" in said or "allowed_hosts" in said) and network.grants(said, f"{place}.agent") != task.get("network", []):
        raise RowError(f"{place}.agent.network_mode is not supported: all steps are one sandbox, which reaches what the task's agent does")


def _check_shared(step: Table, place: str, task: Table, config: Table, verifier: Table, network: Network) -> None:
    """Its verifier is in that sandbox, too; what differs is the step's or the task's."""
    of_step = [name for name in ("user", "network_mode", "allowed_hosts") if name in step.get("verifier", {})]
    if not differs(task, config, verifier, network, place if of_step else "verifier"):
        return
    owner = f"{place}.{of_step[0]}" if of_step else "verifier.user and network_mode"
    raise RowError(f"{owner} must be the agent's where a step's verifier is shared: it is in the agent's sandbox")


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


def _is_separate(step: Table, place: str, config: Table) -> bool:
    said = says_separate(step.get("verifier", {}), place)
    return bool(says_separate(config.get("verifier", {})) if said is None else said)


def _evaluation(folder: str, place: str, step: Table, task: Table, config: Table, network: Network, host: Dict[str, str], rules: List[str],
                budget: Budget) -> Table:
    """Without what all steps have of tests/; `folder` is the step's."""
    tests, shared = os.path.join(folder, "tests"), os.path.join(folder, "..", "..", "tests")
    said, tasks = step.get("verifier", {}), config.get("verifier", {})
    verifier = {**tasks, **said, "env": {**tasks.get("env", {}), **said.get("env", {})}}
    found: Table = {}
    if _is_separate(step, place, config):
        context, shown = (tests, f"steps/{step['name']}/tests") if os.path.isdir(tests) else (shared, "tests")
        found = {"sandbox": "fresh", **separate(context, shown, config, verifier, network, host, budget,
                                                place if "environment" in said else "verifier", step.get("artifacts", []))}
    else:
        _check_shared(step, place, task, config, verifier, network)
        if said.get("env"):
            found["env"] = variables(verifier["env"], f"{place}.env", host)
    if not has_own_image(found):
        if not any(os.path.isfile(os.path.join(root, "test.sh")) for root in (tests, shared)):
            raise RowError(f"neither steps/{step['name']}/tests/ nor tests/ has a test.sh")
        files = _files(tests, TESTS, rules, budget)
        if files:
            found["files"] = files
    if said.get("collect"):
        found["collect"] = collect(said["collect"], f"{place}.collect", task, network)
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
             "eval": _evaluation(root, f"{place}.verifier", step, task, config, network, host, rules, budget), "limits": _limits(step, config)}
    found.update((key, value) for key, value in parts.items() if value)
    if "min_reward" in step:
        found["min_reward"] = step["min_reward"]
    if step.get("artifacts") and "artifacts" not in parts["eval"]:
        network.notes.add(folder, "steps[].artifacts of a shared verifier are not kept")
    return found


def _evaluation_of_all(folder: str, steps: List[Table], task: Table, config: Table, network: Network, host: Dict[str, str], rules: List[str],
                       budget: Budget) -> Table:
    """What all steps have; tests/ is each step's where not all have it."""
    verifier, found = config.get("verifier", {}), {"kind": "verifier", "sandbox": "agent"}
    without = [step for step in steps if has_own_image(step.get("eval", {}))]
    files = _files(os.path.join(folder, TESTS[1:]), TESTS, rules, budget) if len(without) < len(steps) else []
    for step in steps if without and files else ():
        if step not in without:
            step["eval"] = {**step.get("eval", {}), "files": [*files, *step.get("eval", {}).get("files", [])]}
    env = variables(verifier.get("env", {}), "verifier.env", host)
    said = {"files": [] if without else files, "env": env,
            "collect": collect(verifier.get("collect", []), "verifier.collect", task, network)}
    return {**found, **{name: value for name, value in said.items() if value}}


def steps_fields(folder: str, task: Table, config: Table, network: Network, host: Dict[str, str], rules: List[str], budget: Budget) -> Table:
    """steps, steps_reward and eval, with limits.run_s of all together; RowError says what cannot be."""
    if os.path.isfile(os.path.join(folder, SOLUTION[1:], "solve.sh")):
        network.notes.add(folder, "solution/ is passed over: each step has its own")
    steps = [_step(folder, i, task, config, network, host, rules, budget) for i in range(len(config["steps"]))]
    run_s = sum(step.get("limits", {}).get("run_s", RUN_S) for step in steps)
    task["limits"]["run_s"] = min(math.ceil(run_s), RUN_S_MAX)
    return {"eval": _evaluation_of_all(folder, steps, task, config, network, host, rules, budget), "steps": steps,
            "steps_reward": config.get("multi_step_reward_strategy", "mean")}
