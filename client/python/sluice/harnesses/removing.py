"""Harnesses taken away again: none that a run worker holds, for its rollouts are at work in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from typing import Iterator, List

from . import store
from .recipes import HarnessError


def places_of(word: str) -> List[store.Place]:
    """Of NAME@VERSION that one, of NAME all that are installed. HarnessError: there is none."""
    name, at, version = word.partition("@")
    asked = store.place_of(word, None)
    there = next(row["installed"] for row in store.listed() if row["harness"] == name)
    found = [one for one in there if not at or one == version]
    if not found:
        raise HarnessError(f"{word} is not installed in {os.path.dirname(asked.path)}")
    return [store.place_of(f"{name}@{one}", None) for one in found]


@contextlib.contextmanager
def _unused(place: store.Place) -> Iterator[None]:
    """Run workers hold the directory while they live (flock)."""
    fd = os.open(place.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise HarnessError(f"{place.name} {place.version} is in use: a run worker that found it when it started still runs") from None
    finally:
        os.close(fd)


def _take_away(place: store.Place) -> None:
    """What is left where this is killed goes with the next that is installed or removed."""
    aside = tempfile.mkdtemp(prefix=store.unfinished(place), dir=os.path.dirname(place.path))
    if place.current is not None and os.path.islink(place.current) and os.readlink(place.current) == place.version:
        os.remove(place.current)
    os.rename(place.path, os.path.join(aside, "old"))
    shutil.rmtree(aside)


def remove(place: store.Place) -> None:
    """Its directory; of what it was made stays recorded, so that the same version again has the same digests."""
    try:
        with store.alone(place), _unused(place):
            _take_away(place)
    except OSError as why:
        raise HarnessError(f"{place.path} cannot be removed: {why.strerror}") from None
