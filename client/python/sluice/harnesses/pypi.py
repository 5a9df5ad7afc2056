"""Harnesses of PyPI: wheels in a directory that has its Python with it (interpreter.py). pip compares each with its sha256."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import Any, Dict, Iterator, List, Optional

from . import running
from .interpreter import Interpreter, add_libraries, choose, copy_beside, copy_interpreter
from .recipes import HarnessError, Pypi

_OPTIONS = ("--disable-pip-version-check", "--no-input", "--no-compile", "--only-binary", ":all:", "--retries", "2", "--timeout", "30",
            "--root-user-action", "ignore", "--quiet")
# Beside the interpreter that it is to find: a script starts anywhere.
_HEAD = "#!/bin/sh\n'''exec' \"${0%/*}/python3\" \"$0\" \"$@\"\n' '''\n"
_OF_VENV = re.compile(r"(activate|deactivate|pip|python|Activate)")


def _requirements(packages: List[Dict[str, str]]) -> str:
    return "".join(f"{row['name']}=={row['version']} --hash={row['digest']}\n" for row in packages)


def _packages(report: str) -> List[Dict[str, str]]:
    with open(report, encoding="utf-8") as file:
        rows = json.load(file)["install"]
    found = []
    for row in rows:
        digest = row["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if not digest:
            raise HarnessError(f"pip installed {row['metadata']['name']} without a digest, which cannot be recorded")
        found.append({"name": row["metadata"]["name"], "version": row["metadata"]["version"], "digest": f"sha256:{digest}"})
    return found


def _wanted(recipe: Pypi, version: str) -> Iterator[List[str]]:
    yield [package.format(version=version) for package in recipe.packages]
    if recipe.bare:
        yield ["--no-deps", *(package.format(version=version) for package in recipe.bare)]


def _move_program(path: str, bin_: str) -> None:
    with open(path, "rb") as file:
        text = file.read()
    target = os.path.join(bin_, os.path.basename(path))
    first, _, rest = text.partition(b"\n")
    with open(target, "wb") as file:
        file.write(_HEAD.encode() + rest if first.startswith(b"#!") and b"python" in first else text)
    os.chmod(target, 0o755)


def _move(venv: str, into: str, python: Interpreter) -> None:
    """Out of the environment that pip filled, whose paths are its own."""
    packages = os.path.join(into, "lib", python.name, "site-packages")
    os.rename(os.path.join(venv, "lib", python.name, "site-packages"), packages)
    for name in os.listdir(packages):
        if re.match(r"(pip|setuptools|wheel)(-|$)", name):
            shutil.rmtree(os.path.join(packages, name))
    for name in sorted(os.listdir(os.path.join(venv, "bin"))):
        if not _OF_VENV.match(name):
            _move_program(os.path.join(venv, "bin", name), os.path.join(into, "bin"))
    shutil.rmtree(venv)


def install(name: str, recipe: Pypi, version: str, into: str, lock: Optional[Dict[str, Any]], wanted: Optional[str]) -> Dict[str, Any]:
    """What is recorded: packages with their digests."""
    python = choose(name, recipe.python, wanted)
    venv, report, listed = (os.path.join(into, part) for part in (".venv", "report.json", "requirements.txt"))
    running.run([python.executable, "-m", "venv", venv], name, "PyPI", into)
    command = [os.path.join(venv, "bin", "python3"), "-m", "pip", "install", *_OPTIONS, "--report", report]
    packages: List[Dict[str, str]] = []
    if lock:
        with open(listed, "w", encoding="utf-8") as file:
            file.write(_requirements(lock["packages"]))
    for wanted_ in [["--no-deps", "--require-hashes", "-r", listed]] if lock else _wanted(recipe, version):
        running.run([*command, *wanted_], name, "PyPI", into)
        packages += _packages(report)
    copy_interpreter(python, into)
    _move(venv, into, python)
    add_libraries(python, into)
    for program in recipe.beside:
        copy_beside(name, program, into)
    for link, target in recipe.links.items():
        os.symlink(target, os.path.join(into, "bin", link))
    for path in (report, listed):
        if os.path.exists(path):
            os.remove(path)
    compile_ = [os.path.join(into, "bin", "python3"), "-m", "compileall", "-q", "-s", into, "-p", f"/opt/harness/{name}",
                "--invalidation-mode", "unchecked-hash", os.path.join(into, "lib")]
    running.compile_all(compile_, name)
    return {"packages": sorted(packages, key=lambda row: row["name"].lower()), "python": ".".join(map(str, python.version))}
