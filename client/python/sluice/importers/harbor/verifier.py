"""[verifier], tests/, artifacts and solution/: how a task is judged, and what a perfect agent does."""

from __future__ import annotations

import os
from typing import Any, Dict, List

from ..row import RowError
from .environment import UNDONE, Network, agents_user, build_fields, image_named, limits, refuse_undone, seconds, user_of, variables
from .schema import Table
from .tree import Budget, files_of

TESTS, SOLUTION = "/tests", "/solution"


COLLECT_S, CONVENTION = 86400, "/logs/artifacts"
DONE = ("docker_image", "os", "build_timeout_sec", "env", "network_mode", "allowed_hosts", "allow_internet", "cpus", "memory_mb", "storage_mb",
        "memory", "storage", "gpus", "gpu_types", "workdir", *(name for name, _ in UNDONE))  # of verifier.environment; others cannot differ


def collect(said: List[Table], place: str, task: Table, network: Network) -> List[Table]:
    found: List[Table] = []
    for i, one in enumerate(said):
        if one.get("service", "main") != "main":
            raise RowError(f"{place}[{i}].service is {one['service']}, and a sandbox is one container: main")
        if not one.get("command"):
            raise RowError(f"{place}[{i}].command is missing")
        who = user_of(one.get("user"))
        other = who is not None and {"0": "root"}.get(who, who) != agents_user(task)
        if other:
            network.notes.add(network.folder, f"{place}[{i}].user is {who}: it has the home of that user, and the id of the agent's, as all in its "
                              "sandbox have")
        found.append({"command": one["command"], "timeout_s": seconds(one.get("timeout_sec", 60), COLLECT_S), **({"user": who} if other else {})})
    return found


def artifacts(said: List[Any], place: str) -> List[Any]:
    """Where they go to on Harbor's host makes no difference: in the verifier's sandbox each lies where it lay in the agent's."""
    rows = [{"source": one} if isinstance(one, str) else one for one in said]
    found: List[Any] = []
    for i, row in enumerate(rows):
        source = row.get("source", "")
        if row.get("service", "main") != "main":
            raise RowError(f"{place}[{i}].service is {row['service']}, and a sandbox is one container: main")
        if not source:
            raise RowError(f"{place}[{i}].source is missing")
        if ".." in source.split("/"):
            raise RowError(f"{place}[{i}].source is {source}, and may have no \"..\"")
        found.append({"path": source, "exclude": row["exclude"]} if row.get("exclude") else source)
    has_convention = any(row["source"].rstrip("/") == CONVENTION for row in rows)
    return found if has_convention else [CONVENTION, *found]


def _is_separate(verifier: Table) -> bool:
    if "environment" not in verifier:
        return verifier.get("environment_mode") == "separate"
    if verifier.get("environment_mode") == "shared":
        raise RowError("verifier.environment is of a separate verifier, and verifier.environment_mode says shared")
    return True


def own_image(tests: str, config: Table, verifier: Table, network: Network, budget: Budget) -> Table:
    """The image of a separate verifier's own, which holds the tests; nothing where it stands on the task's."""
    if not _is_separate(verifier):
        return {}
    name = verifier.get("environment", {}).get("docker_image")
    if name:
        return {"image": image_named(name, "verifier.environment.docker_image", network.choices)}
    if os.path.exists(os.path.join(tests, "docker-compose.yaml")):
        raise RowError("tests/docker-compose.yaml is not supported: a sandbox is one container")
    dockerfile = os.path.join(tests, "Dockerfile")
    if not os.path.exists(dockerfile):
        return {}
    if network.choices.prebuilt:
        raise RowError("--prebuilt executes no Dockerfile, and tests/Dockerfile makes the verifier's image: "
                       "verifier.environment.docker_image names one, and --image NAME=PATH says where that lies")
    return {"build": build_fields(dockerfile, _environment(config, verifier), network, budget)}


def _environment(config: Table, verifier: Table) -> Table:
    """A separate verifier's: its own, or as the task's."""
    found: Table = verifier["environment"] if "environment" in verifier else config.get("environment", {})
    return found


def _separate(own: Table, config: Table, verifier: Table, network: Network) -> Table:
    """In a fresh sandbox, with the agent's artifacts in place of all its files."""
    environment, place = verifier.get("environment", {}), "verifier.environment"
    refuse_undone(environment, "", place)
    for name in environment:
        if name not in DONE:
            raise RowError(f"{place}.{name} is not supported: a separate verifier's is that of environment")
    said, tasks = limits(environment, place), limits(config.get("environment", {}))
    if any(tasks.get(name) != value for name, value in said.items()):
        network.notes.add(network.folder, f"{place} has other limits: its sandbox has those of environment")
    workdir = (_environment(config, verifier) if own else environment).get("workdir")
    return {**own, "artifacts": artifacts(config.get("artifacts", []), "artifacts"), **({"workdir": workdir} if workdir else {}),
            **({"user": "root"} if "image" in own else {})}


def _of_its_own(verifier: Table, network: Network) -> Table:
    """In a fresh sandbox: its user and its network."""
    found: Table = {} if verifier.get("user") is None else {"user": user_of(verifier["user"])}
    own = {"network_mode": "public", **network.own(verifier["environment"])} if "environment" in verifier else {}
    grants = network.grants({**own, **verifier}, "verifier")
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
    own = own_image(tests, config, verifier, network, budget)
    if not os.path.isfile(os.path.join(tests, "test.sh")) and not config.get("steps") and not own:
        raise RowError("it has no tests/test.sh")
    found: Table = {"kind": "verifier"}
    files = files_of(tests, TESTS, rules, budget) if os.path.isdir(tests) and not own else []
    if files:
        found["files"] = files
    of = "verifier.environment" if "environment" in verifier else "environment"
    said = _environment(config, verifier) if own else verifier.get("environment", {})
    env = {**variables(said.get("env", {}), f"{of}.env", host), **variables(verifier.get("env", {}), "verifier.env", host)}
    if env:
        found["env"] = env
    if _is_separate(verifier):
        found.update(_separate(own, config, verifier, network))
        found.update(_of_its_own(verifier, network))
    else:
        found.update(_shared(task, config, verifier, network))
    if verifier.get("collect"):
        found["collect"] = collect(verifier["collect"], "verifier.collect", task, network)
    return found


def solution_of(root: str, config: Table, host: Dict[str, str], rules: List[str], budget: Budget) -> Table:
    """What the folder of a solution, or of a step's, holds; nothing without a solve.sh."""
    if not os.path.isfile(os.path.join(root, "solve.sh")):
        return {}
    env = {"DEBIAN_FRONTEND": "noninteractive", **variables(config.get("solution", {}).get("env", {}), "solution.env", host)}
    return {"files": files_of(root, SOLUTION, rules, budget), "commands": [f"bash {SOLUTION}/solve.sh"], "env": env}
