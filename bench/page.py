"""What the parts of the bench have in common: values of several rounds, the machine, and the page,
docs/contributing/benchmarks.md."""
import datetime
import os
import platform
import re
import statistics
import subprocess
import textwrap
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = f"{SOURCE}/docs/contributing/benchmarks.md"
BUSY = 0.1  # of the machine, from which on the page says so


def busy_share(seconds=0.5):
    """Of all cores' time, what is used while we do nothing."""
    def ticks():
        with open("/proc/stat", encoding="ascii") as file:
            numbers = [int(word) for word in file.readline().split()[1:9]]
        return sum(numbers), numbers[3] + numbers[4]
    (total, idle), _ = ticks(), time.sleep(seconds)
    total_then, idle_then = ticks()
    return 1 - (idle_then - idle) / max(1, total_then - total)


def show(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


class Values:
    """Values by name, each of as many rounds as it was noted in; and how busy others kept the machine meanwhile."""

    def __init__(self):
        self.values, self.busy, self.load = {}, [], os.getloadavg()[0]

    def note(self, what, value):
        self.values.setdefault(what, []).append(value)
        print(f"  {what}: {value:g}", flush=True)

    def begin(self, number, rounds):
        self.busy.append(busy_share())
        print(f"round {number} of {rounds}; {self.busy[-1]:.0%} of the machine is busy with something else", flush=True)

    def cell(self, what):
        """Median and spread."""
        values = self.values.get(what)
        return f"{show(statistics.median(values))} ({show(min(values))} to {show(max(values))})" if values else ""

    def rows(self):
        rows = ["| what | median | spread |", "|---|---|---|"]
        for what, values in self.values.items():
            rows.append(f"| {what} | {show(statistics.median(values))} | {show(min(values))} to {show(max(values))} |")
        return "\n".join(rows)

    def percentile_rows(self):
        """Where each name was noted with ", p50 ms" and ", p99 ms" behind it."""
        names = dict.fromkeys(re.sub(r", p\d\d ms$", "", what) for what in self.values)
        return "\n".join(["| what | p50 ms (spread) | p99 ms (spread) |", "|---|---|---|"] +
                         [f"| {name} | {self.cell(f'{name}, p50 ms')} | {self.cell(f'{name}, p99 ms')} |"
                          for name in names])

    def circumstances(self, versions=""):
        """When, where and how quiet it was."""
        with open("/proc/cpuinfo", encoding="utf-8") as text:
            model = re.search(r"model name\s*: (.*)", text.read())
        busy = statistics.median(self.busy)
        quiet = "nothing else ran" if busy < BUSY else \
            f"**the machine was not quiet: other work took {busy:.0%} of it** (median before the rounds)"
        if os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
            quiet += "; all that is measured had real-time priority (`chrt`)"
        cores = f"{os.cpu_count()} cores, {model.group(1) if model else platform.machine()}"
        rounds = f"{len(self.busy)} round{'s' * (len(self.busy) > 1)}, load average before: {self.load:.2f}"
        text = f"{datetime.date.today()}, {cores}, Linux {platform.release()}{versions}; {rounds}; {quiet}."
        return textwrap.fill(text, 118, break_on_hyphens=False)


def note_lines(values, command, environment=None):
    """Notes the "VALUE WHAT" lines that a program prints."""
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=900, env=environment)
    for line in done.stdout.splitlines():
        value, what = line.split(" ", 1)
        values.note(what, float(value))


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def said(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def write(name, text):
    """The part's text in docs/contributing/benchmarks.md, between two marks of its own; the other parts stay."""
    first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    part = f"{first}\n{text.strip()}\n\n{last}"
    if first in page:
        before, after = page.split(first)[0], page.split(last)[1]
        page = before + part + after
    else:
        page = f"{page.rstrip()}\n\n{part}"
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)
