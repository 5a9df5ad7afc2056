"""The same no-op pipeline on other systems: rollouts a second, latency, CPU, and what comes of a killed worker's jobs.

What a system is measured by is a Way: how its workers are started, how a client runs a flow through them, and how one
asks for some and sees how many are answered.
"""
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import page
import plot
import processes
from parts import FEED, FRONT, Asker, Broker, url
from peer_systems.python_peers import PythonWay, versions as library_versions
from peer_systems.servers import (Beanstalkd, BeanstalkdEvery50, Missing, Nats, Rabbit, Redis, RedisEverySecond,
                                  versions as server_versions)
from service import goals

TASK_BYTES = 1024
WINDOW = 4000
START_S = 60  # for a worker to have its jobs, on a busy machine
STAGES = ("init", "run", "eval")
MEASURE = f"{page.SOURCE}/bench/measure.py"


class Plan:
    def __init__(self, quick):
        self.rounds = 1 if quick else 5
        self.slow_rounds = 1 if quick else 3      # of kills, and of peers that take long to start
        self.workers = 1 if quick else 4          # of each stage
        self.seconds = 0.3 if quick else 2        # of a rate run, about
        self.warm = 50 if quick else 500
        self.counts = (100, 2000) if quick else (500, 20000)  # of a rate run, at least and at most
        self.idle = 50 if quick else 200
        self.asked, self.held = (100, 25) if quick else (200, 50)
        self.patience_s = 8 if quick else 12      # for the answers of a killed worker's jobs


def kill(process):
    process.kill()
    process.wait()


# ---- ways ---------------------------------------------------------------------------------------------------------


class QueueWay:
    """bench_peers' workers and client on a server of another system."""

    def __init__(self, build, root, plan, server, protocol):
        self.command = [f"{build}/bench/bench_peers", protocol]
        self.plan, self.server, self.others = plan, server(f"{root}/server"), []

    def __enter__(self):
        self.server.__enter__()
        self.command.append(str(self.server.port))
        subprocess.run([*self.command, "prepare"], check=True, timeout=60)
        return self

    def spawn(self, *arguments, **options):
        self.others.append(subprocess.Popen([*self.command, *map(str, arguments)], stdin=subprocess.DEVNULL, **options))
        return self.others[-1]

    def staff(self, *stages):
        return [self.spawn("work", stage) for stage in stages for _ in range(self.plan.workers)]

    def flow(self, count, window):
        """(rollouts/s, p50 ms, p99 ms)"""
        done = subprocess.run([*self.command, "flow", str(count), str(window), str(TASK_BYTES)], check=True, text=True,
                              stdout=subprocess.PIPE, timeout=300)
        return [float(word) for word in done.stdout.split()]

    def cpu_s(self):
        return processes.cpu_s(*self.server.started, *self.others)

    def hold(self):
        """A run worker that has taken its share of jobs and keeps them."""
        holder = self.spawn("hold", "run", self.plan.held, stdout=subprocess.PIPE)
        said = lambda: select.select([holder.stdout], [], [], 0)[0]
        return holder, lambda: processes.await_that(said, START_S, "a worker that holds jobs")

    def ask(self):
        """Asks for plan.asked; the answer is an iterator of how many are answered."""
        asker = self.spawn("ask", self.plan.asked, TASK_BYTES, stdout=subprocess.PIPE, text=True)
        return (int(line) for line in asker.stdout)

    def rest(self):
        """All workers end, so that others may take their place."""
        for process in self.others:
            kill(process)
        self.others.clear()

    def __exit__(self, *_):
        self.rest()
        self.server.__exit__()


class SluiceWay:
    """The broker, its workers and its client, as the service part has them."""

    def __init__(self, build, root, plan, durability):
        self.build, self.plan = build, plan
        self.broker = Broker(build, f"{root}/sluice", durability)

    def __enter__(self):
        self.broker.__enter__()
        return self

    def staff(self, *stages):
        return [self.broker.spawn(f"{self.build}/workers/sluice-worker", stage, "--broker", url(FRONT), "--slots", "64",
                                  "--data", self.broker.data) for stage in stages for _ in range(self.plan.workers)]

    def flow(self, count, window):
        done = subprocess.run([f"{self.build}/bench/bench_rollouts", "flow", url(FRONT), url(FEED), str(count),
                               str(window), str(TASK_BYTES)], check=True, text=True, stdout=subprocess.PIPE, timeout=300)
        return [float(word) for word in done.stdout.split()]

    def cpu_s(self):
        return processes.cpu_s(self.broker.process, *self.broker.others)

    def hold(self):
        holder = self.broker.spawn(sys.executable, MEASURE, "--hold", str(self.plan.held), "run")

        def holds():
            return self.broker.status()["stages"]["run"]["leased"] >= self.plan.held
        return holder, lambda: processes.await_that(holds, START_S, "a worker that holds jobs")

    def ask(self):
        return Asker(self.plan.asked, TASK_BYTES).answers()

    def rest(self):
        for process in self.broker.others:
            kill(process)
        self.broker.others.clear()

    def __exit__(self, *_):
        self.broker.__exit__()
        shutil.rmtree(self.broker.data, ignore_errors=True)


