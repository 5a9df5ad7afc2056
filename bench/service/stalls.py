"""What others notice of a peer that stalls: the times of their rollouts while a worker or a subscriber is stopped, or a client
floods, beside the same load without that.

The load is paced: rollouts are submitted at times that do not depend on how soon others end, and their times count from then.
"""
import signal
import subprocess
import sys
import time

import page
import processes
from parts import FEED, FRONT, url

TASK_BYTES = 1024
STAFF = 4  # workers of each stage
FLOODER = "127.0.0.2"  # to the broker another peer than all others, who are at 127.0.0.1
UNREAD = f"{page.SOURCE}/bench/service/unread.py"
SETTLE_S = 0.5  # until who is to stall is connected, or floods


class Echo:
    """A raw ROUTER in the broker's place. With `with`."""

    def __init__(self, service):
        self.service, self.process = service, None

    def __enter__(self):
        command = self.service.command("echo", "serve", url(FRONT))
        self.process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit("the raw ROUTER does not start")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()


class Stalls:
    def __init__(self, service, quick):
        self.service, self.values = service, page.Values()
        self.rounds = 1 if quick else 5
        self.rate = 100 if quick else 1000
        self.seconds = 1 if quick else 2
        self.stopped_s = 0.5 if quick else 6  # a worker; by the end of it, after 5 s, it is lost
        self.unread = 200 if quick else 20000
        self.cases = (
            ("a client asks for the status as fast as it can and reads no answer", lambda _: self.flood("asks", self.paced)),
            ("a client submits as fast as it can and reads no answer", lambda _: self.flood("submits", self.paced)),
            (f"a subscriber is stopped (SIGSTOP) with {self.unread:,} messages unread", self.subscriber),
            ("a run worker is stopped (SIGSTOP) with jobs in hand, and lost 5 s later", self.worker))
        self.floors = (
            ("a raw ROUTER in the broker's place sends back what it gets: a message's times beside a flood of status asks",
             lambda _: self.flood("asks", self.echoes)),
            ("the same beside a flood of submits", lambda _: self.flood("submits", self.echoes)))

    def load(self, seconds):
        """A client that paces rollouts, begun."""
        command = self.service.command("rollouts", "paced", url(FRONT), url(FEED), int(seconds * self.rate), self.rate,
                                       TASK_BYTES)
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE)

    def paced(self):
        return self.load(self.seconds)

    def echoes(self):
        """A client that paces messages that a raw ROUTER sends back, begun."""
        command = self.service.command("echo", "paced", url(FRONT), int(self.seconds * self.rate), self.rate, TASK_BYTES)
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE)

    @staticmethod
    def times_us(load):
        """Of all that it submitted, the shortest first."""
        said, _ = load.communicate(timeout=180)
        if load.returncode:
            raise SystemExit(f"the client that paces rollouts ended with {load.returncode}")
        return sorted(map(int, said.split()))

    # ---- who stalls -------------------------------------------------------------------------------------------

    def flood(self, kind, load):
        flooder = subprocess.Popen(self.service.command("flood", kind, url(FRONT), FLOODER), stdout=subprocess.PIPE)
        try:
            time.sleep(SETTLE_S)
            return self.times_us(load())
        finally:
            flooder.terminate()
            flooder.communicate()

    def subscriber(self, broker):
        reader = broker.popen(sys.executable, UNREAD, url(FEED))
        try:
            time.sleep(SETTLE_S)
            processes.freeze(reader)
            self.service.rollouts("flow", self.unread, 4000)
            return self.times_us(self.load(self.seconds))
        finally:
            reader.kill()
            reader.wait()

    def worker(self, broker):
        """Its own jobs are not others': as many of the longest are left out."""
        worker = broker.others[STAFF]
        load = self.load(self.stopped_s + 2 * SETTLE_S)
        time.sleep(SETTLE_S)
        processes.freeze(worker)
        time.sleep(self.stopped_s / 2)
        held = sum(each["jobs"] for each in broker.status()["workers"] if f"-{worker.pid}-" in each["worker"])
        time.sleep(self.stopped_s / 2)
        worker.send_signal(signal.SIGCONT)
        us = self.times_us(load)
        return us[:len(us) - held]

    # ---- all of them ------------------------------------------------------------------------------------------

    def compare(self, broker, what, load, stall):
        before = self.times_us(load())
        during = stall(broker)
        for when, us in (("before", before), ("meanwhile", during)):
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                self.values.note(f"{what}, {when}, {name} ms", page.percentile(us, share) / 1000)
        self.values.note(self.ratio(what), page.percentile(during, 0.99) / page.percentile(before, 0.99))

    def ratio(self, what):
        """Its name. There is no goal for a floor."""
        whose = "its" if any(what == floor for floor, _ in self.floors) else "others'"
        return f"{what}: {whose} p99 beside that before"

    def measure(self, number):
        if number > self.rounds:
            return
        with self.service.broker(workers=STAFF) as broker:
            self.service.rollouts("flow", self.unread // 10, 64)  # everything is up and warm
            for what, stall in self.cases:
                self.compare(broker, what, self.paced, stall)
        with Echo(self.service):
            for what, stall in self.floors:
                self.compare(None, what, self.echoes, stall)

    def table(self):
        columns = ("before, p50 ms", "before, p99 ms", "meanwhile, p50 ms", "meanwhile, p99 ms")
        rows = [f"| while | {' | '.join(columns)} | p99 beside p99 |", "|---|---|---|---|---|---|"]
        for what, _ in (*self.cases, *self.floors):
            cells = [self.values.cell(f"{what}, {column}") for column in columns] + [self.values.cell(self.ratio(what))]
            rows.append(f"| {what} | {' | '.join(cells)} |")
        return "\n".join(rows)
