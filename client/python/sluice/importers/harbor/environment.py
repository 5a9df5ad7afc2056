"""[environment], [agent] and [solution]: where a task's commands run, with what, and what they may reach."""

from __future__ import annotations

import math
import os
import re
from typing import Any, Dict, List, Mapping, Optional

from ...task.task_fields import OBJECTS
from ..row import RowError
from .choices import HarborChoices, Notes
from .reading import read_text
from .schema import Table, size_mib
from .tree import Budget, context_of, files_of

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\}", re.S)
UNDONE = (("tpu", "no sandbox has one"), ("mcp_servers", "no agent here speaks to one"), ("skills_dir", "no agent here reads one"))
INIT_S = 120
LEAST = {"cpus": 1, "memory_mib": 16, "disk_mib": 1}  # what is said less of is that


def seconds(value: float, most: int) -> int:
    return max(1, min(most, math.ceil(value)))


def variables(said: Mapping[str, str], place: str, host: Mapping[str, str]) -> Dict[str, str]:
    """With ${NAME} and ${NAME:-default} of the host's filled in."""
    found = {}
    for name, text in said.items():
        match = _VARIABLE.fullmatch(text)
        if match:
            value = host.get(match[1]) or match[2]
            if value is None:
                raise RowError(f"{place}.{name} is {text}, and {match[1]} is not set here: set it, or give it a default")
            text = value
        found[name] = text
    return found


class Network:
    """network_mode of the environment, and of those who override it, as names of grants."""

    def __init__(self, environment: Table, choices: HarborChoices, notes: Notes, folder: str) -> None:
        self.choices, self.notes, self.folder = choices, notes, folder
        self.base = {"network_mode": "public", "allowed_hosts": [], **self.own(environment)}

    @staticmethod
    def own(environment: Table) -> Table:
        """What an environment says of it, the old way included."""
        said = {"network_mode": "public" if environment["allow_internet"] else "no-network"} if "allow_internet" in environment else {}
        return {**said, **{name: environment[name] for name in ("network_mode", "allowed_hosts") if name in environment}}

    def grants(self, owner: Optional[Table] = None, place: str = "environment") -> List[str]:
        said = {**self.base, **{name: value for name, value in (owner or {}).items() if name in self.base}}
        if said["network_mode"] == "no-network":
            return []
        if said["network_mode"] == "public":
            if self.choices.network_grant is None:
                self.notes.add(self.folder, "network_mode is public, and there is no network: --network-grant NAME says which grant stands for it")
                return []
            return [self.choices.network_grant]
        missing = [host for host in said["allowed_hosts"] if host not in self.choices.host_grants]
        if missing:
            place = place if "allowed_hosts" in (owner or {}) else "environment"
            raise RowError(f"{place}.allowed_hosts: {', '.join(missing)}: --network-grant HOST=NAME says which grant leads there")
        return sorted({self.choices.host_grants[host] for host in said["allowed_hosts"]})


def refuse_undone(environment: Table, folder: str, place: str = "environment") -> None:
    for name, why in UNDONE:
        if environment.get(name):
            raise RowError(f"{place}.{name} is not supported: {why}")
    if environment.get("os", "linux") != "linux":
        raise RowError(f"{place}.os is windows, and sandboxes are Linux")
    for name in ("docker-compose.yaml", "docker-compose.yml") if folder else ():
        if os.path.exists(os.path.join(folder, "environment", name)):
            raise RowError(f"environment/{name} is not supported: a sandbox is one container")


def limits(environment: Table, place: str = "environment") -> Dict[str, int]:
    found: Dict[str, int] = {}
    for name, fields in (("cpus", ("cpus",)), ("memory_mib", ("memory_mb", "memory")), ("disk_mib", ("storage_mb", "storage")), ("gpus", ("gpus",))):
        field = next((field for field in fields if field in environment), None)
        said = environment[field] if field else None
        value = size_mib(said) if isinstance(said, str) else said
        if not value:
            continue
        most = int(OBJECTS["limits"][name].most)
        if value > most:
            raise RowError(f"{place}.{field} is {str(said)[:40]}, and the most there may be is {most}{' MiB' if name.endswith('_mib') else ''}")
        found[name] = max(LEAST.get(name, 0), math.ceil(value))
    return found


