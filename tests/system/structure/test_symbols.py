"""A global name means one thing in the whole repository: no two sources define it, though they be of two programs."""
import collections
import os
import subprocess
import sys
import unittest

from texts import PROGRAMS, ROOT, paths

BUILD = os.environ.get("SLUICE_BINARY_DIR") or os.path.join(ROOT, "build", "debug")
# What several programs define on purpose: where each begins, and what another of its parts asks it for.
OWN = {"main", "sandbox_backend"}


def objects():
    """{source: an object of it}, of what programs and libraries are made of"""
    found, built = {}, os.path.join(BUILD, "%s", "CMakeFiles")
    for path in paths(*(built % part for part in PROGRAMS), ends=(".c.o",)):
        part = os.path.relpath(path, BUILD).split(os.sep)[0]
        inside = path.partition(".dir" + os.sep)[2].removesuffix(".o").replace("__" + os.sep, ".." + os.sep)
        source = os.path.normpath(os.path.join(part, inside))
        if os.path.exists(os.path.join(ROOT, source)): # not of one that was moved since
            found[source] = path
    return found


def globals_of(path):
    out = subprocess.run(["nm", "--defined-only", path], check=True, text=True, stdout=subprocess.PIPE).stdout
    kinds = (line.split()[-2:] for line in out.splitlines())
    return {name for kind, name in kinds if kind in "TDRBVWC" and not name.startswith("_")}


def defined_twice(defined):
    """The names that stand in several of {source: its global names}, each with where"""
    sources = collections.defaultdict(list)
    for source in sorted(defined):
        for name in defined[source] - OWN:
            sources[name].append(source)
    return [f"{name}: {' and '.join(where)}" for name, where in sorted(sources.items()) if len(where) > 1]


class Symbols(unittest.TestCase):
    def test_a_name_in_two_programs_is_told_with_both(self):
        defined = {"broker/a.c": {"job_end", "main"}, "workers/b.c": {"job_end", "main"}, "client/c.c": {"other"}}
        self.assertEqual(defined_twice(defined), ["job_end: broker/a.c and workers/b.c"])

    def test_no_global_name_is_defined_by_two_sources(self):
        defined = {source: globals_of(path) for source, path in objects().items()}
        for part in PROGRAMS:
            self.assertTrue(any(source.startswith(part + "/") and names for source, names in defined.items()), part)
        twice = defined_twice(defined)
        self.assertEqual(twice, [], "each stands in several sources:\n" + "\n".join(twice))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
