"""A Python that runs on any image of its machine: a copy of one of this node, with its standard library, the C library and what else it is
linked to, below one prefix that may be anywhere:

    bin/python3                starts libexec/python3.X by libexec/ld-linux..., so that those libraries are its alone
    lib/python3.X              its standard library, and site-packages
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
from typing import Iterable, List, NamedTuple, Optional, Set, Tuple

from .recipes import HarnessError

_ASK = """
import importlib.util, json, os, sys, sysconfig
base = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps([sys.version_info[:3], os.path.realpath(base), sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}),
                  sys.executable, sys.implementation.name, importlib.util.find_spec("ensurepip") is not None]))
"""
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip",
                                   "lib2to3", "config-3*", "_tkinter*", "EXTERNALLY-MANAGED", "sitecustomize.py", "*.a")
# Debian's does not look there where it is no virtual environment.
_SITE = """import os
import site
site.addsitedir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
"""
_WRAPPER = """#!/bin/sh
here=${{0%/*}}
{setting}exec "$here/../libexec/{loader}" --argv0 "$here/{program}" --library-path "$here/../libexec" "$here/../libexec/{name}" "$@"
"""
# A program that wants UTF-8 finds it in any image.
_LOCALES = ("/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8")
_WITH_LOCALE = 'LOCPATH="$here/../libexec/locale" '
_LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)


class Interpreter(NamedTuple):
    version: Tuple[int, int, int]
    real: str           # the program itself
    stdlib: str
    executable: str     # as it is called
    has_pip: bool       # can make environments with pip in them

    @property
    def name(self) -> str:
        return f"python{self.version[0]}.{self.version[1]}"


def ask(path: str) -> Optional[Interpreter]:
    """None: it does not start, or is another than CPython."""
    try:
        done = subprocess.run([path, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=True)
        version, real, stdlib, executable, kind, has_pip = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Interpreter((version[0], version[1], version[2]), real, stdlib, executable, has_pip) if kind == "cpython" else None


def _candidates() -> List[str]:
    names = ["/usr/bin/python3", "python3", *(f"python3.{minor}" for minor in range(14, 10, -1))]
    return [path for path in (shutil.which(name) for name in names) if path]


def _lack(found: Optional[Interpreter], least: Tuple[int, int]) -> str:
    if not found:
        return "does not start"
    return f"is {'.'.join(map(str, found.version))}" if found.version[:2] < least else "has no ensurepip (Debian: python3-venv)"


def choose(harness: str, least: Tuple[int, int], wanted: Optional[str]) -> Interpreter:
    """The one named, else the first of this node that is new enough."""
    words = f"{harness} needs Python {least[0]}.{least[1]} or newer"
    seen = []
    for path in [wanted] if wanted else _candidates():
        found = ask(path)
        if found and found.version[:2] >= least and found.has_pip:
            return found
        seen.append(f"{path} {_lack(found, least)}")
    raise HarnessError(f"{words}: {', '.join(dict.fromkeys(seen)) or 'there is none on the PATH'}; name one with --python")


# ---- what it is linked to ------------------------------------------------------------------------------------------------------------


def _linked(files: Iterable[str]) -> Set[str]:
    found: Set[str] = set()
    listed = list(files)
    for start in range(0, len(listed), 200):
        done = subprocess.run(["ldd", *listed[start:start + 200]], capture_output=True, text=True, check=False)
        found.update(_LIBRARY.findall(done.stdout))
    return found


def _loader(real: str) -> str:
    loaders = [path for path in _linked([real]) if os.path.basename(path).startswith("ld-linux")]
    if not loaders:
        raise HarnessError(f"{real} is not linked to the GNU C library, and such a Python cannot be copied; name another with --python")
    done = subprocess.run([loaders[0], "--help"], capture_output=True, text=True, check=False)
    if "--argv0" not in done.stdout:
        raise HarnessError(f"{loaders[0]} is older than glibc 2.33, and what is linked to it cannot be copied")
    return loaders[0]


def _copy_libraries(paths: Iterable[str], into: str) -> None:
    """Those of the node's, by the names by which they are looked for."""
    for path in sorted(paths):
        target = os.path.join(into, "libexec", os.path.basename(path))
        if not os.path.realpath(path).startswith(os.path.realpath(into) + os.sep) and not os.path.exists(target):
            shutil.copy2(os.path.realpath(path), target)


def _copy_program(real: str, program: str, name: str, into: str, setting: str = "") -> None:
    """bin/PROGRAM, which starts libexec/NAME."""
    loader = _loader(real)
    shutil.copy2(real, os.path.join(into, "libexec", name))
    _copy_libraries([loader], into)
    wrapper = os.path.join(into, "bin", program)
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write(_WRAPPER.format(loader=os.path.basename(loader), name=name, program=program, setting=setting))
    os.chmod(wrapper, 0o755)


def _copy_locale(into: str) -> str:
    """How the wrapper names it."""
    found = next((path for path in _LOCALES if os.path.isdir(path)), None)
    if found:
        shutil.copytree(found, os.path.join(into, "libexec", "locale", os.path.basename(found)))
    return _WITH_LOCALE if found else ""


def copy_beside(harness: str, program: str, into: str) -> None:
    """A program of this node."""
    found = shutil.which(program)
    if not found:
        raise HarnessError(f"{harness} needs {program}, which is not on the PATH")
    _copy_program(os.path.realpath(found), program, program, into, _copy_locale(into))
    _copy_libraries(_linked([found]), into)


def copy_interpreter(python: Interpreter, into: str) -> None:
    os.makedirs(os.path.join(into, "libexec"))
    os.makedirs(os.path.join(into, "bin"), exist_ok=True)
    stdlib = os.path.join(into, "lib", python.name)
    shutil.copytree(python.stdlib, stdlib, ignore=_LEFT_OUT, ignore_dangling_symlinks=True)
    with open(os.path.join(stdlib, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(_SITE)
    _copy_program(python.real, "python3", python.name, into)


def add_libraries(python: Interpreter, into: str) -> None:
    """Of all that lies there by now. The last is opened by the C library itself when a thread ends."""
    objects = glob.glob(os.path.join(glob.escape(into), "lib", "**", "*.so*"), recursive=True)
    linked = _linked([python.real, *objects])
    libc = next((path for path in linked if os.path.basename(path) == "libc.so.6"), "")
    beside = os.path.join(os.path.dirname(libc), "libgcc_s.so.1")
    _copy_libraries(linked | ({beside} if os.path.exists(beside) else set()), into)
