"""python -m sluice.harnesses install|list|check|remove ...: harnesses on this node (`sluice harness`, docs/harnesses.md)."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from typing import Any, Dict, List, NoReturn, Optional

from . import npm, pypi, removing, running, store
from .recipes import HarnessError, Npm, find

ABOUT = """\
install fetches a harness from npm or PyPI, in the version with which it was tried or the one that is named, into a directory of
its own below ${SLUICE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/sluice}/harness, where the run workers of this user find it when they
start; once for all rollouts. Each archive's digest is compared and recorded (manifest.json): the same version again has the same
digests, and --lock takes those of another node. A version that is there is compared with its record, and is used from then on."""
STATUS = """\
exit status
  0   it is done; check: all is as it was installed
  1   it could not be; check: something is not; remove: it is in use
  2   the command line is wrong"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="sluice harness", description=ABOUT, epilog=STATUS, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = made.add_subparsers(dest="verb", metavar="install|list|check|remove", required=True)
    one = verbs.add_parser("install", help="fetch harnesses", description=ABOUT, epilog=STATUS, formatter_class=argparse.RawDescriptionHelpFormatter)
    one.add_argument("names", nargs="+", metavar="NAME[@VERSION]")
    one.add_argument("--dir", metavar="DIR", help="make DIR itself the harness's directory, for --harness NAME=DIR or an image")
    one.add_argument("--lock", metavar="FILE", help="take exactly the packages of FILE, a manifest.json of this harness and version")
    one.add_argument("--python", metavar="PATH", help="the Python that is copied for a harness of PyPI; else the first that is new enough")
    one = verbs.add_parser("list", help="what there is, and what is installed")
    one.add_argument("--json", action="store_true", help="as JSON, a line each")
    one = verbs.add_parser("check", help="compare what is installed with what was recorded, and start it")
    one.add_argument("names", nargs="*", metavar="NAME[@VERSION]", help="if absent, all that workers find")
    one.add_argument("--dir", metavar="DIR", help="of one that was installed there")
    one = verbs.add_parser("remove", help="take away what is installed and no run worker holds")
    one.add_argument("names", nargs="+", metavar="NAME[@VERSION]", help="NAME: all of its versions")
    return made


def _make(place: store.Place, python: Optional[str]) -> store.Make:
    recipe = find(place.name)

    def make(into: str, lock: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        if isinstance(recipe, Npm):
            made = npm.install(place.name, recipe, place.version, into, lock)
        else:
            made = pypi.install(place.name, recipe, place.version, into, lock, python)
        why = _probe(place.name, into)
        if why:
            raise HarnessError(f"{place.name} {place.version} was fetched and does not start: {why}")
        return made

    return make


def _probe(name: str, path: str) -> Optional[str]:
    with tempfile.TemporaryDirectory(prefix="sluice-harness-") as home:
        return running.probe(store.program_of(name, path), find(name).probe, home)


def _install(given: argparse.Namespace) -> int:
    if len(given.names) > 1 and (given.dir or given.lock):
        raise HarnessError("--dir and --lock go with one harness")
    for word in given.names:
        place = store.place_of(word, given.dir)
        is_new = store.install(place, given.lock, _make(place, given.python))
        print(f"{place.name} {place.version} {'was installed' if is_new else 'is installed'} in {place.path}", flush=True)
    return 0


def _list(given: argparse.Namespace) -> int:
    rows = store.listed()
    for row in rows if given.json else ():
        print(json.dumps(row))
    if not given.json:
        print("HARNESS          TRIED      INSTALLED (* is found by workers)")
        for row in rows:
            marks = [f"{one}{'*' if one == row['current'] else ''}" for one in row["installed"]]
            print(f"{row['harness']:<16} {row['version']:<10} {' '.join(marks) or '-'}")
    return 0


def _placed(name: str, version: str) -> store.Place:
    return store.place_of(f"{name}@{version}", None)


def _to_check(given: argparse.Namespace) -> List[store.Place]:
    if given.dir and len(given.names) != 1:
        raise HarnessError("--dir goes with one harness")
    current = {row["harness"]: row["current"] for row in store.listed()}
    if not given.names:
        return [_placed(name, version) for name, version in current.items() if version]
    return [_placed(word, current[word]) if not given.dir and current.get(word) else store.place_of(word, given.dir) for word in given.names]


def _check(given: argparse.Namespace) -> int:
    status = 0
    for place in _to_check(given):
        wrong = store.wrong_with(place.name, place.path)
        why = None if wrong else _probe(place.name, place.path)
        for words in [*wrong, *([why] if why else [])][:20]:
            print(f"{place.name}: {words}")
        print(f"{place.name} in {place.path}: {'not as it was installed' if wrong else 'does not start' if why else 'as it was installed'}")
        status = 1 if wrong or why else status
    return status


def _remove(given: argparse.Namespace) -> int:
    for place in [place for word in given.names for place in removing.places_of(word)]:
        removing.remove(place)
        print(f"{place.name} {place.version} was removed from {place.path}", flush=True)
    return 0


def _end(number: int, frame: Any) -> NoReturn:
    raise SystemExit(128 + number)   # what was begun is removed on the way


def main(arguments: Optional[List[str]] = None) -> int:
    given = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    try:
        return {"install": _install, "list": _list, "check": _check, "remove": _remove}[given.verb](given)
    except HarnessError as why:
        print(f"sluice: {why}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
