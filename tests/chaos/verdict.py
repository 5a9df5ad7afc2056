"""Judged from the outside, after the chaos: the trainers' own files, the streams, the ledger, the processes."""
import contextlib
import json
import os
import sqlite3

import load


class Verdict:
    """Collects what is wrong; `faults` are sentences, at most some of each kind."""

    def __init__(self):
        self.faults, self.counts = [], {}

    def fault(self, kind, text):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.counts[kind] <= 5:
            self.faults.append(f"{kind}: {text}")


def read_accepted(directory):
    with open(os.path.join(directory, "accepted"), encoding="utf-8") as file:
        return {name: int(samples) for name, samples in (line.split() for line in file)}


def read_log(directory):
    with open(os.path.join(directory, "log"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def judge_stream(verdict, stream, directory, damaged=False):
    """A trainer's own account: each rollout that was accepted, once, in order, ended as it must. Returns its rows."""
    accepted, rows = read_accepted(directory), read_log(directory)
    for place, row in enumerate(rows, 1):
        if row[0] != place:
            verdict.fault("numbers", f"{stream}: line {place} of the log has number {row[0]}")
            break
    wanted = {f"{name}/{k}" for name, samples in accepted.items() for k in range(samples)}
    seen = [row[1] for row in rows]
    for rollout in sorted(wanted - set(seen))[:20]:
        verdict.fault("lost", f"{stream}: {rollout} was accepted and never came")
    for rollout in sorted(set(seen) - wanted)[:20]:
        verdict.fault("unasked", f"{stream}: {rollout} came and was never accepted")
    if len(set(seen)) != len(seen):
        twice = sorted(rollout for rollout in set(seen) if seen.count(rollout) > 1)
        verdict.fault("twice", f"{stream}: {twice[:5]}")
    for seq, rollout, outcome, reward, trainable, _ in rows:
        wrong = load.may_end(load.kind_of(rollout), outcome, reward, trainable, damaged)
        if wrong:
            verdict.fault("ends", f"{stream}: number {seq}, {rollout}, {wrong}")
    return rows


def judge_again(verdict, client, stream, rows, head):
    """A stream that nobody acknowledged, read once more by somebody else: the same, number for number."""
    again = [[t.seq, t.rollout, t.outcome, t.reward, t.trainable] for t in
             client.trajectories(stream, from_seq=1, timeout=10, until_idle=True)]
    if again != [row[:5] for row in rows] or head != len(rows):
        differs = next((pair for pair in zip(again, rows) if pair[0] != pair[1][:5]), "its length")
        verdict.fault("replay", f"{stream}: head {head}, read {len(rows)}, again {len(again)}; differs in {differs}")


def judge_status(verdict, status, accepted_count):
    rollouts = status["rollouts"]
    if rollouts["live"] != 0:
        verdict.fault("live", f"{rollouts['live']} rollouts have not ended")
    for stage, row in status["stages"].items():
        for place in ("queued", "leased", "delayed"):
            if row.get(place):
                verdict.fault("places", f"{row[place]} {stage} jobs are {place}")
    for stream in status["streams"]:
        if stream["pending"]:
            verdict.fault("pending", f"{stream['name']}: {stream['pending']}")
    if accepted_count == 0:
        verdict.fault("load", "nothing was accepted")


def judge_ledger(verdict, data):
    """The file itself, after the broker has gone."""
    path = os.path.join(data, "ledger.db")
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as ledger:
        answer = ledger.execute("PRAGMA integrity_check").fetchone()[0]
    if answer != "ok":
        verdict.fault("ledger", answer)


def judge_memory(verdict, most_kib, bound_mib):
    if most_kib > bound_mib * 1024:
        verdict.fault("memory", f"the broker held {most_kib // 1024} MiB; the bound is {bound_mib}")
