"""Calls go one way: of the files of a part no two reach each other, by the symbols that their objects define and call."""
import collections
import os
import subprocess
import sys
import unittest

from texts import ROOT, paths

BUILD = os.environ.get("SLUICE_BINARY_DIR") or os.path.join(ROOT, "build", "debug")
PARTS = {"broker/core": "sluice_core", "broker/ledger": "sluice_broker"}

# The core's floors, the lowest first (docs/design.md has the picture): no file calls one of a floor above its own.
FLOORS = [
    ("state", "state/state engines/identity engines/load_sums queue/free_workers workers/stall queue/fair_queue status/stages"),
    ("effects", "state/effects"),
    ("records", "streams/streams streams/quotas clients/admission streams/retention engines/breaker engines/engines engines/images "
                "engines/health engines/placing engines/policies engines/policy queue/fencing_tokens queue/history "
                "queue/job_progress "
                "workers/lost_workers workers/worker_ids clients/owners"),
    ("places", "queue/jobs"),
    ("ends", "queue/groups queue/failures"),
    ("settle, dispatch", "queue/blocked settle queue/dispatch"),
    ("messages, times", "clients/backup clients/delivery clients/get clients/submit workers/engine_load workers/migration "
                        "engines/register clients/cancel clients/early_cancel queue/expiry workers/results workers/drain "
                        "workers/workers workers/job_reports status/rollout_why status/bottleneck status/health status/lists status/rollout_list status/status"),
    ("entries", "restore core check/check check/check_faults check/check_fair_queues"),
]


def symbols(path):
    defined, called = set(), set()
    out = subprocess.run(["nm", path], check=True, text=True, stdout=subprocess.PIPE).stdout
    for line in out.splitlines():
        kind, name = line.split()[-2:]
        if kind == "U":
            called.add(name)
        elif kind in "TDRBVW":
            defined.add(name)
    return defined, called


def calls_of(part):
    """{file: {file it calls: functions}} of the sources of a part that were built; without the ending .c"""
    folder = os.path.join(BUILD, "broker", "CMakeFiles", PARTS[part] + ".dir", os.path.relpath(part, "broker"))
    owner, called = {}, {}
    for path in paths(part, ends=(".c",)):
        file = os.path.relpath(path[:-2], os.path.join(ROOT, part))
        defined, called[file] = symbols(os.path.join(folder, file + ".c.o"))
        owner.update(dict.fromkeys(defined, file))
    calls = {file: collections.defaultdict(list) for file in called}
    for file, wanted in called.items():
        for name in sorted(wanted):
            if owner.get(name, file) != file:
                calls[file][owner[name]].append(name)
    return calls


def reached(calls, start):
    seen, left = set(), [start]
    while left:
        for other in calls[left.pop()]:
            if other not in seen:
                seen.add(other)
                left.append(other)
    return seen


class Circles(unittest.TestCase):
    def test_no_two_files_of_a_part_reach_each_other(self):
        for part in PARTS:
            calls = calls_of(part)
            self.assertGreater(sum(map(len, calls.values())), 10, part)
            circle = {file: dict(calls[file]) for file in calls if file in reached(calls, file)}
            self.assertEqual(circle, {}, f"{part}: these call each other in a circle, by these functions")

    def test_the_core_calls_no_floor_above(self):
        height = {file: i for i, (_, files) in enumerate(FLOORS) for file in files.split()}
        calls = calls_of("broker/core")
        self.assertEqual(sorted(height), sorted(calls), "each file of broker/core is on one floor")
        for file, others in calls.items():
            for other, names in others.items():
                self.assertGreaterEqual(height[file], height[other], f"{file} calls {other} above it: {names}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
