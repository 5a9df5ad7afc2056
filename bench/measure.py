#!/usr/bin/env python3
"""measure.py BUILD [--quick] [PART...]: what bench/run.sh prints and writes to
docs/contributing/benchmarks.md, part by part.

Everything of a part is measured in turn, round after round, so that what else the machine does falls on all alike.
"""
import datetime
import signal
import sys
import time
import traceback

import page
from engines import engines
from evaluators import evaluators
from gateway import gateway
from harness import harness
from nodes import nodes
from peer_systems import peers
from sampling import sampling
from sandbox import sandbox
from service import goals, service
from tools import tools
from trajectories import trajectories

PARTS = {"service": service, "sandbox": sandbox, "tools": tools, "evaluators": evaluators, "engines": engines, "harness": harness, "gateway": gateway, "nodes": nodes, "peers": peers,
         "trajectories": trajectories, "sampling": sampling}
MINUTES = {"service": 10, "sandbox": 2, "tools": 3, "evaluators": 1, "engines": 2, "harness": 2, "gateway": 3, "nodes": 11, "peers": 11,
           "trajectories": 1, "sampling": 1}  # of a full run, on a quiet machine


def notes(name):
    """What people have written about the part, below its figures."""
    try:
        with open(f"{page.SOURCE}/bench/notes/{name}.md", encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def measure_part(name, build, quick):
    """True unless the part fails, of which the others hear nothing."""
    began = time.monotonic()
    try:
        text = f"{PARTS[name].measure(build, quick)}\n{notes(name)}"
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        return False
    print(text)
    if not quick:
        page.write(name, text)
    print(f"{name}: took {time.monotonic() - began:.0f} s", flush=True)
    return True


def compare_with_goals(names, failed, quick):
    """The goals are of both parts together: the page's table is of one run that had both."""
    if "service" not in names or "service" in failed:
        return
    text = f"""## The goals

Speed beside its goals, all of one run of `bash bench/run.sh service peers`, {datetime.date.today()}: medians of what was measured in turn, mostly
as ratios within a round. Where and how each was measured is said in the parts below.

{goals.table()}
"""
    print(text)
    if not quick and "peers" in names and "peers" not in failed:
        page.write("goals", text)


def main():
    if sys.argv[1] == "--hold":
        service.hold(int(sys.argv[2]), *sys.argv[3:])
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is stopped first
    words = sys.argv[2:]
    names = [word for word in words if not word.startswith("-")] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"there is no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    quick, failed = "--quick" in words, []
    for number, name in enumerate(names, 1):
        minutes = "" if quick else f", about {MINUTES[name]} minutes"
        print(f"part {number} of {len(names)}, {name}{minutes}; then {', '.join(names[number:]) or 'no more'}", flush=True)
        if not measure_part(name, sys.argv[1], quick):
            failed.append(name)
    compare_with_goals(names, failed, quick)
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
