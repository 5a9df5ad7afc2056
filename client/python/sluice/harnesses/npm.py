"""Harnesses of npm: node_modules in the directory, and its programs as links. npm compares each archive with its integrity."""

from __future__ import annotations

import glob
import json
import os
from typing import Any, Dict, List, Optional, Tuple

from . import running
from .recipes import HarnessError, Npm

# Scripts of packages would fetch more. Where an archive lies is the registry's to say, and in no lock.
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--omit-lockfile-registry-resolved", "--fetch-retries=2",
            "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000", "--install-strategy=hoisted")


def _write(path: str, value: Any) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)


def _split(package: str, version: str) -> Tuple[str, str]:
    name, _, wanted = package.rpartition("@")
    return name, wanted.format(version=version)


def _link(name: str, into: str, program: str, pattern: str) -> None:
    found = sorted(glob.glob(os.path.join(into, "node_modules", pattern)))
    if not found:
        raise HarnessError(f"{name}: there is no {pattern} in what npm installed (another machine, or another version's layout)")
    os.makedirs(os.path.join(into, "bin"), exist_ok=True)
    os.symlink(os.path.relpath(found[0], os.path.join(into, "bin")), os.path.join(into, "bin", program))


def _packages(into: str) -> List[Dict[str, str]]:
    """What lies in node_modules, by npm's own record of it."""
    with open(os.path.join(into, "node_modules", ".package-lock.json"), encoding="utf-8") as file:
        rows = json.load(file)["packages"]
    found = [{"name": place.rpartition("node_modules/")[2], "version": str(row.get("version", "")), "digest": str(row.get("integrity", ""))}
             for place, row in sorted(rows.items()) if place]
    bare = [row["name"] for row in found if not row["digest"]]
    if bare:
        raise HarnessError(f"npm installed {bare[0]} without a digest, which cannot be recorded")
    return found


def install(name: str, recipe: Npm, version: str, into: str, lock: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """What is recorded: packages with their digests, and the lock that makes the same again."""
    npm = running.need("npm", name)
    wanted = dict(_split(package, version) for package in recipe.packages)
    _write(os.path.join(into, "package.json"), {"private": True, "dependencies": wanted})
    if lock:
        _write(os.path.join(into, "package-lock.json"), lock["lock"])
    running.run([npm, "ci" if lock else "install", "--prefix", into, *_OPTIONS], name, "npm", into, cwd=into)
    for program, pattern in recipe.links.items():
        _link(name, into, program, pattern)
    with open(os.path.join(into, "package-lock.json"), encoding="utf-8") as file:
        return {"packages": _packages(into), "lock": json.load(file)}
