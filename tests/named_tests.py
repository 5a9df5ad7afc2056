"""Tests by name: "broker/test_core_cancel: exactly_one_thing_is_cancelled" is a ctest and one test in it.

docs/contributing/reliability.md and mutants_table.py name tests so; here is where such a name leads.
"""
import os
import re

SOURCE = os.environ.get("SLUICE_SOURCE_DIR") or os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))


class NamedTest:
    """ctest: the name before the colon; test: the one after; path: of the file that holds it."""

    def __init__(self, name):
        parts = [part.strip() for part in name.strip().strip("`").split(": ")]
        if len(parts) != 2:
            raise ValueError(f"{name!r} is not 'ctest: test'")
        self.ctest, self.test = parts
        folder, _, program = self.ctest.partition("/")
        places = [f"{program}.c", f"test_{program}.py"]
        paths = [os.path.join(where, place) for where, _, names in os.walk(os.path.join(SOURCE, "tests", folder))
                 for place in places if place in names]
        if len(paths) != 1:
            raise ValueError(f"{name!r}: of {' or '.join(places)} there are {len(paths)} in tests/{folder}/, not one")
        self.path = paths[0]
        self.is_python = self.path.endswith(".py")
        if not self._is_there():
            raise ValueError(f"{name!r}: {os.path.relpath(self.path, SOURCE)} has no such test")

    def _is_there(self):
        """Defined, and for C also in the list of what is run."""
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        if self.is_python:
            return re.search(rf"^    def {re.escape(self.test)}\(self", text, re.M) is not None
        uses = re.findall(rf"(?:\w+\()?\b{re.escape(self.test)}\b", text)
        return re.search(rf"^(?:static void|[A-Z_]+\()\s?{re.escape(self.test)}\b", text, re.M) is not None and len(uses) > 1

    @property
    def target(self):
        """What ninja must build for it."""
        return [] if self.is_python else [self.ctest.replace("/", "_")]

    def __str__(self):
        return f"{self.ctest}: {self.test}"
