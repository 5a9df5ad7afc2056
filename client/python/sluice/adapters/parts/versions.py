"""Which package of a trainer is here, and whether an adapter knows it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from typing import Optional, Tuple

from ...errors import SluiceError


class WrongPackage(SluiceError, ImportError):
    """A trainer's package is missing, is another of the same name, or is of a version that its adapter does not
    know."""


def _numbers(version: str) -> Tuple[int, ...]:
    """Of "1.16.0rc1" (1, 16, 0): a release's candidates count as the release."""
    found = re.match(r"v?(?:\d+!)?(\d+(?:\.\d+)*)", version)
    numbers = tuple(map(int, found.group(1).split("."))) if found else ()
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # of a parent
        return False


def require(adapter: str, package: str, least: str, below: str, module: Optional[str] = None) -> str:
    """The version of `package` that is installed, if least <= it < below; else WrongPackage, with what to install.

    adapter: sluice.adapters.NAME, whose requirement it is. module: one that the package has, by which it is told from
    another of its name.
    """
    wanted = f"{adapter} wants {package}>={least},<{below}"
    install = f'pip install "{package}>={least},<{below}"'
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise WrongPackage(f"{wanted}, which is not installed: {install}", name=package) from None
    if module is not None and not _has(module):
        raise WrongPackage(f"{wanted}; {package} {version} is installed, and has no module {module}: it is another "
                           "package of that name, or a part of it", name=package)
    if not _numbers(least) <= _numbers(version) < _numbers(below):
        raise WrongPackage(f"{wanted}; {version} is installed: {install}", name=package)
    return version
