"""What was built, by its objects: the global names that each source defines, and those that it takes from others."""
import collections
import os
import subprocess

from texts import ROOT, paths

BUILD = os.environ.get("SLUICE_BINARY_DIR") or os.path.join(ROOT, "build", "debug")
# What several programs define on purpose: where each begins, and what another of its parts asks it for.
OWN = {"main", "sandbox_backend"}


def source_of(path):
    """The source of an object, by its path; None: it was moved since"""
    part = os.path.relpath(path, BUILD).split(os.sep)[0]
    inside = path.partition(".dir" + os.sep)[2].removesuffix(".o").replace("__" + os.sep, ".." + os.sep)
    source = os.path.normpath(os.path.join(part, inside))
    return source if os.path.exists(os.path.join(ROOT, source)) else None


def symbols(*parts):
    """{source: its global names}, {source: the names that it takes from others}"""
    defined, called = collections.defaultdict(set), collections.defaultdict(set)
    built = list(paths(*(os.path.join(BUILD, part, "CMakeFiles") for part in parts), ends=(".c.o",)))
    out = subprocess.run(["nm", "-A", *built], check=True, text=True, stdout=subprocess.PIPE).stdout
    sources = {path: source_of(path) for path in built}
    for line in out.splitlines():
        path, _, symbol = line.partition(".c.o:")
        kind, name = symbol.split()[-2:]
        source = sources[path + ".c.o"]
        if source and not name.startswith("_"):
            (defined if kind in "TDRBVWC" else called if kind == "U" else collections.defaultdict(set))[source].add(name)
    return defined, called
