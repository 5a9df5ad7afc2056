#!/usr/bin/env python3
"""Runs a whole service under load, hurts it at random, and judges from the outside that nothing was lost or done twice.

  python3 tests/chaos/chaos.py --kills 1000 --seed 7          a thousand kills over broker, workers, trainers and engine
  python3 tests/chaos/chaos.py --minutes 60 --nodes 3         an hour, with workers on three nodes that get cut off
  python3 tests/chaos/chaos.py --seed 7 --plan 20             only says what would be done

Trainers submit without end and write down what was acknowledged and what they read; they may be killed like everybody
else. In the end everything is let finish, and then it must hold that: each rollout that was acknowledged is in its
stream exactly once; numbers have no gaps; a trainer that goes on from its cursor has read each trajectory once and in
order; a stream read again is the same; each outcome and reward is the one its task must have, and none comes from an
evaluator that failed; no process ended by itself; the ledger is sound; the broker's memory stayed in its bound; no
process, mount, socket or temporary file is left.

Every decision follows from --seed. What the machine makes of it does not, so a failure may need several runs to come
back. Progress goes to stderr; the summary is one JSON object on stdout. Exit status: 0 all held, 1 something did not
(stderr says what, and the files are kept), 2 wrong usage.
"""
import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path += [HERE, os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "client", "python")]

import load  # noqa: E402
import plan  # noqa: E402

# Retries must not run out under a storm: then any "infra" is a fault of ours. What needs a layer that was damaged
# in the store fails each time: 30 tries, 2 s apart at most, and as many when its stage is done again, end before
# --settle does.
SETTINGS = {"adopt_grace": "1500ms", "infra_budget": 30, "blame_budget": 1000, "retry_last": "2000ms",
            "breaker_first": "100ms", "breaker_last": "1000ms"}
STAGES = ("init", "run", "eval")


def read_options():
    harms = "\n".join(f"  {name:10} {harm.doc}" for name, harm in plan.HARMS.items())
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description=__doc__, epilog="harms:\n" + harms)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--kills", type=int, help="until so many processes were killed")
    length.add_argument("--minutes", type=float, help="for so long (default: 1)")
    parser.add_argument("--seed", type=int, help="default: a new one, which is told")
    parser.add_argument("--harms", metavar="A,B", help="only these (default: all that can be done here)")
    parser.add_argument("--pause", type=float, default=0.6, metavar="S", help="mean time between harms (default: 0.6)")
    parser.add_argument("--workers", type=int, default=2, help="of each stage (default: 2)")
    parser.add_argument("--trainers", type=int, default=2, help="in Python (default: 2)")
    parser.add_argument("--c-trainers", type=int, default=1, help="in C (default: 1)")
    parser.add_argument("--nodes", type=int, default=0, help="put the workers into so many network namespaces; needs root")
    parser.add_argument("--small-disk", type=int, default=0, metavar="MIB",
                        help="the ledger on a tmpfs of this size, for the harm `full`; needs root")
    parser.add_argument("--ipc", action="store_true", help="Unix sockets instead of TCP")
    parser.add_argument("--keys", action="store_true", help="CURVE on all sockets, a key for each process")
    parser.add_argument("--no-engine", action="store_true", help="no engine and no tasks that need one")
    parser.add_argument("--memory-mib", type=int, default=1024, help="bound of the broker's memory (default: 1024)")
    parser.add_argument("--settle", type=int, default=180, metavar="S", help="how long everything may take to finish")
    parser.add_argument("--build", metavar="DIR", help="where the programs were built (default: build/release)")
    parser.add_argument("--json", metavar="FILE", help="write the summary there too")
    parser.add_argument("--plan", type=int, metavar="N", help="print the first N decisions and do nothing")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 31)
    names = options.harms.split(",") if options.harms else list(plan.HARMS)
    unknown = [name for name in names if name not in plan.HARMS]
    if unknown:
        parser.error(f"no such harm: {', '.join(unknown)}")
    if options.nodes and options.ipc:
        parser.error("--ipc is for one node")
    options.harms = [name for name in names if (name != "partition" or options.nodes) and
                     (name != "full" or options.small_disk)]
    if options.build:
        os.environ["SLUICE_BINARY_DIR"] = os.path.abspath(options.build)
    return options


def say(text):
    print(text, file=sys.stderr, flush=True)


