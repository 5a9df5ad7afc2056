"""The broker and many connections: stand-ins instead of workers, many in a process, so that what is measured is the broker.

The rate with 4,000 outstanding, the time of a rollout with 64, and the broker's CPU, by number of workers; and what a fleet
costs the broker that beats and does nothing else.
"""
import select
import subprocess
import time

import page
from parts import SINK, thread_cpu_us, url

SLOTS = 64
GENERATORS = 2  # processes that the workers are shared out to
WINDOW, FEW = 4000, 64
MESSAGE_BYTES = 512
COLUMNS = ("rollouts/s", "p50 ms", "p99 ms", "broker's CPU us", "of a core")


def broker_cpu_us(broker):
    return sum(thread_cpu_us(broker.process.pid))


class StandIns:
    """`count` workers in a few processes. With `with`; all have heard from the broker."""

    def __init__(self, service, count):
        self.service, self.count, self.started = service, count, []

    def __enter__(self):
        first = 0
        for number in range(GENERATORS):
            until = self.count * (number + 1) // GENERATORS
            if until > first:
                command = self.service.command("stand_ins", url(SINK), first, until - first, SLOTS)
                self.started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            first = until
        for process in self.started:
            if not select.select([process.stdout], [], [], 120)[0] or process.stdout.readline() != b"ready\n":
                self.__exit__()
                raise SystemExit(f"{self.count} stand-ins do not all hear from the broker")
        return self

    def __exit__(self, *_):
        for process in self.started:
            process.communicate()


class Connections:
    def __init__(self, service, quick):
        self.service, self.values = service, page.Values()
        self.counts = (3, 12) if quick else (3, 12, 48, 192, 768, 2001)
        self.count, self.few = (200, 100) if quick else (10000, 2000)
        self.rounds = 1 if quick else 3
        self.nodes, self.seconds = (20, 1) if quick else (1000, 10)

    @staticmethod
    def name(count):
        return f"{count:,} workers' connections"

    def flows(self, broker, count):
        def note(column, value):
            self.values.note(f"{self.name(count)}, {column}", value)
        self.service.rollouts("flow", self.few, FEW)  # everything is up and warm
        before = broker_cpu_us(broker)
        rate = self.service.rollouts("flow", self.count, WINDOW)[0]
        cpu_us = (broker_cpu_us(broker) - before) / self.count
        note("rollouts/s", rate)
        note("broker's CPU us", cpu_us)
        note("of a core", rate * cpu_us / 1e6)
        _, p50, p99, _ = self.service.rollouts("flow", self.few, FEW)
        note("p50 ms", p50)
        note("p99 ms", p99)

    @staticmethod
    def floor_name(count):
        return f"raw libzmq, {count:,} connections, one message under way by each: CPU us of three there and back"

    def floor(self, count):
        """What a rollout's jobs and results cost at least, where none shares a message with another."""
        cpu_us, = self.service.program("spokes", count, self.count, min(count, WINDOW), MESSAGE_BYTES)
        self.values.note(self.floor_name(count), 3 * cpu_us)

    def beats(self):
        """Of a core, what the broker takes while workers beat."""
        with self.service.broker() as broker, StandIns(self.service, self.nodes):
            time.sleep(2)  # their lanes are open, and what that took is done
            before = broker_cpu_us(broker)
            time.sleep(self.seconds)
            self.values.note(self.beats_name(), (broker_cpu_us(broker) - before) / 1e6 / self.seconds)

    def beats_name(self):
        return f"{self.nodes:,} nodes beat and do nothing else: the broker's CPU, of a core"

    def measure(self, number):
        if number > self.rounds:
            return
        for count in self.counts:
            with self.service.broker() as broker, StandIns(self.service, count):
                self.flows(broker, count)
            self.floor(count)
        self.beats()

    def table(self):
        rows = ["| what | rollouts/s | 64 in flight, p50 ms | p99 ms | broker's CPU us a rollout | broker's CPU, of a core |",
                "|---|---|---|---|---|---|"]
        for count in self.counts:
            rows.append(f"| {self.name(count)} | " + " | ".join(self.values.cell(f"{self.name(count)}, {column}")
                                                               for column in COLUMNS) + " |")
        singles = (*map(self.floor_name, self.counts), self.beats_name())
        return "\n".join([*rows, "", "| what | median (spread) |", "|---|---|",
                          *(f"| {name} | {self.values.cell(name)} |" for name in singles)])
