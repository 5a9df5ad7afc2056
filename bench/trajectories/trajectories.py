"""Trajectories: encoding and decoding of long ones, and a stream that many read, one of them so slowly that it stops."""
import os
import shutil
import signal
import subprocess
import tempfile
import time

import page
import processes
from parts import FRONT, Broker, StandIn, pack, url

PATIENCE_S = 120
SIZES = (1000, 30000, 100000)
STEPS = (  # what bench_trajectories measures, and what it is beside
    ("the arrays, bytes", ""),
    ("the record, bytes", ""),
    ("record made of its arrays and compressed", "us"),
    ("floor of that: the arrays copied", "us"),
    ("floor of that: the arrays through LZ4", "us"),
    ("message made around it", "us"),
    ("message and record read", "us"),
    ("floor of that: the arrays back from LZ4", "us"),
)
FEED_COLUMNS = ("trajectories/s to each", "MB/s to all", "the same with one more that is stopped, x",
                "until that one has all, s")


class Plan:
    def __init__(self, quick):
        self.rounds = 1 if quick else 5
        self.repeats = 5 if quick else 200
        self.feeds = ((30000, 10),) if quick else ((1000, 2000), (30000, 200), (100000, 60))  # (tokens, trajectories)
        self.readers = (1, 4, 16)


class Publisher(StandIn):
    """A run worker whose every job ends at once with the same record."""

    def __init__(self, record):
        super().__init__(3, 64, "run")
        self.record = record

    def hear(self, wire, fields):
        super().hear(wire, fields)
        if wire == "job.start":
            self.sink.send(pack("job.result", worker=self.name, job=fields["job"], token=fields["token"], outcome="ok",
                                ms=1, answer="", record=self.record))


