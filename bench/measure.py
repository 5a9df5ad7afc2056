#!/usr/bin/env python3
"""measure.py BUILD [--quick] [PART...]: what bench/run.sh prints and writes to docs/benchmarks.md, part by part.

Everything of a part is measured in turn, round after round, so that what else the machine does falls on all alike.
"""
import sys

import engines
import nodes
import page
import sandbox
import service
import tools

PARTS = {"service": service, "sandbox": sandbox, "tools": tools, "engines": engines, "nodes": nodes}


def notes(name):
    """What people have written about the part, below its figures."""
    try:
        with open(f"{page.SOURCE}/bench/notes_{name}.md", encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def main():
    if sys.argv[1] == "--hold":
        service.hold(int(sys.argv[2]))
        return
    words = sys.argv[2:]
    names = [word for word in words if not word.startswith("-")] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"there is no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    for name in names:
        print(f"{name}:", flush=True)
        text = f"{PARTS[name].measure(sys.argv[1], '--quick' in words)}\n{notes(name)}"
        print(text)
        if "--quick" not in words:
            page.write(name, text)


if __name__ == "__main__":
    main()
