"""[verifier], tests/, artifacts and solution/: how a task is judged, and what a perfect agent does."""

from __future__ import annotations

import os
from typing import Any, Dict, List

from ...task.task_rules import OBJECTS
from ..row import RowError
from .environment import Network, agents_user, seconds, user_of, variables
from .schema import Table
from .tree import Budget, files_of

TESTS, SOLUTION = "/tests", "/solution"


def _need(field: str, name: str) -> None:
    parent, _, key = field.rpartition(".")
    if key not in OBJECTS.get(parent, {}):
        raise RowError(f"{name} is not done: tasks of this version have no {field}")


def collect(said: List[Table], place: str) -> List[Table]:
    found = []
    for i, one in enumerate(said):
        if one.get("service", "main") != "main":
            raise RowError(f"{place}[{i}].service is {one['service']}, and a sandbox is one container: main")
        if not one.get("command"):
            raise RowError(f"{place}[{i}].command is missing")
        row: Dict[str, Any] = {"command": one["command"], "timeout_s": seconds(one.get("timeout_sec", 60), 86400)}
        if one.get("user") is not None:
            row["user"] = user_of(one["user"])
        found.append(row)
    return found


def artifacts(said: List[Any], place: str) -> List[str]:
    paths = []
    for i, one in enumerate(said):
        row = {"source": one} if isinstance(one, str) else one
        if row.get("service", "main") != "main" or row.get("exclude") or row.get("destination", row.get("source")) != row.get("source"):
            raise RowError(f"{place}[{i}] is not done: an artifact is a path of the sandbox, and goes to the same path")
        if not row.get("source"):
            raise RowError(f"{place}[{i}].source is missing")
        paths.append(row["source"])
    return paths


def _separate(config: Table, verifier: Table, found: Table) -> None:
    if verifier.get("environment"):
        raise RowError("verifier.environment is not done: the evaluator stands on the task's own image")
    _need("eval.artifacts", "verifier.environment_mode separate")
    found["artifacts"] = artifacts(config.get("artifacts", []), "artifacts") + ["/logs/artifacts"]


def _of_its_own(verifier: Table, network: Network) -> Table:
    """In a fresh sandbox: its user and its network."""
    found: Table = {} if verifier.get("user") is None else {"user": user_of(verifier["user"])}
    grants = network.grants(verifier, "verifier")
    return {**found, "network": grants} if grants else found


def _shared(task: Table, config: Table, verifier: Table, network: Network) -> Table:
    """In the agent's sandbox, where user and network are the agent's."""
    agent, own = config.get("agent", {}), _of_its_own(verifier, network)
    differs = [name for name, differs in (("user", "user" in own and {"0": "root"}.get(own["user"], own["user"]) != agents_user(task)),
                                          ("network", own.get("network", []) != network.grants(agent, "agent"))) if differs]
    if not differs:
        return {"sandbox": "agent"}
    network.notes.add(network.folder, f"the verifier's {' and '.join(differs)} is not the agent's: it is evaluated in a fresh sandbox, "
                      "without the agent's processes")
    return own


def eval_fields(folder: str, task: Table, config: Table, network: Network, host: Dict[str, str], rules: List[str], budget: Budget) -> Table:
    verifier = config.get("verifier", {})
    tests = os.path.join(folder, "tests")
    if os.path.exists(os.path.join(tests, "test.bat")) and not os.path.exists(os.path.join(tests, "test.sh")):
        raise RowError("tests/test.bat is for windows, and sandboxes are Linux")
    if not os.path.isfile(os.path.join(tests, "test.sh")) and not config.get("steps"):
        raise RowError("it has no tests/test.sh")
    found: Table = {"kind": "verifier"}
    files = files_of(tests, TESTS, rules, budget) if os.path.isdir(tests) else []
    if files:
        found["files"] = files
    env = variables(verifier.get("env", {}), "verifier.env", host)
    if env:
        found["env"] = env
    if verifier.get("environment_mode") == "separate" or verifier.get("environment"):
        _separate(config, verifier, found)
        found.update(_of_its_own(verifier, network))
    else:
        found.update(_shared(task, config, verifier, network))
    if verifier.get("collect"):
        _need("eval.collect", "verifier.collect")
        found["collect"] = collect(verifier["collect"], "verifier.collect")
    return found


def solution_fields(folder: str, config: Table, host: Dict[str, str], rules: List[str], budget: Budget) -> Table:
    root = os.path.join(folder, "solution")
    if not os.path.isfile(os.path.join(root, "solve.sh")):
        return {}
    env = {"DEBIAN_FRONTEND": "noninteractive", **variables(config.get("solution", {}).get("env", {}), "solution.env", host)}
    return {"files": files_of(root, SOLUTION, rules, budget), "commands": [f"bash {SOLUTION}/solve.sh"], "env": env}
