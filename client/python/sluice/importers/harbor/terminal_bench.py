"""Folders of the older terminal-bench: task.yaml, run-tests.sh, solution.sh, a Dockerfile and a compose file of one service."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List

from ..row import RowError, named
from .choices import HarborChoices, Notes
from .environment import Network, build_fields, image_of, seconds, users
from .folder import EVAL_S_MAX, RUN_S_MAX
from .reading import cut_canary, read_text
from .tree import Budget, check_own_links, files_of, inline

AGENT_S, TEST_S = 360, 60
KNOWN = {"instruction", "descriptions", "author_name", "author_email", "difficulty", "category", "tags", "parser_name",
         "max_agent_timeout_sec", "max_test_timeout_sec", "run_tests_in_same_shell", "disable_asciinema",
         "estimated_duration_sec", "expert_time_estimate_min", "junior_time_estimate_min"}
TEST_SH = """#!/bin/bash
export TEST_DIR=/tests
bash /tests/run-tests.sh
if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


def _read_yaml(path: str) -> Dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise RowError(f"{os.path.basename(path)} needs the package PyYAML: pip install PyYAML") from None
    try:
        found = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, RecursionError) as why:
        raise RowError(f"{os.path.basename(path)} is not YAML: {' '.join(str(why).split())}") from None
    if not isinstance(found, dict):
        raise RowError(f"{os.path.basename(path)} must be a mapping")
    return found


def _instruction(about: Dict[str, Any]) -> str:
    said = about.get("instruction")
    if said is None:
        rows = about.get("descriptions")
        rows = rows if isinstance(rows, list) else []
        said = next((row.get("description") for row in rows if isinstance(row, dict) and row.get("key") == "base"), None)
    if not isinstance(said, str) or not said.strip():
        raise RowError("task.yaml: instruction must be a string")
    return cut_canary(said).strip()


def _seconds(about: Dict[str, Any], name: str, standard: int, most: int) -> int:
    value = about.get(name, standard)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < 1e9:
        raise RowError(f"task.yaml: {name} must be a positive number")
    return seconds(value, most)


def _service(folder: str) -> Dict[str, Any]:
    """What the one service of its compose file says."""
    path = os.path.join(folder, "docker-compose.yaml")
    if not os.path.exists(path):
        return {}
    services = _read_yaml(path).get("services")
    if not isinstance(services, dict) or len(services) != 1:
        raise RowError("docker-compose.yaml has several services, and a sandbox is one container")
    (service,) = services.values()
    return service if isinstance(service, dict) else {}


def _environment(service: Dict[str, Any]) -> Dict[str, str]:
    said = service.get("environment") or {}
    pairs = said.items() if isinstance(said, dict) else (str(one).split("=", 1) for one in said if "=" in str(one))
    return {str(name): str(value) for name, value in pairs if "${" not in str(value)}


def _check_context(text: str) -> None:
    """The folder is the context, and holds tests and solution."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] and words[0].upper() in ("COPY", "ADD") and any(re.fullmatch(r"\.?/?|\./?\*?|\*", word) for word in words[1:-1]):
            raise RowError("its Dockerfile copies the whole folder, tests and solution with it: name what it copies")


def _tests(folder: str, budget: Budget) -> List[Dict[str, Any]]:
    script = os.path.join(folder, "run-tests.sh")
    if not os.path.isfile(script):
        raise RowError("it has no run-tests.sh")
    tests = os.path.join(folder, "tests")
    files = files_of(tests, "/tests", [], budget) if os.path.isdir(tests) else []
    return files + [inline("/tests/run-tests.sh", read_text(script).encode(), 0o755), inline("/tests/test.sh", TEST_SH.encode(), 0o755)]


def _image(folder: str, choices: HarborChoices, network: Network) -> Dict[str, Any]:
    dockerfile = os.path.join(folder, "Dockerfile")
    image = image_of(None, folder, choices)
    found: Dict[str, Any] = {} if image is None else {"image": image}
    if not choices.prebuilt and os.path.exists(dockerfile):
        _check_context(read_text(dockerfile))
        found["build"] = build_fields(dockerfile, {}, network)
    elif image is None:
        raise RowError("it has no Dockerfile: --image PATH gives it an image" if not choices.prebuilt
                       else "--prebuilt takes --image PATH, of an image that is made already")
    return found


def task_of_old_folder(folder: str, choices: HarborChoices, notes: Notes) -> Dict[str, Any]:
    """RowError says why there is none."""
    check_own_links(folder)
    about = _read_yaml(os.path.join(folder, "task.yaml"))
    for name in about:
        if name not in KNOWN:
            notes.add(folder, f"task.yaml: {name} is not known, and is passed over")
    service = _service(folder)
    network, budget = Network({}, choices, notes, folder), Budget(choices.files)
    grants = network.grants()
    task: Dict[str, Any] = {"task": named(os.path.basename(folder), "task"), "prompt": _instruction(about),
                            **_image(folder, choices, network), "env": _environment(service),
                            "agent": {"kind": "bash"},
                            "eval": {"kind": "verifier", "files": _tests(folder, budget)},
                            "limits": {"run_s": _seconds(about, "max_agent_timeout_sec", AGENT_S, RUN_S_MAX),
                                       "eval_s": _seconds(about, "max_test_timeout_sec", TEST_S, EVAL_S_MAX)},
                            "metadata": {name: about[name] for name in ("difficulty", "category", "tags") if name in about}}
    task.update(users({}, "build" in task))
    task["eval"]["sandbox"] = "agent"
    if isinstance(service.get("working_dir"), str):
        task["workdir"] = service["working_dir"]
    if grants:
        task["network"] = grants
    if os.path.isfile(os.path.join(folder, "solution.sh")):
        task["solution"] = {"files": [inline("/solution/solution.sh", read_text(os.path.join(folder, "solution.sh")).encode(), 0o755)],
                            "commands": ["bash /solution/solution.sh"], "env": {"DEBIAN_FRONTEND": "noninteractive"}}
    elif os.path.exists(os.path.join(folder, "solution.yaml")):
        notes.add(folder, "solution.yaml types into a terminal, and is not supported: the task has no solution")
    return task
