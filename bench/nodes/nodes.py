"""Scaling with nodes: throughput of 1 to 32 nodes, what is short, nodes that fail and join, and many live rollouts."""
import collections
import json
import os
import signal
import statistics
import subprocess
import sys
import time

import page
from nodes import net as networks
from nodes.fleet import EVAL_S, INIT_S, TASK, TOKENS, TOKENS_PER_S, TOOL_MS, TURNS, Fleet

SLOTS = 4          # of each node: so few that latencies bound, and not two cores
OTHERS = 16        # slots of init and of eval, where they are not what is short
CHAT = {"task": "chat", "prompt": "Think long.", "agent": {"kind": "chat"}}


class Plan:
    def __init__(self, quick):
        self.sizes = (1, 2) if quick else (1, 2, 4, 8, 16, 32)
        self.quick, self.windows, self.warm_s = quick, 2 if quick else 5, 4 if quick else 7
        self.short_nodes, self.short_s = (2, 5) if quick else (8, 12)
        self.fault_nodes, self.third_s = (2, 4) if quick else (8, 9)
        self.live = 200 if quick else 10000

    def window_s(self, nodes):
        """The fewer nodes, the fewer rollouts end in a second, and about a hundred are to be counted."""
        return 2 if self.quick else max(4, 24 // nodes ** 0.6)


def staffed(fleet, nodes, init=OTHERS, evals=OTHERS):
    fleet.hire("init", init)
    fleet.hire("eval", evals)
    for node in range(nodes):
        fleet.hire("run", SLOTS, node)
    fleet.await_workers({"init": init, "run": nodes * SLOTS, "eval": evals})


class Watch:
    """Slots taken by stage, and what the status names as the bottleneck, while it is called again and again."""

    def __init__(self, fleet):
        self.fleet, self.shares, self.parts = fleet, collections.defaultdict(list), collections.Counter()

    def __call__(self):
        status = self.fleet.trainer.status()
        for stage, part in status["stages"].items():
            self.shares[stage].append(part["leased"] / max(1, part["slots"]))
        self.parts[(status["bottleneck"] or {"part": "nothing"})["part"]] += 1

    def busy(self, stage):
        return statistics.mean(self.shares[stage])


# ---- throughput by nodes ----------------------------------------------------------------------------------------


def scale(build, kind, nodes, plan, rows):
    with kind(nodes) as net, Fleet(build, net) as fleet:
        staffed(fleet, nodes)
        outstanding = nodes * SLOTS + max(2, nodes * SLOTS // 4)
        fleet.trainer.work(plan.warm_s, outstanding, TASK)
        watch, rates, began = Watch(fleet), [], len(fleet.trainer.ends)
        for _ in range(plan.windows):
            before, at = len(fleet.trainer.ends), time.monotonic()
            fleet.trainer.work(plan.window_s(nodes), outstanding, TASK, watch)
            rates.append((len(fleet.trainer.ends) - before) / (time.monotonic() - at))
        ends = [end for _, end in fleet.trainer.ends[began:]]
        bad = sum(end["outcome"] != "ok" for end in ends)
        waits = [end["wait_ms"] / 1000 for end in ends]
        row = {"nodes": nodes, "rates": rates, "rate": len(ends) / (plan.windows * plan.window_s(nodes)), "bad": bad,
               "busy": {stage: watch.busy(stage) for stage in ("init", "run", "eval")}, "p99": page.percentile(waits, 0.99),
               "run_s": statistics.mean(end["run_ms"] for end in ends) / 1000}
        print(f"  {nodes} nodes: {row['rate']:.2f} rollouts/s, run slots {row['busy']['run']:.0%} taken, a run "
              f"{row['run_s']:.2f} s, p99 wait {row['p99']:.2f} s", flush=True)
        rows.append(row)


def scaling_text(rows):
    lines = ["| nodes | run slots | rollouts/s | spread | of linear | taken: init | run | eval | a run, s | p99 wait, s |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    first = rows[0]["rate"] / rows[0]["nodes"]
    for row in rows:
        busy = row["busy"]
        spread = f"{min(row['rates']):.2f} to {max(row['rates']):.2f}"
        lines.append(f"| {row['nodes']} | {row['nodes'] * SLOTS} | {row['rate']:.2f} | {spread} | "
                     f"{row['rate'] / row['nodes'] / first:.0%} | {busy['init']:.0%} | {busy['run']:.0%} | {busy['eval']:.0%} | "
                     f"{row['run_s']:.2f} | {row['p99']:.2f} |")
    return "\n".join(lines)


def simulated(build, rows):
    """What `sluice simulate` says of the same fleets. `setup`: what a run of the smallest fleet took beside calls and tools."""
    mean = lambda pair: sum(pair) / 2
    ideal_s = mean(TURNS) * mean(TOKENS) / TOKENS_PER_S + (mean(TURNS) - 1) * mean(TOOL_MS) / 1000
    setup_s = max(0, rows[0]["run_s"] - ideal_s)
    tasks = (f"turns={TURNS[0]}..{TURNS[1]},sampled={TOKENS[0]}..{TOKENS[1]},"
             f"tool={TOOL_MS[0] / 1000}..{TOOL_MS[1] / 1000}s,init={INIT_S}s,eval={EVAL_S}s,setup={setup_s:.3f}s")
    lines = ["| nodes | measured, rollouts/s | simulated | difference |", "|---|---|---|---|"]
    for row in rows:
        given = {"nodes": row["nodes"], "slots": SLOTS, "init-nodes": 1, "eval-nodes": 1, "init-slots": OTHERS,
                 "eval-slots": OTHERS, "samples": 1, "tokens-per-second": 1000000, "call-tokens-per-second": TOKENS_PER_S,
                 "engine-calls": 10000, "prefill-tokens-per-second": 100000000, "tasks": tasks}
        done = subprocess.run([f"{build}/broker/sluice-simulate", "--json",
                               *(f"--{name}={value}" for name, value in given.items())],
                              check=True, text=True, stdout=subprocess.PIPE, timeout=60)
        rate = json.loads(done.stdout)["rollouts_per_hour"] / 3600
        lines.append(f"| {row['nodes']} | {row['rate']:.2f} | {rate:.2f} | {rate / row['rate'] - 1:+.0%} |")
    return tasks, "\n".join(lines)


# ---- what is short -------------------------------------------------------------------------------------------------


def shortage(build, kind, plan, stage, few):
    """The rate with too few slots of a stage, what the status says, and the rate with twice as many."""
    rates = []
    for factor in (1, 2):
        nodes = few * factor if stage == "run" else plan.short_nodes
        init, evals = (few * factor if stage == "init" else OTHERS), (few * factor if stage == "eval" else OTHERS)
        with kind(nodes) as net, Fleet(build, net) as fleet:
            staffed(fleet, nodes, init, evals)
            outstanding = 2 * (nodes * SLOTS) + 8
            fleet.trainer.work(plan.short_s / 2, outstanding, TASK)
            watch, before = Watch(fleet), len(fleet.trainer.ends)
            fleet.trainer.work(plan.short_s / 2, outstanding, TASK, watch)
            rates.append((len(fleet.trainer.ends) - before) / (plan.short_s / 2))
            if factor == 1:
                said, count = watch.parts.most_common(1)[0]
                share = count / sum(watch.parts.values())
    print(f"  too few {stage} slots: {rates[0]:.2f} rollouts/s, status says {said} ({share:.0%}); twice as many: {rates[1]:.2f}",
          flush=True)
    slots = few * SLOTS if stage == "run" else few
    return f"| {slots} {stage} slot{'s' * (slots > 1)} | {rates[0]:.2f} | `{said}`, in {share:.0%} of its answers | {rates[1]:.2f} |"


# ---- nodes that fail, and join ------------------------------------------------------------------------------------------


def die(fleet, node):
    fleet.nodes[node].kill()
    return "one node's worker is killed (kill -9)"


def join(fleet, node):
    fleet.hire("run", SLOTS, node)
    return "a new node joins"


def cut(fleet, node):
    fleet.net.cut(node, fleet.nodes[node])
    return "one node's link goes down"


def heal(fleet, node):
    fleet.net.heal(node, fleet.nodes[node])
    return "its link is up again"


def slow(fleet, node):
    said = fleet.net.slow(node)
    return f"one node's link is slow ({said})" if said else None


def quicken(fleet, node):
    fleet.net.quicken(node)
    return "its link is as it was"


def fault(build, kind, plan, do, undo, curves):
    """Three spans: as it was, with the fault, and after it."""
    with kind(plan.fault_nodes) as net, Fleet(build, net) as fleet:
        staffed(fleet, plan.fault_nodes)
        outstanding, words, rates = plan.fault_nodes * SLOTS + 8, [], []
        fleet.trainer.work(plan.warm_s, outstanding, TASK)
        began = time.monotonic()
        for step in (None, do, undo):
            if step:
                said = step(fleet, plan.fault_nodes - 1)
                if not said:
                    print("  no slow node: neither tc netem nor tc tbf can be had", flush=True)
                    return None
                words.append(said)
            before = len(fleet.trainer.ends)
            fleet.trainer.work(plan.third_s, outstanding, TASK)
            rates.append((len(fleet.trainer.ends) - before) / plan.third_s)
        curves[words[0]] = [at - began for at, _ in fleet.trainer.ends if began <= at < began + 3 * plan.third_s]
        lost, twice = fleet.trainer.finish()
        again = fleet.trainer.status()["counters"]["dispatched"]
        bad = sum(end["outcome"] != "ok" for _, end in fleet.trainer.ends)
    print(f"  {words[0]}: {', '.join(f'{rate:.2f}' for rate in rates)} rollouts/s; {lost} lost, {twice} twice, {bad} not ok",
          flush=True)
    count = len(fleet.trainer.names)
    return (f"| {words[0]}, then {words[1]} | {' | '.join(f'{rate:.2f}' for rate in rates)} | "
            f"{count} of {count + lost} | {twice} | {bad} | {again - 3 * count} |")


# ---- many live rollouts in one worker -------------------------------------------------------------------------------------


def worker_use(process):
    """KiB resident and CPU seconds of the worker's own process."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
        resident = int(next(line for line in file if line.startswith("VmRSS")).split()[1])
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return resident, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def live(build, plan, values):
    """Each waits for one call; agent chat, which has no sandbox. Bounded: what has not ended then is said."""
    count, hold_s = plan.live, 40 if plan.live > 1000 else 5
    load = (100 / hold_s, 1, 1, 100, 100, 0, 0, 1)
    with networks.Groups(1) as net, Fleet(build, net, load) as fleet:
        fleet.hire("init", OTHERS)
        fleet.hire("eval", 64)
        worker = fleet.hire("run", count, 0)
        fleet.await_workers({"init": OTHERS, "run": count, "eval": 64})
        before, cpu_before = worker_use(worker)
        began, calls, resident = time.monotonic(), [0], [before]
        for _ in range(count // 100):
            fleet.trainer.submit(CHAT, 100)

        def look():
            calls.append(sum(engine["calls"] for engine in fleet.trainer.status()["engines"]))
            resident.append(worker_use(worker)[0])
        while max(calls) < count and time.monotonic() < began + hold_s + 5:
            fleet.trainer.work(0.5, every=look)
        at, held_cpu = time.monotonic(), worker_use(worker)[1]
        fleet.trainer.work(hold_s / 10)
        idle_cpu = (worker_use(worker)[1] - held_cpu) / (time.monotonic() - at)
        fleet.trainer.finish(75)
        cpu = worker_use(worker)[1] - cpu_before
    ends = [end for _, end in fleet.trainer.ends]
    values.note("live rollouts in one run worker, most that its engine had at a time", max(calls))
    values.note("... memory of the worker for each of them, KiB", (max(resident) - before) / max(1, *calls))
    values.note("... CPU of the worker while they wait for their engine, of a core", idle_cpu)
    values.note("... CPU of the worker for each rollout from its start to its end, ms", cpu / max(1, len(ends)) * 1000)
    values.note("... not ended within two minutes", fleet.trainer.submitted - len(fleet.trainer.names))
    values.note("... ended otherwise than well, or twice",
                sum(end["outcome"] != "ok" for end in ends) + len(ends) - len(fleet.trainer.names))


# ---- all of it ---------------------------------------------------------------------------------------------------------


def draw(rows, curves, plan):
    """Markdown that shows the pictures; "" where there is nothing to draw with."""
    try:
        import plot
    except ImportError:
        return ""
    first = rows[0]["rate"] / rows[0]["nodes"]
    plot.lines("scaling", "Rollouts a second by nodes", f"nodes of {SLOTS} slots", "rollouts/s", {
        "measured": [(row["nodes"], row["rate"]) for row in rows],
        "linear": [(row["nodes"], first * row["nodes"]) for row in rows]})
    plot.steps("nodes_faults", f"Rollouts ended: a fault at {plan.third_s} s, undone at {2 * plan.third_s} s",
               "seconds", "rollouts", {name: [(0, 0), *((at, k + 1) for k, at in enumerate(ends))]
                                       for name, ends in curves.items()}, 3 * plan.third_s)
    pictures = {"scaling": "Rollouts a second by nodes", "nodes_faults": "Rollouts ended, with a fault and after it"}
    return "\n".join(f"![{words}](plots/{name}.svg)" for name, words in pictures.items()
                     if os.path.exists(f"{page.SOURCE}/docs/contributing/plots/{name}.svg"))


def measure(build, quick):
    """The part's text."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    plan, values, rows, curves = Plan(quick), page.Values(), [], {}
    kind = networks.kind()
    values.begin(1, 1)
    for nodes in plan.sizes:
        scale(build, kind, nodes, plan, rows)
    few = {"init": 1, "run": 1 if quick else 2, "eval": 1}
    short = [shortage(build, kind, plan, stage, count) for stage, count in few.items()]
    faults = [fault(build, kind, plan, *pair, curves) for pair in ((die, join), (cut, heal), (slow, quicken))]
    live(build, plan, values)
    tasks, comparison = simulated(build, rows)
    pictures = "" if quick else draw(rows, curves, plan)
    bad = sum(row["bad"] for row in rows)
    return f"""## Scaling with nodes

{values.circumstances()}

Run workers of {SLOTS} slots, one on each node; {kind.what}.
Broker, engine, init and eval workers ({OTHERS} slots each) are on the bridge's own machine, as is all else: two cores suffice,
since a rollout waits nearly all of its time. It has {TURNS[0]} to {TURNS[1]} turns of the agent `bash`, in a sandbox; {TOKENS[0]} to {TOKENS[1]} tokens a
turn at {TOKENS_PER_S} a second from an engine that answers when that time is over (`bench/nodes/engine.c`), commands that sleep
{TOOL_MS[0]} to {TOOL_MS[1]} ms in between, {INIT_S} s of set-up, {EVAL_S} s of evaluation; each uniform between the two. A quarter more rollouts are
outstanding than there are run slots, so that the next one is there when a slot is free. After a warm-up {plan.windows} windows of
{plan.window_s(plan.sizes[-1]):.0f} s, up to {plan.window_s(1):.0f} s with few nodes; *wait* is all the time that a rollout was queued; {bad} rollouts did not end well.

{scaling_text(rows)}

{pictures}

### Beside `sluice simulate`

The same fleets, simulated with the tasks `{tasks}`,
where `setup` is what a run on the smallest fleet took beyond its calls and tools (sandbox, layers, and requests between calls).

{comparison}

### Too little of one stage

{plan.short_nodes} nodes unless run slots are what is short, twice as many rollouts outstanding as run slots.

| too few | rollouts/s | `sluice status` says it waits for | with twice as many, rollouts/s |
|---|---|---|---|
{chr(10).join(short)}

### Nodes that fail and join

{plan.fault_nodes} nodes; {plan.third_s} s as it was, {plan.third_s} s with the fault, {plan.third_s} s after it. *Again*: dispatches beyond one for each stage.

| what happens | before, rollouts/s | with it | after it | ended | twice | not ok | again |
|---|---|---|---|---|---|---|---|
{chr(10).join(row for row in faults if row)}

### Many live rollouts in one worker

Each waits for one model call of 40 s; agent `chat`, which has no sandbox.

{values.rows()}
"""