def member_names(options):
    names = ["broker"] + [f"{stage}-{k + 1}" for stage in STAGES for k in range(options.workers)]
    names += [f"trainer-{k + 1}" for k in range(options.trainers + options.c_trainers)]
    names += [] if options.no_engine else ["engine"]
    return names


def decisions(options):
    nodes = [f"node-{k + 1}" for k in range(options.nodes)]
    return plan.decide(options.seed, member_names(options) + nodes + ["disk", "store"], options.harms, options.pause)


class Chaos:
    def __init__(self, options, nodes):
        from fleet import Fleet
        from harness import BINARY, PYTHON
        from storm import Storm
        self.options, self.nodes, self.disk = options, nodes, None
        self.fleet = Fleet(workers=0, settings=SETTINGS, ipc=options.ipc, grace_s=2, keys=options.keys,
                           bind=nodes.address if nodes else "127.0.0.1",
                           options=("--disk-reserve", f"{options.small_disk // 8}MiB") if options.small_disk else ())
        self.directory = os.path.join(self.fleet.root, "trainers")
        self.stop_file = os.path.join(self.fleet.root, "stop")
        if options.small_disk:
            self.mount(options.small_disk)
        for stage, k in itertools.product(STAGES, range(options.workers)):
            prefix = nodes.prefix(f"node-{k % options.nodes + 1}") if nodes else ()
            self.fleet.add_worker(stage, f"{stage}-{k + 1}", prefix=prefix)
        if not options.no_engine:
            self.fleet.add_engine(load.SCRIPT, host=nodes.address if nodes else "127.0.0.1")
        for k in range(options.trainers + options.c_trainers):
            name, where = f"trainer-{k + 1}", os.path.join(self.directory, f"trainer-{k + 1}")
            program = [PYTHON, os.path.join(HERE, "trainer.py"), where, name, str(options.seed), "--stop", self.stop_file]
            program += [] if options.no_engine else ["--engine"]
            program += ["--ack"] if k % 2 else []
            if k >= options.trainers:
                program = [os.path.join(BINARY, "tests", "chaos", "chaos_trainer"), where, name, self.stop_file]
            self.fleet.add(name, program, ready="trainer ready", role="trainer")
        self.streams = [name for name in self.fleet.members if name.startswith("trainer")]
        self.storm = Storm(self.fleet, nodes, self.fleet.store, self.disk)
        if "power" in options.harms:
            self.fleet.broker.environment.update(
                LD_PRELOAD=os.path.join(BINARY, "tests", "chaos", "liblost_writes.so"),
                SLUICE_LOST_WRITES=self.storm.unsynced,
                ASAN_OPTIONS=self.fleet.environment["ASAN_OPTIONS"] + ":verify_asan_link_order=0")
        os.mkdir(self.directory)

    def mount(self, mib):
        self.disk = os.path.join(self.fleet.root, "disk")
        os.mkdir(self.disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "sluice-chaos", self.disk], check=True)
        self.fleet.move_data(os.path.join(self.disk, "data"))

    def unmount(self):
        if self.disk:
            subprocess.run(["umount", self.disk], check=True)

    # ---- the storm ----------------------------------------------------------------------------------

    def read_count(self):
        total = 0
        for name in self.streams:
            try:
                with open(os.path.join(self.directory, name, "cursor"), encoding="utf-8") as file:
                    total += json.load(file)[2]
            except (OSError, ValueError):
                pass
        return total

    def tell(self, started, last=[0.0]):
        now = time.monotonic()
        if now - last[0] >= 5:
            last[0] = now
            kills = " ".join(f"{name}={count}" for name, count in sorted(self.storm.kills.items()))
            harms = " ".join(f"{name}={count}" for name, count in sorted(self.storm.counts.items()) if name != "kill")
            say(f"{now - started:6.0f} s  kills={sum(self.storm.kills.values())} ({kills})  {harms}  "
                f"read={self.read_count()}  broker={self.storm.most_kib // 1024} MiB")

    def rage(self):
        started = time.monotonic()
        for step in decisions(self.options):
            kills = sum(self.storm.kills.values())
            enough = (kills >= self.options.kills if self.options.kills else
                      time.monotonic() - started > 60 * (self.options.minutes or 1))
            if enough:
                break
            self.storm.watch_until(time.monotonic() + step.pause_s)
            self.storm.harm(step)
            self.tell(started)
        return time.monotonic() - started

    def settle(self):
        """Everybody runs again, trainers submit no more, and read what is theirs."""
        self.storm.calm()
        for name in self.streams:
            self.fleet[name].may_end = True
        with open(self.stop_file, "w", encoding="utf-8"):
            pass
        end = time.monotonic() + self.options.settle
        while not all(self.fleet[name].finished for name in self.streams):
            self.storm.watch_until(time.monotonic() + 0.2)
            if time.monotonic() > end:
                status = self.fleet.status()
                raise AssertionError(f"not everything ended in {self.options.settle} s; the broker says: "
                                     f"{json.dumps(status)[:3000]}")

    # ---- the verdict ------------------------------------------------------------------------------------

    def judge(self, verdict):
        from sluice import Client
        import verdict as judges
        rows = {name: judges.judge_stream(verdict, name, os.path.join(self.directory, name), self.storm.damaged)
                for name in self.streams}
        accepted = {name: sum(judges.read_accepted(os.path.join(self.directory, name)).values()) for name in self.streams}
        status = self.fleet.wait_for(lambda s: s["rollouts"]["live"] == 0 and s, 30, "no rollout live")
        judges.judge_status(verdict, status, sum(accepted.values()))
        heads = {stream["name"]: stream["head"] for stream in status["streams"]}
        key = self.fleet.environment.get("SLUICE_KEY")
        with Client(self.fleet.url, timeout=30, key=key, allow_plaintext=not key) as client:
            for k, name in enumerate(self.streams):
                if k < self.options.trainers and k % 2 == 0:  # nobody acknowledged it
                    judges.judge_again(verdict, client, name, rows[name], heads[name])
        judges.judge_memory(verdict, self.storm.most_kib, self.options.memory_mib)
        self.fleet.stop()
        judges.judge_ledger(verdict, self.fleet.data)
        self.unmount()
        try:
            self.fleet.check()
        except AssertionError as why:
            verdict.fault("left", str(why))
        ends = {}
        for row in itertools.chain.from_iterable(rows.values()):
            ends[row[2]] = ends.get(row[2], 0) + 1
        return {"accepted": sum(accepted.values()), "read": sum(map(len, rows.values())), "ends": ends}

    def run(self):
        from verdict import Verdict
        verdict, summary, began = Verdict(), {}, time.monotonic()
        try:
            for member in self.fleet.members.values():
                member.start(wait=not member.name.startswith("trainer"))
                if hasattr(member, "url"):
                    self.fleet.run("engine", "add", member.url)
            say(f"seed {self.options.seed}, {len(self.fleet.members)} processes in {self.fleet.root}")
            storm_s = self.rage()
            self.settle()
            summary = dict(self.judge(verdict), storm_s=round(storm_s, 1))
        except AssertionError as why:
            verdict.fault("stuck", str(why))
        finally:
            for member in self.fleet.members.values():
                member.may_fail = True
                member.kill()
        return dict(summary, seed=self.options.seed, kills=self.storm.kills, harms=self.storm.counts, lost_pages=self.storm.lost_pages,
                    seconds=round(time.monotonic() - began, 1), broker_mib=self.storm.most_kib // 1024,
                    faults=verdict.faults, counts=verdict.counts)


def run(options, nodes):
    chaos = Chaos(options, nodes)
    summary = chaos.run()
    said = json.dumps(summary)
    print(said, flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(said + "\n")
    for fault in summary["faults"]:
        say(f"FAULT {fault}")
    if summary["faults"]:
        say(f"kept for a look: {chaos.fleet.root}")
        return 1
    shutil.rmtree(chaos.fleet.root)
    say(f"all held: {summary['read']} rollouts, {sum(summary['kills'].values())} kills, seed {options.seed}")
    return 0


def main():
    options = read_options()
    if options.plan:
        for step in itertools.islice(decisions(options), options.plan):
            print(step)
        return 0
    from nodes import Nodes, why_not
    if options.nodes and why_not():
        say(f"{why_not()}; without nodes and partitions then")
        options.nodes, options.harms = 0, [name for name in options.harms if name != "partition"]
    if not options.nodes:
        return run(options, None)
    with Nodes(options.nodes) as nodes:
        return run(options, nodes)


if __name__ == "__main__":
    sys.exit(main())
