"""The fields of task.toml, of every schema version: what type each has, and what of it cannot be done."""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from ..row import RowError

Table = Dict[str, Any]
Kind = Union[str, Mapping[str, Any]]

NETWORK: Dict[str, Kind] = {"network_mode": "public|no-network|allowlist", "allowed_hosts": "texts"}
HEALTH: Dict[str, Kind] = {"command": "text", "interval_sec": "number", "timeout_sec": "number", "start_period_sec": "number",
                           "start_interval_sec": "number", "retries": "whole"}
ENVIRONMENT: Dict[str, Kind] = {
    "build_timeout_sec": "number", "docker_image": "text", "os": "linux|windows", "cpus": "number", "memory_mb": "number",
    "storage_mb": "number", "memory": "size", "storage": "size", "gpus": "whole", "gpu_types": "texts", "tpu": "table",
    "allow_internet": "boolean", "env": "variables", "workdir": "text", "skills_dir": "text", "mcp_servers": "tables",
    "healthcheck": HEALTH, **NETWORK}
AGENT: Dict[str, Kind] = {"timeout_sec": "number", "user": "user", **NETWORK}
VERIFIER: Dict[str, Kind] = {"timeout_sec": "number", "env": "variables", "user": "user", "environment_mode": "shared|separate",
                             "environment": ENVIRONMENT, "collect": "tables", **NETWORK}
COLLECT: Dict[str, Kind] = {"command": "text", "service": "text", "timeout_sec": "number", "user": "user"}
ARTIFACT: Dict[str, Kind] = {"source": "text", "destination": "text", "exclude": "texts", "service": "text"}
STEP: Dict[str, Kind] = {"name": "text", "agent": AGENT, "verifier": VERIFIER, "min_reward": "rewards", "healthcheck": HEALTH,
                         "artifacts": "list"}
ROOT: Dict[str, Kind] = {
    "schema_version": "text", "version": "text", "source": "text", "artifacts": "list", "multi_step_reward_strategy": "mean|final",
    "task": {"name": "text", "version": "text", "description": "text", "authors": "tables", "keywords": "texts"},
    "metadata": "table", "agent": AGENT, "verifier": VERIFIER, "environment": ENVIRONMENT, "solution": {"env": "variables"},
    "steps": "tables"}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_CHECKS: Dict[str, Tuple[str, Any]] = {
    "text": ("a string", lambda value: isinstance(value, str)),
    "number": ("a number that is not negative", _is_number),
    "whole": ("a whole number", lambda value: _is_number(value) and isinstance(value, int)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "user": ("a user's name or number", lambda value: isinstance(value, str) or (_is_number(value) and isinstance(value, int))),
    "texts": ("a list of strings", _is_texts),
    "table": ("a table", lambda value: isinstance(value, dict)),
    "tables": ("a list of tables", lambda value: isinstance(value, list) and all(isinstance(one, dict) for one in value)),
    "list": ("a list", lambda value: isinstance(value, list)),
    "variables": ("a table of strings", lambda value: isinstance(value, dict) and all(isinstance(one, str) for one in value.values())),
    "size": ('a size such as "2G"', lambda value: isinstance(value, str) and size_mib(value) is not None),
    "rewards": ("a number, or a table of numbers", lambda value: _is_real(value) or (isinstance(value, dict) and all(map(_is_real, value.values())))),
}


def _is_real(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def size_mib(text: str) -> Optional[int]:
    """"2G", "512M", "10Gi" in MiB; None where it is none."""
    number = text.strip().upper().rstrip("B").rstrip("I")
    unit = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1 << 20}.get(number[-1:], None)
    try:
        value = float(number[:-1]) * unit if unit else float(number) / (1 << 20)
    except ValueError:
        return None
    return math.ceil(value) if math.isfinite(value) and value >= 0 else None


def check(kind: Kind, value: Any, place: str, unknown: "list[str]") -> None:
    """RowError where a value has the wrong type; names of fields that are not known are added to `unknown`."""
    if isinstance(kind, str):
        words, holds = _CHECKS.get(kind, (f"one of {kind.replace('|', ', ')}", lambda one: isinstance(one, str) and one in kind.split("|")))
        if not holds(value):
            raise RowError(f"task.toml: {place} must be {words}")
        return
    if not isinstance(value, dict):
        raise RowError(f"task.toml: {place or 'it'} must be a table")
    for name, inner in value.items():
        path = f"{place}.{name}" if place else name
        if name not in kind:
            unknown.append(path)
        else:
            check(kind[name], inner, path, unknown)


def check_lists(config: Table, unknown: "list[str]") -> None:
    """The tables within lists, which `check` has found to be tables."""
    steps = config.get("steps", [])
    for i, step in enumerate(steps):
        check(STEP, step, f"steps[{i}]", unknown)
    for place, owner in [("verifier", config.get("verifier", {}))] + [(f"steps[{i}].verifier", s.get("verifier", {})) for i, s in enumerate(steps)]:
        for i, one in enumerate(owner.get("collect", [])):
            check(COLLECT, one, f"{place}.collect[{i}]", unknown)
    for place, owner in [("", config)] + [(f"steps[{i}].", s) for i, s in enumerate(steps)]:
        for i, one in enumerate(owner.get("artifacts", [])):
            if not isinstance(one, str):
                check(ARTIFACT, one, f"{place}artifacts[{i}]", unknown)
