"""Global names, by the symbols of what was built: each is defined once, declared by its source's header, and of use to another."""
import collections
import os
import re
import sys
import unittest

from objects import OWN, symbols
from texts import PROGRAMS, ROOT, paths, read

# Headers of several sources: a library as it is installed, bytes of programs, what several programs have of their own.
OF_SEVERAL = {"client/sluice.h", "workers/sandbox/embedded/program.h", "workers/sandbox/init/backend.h"}
HOUSES = ("common", "workers", "client")


def defined_twice(defined):
    """The names that stand in several sources, each with where"""
    sources = collections.defaultdict(list)
    for source in sorted(defined):
        for name in defined[source] - OWN:
            sources[name].append(source)
    return [f"{name}: {' and '.join(where)}" for name, where in sorted(sources.items()) if len(where) > 1]


def declared(header):
    """The functions that a header's text declares, without those that it defines"""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    return set(re.findall(r"^(?!static|typedef|#)[a-z_][\w ]*[ *](\w+)\([^;{]*;", text, re.M))


class Symbols(unittest.TestCase):
    def test_a_name_in_two_programs_is_told_with_both(self):
        defined = {"broker/a.c": {"job_end", "main"}, "workers/b.c": {"job_end", "main"}, "client/c.c": {"other"}}
        self.assertEqual(defined_twice(defined), ["job_end: broker/a.c and workers/b.c"])

    def test_what_a_header_declares_is_found(self):
        text = "/* int a(void); */\nint b(int x,\n      int y);\nstruct c *d(void); /* e(); */\nstatic inline int f(void) { return b(1, 2); }\n"
        self.assertEqual(declared(text), {"b", "d"})

    def test_no_global_name_is_defined_by_two_sources(self):
        defined, _ = symbols(*PROGRAMS)
        for part in PROGRAMS:
            self.assertTrue(any(source.startswith(part + "/") and names for source, names in defined.items()), part)
        twice = defined_twice(defined)
        self.assertEqual(twice, [], "each stands in several sources:\n" + "\n".join(twice))

    def test_a_header_declares_what_its_own_source_defines(self):
        """x.h is x.c's; so is x_inside.h, which only the folder sees."""
        owner = {name: source for source, names in symbols(*HOUSES)[0].items() for name in names}
        several, others = set(), []
        for path in paths(*HOUSES, ends=(".h",)):
            header = os.path.relpath(path, ROOT)
            own = header.removesuffix(".h").removesuffix("_inside") + ".c"
            foreign = {name: owner[name] for name in declared(read(path)) if owner.get(name, own) != own}
            if foreign and header in OF_SEVERAL:
                several.add(header)
            elif foreign:
                others.append(f"{header}: {foreign}")
        self.assertEqual(others, [], "these declare functions of other sources:\n" + "\n".join(others))
        self.assertEqual(several, OF_SEVERAL)

    def test_what_no_other_source_uses_is_static(self):
        defined, called = symbols(*PROGRAMS, "tests", "bench")
        used = collections.Counter(name for names in called.values() for name in names)
        alone = [f"{source}: {name}" for source in sorted(defined) if source.startswith(HOUSES)
                 for name in sorted(defined[source] - OWN) if not used[name] and not name.startswith("sluice_")]
        self.assertEqual(alone, [], "no other source and no test uses these:\n" + "\n".join(alone))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
