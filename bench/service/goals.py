"""The goals of speed beside what a run of `bench/run.sh service peers` found: one table, of ratios within that run."""
import statistics

import page
from service.grid import STAFF, Grid

FOUND = {}  # by what was measured, its page.Values; the parts put them here
CEILING = "raw ceiling (libzmq + group-committed file), jobs/s"
CEILING_ALONE = "raw ceiling, one in flight: mean ms"
CEILING_ALONE_NO_DISK = "raw ceiling without its file, one in flight: mean ms"
DURABLE = "Sluice, rollouts/s, --durability full"
NOT_DURABLE = "Sluice, rollouts/s, --durability none"
CPU_SHARE = "CPU of a rollout, all processes, in shares of the ceiling's own"
DISK = "the disk: one file written in order, a sync each 4 MiB, MB/s"
MAIN_THREAD = "CPU of a rollout, broker's main thread, us"
AT_LEAST, AT_MOST, BELOW = "at least", "at most", "below"
HOLDS = {AT_LEAST: lambda figure, goal: figure >= goal, AT_MOST: lambda figure, goal: figure <= goal,
         BELOW: lambda figure, goal: figure < goal}


def latency(window, durability="full"):
    """The name of a latency, but for its percentile."""
    return f"submit to trajectory, {window} in flight" + ("" if durability == "full" else f", --durability {durability}")


def in_grid(size, samples=1):
    return f"{Grid.name(size, STAFF, samples)}, full"


class Figure:
    """Of each round what was noted as one thing, times `scale`, divided by another of the same round."""

    def __init__(self, part, name, by_part=None, by_name=None, scale=1):
        self.of, self.by, self.scale = (part, name), (by_part or part, by_name), scale

    @staticmethod
    def noted(part, name):
        return FOUND[part].values.get(name, []) if part in FOUND else []

    def rounds(self):
        figures = [value * self.scale for value in self.noted(*self.of)]
        return figures if not self.by[1] else [figure / by for figure, by in zip(figures, self.noted(*self.by))]


def of_ceiling(part, name):
    return Figure(part, name, "service", CEILING)


GOALS = (
    ("groups of one, 1 KiB, durable: rollouts/s, of the raw ceiling", AT_LEAST, 0.7, of_ceiling("service", DURABLE)),
    ("the same beside Redis lists, appendfsync always", AT_LEAST, 1.15,
     Figure("peers", "Sluice, full, rollouts/s", by_name="Redis lists, always, rollouts/s")),
    ("the same beside --durability none", AT_LEAST, 0.95, Figure("service", DURABLE, by_name=NOT_DURABLE)),
    ("CPU of a rollout in all processes, in shares of the ceiling program's own", AT_MOST, 1.5, Figure("service", CPU_SHARE)),
    ("groups of 8: rollouts/s, of the raw ceiling", AT_LEAST, 1.2, of_ceiling("grid", in_grid(1024, 8))),
    ("tasks of 8 KiB: rollouts/s, of those of 1 KiB", AT_LEAST, 0.75,
     Figure("grid", in_grid(8192), by_name=in_grid(1024))),
    ("tasks of 64 KiB: MB/s", AT_LEAST, 600, Figure("grid", in_grid(65536), scale=65536 / 1e6)),
    ("the same, of half of what the disk takes (each byte is written twice: to the log, and to its place)", AT_LEAST, 0.75,
     Figure("grid", in_grid(65536), "service", DISK, scale=2 * 65536 / 1e6)),
    ("one in flight, durable: p50 beside --durability none", AT_MOST, 1.4,
     Figure("service", f"{latency(1)}, p50 ms", by_name=f"{latency(1, 'none')}, p50 ms")),
    ("the same beside Redis lists, appendfsync always", BELOW, 1,
     Figure("peers", "Sluice, full, idle p50 ms", by_name="Redis lists, always, idle p50 ms")),
    ("the same beside the raw ceiling's mean, which syncs four times, where one would do", AT_MOST, 1,
     Figure("service", f"{latency(1)}, p50 ms", by_name=CEILING_ALONE)),
    ("broker's main thread: us a rollout (it was 42 to 81, and half of that is the goal)", AT_MOST, 40,
     Figure("service", MAIN_THREAD)),
    ("4,096 in flight: p99 beside p50", AT_MOST, 1.2,
     Figure("service", f"{latency(4096)}, p99 ms", by_name=f"{latency(4096)}, p50 ms")),
)


def stalls():
    """A row for each peer that stalls."""
    if "stalls" not in FOUND:
        return ()
    return tuple((what, AT_MOST, 1.5, Figure("stalls", what)) for what in FOUND["stalls"].values if ": others' p99" in what)


def beats():
    if "connections" not in FOUND:
        return ()
    return tuple((what, AT_MOST, 0.02, Figure("connections", what)) for what in FOUND["connections"].values if "beat" in what)


def row(what, sense, goal, figure):
    rounds = figure.rounds()
    if not rounds:
        return f"| {what} | {sense} {goal:g} | not measured | | |"
    median = statistics.median(rounds)
    met = "yes" if HOLDS[sense](median, goal) else "no"
    return f"| {what} | {sense} {goal:g} | {page.show(median)} | {page.show(min(rounds))} to {page.show(max(rounds))} | {met} |"


def table():
    return "\n".join(["| what | goal | median | spread | met |", "|---|---|---|---|---|",
                      *(row(*goal) for goal in (*GOALS, *stalls(), *beats()))])
