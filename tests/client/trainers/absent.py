"""Packages that a trainer imports and a test does without, as empty ones."""
from __future__ import annotations

import importlib.machinery
import sys
import types


class Absent(types.ModuleType):
    """Any name in it is an empty class."""

    __path__: list = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Finder:
    """Finds the packages of these names, and all modules in them."""

    def __init__(self, names) -> None:
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


def pretend(*names) -> None:
    """From now on they can be imported. What is installed comes first."""
    sys.meta_path.append(Finder(names))