class Reader:
    """A process that reads a stream with the client library."""

    def __init__(self, build, stream, count):
        self.process = subprocess.Popen([f"{build}/bench/bench_trajectories", "subscribe", url(FRONT), stream,
                                         str(count)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.said = b""

    def has_said(self, word):
        self.said += self.process.stdout.read() or b""
        if self.process.poll() not in (None, 0):
            raise SystemExit("a subscriber failed")
        return word in self.said.split()

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Feed:
    """A broker, workers that do nothing but the one that publishes, and rounds of a stream of `count` that are read."""

    def __init__(self, broker, build, tokens, count):
        self.broker, self.build, self.tokens, self.count = broker, build, tokens, count
        record = subprocess.run([f"{build}/bench/bench_trajectories", "record", str(tokens)], check=True,
                                stdout=subprocess.PIPE).stdout
        self.publisher, self.serial = Publisher(record), 0

    def await_that(self, holds):
        began = time.monotonic()

        def over():
            if time.monotonic() - began > PATIENCE_S:
                raise SystemExit(f"not within {PATIENCE_S} s: a stream of {self.count} trajectories")
            return holds()
        self.publisher.work(over)

    def read(self, readers, slow):
        """(seconds until all but the slow ones have all of a new stream, and until those that were stopped have, too)"""
        self.serial += 1
        stream = f"bench-{self.tokens}-{self.serial}"
        quick = [Reader(self.build, stream, self.count) for _ in range(readers - slow)]
        stopped = [Reader(self.build, stream, self.count) for _ in range(slow)]
        try:
            self.await_that(lambda: all(reader.has_said(b"ready") for reader in quick + stopped))
            for reader in stopped:
                processes.freeze(reader.process)
            began = time.monotonic()
            for first in range(0, self.count, 500):
                self.broker.ask("group.submit", group=f"{stream}-{first}", stream=stream, task='{"task":"n","kind":"noop"}',
                                samples=min(500, self.count - first))
            self.await_that(lambda: all(reader.has_said(b"all") for reader in quick))
            took, began = time.monotonic() - began, time.monotonic()
            for reader in stopped:
                reader.process.send_signal(signal.SIGCONT)
            self.await_that(lambda: all(reader.has_said(b"all") for reader in stopped))
            return took, time.monotonic() - began
        finally:
            for reader in quick + stopped:
                reader.close()


def feed_name(tokens, readers):
    return f"{tokens:,} tokens, subscribers: {readers}"


def codec_table(values):
    def cell(size, what, unit):
        if not unit:
            return values.cell(f"{size} tokens: {what}").split(" (")[0]
        return f"{values.cell(f'{size} tokens: {what}, us')}; {values.cell(f'{size} tokens: {what}, MB/s').split(' (')[0]}"
    rows = ["| what | " + " | ".join(f"{size:,} tokens" for size in SIZES) + " |", "|---|---|---|---|"]
    for what, unit in STEPS:
        name = f"{what}, us; MB/s" if unit else what
        rows.append(f"| {name} | " + " | ".join(cell(size, what, unit) for size in SIZES) + " |")
    return "\n".join(rows)


def feed_table(values, plan):
    rows = [f"| what | {' | '.join(FEED_COLUMNS)} |", "|---|---|---|---|---|"]
    for tokens, _ in plan.feeds:
        for readers in plan.readers:
            name = feed_name(tokens, readers)
            rows.append(f"| {name} | " + " | ".join(values.cell(f"{name}, {column}") for column in FEED_COLUMNS) + " |")
    return "\n".join(rows)


def measure_feed(values, feed, plan, stopped_first):
    """Which of the two comes first changes from round to round."""
    tokens, count = feed.tokens, feed.count
    try:
        feed.read(1, 0)  # everything is up and warm
        for readers in plan.readers:
            what = feed_name(tokens, readers)
            if stopped_first:
                slowed, behind = feed.read(readers + 1, 1)
            took, _ = feed.read(readers, 0)
            if not stopped_first:
                slowed, behind = feed.read(readers + 1, 1)
            values.note(f"{what}, {FEED_COLUMNS[0]}", count / took)
            values.note(f"{what}, {FEED_COLUMNS[1]}", count * readers * len(feed.publisher.record) / took / 1e6)
            values.note(f"{what}, {FEED_COLUMNS[2]}", took / slowed)
            values.note(f"{what}, {FEED_COLUMNS[3]}", behind)
    finally:
        feed.publisher.close()


def measure_round(values, build, root, plan, number):
    page.note_lines(values, [f"{build}/bench/bench_trajectories", "codec", str(plan.repeats)])
    with Broker(build, f"{root}/broker") as broker:
        for stage in ("init", "eval"):
            broker.spawn(f"{build}/workers/sluice-worker", stage, "--broker", url(FRONT), "--slots", "64", "--data",
                         broker.data)
        for tokens, count in plan.feeds:
            measure_feed(values, Feed(broker, build, tokens, count), plan, number % 2 == 0)
    shutil.rmtree(f"{root}/broker")


def measure(build, quick):
    """The part's text."""
    plan, values = Plan(quick), page.Values()
    root = tempfile.mkdtemp(prefix="sluice-bench-")
    try:
        for number in range(1, plan.rounds + 1):
            values.begin(number, plan.rounds)
            measure_round(values, build, root, plan, number)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    feeds = ", ".join(f"{count:,} of {tokens:,} tokens" for tokens, count in plan.feeds)
    return f"""## Trajectories

{values.circumstances()}

A record is an agent's: turn about 500 sampled tokens with their log-probabilities and 500 of a tool; its arrays are nine bytes a
token. One thread; MB/s are of the arrays, whatever they become.

{codec_table(values)}

A broker with `--durability full`, workers of init and eval, a run worker that ends each job at once with such a record, and
subscribers with the client library, each a process that decodes all it gets, from the submit until each has all,
{feeds}.
Then the same with one more, which is stopped (SIGSTOP) when it has subscribed, until the others have everything: how many times
as fast the others were, and how long after it may go on it has every one, too: from the feed, or fetched where that dropped it.

{feed_table(values, plan)}
"""