def healthcheck(said: Table) -> str:
    """Its command until it succeeds, as often as it may be tried."""
    interval, timeout = said.get("interval_sec", 5), said.get("timeout_sec", 30)
    start, pause = said.get("start_period_sec", 0), said.get("start_interval_sec", 5)
    quoted = "'" + said.get("command", "true").replace("'", "'\\''") + "'"
    tries = int(said.get("retries", 3)) + (math.ceil(start / max(pause, 0.1)) if start else 0)
    return (f"for try in $(seq {max(1, tries)}); do timeout {timeout:g} bash -c {quoted} && exit 0; "
            f"sleep {(pause if start else interval):g}; done; echo 'the healthcheck has failed' >&2; exit 1")


def image_at(path: str) -> str:
    """The image at a path as tasks name it: by its absolute path, or "host"."""
    return path if path == "host" else os.path.abspath(path)


def image_named(name: str, place: str, choices: HarborChoices) -> str:
    if name in choices.images:
        return choices.images[name]
    if name == "host" or name.startswith("/"):
        return name
    raise RowError(f"{place} is {name}: --image {name}=PATH says where that image lies (docs/images.md)")


def image_of(name: Optional[str], folder: str, choices: HarborChoices) -> Optional[str]:
    if choices.image is not None and name not in choices.images:
        return image_at(choices.image.replace("{task}", os.path.basename(folder)))
    return None if name is None else image_named(name, "environment.docker_image", choices)


def build_fields(dockerfile: str, environment: Table, network: Network, budget: Optional[Budget] = None) -> Table:
    """Without a budget its context is read from where it lies."""
    context = os.path.dirname(dockerfile)
    found: Table = {"dockerfile": read_text(dockerfile), **context_of(context, budget or Budget("source")),
                    "timeout_s": seconds(environment.get("build_timeout_sec", 600), 86400)}
    grant = network.choices.network_grant
    return {**found, "network": [grant]} if grant is not None else found


def image_fields(folder: str, environment: Table, choices: HarborChoices, network: Network, budget: Budget) -> Table:
    """image, build and files, as far as they follow from environment/."""
    context = os.path.join(folder, "environment")
    dockerfile = os.path.join(context, "Dockerfile")
    has_dockerfile = os.path.exists(dockerfile)
    found: Table = {}
    image = image_of(environment.get("docker_image"), folder, choices)
    if image is not None:
        found["image"] = image
    if has_dockerfile and not choices.prebuilt and "docker_image" not in environment:
        found["build"] = build_fields(dockerfile, environment, network, budget)
    elif image is None:
        raise RowError("it has neither environment/Dockerfile nor environment.docker_image: --image PATH gives it an image"
                       if not has_dockerfile else "--prebuilt takes --image PATH, of an image that is made already")
    if not has_dockerfile and os.path.isdir(context):
        files = files_of(context, ".", [], budget)
        if files:
            found["files"] = files
    return found


def user_of(said: Any) -> Optional[str]:
    return None if said is None else str(said)


def users(config: Table, is_built: bool) -> Dict[str, str]:
    """The agent's. Where it names none, a Dockerfile's; where there is none, root, as in every image that names none."""
    said = user_of(config.get("agent", {}).get("user")) or (None if is_built else "root")
    return {} if said is None else {"user": said}


def agents_user(task: Table) -> Optional[str]:
    """Who the agent is, as a name; None where the image or a line of the Dockerfile says that."""
    lines = task.get("build", {}).get("dockerfile", "").splitlines()
    said = task.get("user") or (None if any(line.strip().upper().startswith("USER ") for line in lines) else "root")
    return "root" if said == "0" else said
