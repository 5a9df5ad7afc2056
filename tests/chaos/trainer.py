#!/usr/bin/env python3
"""A trainer of the chaos: submits without end, reads its stream, and may be killed at any instruction.

    trainer.py DIRECTORY STREAM SEED [--engine] [--ack] [--stop FILE]

What it must not forget is in four files, as a real trainer's checkpoint would have it:
  intent    the number of groups that it may have submitted, written (fsync) before a submit: what was begun is said
            again by the next start, even if it is to stop
  accepted  a line for each group that the broker acknowledged, written (fsync) after the acknowledgement
  log       a line for each trajectory: [seq, rollout, outcome, reward, trainable, sampled tokens]
  cursor    how much of the log is durable, and the number of its last line; replaced by rename
A start cuts the log to the cursor and reads on from there. It ends, with status 0, once FILE is there and all that was
accepted has been read; and with another status at once if the stream skips or repeats a number.
"""
import argparse
import json
import os
import sys
import time

import load
from sluice import BrokerSilent, Client, Refused

OPEN_MAX = 64     # rollouts submitted and not read
BATCH = 6         # groups in one submit
SAVE_EVERY = 16   # trajectories


class Notes:
    """The four files."""

    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self.directory = directory
        self.seq, offset, self.read_count = self._load("cursor", [0, 0, 0])
        self.intended = self._load("intent", 0)
        self.log = open(self._path("log"), "ab")
        self.log.truncate(offset)
        self.log.seek(offset)
        self.unsaved = 0
        self.accepted_count, self.next_number = self._read_accepted()
        self.accepted = open(self._path("accepted"), "ab")

    def _path(self, name):
        return os.path.join(self.directory, name)

    def _load(self, name, default):
        try:
            with open(self._path(name), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return default

    def _replace(self, name, value):
        path = self._path(name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)

    def intend(self, count):
        self.intended = self.next_number + count
        self._replace("intent", self.intended)

    def _read_accepted(self):
        """A line that was cut short was not acknowledged to anybody: it is cut off."""
        rollouts, number, whole = 0, 0, 0
        try:
            with open(self._path("accepted"), "rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        name, samples = line.split()
                        rollouts, number, whole = rollouts + int(samples), number + 1, whole + len(line)
            os.truncate(self._path("accepted"), whole)
        except FileNotFoundError:
            pass
        return rollouts, number

    def note_accepted(self, groups):
        for name, samples in groups:
            self.accepted.write(f"{name} {samples}\n".encode())
            self.accepted_count += samples
        self.next_number += len(groups)
        self.accepted.flush()
        os.fsync(self.accepted.fileno())

    def note_trajectory(self, t):
        if t.seq != self.seq + 1:
            sys.exit(f"number {t.seq} came after {self.seq}")
        sampled = sum(int(trace.mask.sum()) for trace in t.traces)
        self.log.write(json.dumps([t.seq, t.rollout, t.outcome, t.reward, t.trainable, sampled]).encode() + b"\n")
        self.seq, self.read_count, self.unsaved = t.seq, self.read_count + 1, self.unsaved + 1

    def save(self):
        self.log.flush()
        os.fsync(self.log.fileno())
        self._replace("cursor", [self.seq, self.log.tell(), self.read_count])
        self.unsaved = 0

    @property
    def open_count(self):
        return self.accepted_count - self.read_count


class Trainer:
    def __init__(self, options, client, notes):
        self.options, self.client, self.notes = options, client, notes

    def is_stopping(self):
        return self.options.stop and os.path.exists(self.options.stop)

    def submit(self):
        self.notes.intend(BATCH)
        self.submit_intended()

    def submit_intended(self):
        groups = [load.group(self.options.seed, self.options.stream, number, self.options.engine)
                  for number in range(self.notes.next_number, self.notes.intended)]
        names = iter([name for name, *_ in groups])
        self.cancel(groups, load.CANCELLED_BEFORE)
        self.client.submit([task for *_, task in groups], self.options.stream, group=lambda task: next(names))
        self.cancel(groups, load.CANCELLED_AFTER)
        self.notes.note_accepted([(name, samples) for name, _, samples, _ in groups])

    def cancel(self, groups, kinds):
        for name, kind, *_ in groups:
            if kind in kinds:
                self.client.cancel(group=name)

    def save(self):
        if self.notes.unsaved:
            self.notes.save()
            if self.options.ack:
                self.client.ack(self.options.stream, self.notes.seq)

    def work(self):
        """Until it may stop; restarts of the broker that last end in BrokerSilent."""
        while True:
            if self.notes.intended > self.notes.next_number:
                self.submit_intended()
            stopping = self.is_stopping()
            if stopping and self.notes.open_count == 0:
                return
            while not stopping and self.notes.open_count < OPEN_MAX:
                self.submit()
            for t in self.client.trajectories(self.options.stream, from_seq=self.notes.seq + 1, timeout=0.5):
                self.notes.note_trajectory(t)
                if self.notes.unsaved >= SAVE_EVERY:
                    self.save()
                if not self.is_stopping() and self.notes.open_count < OPEN_MAX // 2:
                    self.submit()
            self.save()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("stream")
    parser.add_argument("seed")
    parser.add_argument("--engine", action="store_true", help="submit tasks that need an engine too")
    parser.add_argument("--ack", action="store_true", help="let the broker forget what is saved")
    parser.add_argument("--stop", help="submit no more once this file is there, and end with the last trajectory")
    options = parser.parse_args()
    notes = Notes(options.directory)
    print(f"trainer ready stream={options.stream} seq={notes.seq} accepted={notes.accepted_count}", flush=True)
    with Client(timeout=10) as client:
        while True:
            try:
                Trainer(options, client, notes).work()
                break
            except BrokerSilent as why:
                print(f"waits: {why}", flush=True)
            except Refused as why:
                if why.retry_after is None:
                    raise
                print(f"waits: {why}", flush=True)
                time.sleep(why.retry_after)
    print(f"trainer done seq={notes.seq}", flush=True)


if __name__ == "__main__":
    main()
