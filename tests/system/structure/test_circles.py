"""Calls go one way: no two files reach each other, by the names that their objects define and take."""
import collections
import os
import sys
import unittest

from objects import OWN, symbols
from texts import PROGRAMS

# Functions of libc in whose place a source puts its own.
OF_LIBC = {"clock_gettime", "connect", "recv"}
# Circles inside one folder: an object in a list in an object; sides of a relation, and brackets, that hold anything again; an image's variables and
# the script that exports them; what a sandbox's first process ends and answers; checks that
# look for a program; the spawner and what it makes.
MAY_CIRCLE = [
    ("schemas/task/read", "agent artifacts build environment handlers judge lists score script steps swe task task_read tests"),
    ("workers/evaluators/math/compare", "compare compare_relations"),
    ("workers/evaluators/math/parse", "parse parse_operands parse_operators"),
    ("workers/images", "config exports"),
    ("workers/sandbox/init", "init_answer init_ends"),
    ("workers/sandbox/probe", "probe probe_apptainer probe_more"),
    ("workers/sandbox/spawner", "prewarmed zygote"),
    ("workers/sandbox/spawner", "spawner spawner_containers"),
]

# The core's floors, the lowest first (docs/contributing/design.md has the picture): no file calls one of a floor above
# its own.
FLOORS = [
    ("state", "state/state engines/identity engines/load_sums queue/free_workers needs/offers needs/needs needs/lines needs/missing workers/stall queue/fair_queue status/stages metrics/named metrics/counting"),
    ("effects", "state/effects"),
    ("records", "streams/streams streams/quotas clients/admission streams/retention engines/breaker engines/engines engines/images engines/blame "
                "engines/probes engines/placing engines/policies engines/versions queue/fencing_tokens queue/history "
                "queue/job_progress sessions/sessions watches/watches "
                "workers/lost_workers workers/worker_ids streams/owners "
                "sampled/sampled sampled/samplers sampled/verdict sampled/rows"),
    ("places", "queue/jobs"),
    ("ends", "queue/groups queue/failures queue/forgetting"),
    ("settle, dispatch", "queue/blocked settle queue/dispatch sampler/sampling sampler/release sampler/batch sampler/account sampler/why"),
    ("messages, times", "clients/backup clients/delivery clients/get clients/session clients/submit clients/watch workers/engine_load workers/migration "
                        "engines/register clients/cancel clients/early_cancel queue/expiry workers/results workers/drain "
                        "workers/workers workers/job_reports sampler/requests status/rollout_why status/bottleneck status/service_health status/lists status/rollout_list status/status status/scrape status/engine_metrics status/metrics_text"),
    ("entries", "restore core check/check check/check_faults check/check_fair_queues check/check_needs check/check_samplers"),
]


def calls(*parts):
    """{source: {source that it calls: names}}"""
    defined, called = symbols(*parts)
    owner = {name: source for source in defined for name in defined[source] - OWN - OF_LIBC}
    graph = {source: collections.defaultdict(list) for source in sorted(defined.keys() | called.keys())}
    for source in graph:
        for name in sorted(called[source]):
            if owner.get(name, source) != source:
                graph[source][owner[name]].append(name)
    return graph


def reached(graph, start):
    seen, left = set(), [start]
    while left:
        for other in graph[left.pop()]:
            if other not in seen:
                seen.add(other)
                left.append(other)
    return seen


def circles(graph):
    """The sets of sources that reach each other"""
    reach = {source: reached(graph, source) for source in graph}
    found = {frozenset(other for other in reach[source] if source in reach[other]) for source in graph if source in reach[source]}
    return sorted(sorted(circle) for circle in found)


def ties(graph, circle):
    return "\n".join(f"  {a} -> {b}: {' '.join(graph[a][b])}" for a in circle for b in graph[a] if b in circle)


def is_beside(a, b):
    """Neither folder is inside the other: a table of kinds stands above their folders, and what they share does too."""
    return not (a + "/").startswith(b + "/") and not (b + "/").startswith(a + "/")


class Circles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.calls = calls(*PROGRAMS)

    def test_what_calls_back_is_a_circle(self):
        graph = {"a/x.c": {"a/y.c": ["f"]}, "a/y.c": {"a/z.c": ["g"]}, "a/z.c": {"a/x.c": ["h"]}, "b/w.c": {"a/x.c": ["i"]}}
        self.assertEqual(circles(graph), [["a/x.c", "a/y.c", "a/z.c"]])

    def test_the_calls_of_each_program_are_seen(self):
        for program in PROGRAMS:
            self.assertGreater(sum(len(others) for source, others in self.calls.items() if source.startswith(program + "/")), 10)

    def test_no_two_files_reach_each_other(self):
        """But in these few circles, each of which is inside one folder."""
        found = circles(self.calls)
        for circle in found:
            self.assertEqual(len({os.path.dirname(source) for source in circle}), 1, "of several folders\n" + ties(self.calls, circle))
        known = [[f"{folder}/{name}.c" for name in names.split()] for folder, names in MAY_CIRCLE]
        for circle in found:
            self.assertIn(circle, known, "these call each other in a circle\n" + ties(self.calls, circle))
        self.assertEqual(found, sorted(known), "a circle that is no more stands in MAY_CIRCLE")

    def test_no_two_folders_beside_each_other_reach_each_other(self):
        folders = collections.defaultdict(lambda: collections.defaultdict(list))
        for source, others in self.calls.items():
            folders[os.path.dirname(source)]
            for other, names in others.items():
                a, b = os.path.dirname(source), os.path.dirname(other)
                if is_beside(a, b):
                    folders[a][b] += [f"{os.path.basename(source)} calls {name}" for name in names]
        for circle in circles(dict(folders)):
            self.fail("these folders call each other\n" + ties(folders, circle))

    def test_the_core_calls_no_floor_above(self):
        height = {f"broker/core/{file}.c": i for i, (_, files) in enumerate(FLOORS) for file in files.split()}
        core = [source for source in self.calls if source.startswith("broker/core/")]
        self.assertEqual(sorted(height), core, "each file of broker/core is on one floor")
        for source in core:
            for other, names in self.calls[source].items():
                if other in height:
                    self.assertGreaterEqual(height[source], height[other], f"{source} calls {other} above it: {names}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