# ---- what is measured ---------------------------------------------------------------------------------------------


class Answers:
    """How many of those asked for have been answered, and when, while it is read by a thread of its own."""

    def __init__(self, numbers):
        self.seen = [(time.monotonic(), 0)]
        self.thread = threading.Thread(target=self._read, args=(numbers,), daemon=True)
        self.thread.start()

    def _read(self, numbers):
        for number in numbers:
            self.seen.append((time.monotonic(), number))

    def count(self):
        return self.seen[-1][1]

    def settle(self, seconds, quiet_s=0.5):
        """Until none has come for so long, the first excepted."""
        until = time.monotonic() + seconds
        while self.count() == 0 or time.monotonic() - self.seen[-1][0] < quiet_s:
            if time.monotonic() > until:
                raise SystemExit("what other workers have in hand does not end")
            time.sleep(0.01)

    def wait(self, number, seconds):
        until = time.monotonic() + seconds
        while self.count() < number and time.monotonic() < until:
            time.sleep(0.002)


def measure_flow(way, plan, note):
    way.staff(*STAGES)
    rate = way.flow(plan.warm, plan.warm)[0]
    count = int(min(max(rate * plan.seconds, plan.counts[0]), plan.counts[1]))
    ours, client = way.cpu_s(), processes.children_cpu_s()
    note("rollouts/s", way.flow(count, WINDOW)[0])
    note("CPU s per 1,000", (way.cpu_s() - ours + processes.children_cpu_s() - client) * 1000 / count)
    _, p50, p99, *_ = way.flow(min(plan.idle, count), 1)
    note("idle p50 ms", p50)
    note("idle p99 ms", p99)
    way.rest()


def measure_kill(way, plan, note):
    """kill -9 of a run worker that holds jobs; all others are done by then. [(seconds since, answered)] for the plot."""
    way.staff("init", "eval")
    holder, await_jobs = way.hold()
    answers = Answers(way.ask())
    await_jobs()
    way.staff("run")
    answers.settle(START_S)
    killed = time.monotonic()
    before = answers.count()
    holder.send_signal(signal.SIGKILL)
    answers.wait(plan.asked, plan.patience_s)
    note("answered", answers.count())
    if answers.count() == plan.asked:
        note("until all s", answers.seen[-1][0] - killed)
    return [(0, before)] + [(at - killed, number) for at, number in answers.seen if at > killed]


SYSTEMS = (  # name, what is on disk when it is confirmed, whether a worker of it is killed, too, way
    ("Sluice, full", "all", True, lambda *of: SluiceWay(*of, "full")),
    ("Sluice, none", "nothing", False, lambda *of: SluiceWay(*of, "none")),
    ("Redis lists, always", "all", True, lambda *of: QueueWay(*of, Redis, "redis-lists")),
    ("Redis lists, everysec", "all but 1 s", False, lambda *of: QueueWay(*of, RedisEverySecond, "redis-lists")),
    ("Redis streams, always", "all", True, lambda *of: QueueWay(*of, Redis, "redis-streams")),
    ("Redis streams, everysec", "all but 1 s", False, lambda *of: QueueWay(*of, RedisEverySecond, "redis-streams")),
    ("RabbitMQ quorum", "all", True, lambda *of: QueueWay(*of, Rabbit, "rabbitmq-quorum")),
    ("RabbitMQ classic", "all", False, lambda *of: QueueWay(*of, Rabbit, "rabbitmq-classic")),
    ("NATS JetStream", "all but 2 min", True, lambda *of: QueueWay(*of, Nats, "nats")),
    ("beanstalkd, -f 0", "all", False, lambda *of: QueueWay(*of, Beanstalkd, "beanstalkd")),
    ("beanstalkd, -f 50", "all but 50 ms", True, lambda *of: QueueWay(*of, BeanstalkdEvery50, "beanstalkd")),
    ("verifiers", "nothing", True, lambda *of: PythonWay("verifiers", *of)),
    ("Ray actors", "nothing", True, lambda *of: PythonWay("ray", *of)),
)
SLOW = ("verifiers", "Ray actors")  # to start
CEILINGS = (("libzmq and a file", "all"), ("libzmq alone", "nothing"))
COLUMNS = ("rollouts/s", "idle p50 ms", "idle p99 ms", "CPU s per 1,000", "answered", "until all s")


