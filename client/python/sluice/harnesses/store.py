"""Where harnesses lie, and how one comes there: whole or not at all.

    PLACE/NAME/VERSION          what is mounted
    PLACE/NAME/VERSION.json     what it was made of: the same again has these digests
    PLACE/NAME/current          -> the VERSION that was installed last, which run workers find

PLACE is ${SLUICE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/sluice}/harness. A version that is there is never changed: rollouts may be at work in it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import tempfile
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from . import files, locks
from .recipes import RECIPES, HarnessError, find

Make = Callable[[str, Optional[Dict[str, Any]]], Dict[str, Any]]   # into, a lock: what to record
_NEW = ".new-"   # in the names of what is not whole yet
_VERSION = re.compile(r"\d[0-9A-Za-z.+-]{0,63}")


class Place(NamedTuple):
    """One harness in one version."""

    name: str
    version: str
    path: str                  # of its directory
    lock: Optional[str]        # of what it was made of; None with --dir
    current: Optional[str]     # the link to it; None with --dir


def default_root() -> str:
    cache = os.environ.get("SLUICE_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sluice")
    return os.path.join(os.path.abspath(cache), "harness")


def place_of(word: str, into: Optional[str]) -> Place:
    """Of NAME or NAME@VERSION, by default the one that was tried."""
    name, at, version = word.partition("@")
    recipe = find(name)
    version = version if at else recipe.version
    if not _VERSION.fullmatch(version):
        raise HarnessError(f"{word}: a version is named exactly, as in {name}@{recipe.version}")
    if into is not None:
        path = os.path.abspath(into)
        return Place(name, version, path, None, None)
    folder = os.path.join(default_root(), name)
    return Place(name, version, os.path.join(folder, version), os.path.join(folder, f"{version}.json"), os.path.join(folder, "current"))


def read_json(path: str) -> Optional[Dict[str, Any]]:
    """None: there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except OSError as why:
        raise HarnessError(f"cannot read {path}: {why.strerror}") from None
    except ValueError:
        raise HarnessError(f"{path} is no JSON") from None
    if not isinstance(value, dict) or not isinstance(value.get("packages"), list):
        raise HarnessError(f"{path} is not what `sluice harness install` writes")
    return value


def manifest_of(path: str) -> Optional[Dict[str, Any]]:
    return read_json(os.path.join(path, files.MANIFEST))


def program_of(name: str, path: str) -> str:
    return os.path.join(path, "bin", find(name).program)


def wrong_with(name: str, path: str) -> List[str]:
    """Why a directory is not what was installed, in words; nothing: it is."""
    manifest = manifest_of(path)
    if manifest is None:
        return [f"{path} has no {files.MANIFEST}"]
    wrong = files.differing(path, str(manifest.get("files")))
    program = program_of(name, path)
    return wrong + ([] if os.access(program, os.X_OK) else [f"{program} is no program"])


# ---- putting it there ----------------------------------------------------------------------------------------------------------------


def _write_whole(path: str, value: Any) -> None:
    temporary = f"{path}{_NEW}{os.getpid()}"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def unfinished(place: Place) -> str:
    return f".{os.path.basename(place.path)}{_NEW}"


@contextlib.contextmanager
def alone(place: Place) -> Iterator[None]:
    """One installs or removes at a time; what one that was killed left is removed."""
    folder = os.path.dirname(place.path)
    os.makedirs(folder, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        for name in os.listdir(folder):
            if name.startswith(unfinished(place)):
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        yield
    finally:
        os.close(fd)


def _point(current: str, version: str) -> None:
    temporary = f"{current}{_NEW}{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        os.remove(temporary)
    os.symlink(version, temporary)
    os.replace(temporary, current)


def _finish(place: Place, into: str, made: Dict[str, Any]) -> Dict[str, Any]:
    recipe = find(place.name)
    files.make_readable(into)
    size = files.size_of(into)
    manifest = dict({"harness": place.name, "version": place.version, "from": recipe.source, "files": files.write(into), "bytes": size}, **made)
    _write_whole(os.path.join(into, files.MANIFEST), manifest)
    return manifest


def _put(place: Place, lock: Optional[Dict[str, Any]], make: Make) -> None:
    into = tempfile.mkdtemp(prefix=unfinished(place), dir=os.path.dirname(place.path))
    try:
        manifest = _finish(place, into, make(into, lock))
        if place.lock is not None and not os.path.exists(place.lock):
            _write_whole(place.lock, manifest)
        os.rename(into, place.path)
    finally:
        shutil.rmtree(into, ignore_errors=True)


def _check_lock(place: Place, lock: Dict[str, Any], said: str) -> None:
    if (lock.get("harness"), lock.get("version")) != (place.name, place.version):
        raise HarnessError(f"{said} is of {lock.get('harness')} {lock.get('version')}, not of {place.name} {place.version}")


def _check_there(place: Place) -> None:
    manifest = manifest_of(place.path)
    if manifest is None or (manifest.get("harness"), manifest.get("version")) != (place.name, place.version):
        raise HarnessError(f"{place.path} is there already and is not {place.name} {place.version}; remove it, or name another directory")
    wrong = wrong_with(place.name, place.path)
    if wrong:
        more = f" ({len(wrong)} in all)" if len(wrong) > 1 else ""
        raise HarnessError(f"{place.path} is not what was installed: {wrong[0]}{more}; remove it and install it again")


def _locked(place: Place, given: Optional[str]) -> Optional[Dict[str, Any]]:
    """By which it must be made: what the command line names, else what it was made of before."""
    path = given or place.lock
    lock = read_json(path) if path else None
    if given and lock is None:
        raise HarnessError(f"there is no {given}")
    if lock is not None:
        _check_lock(place, lock, str(path))
        locks.check(find(place.name).source, str(path), lock)
    return lock


def _put_locked(place: Place, given: Optional[str], make: Make) -> None:
    lock = _locked(place, given)
    try:
        _put(place, lock, make)
    except HarnessError as why:
        raise HarnessError(f"{why}; recorded in {given or place.lock}") if lock else why


def install(place: Place, lock: Optional[str], make: Make) -> bool:
    """False: it was there, and is what was installed. What cannot be done is said in one sentence."""
    folder = os.path.dirname(place.path)
    try:
        with alone(place):
            is_there = os.path.lexists(place.path)
            if is_there:
                _check_there(place)
            else:
                _put_locked(place, lock, make)
            if place.current is not None:
                _point(place.current, place.version)
        return not is_there
    except OSError as why:
        words = "no room is left on its disk" if why.errno in (errno.ENOSPC, errno.EDQUOT) else why.strerror
        raise HarnessError(f"{place.name} cannot be installed in {folder}: {words}") from None


# ---- what is there -------------------------------------------------------------------------------------------------------------------


def listed() -> List[Dict[str, Any]]:
    """Of each harness: the version that was tried, those that are installed, and the one that workers find."""
    found = []
    for name, recipe in RECIPES.items():
        folder = os.path.join(default_root(), name)
        versions = [one for one in _names(folder) if _VERSION.fullmatch(one) and os.path.isdir(os.path.join(folder, one))]
        current = os.path.join(folder, "current")
        found.append({"harness": name, "version": recipe.version, "from": recipe.source, "program": recipe.program, "installed": versions,
                      "current": os.readlink(current) if os.path.islink(current) else None,
                      "path": os.path.realpath(current) if os.path.isdir(current) else None})
    return found


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
