"""[verifier], tests/, artifacts and solution/: how a task is judged, and what a perfect agent does."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence

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


def says_separate(verifier: Table, place: str = "verifier") -> Optional[bool]:
    """What the table says of its mode; None: nothing."""
    mode = verifier.get("environment_mode")
    if "environment" not in verifier:
        return None if mode is None else bool(mode == "separate")
    if mode == "shared":
        raise RowError(f"{place}.environment is of a separate verifier, and {place}.environment_mode says shared")
    return True


def has_own_image(found: Table) -> bool:
    return "image" in found or "build" in found


def _own_image(tests: str, shown: str, config: Table, verifier: Table, network: Network, budget: Budget, place: str) -> Table:
    """The image of a separate verifier's own, which holds the tests; nothing where it stands on the task's."""
    name = verifier.get("environment", {}).get("docker_image")
    if name:
        return {"image": image_named(name, f"{place}.environment.docker_image", network.choices)}
    if os.path.exists(os.path.join(tests, "docker-compose.yaml")):
        raise RowError(f"{shown}/docker-compose.yaml is not supported: a sandbox is one container")
    dockerfile = os.path.join(tests, "Dockerfile")
    if not os.path.exists(dockerfile):
        return {}
    if network.choices.prebuilt:
        raise RowError(f"--prebuilt executes no Dockerfile, and {shown}/Dockerfile makes the verifier's image: "
                       "verifier.environment.docker_image names one, and --image NAME=PATH says where that lies")
    return {"build": build_fields(dockerfile, _environment(config, verifier), network, budget)}


def _environment(config: Table, verifier: Table) -> Table:
    """A separate verifier's: its own, or as the task's."""
    found: Table = verifier["environment"] if "environment" in verifier else config.get("environment", {})
    return found


def _check_environment(config: Table, environment: Table, network: Network, place: str) -> None:
    refuse_undone(environment, "", place)
    for name in environment:
        if name not in DONE:
            raise RowError(f"{place}.{name} is not supported: a separate verifier's is that of environment")
    said, tasks = limits(environment, place), limits(config.get("environment", {}))
    if any(tasks.get(name) != value for name, value in said.items()):
        network.notes.add(network.folder, f"{place} has other limits: its sandbox has those of environment")


def separate(tests: str, shown: str, config: Table, verifier: Table, network: Network, host: Dict[str, str], budget: Budget,
             place: str = "verifier", of_step: Sequence[Any] = ()) -> Table:
    """In a fresh sandbox, with the agent's artifacts in place of all its files; perhaps on an image of its own, of `tests`."""
    environment = verifier.get("environment", {})
    own = _own_image(tests, shown, config, verifier, network, budget, place)
    _check_environment(config, environment, network, f"{place}.environment")
    workdir = (_environment(config, verifier) if own else environment).get("workdir")
    env = _env(own, config, verifier, host, place)
    return {**own, "artifacts": artifacts([*config.get("artifacts", []), *of_step], "artifacts"), **({"workdir": workdir} if workdir else {}),
            **({"user": "root"} if "image" in own else {}), **_of_its_own(verifier, network, place), **({"env": env} if env else {})}


def _env(own: Table, config: Table, verifier: Table, host: Dict[str, str], place: str) -> Dict[str, str]:
    of = f"{place}.environment" if "environment" in verifier else "environment"
    said = _environment(config, verifier) if own else verifier.get("environment", {})
    return {**variables(said.get("env", {}), f"{of}.env", host), **variables(verifier.get("env", {}), f"{place}.env", host)}


def _of_its_own(verifier: Table, network: Network, place: str) -> Table:
    """In a fresh sandbox: its user and its network."""
    found: Table = {} if verifier.get("user") is None else {"user": user_of(verifier["user"])}
    own = {"network_mode": "public", **network.own(verifier["environment"])} if "environment" in verifier else {}
    grants = network.grants({**own, **verifier}, place)
    return {**found, "network": grants} if grants else found


def differs(task: Table, config: Table, verifier: Table, network: Network, place: str = "verifier") -> List[str]:
    """What of a shared verifier is not as the agent has it."""
    agent, own = config.get("agent", {}), _of_its_own(verifier, network, place)
    return [name for name, differs in (("user", "user" in own and {"0": "root"}.get(own["user"], own["user"]) != agents_user(task)),
                                       ("network", own.get("network", []) != network.grants(agent, "agent"))) if differs]


def _shared(task: Table, config: Table, verifier: Table, network: Network) -> Table:
    """In the agent's sandbox, where user and network are the agent's."""
    other = differs(task, config, verifier, network)
    if not other:
        return {"sandbox": "agent"}
    network.notes.add(network.folder, f"the verifier's {' and '.join(other)} is not the agent's: it is evaluated in a fresh sandbox, "
                      "without the agent's processes")
    return _of_its_own(verifier, network, "verifier")


def eval_fields(folder: str, task: Table, config: Table, network: Network, host: Dict[str, str], rules: List[str], budget: Budget) -> Table:
    verifier = config.get("verifier", {})
    tests = os.path.join(folder, "tests")
    if os.path.exists(os.path.join(tests, "test.bat")) and not os.path.exists(os.path.join(tests, "test.sh")):
        raise RowError("tests/test.bat is for windows, and sandboxes are Linux")
    is_separate = says_separate(verifier)
    own = separate(tests, "tests", config, verifier, network, host, budget) if is_separate else {}
    if not os.path.isfile(os.path.join(tests, "test.sh")) and not has_own_image(own):
        raise RowError("it has no tests/test.sh")
    found: Table = {"kind": "verifier"}
    files = files_of(tests, TESTS, rules, budget) if os.path.isdir(tests) and not has_own_image(own) else []
    if files:
        found["files"] = files
    found.update(own if is_separate else _shared(task, config, verifier, network))
    env = {} if is_separate else variables(verifier.get("env", {}), "verifier.env", host)
    if env:
        found["env"] = env
    if verifier.get("collect"):
        found["collect"] = collect(verifier["collect"], "verifier.collect", task, network)
    return found


def solution_of(root: str, config: Table, host: Dict[str, str], rules: List[str], budget: Budget) -> Table:
    """What the folder of a solution, or of a step's, holds; nothing without a solve.sh."""
    if not os.path.isfile(os.path.join(root, "solve.sh")):
        return {}
    env = {"DEBIAN_FRONTEND": "noninteractive", **variables(config.get("solution", {}).get("env", {}), "solution.env", host)}
    return {"files": files_of(root, SOLUTION, rules, budget), "commands": [f"bash {SOLUTION}/solve.sh"], "env": env}