class Peers:
    def __init__(self, build, plan):
        self.build, self.plan = build, plan
        self.values, self.curves, self.skipped = page.Values(), {}, {}
        self.root = tempfile.mkdtemp(prefix="sluice-bench-")

    def attempt(self, name, is_killed, make, number):
        """The system's rows of one round; what is not installed, or fails, is skipped by name from then on."""
        def note(what, value):
            self.values.note(f"{name}, {what}", value)
        try:
            with make(self.build, self.root, self.plan) as way:
                measure_flow(way, self.plan, note)
                if is_killed and number <= self.plan.slow_rounds:
                    self.curves[name] = measure_kill(way, self.plan, note)
        except (Missing, SystemExit, subprocess.SubprocessError) as why:
            self.skipped[name] = str(why)
            print(f"  skipped: {name}: {why}", flush=True)

    def ceiling(self, name, path):
        before = processes.children_cpu_s()
        count = int(self.plan.counts[1] * min(1, self.plan.seconds))
        done = subprocess.run([f"{self.build}/bench/bench_ceiling", str(self.plan.workers), str(count), str(WINDOW),
                               "64", str(TASK_BYTES), path], check=True, text=True, stdout=subprocess.PIPE, timeout=300)
        self.values.note(f"{name}, rollouts/s", float(done.stdout))
        self.values.note(f"{name}, CPU s per 1,000", (processes.children_cpu_s() - before) * 1000 / count)

    def run(self):
        for number in range(1, self.plan.rounds + 1):
            self.values.begin(number, self.plan.rounds)
            self.ceiling(CEILINGS[0][0], f"{self.root}/ceiling")
            self.ceiling(CEILINGS[1][0], "-")
            for name, _, is_killed, make in SYSTEMS:
                if name not in self.skipped and (name not in SLOW or number <= self.plan.slow_rounds):
                    self.attempt(name, is_killed, make, number)

    def row(self, name, disk):
        cells = [self.values.cell(f"{name}, {column}") for column in COLUMNS]
        if cells[-2] and not cells[-1]:
            cells[-1] = f"not within {self.plan.patience_s} s"
        return f"| {name} | {disk} | {' | '.join(cells)} |"

    def table(self):
        rows = ["| system | on disk when confirmed | rollouts/s | idle p50 ms | idle p99 ms | CPU s per 1,000 "
                f"| answered of {self.plan.asked} | until all, s |", "|---|---|---|---|---|---|---|---|"]
        rows += [self.row(name, disk) for name, disk in CEILINGS]
        return "\n".join(rows + [self.row(name, disk) for name, disk, _, _ in SYSTEMS if name not in self.skipped])

    def plots(self):
        names = [*(name for name, _ in CEILINGS), *(name for name, *_ in SYSTEMS if name not in self.skipped)]
        plot.bars("peers", "No-op rollouts of 1 KiB through three stages", "rollouts/s",
                  {name: self.values.values[f"{name}, rollouts/s"] for name in names})
        idle = [name for name in names if f"{name}, idle p50 ms" in self.values.values]
        plot.bars("peers-latency", "From submit to result when idle, p50", "ms",
                  {name: self.values.values[f"{name}, idle p50 ms"] for name in idle})
        plot.steps("recovery", f"{self.plan.asked} asked, a worker with jobs in hand killed at 0 s", "s", "answered",
                   self.curves, until=self.plan.patience_s)


def measure(build, quick):
    """The part's text; the plots are made, too, unless it is quick."""
    peers = Peers(build, Plan(quick))
    goals.FOUND["peers"] = peers.values
    if quick:
        peers.skipped = {name: "takes a minute to start; the full run has it" if name in SLOW else
                         "like another of the same system; the full run has it"
                         for name, _, is_killed, _ in SYSTEMS if name in SLOW or not is_killed}
    try:
        peers.run()
    finally:
        shutil.rmtree(peers.root, ignore_errors=True)
    if not quick:
        peers.plots()
    versions = ", ".join(["", *server_versions(), *library_versions()])
    skipped = "".join(f"\nSkipped: {name}: {why}.\n" for name, why in peers.skipped.items())
    return f"""## The same work on other systems

{peers.values.circumstances(versions)}

No-op rollouts of 1 KiB through init, run and eval, {peers.plan.workers} worker processes of each stage, {WINDOW:,} outstanding, one machine,
loopback. Answered: a run worker is killed with -9 while it holds its share of {peers.plan.asked} jobs and all others are done; how many
of those asked have a result, and how long after the kill the last came.

{peers.table()}
{skipped}"""
