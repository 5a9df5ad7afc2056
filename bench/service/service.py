"""The service: throughput, latency, recovery and memory of a broker and its workers, beside the raw ceiling."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import page
import processes
from parts import FEED, FRONT, Broker, StandIn, url
from service import connections, goals, grid, stalls

TASK_BYTES = 1024
HOLD = f"{page.SOURCE}/bench/measure.py"


class Plan:
    """How much of each; `quick` is for seeing that everything works."""

    def __init__(self, quick):
        self.quick = quick
        self.rounds = 1 if quick else 5
        self.count = 1000 if quick else 20000
        self.idle_count = 100 if quick else 2000
        self.held = 50 if quick else 200
        self.in_flight = 1000 if quick else 10000
        self.queued = 5000 if quick else 1000000


class Service:
    def __init__(self, build, plan):
        self.build, self.plan = build, plan
        self.root = tempfile.mkdtemp(prefix="sluice-bench-")
        self.values, self.serial = page.Values(), 0
        self.note = self.values.note
        self.grid = grid.Grid(self, plan.quick)
        self.stalls = stalls.Stalls(self, plan.quick)
        self.connections = connections.Connections(self, plan.quick)
        goals.FOUND.update(service=self.values, grid=self.grid.values, stalls=self.stalls.values,
                           connections=self.connections.values)

    def broker(self, **options):
        self.serial += 1
        return Broker(self.build, f"{self.root}/{self.serial}", **options)

    def command(self, name, *arguments):
        return [f"{self.build}/bench/bench_{name}", *map(str, arguments)]

    def program(self, name, *arguments):
        done = subprocess.run(self.command(name, *arguments), check=True, text=True, stdout=subprocess.PIPE, timeout=900)
        return [float(word) for word in done.stdout.split()]

    def rollouts(self, mode, count, window):
        return self.program("rollouts", mode, url(FRONT), url(FEED), count, window, TASK_BYTES)

    # ---- what is measured -------------------------------------------------------------------------------------

    def ceiling(self):
        """Its rate, and its CPU of a job, us."""
        before = processes.children_cpu_s()
        rate, = self.program("ceiling", 4, self.plan.count, 4000, 64, TASK_BYTES, f"{self.root}/ceiling")
        cpu_us = (processes.children_cpu_s() - before) * 1e6 / self.plan.count
        self.note(goals.CEILING, rate)
        self.note("CPU of a job of the ceiling, all processes, us", cpu_us)
        return rate, cpu_us

    def ceiling_alone(self):
        """One job at a time: four syncs one after the other, and none."""
        for where, name in ((f"{self.root}/ceiling", goals.CEILING_ALONE), ("-", goals.CEILING_ALONE_NO_DISK)):
            self.note(name, 1000 / self.program("ceiling", 4, self.plan.idle_count, 1, 64, TASK_BYTES, where)[0])

    def disk(self):
        """What every byte that is to be durable has to go through."""
        path, block = f"{self.root}/disk", os.urandom(4 << 20)
        count = 4 if self.plan.quick else 64
        began = time.monotonic()
        with open(path, "wb", buffering=0) as file:
            for _ in range(count):
                file.write(block)
                os.fdatasync(file.fileno())
        self.note(goals.DISK, count * len(block) / 1e6 / (time.monotonic() - began))
        os.unlink(path)

    def flow(self, durability, ceiling):
        with self.broker(durability=durability, workers=4) as broker:
            self.rollouts("flow", self.plan.idle_count, 16)  # everything is up and warm
            before, client = broker.cpu_us(), processes.children_cpu_s()
            rate = self.rollouts("flow", self.plan.count, 4000)[0]
            used = {part: after - before[part] for part, after in broker.cpu_us().items()}
            used["client"] = (processes.children_cpu_s() - client) * 1e6
            self.note(f"Sluice, rollouts/s, --durability {durability}", rate)
            if durability == "full":
                self.shares(rate, used, *ceiling)
            self.latencies(durability)

    def shares(self, rate, used, ceiling, ceiling_cpu_us):
        self.note("of the ceiling, --durability full", rate / ceiling)
        for part, cpu_us in used.items():
            self.note(f"CPU of a rollout, {part}, us", cpu_us / self.plan.count)
        self.note(goals.CPU_SHARE, sum(used.values()) / self.plan.count / ceiling_cpu_us)

    def latencies(self, durability):
        few, some, many = self.plan.idle_count, self.plan.count // 4, self.plan.count
        windows = {"full": ((1, few), (8, few), (64, some), (512, some), (4096, many)), "none": ((1, few),)}
        for window, count in windows.get(durability, ()):
            _, *times = self.rollouts("flow", count, window)
            for percentile, ms in zip(("p50", "p99", "p99.9"), times):
                self.note(f"{goals.latency(window, durability)}, {percentile} ms", ms)

    def redispatch(self, what, number):
        """A worker holds jobs and is killed or frozen; until another has all of them."""
        count = self.plan.held
        with self.broker() as broker:
            holder = broker.spawn(sys.executable, HOLD, "--hold", str(count))
            rescuer = StandIn(1, count)
            self.rollouts("queue", count, count)
            while broker.status()["stages"]["init"]["leased"] < count:
                pass
            rescuer.work(lambda: rescuer.beats > 1 and rescuer.epoch)
            holder.send_signal(number)
            took = rescuer.work(lambda: len(rescuer.held) == count)
            self.note(f"{what} of a worker to the last of its {count} jobs handed out again, s", took)
            rescuer.close()

    def restart(self):
        """The broker is killed while a worker holds many jobs."""
        count = self.plan.in_flight
        with self.broker() as broker:
            before = broker.memory_bytes()
            holder = StandIn(2, count)
            self.rollouts("queue", count, count)
            holder.work(lambda: len(holder.held) == count)
            self.note(f"memory of the broker for each of {count:,} rollouts that a worker has in hand, bytes",
                      (broker.memory_bytes() - before) / count)
            broker.kill()
            self.note(f"start of a broker with {count:,} in flight to its first answer, s", broker.start())
            adopted = lambda: broker.status()["stages"]["init"]["leased"] == count
            self.note(f"... and until all {count:,} are adopted from their worker's beat, s", holder.work(adopted))
            holder.close()

    def memory(self):
        count = self.plan.queued
        with self.broker() as broker:
            before = broker.memory_bytes()
            accepted, = self.rollouts("queue", count, 4000)
            after = broker.memory_bytes()
            self.note(f"accepted to {count:,} queued, rollouts/s", accepted)
            self.note(f"memory of the broker with {count:,} rollouts of 1 KiB queued, MiB", after / 2**20)
            self.note("... bytes for each of them", (after - before) / count)
            broker.kill()
            self.note("... and start of a broker with them to its first answer, s", broker.start())
            self.note("... and its memory then, MiB", broker.memory_bytes() / 2**20)

    # ---- all of it --------------------------------------------------------------------------------------------

    def run(self):
        for number in range(1, self.plan.rounds + 1):
            self.values.begin(number, self.plan.rounds)
            self.disk()
            ceiling = self.ceiling()
            self.ceiling_alone()
            for durability in ("full", "process", "none"):
                self.flow(durability, ceiling)
            self.redispatch("kill -9", signal.SIGKILL)
            self.redispatch("freeze (SIGSTOP)", signal.SIGSTOP)
            self.restart()
            self.grid.measure(number)
            self.stalls.measure(number)
            self.connections.measure(number)
            if number == 1: # takes minutes, and memory hardly differs from run to run
                self.memory()
            for name in os.listdir(self.root):
                shutil.rmtree(os.path.join(self.root, name), ignore_errors=True)


def hold(count, stage="init"):
    """A worker that takes jobs and keeps them, until it is killed."""
    StandIn(0, count, stage).work(lambda: False)


def versions():
    return "".join(f", {name} {page.said('pkg-config', '--modversion', package)}"
                   for name, package in (("libzmq", "libzmq"), ("SQLite", "sqlite3")))


def measure(build, quick):
    """The part's text."""
    service = Service(build, Plan(quick))
    try:
        service.run()
    finally:
        shutil.rmtree(service.root, ignore_errors=True)
    return f"""## The service

{service.values.circumstances(versions())}

No-op rollouts of 1 KiB through init, run and eval; 4 + 4 + 4 worker processes over tcp on one machine; 4,000
outstanding where nothing else is said. With `--durability full` every submit, stage result and end is on disk
before it is acknowledged, and survives a power cut; `process` survives the end of the broker's process only;
`none` keeps no ledger at all.

{service.values.rows()}

One thing changed at a time; {service.grid.count:,} rollouts, 4,000 outstanding (or tasks of 64 MiB, if that is less), {service.grid.rounds} rounds. The CPU is that of
`--durability full`.

{service.grid.table()}

Who stalls, and what others notice: {service.stalls.rate:,} rollouts a second, by a client of its own, with 4 workers of each stage. A client that
floods comes from another address, which to a broker without keys is another peer. Of those that the stopped worker had in hand
nothing is counted.

{service.stalls.table()}

The broker and many connections: stand-ins that have done a job as soon as they are given it, a third of them of each stage, {connections.SLOTS}
slots each, in {connections.GENERATORS} processes. The rate is with 4,000 outstanding; all of it is durable.

{service.connections.table()}
"""
