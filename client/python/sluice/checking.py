"""python -m sluice.checking TASKS...: are these tasks sound? (`sluice task check`, docs/tasks/harbor.md)

Each task is run three times by a service: twice by the oracle, which does what the task's solution says, and once by an
agent that does nothing. Sound is a task whose solution gets the full reward, both times alike, and where nothing gets less.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .client import Client
from .errors import SluiceError
from .importers.harbor import HarborChoices, import_folders
from .importers.harbor.choices import Notes
from .task.task_rules import TaskError, check_task, parse_json
from .trajectory import Trajectory

ORACLE_RUNS, DETAIL = 2, 300
STATUS = """\
exit status
  0   every task is sound
  1   a task is not, or is none
  2   the command line is wrong
  3   the service does not answer, or refuses the tasks"""


class Checked(NamedTuple):
    task: str
    place: str
    oracle: List[Optional[float]]   # rewards, of the runs that ended
    nothing: Optional[float]
    wrong: List[str]                # why it is not sound


def _value(text: str) -> Dict[str, Any]:
    value = parse_json(text)
    check_task(text, value)
    return dict(value)


def _lines(path: str) -> Iterator[Tuple[str, str]]:
    with open(path, encoding="utf-8-sig") as file:
        text = file.read()
    if text.lstrip()[:1] == "[":
        for i, one in enumerate(json.loads(text), 1):
            yield f"{path}:{i}", json.dumps(one, ensure_ascii=False)
    else:
        for i, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield f"{path}:{i}", line


def read(path: str, choices: HarborChoices, notes: Notes) -> Iterator[Tuple[str, Any]]:
    """(place, task, or a sentence) of each task of a file or a directory."""
    if os.path.isdir(path) or os.path.basename(path) == "dataset.toml":
        for found in import_folders([path], choices, notes):
            yield found.place, str(found.why) if found.text is None else json.loads(found.text)
        return
    try:
        for place, text in _lines(path):
            try:
                yield place, _value(text)
            except TaskError as why:
                yield place, why.text
    except OSError as why:
        yield path, f"it cannot be read: {why.strerror}"
    except ValueError as why:
        yield path, f"it is neither JSON nor JSON lines: {why}"


class _Task:
    """A task on its way: what ran of it so far."""

    def __init__(self, place: str, task: Dict[str, Any]) -> None:
        self.place, self.task = place, task
        self.oracle: List[Trajectory] = []
        self.nothing: Optional[Trajectory] = None
        self.why = ""  # there is no solution

    def variants(self) -> List[Tuple[str, Dict[str, Any], int]]:
        found = [("none", dict(self.task, agent={"kind": "none"}), 1)]
        oracle = dict(self.task, agent={"kind": "oracle"})
        try:
            check_task(json.dumps(oracle), oracle)
            found.insert(0, ("oracle", oracle, ORACLE_RUNS))
        except TaskError as why:
            self.why = why.text if why.field != "solution" else "it has no solution"
        return found

    def is_done(self) -> bool:
        return self.nothing is not None and (bool(self.why) or len(self.oracle) == ORACLE_RUNS)


def _said(t: Trajectory) -> str:
    detail = " ".join((t.detail or "").split())
    return detail if len(detail) <= DETAIL else detail[:DETAIL] + " ..."


def judge(task: "_Task", full: float) -> Checked:
    wrong = [task.why] if task.why else []
    rewards = [t.reward for t in task.oracle]
    for t in task.oracle:
        if t.reward is None:
            wrong.append(f"the solution got no reward ({t.outcome}): {_said(t)}")
        elif t.reward < full:
            wrong.append(f"the solution got {t.reward:g}: {_said(t)}")
        if wrong:
            break
    if len(set(rewards)) > 1:
        wrong.append(f"the solution got {' and '.join('none' if r is None else f'{r:g}' for r in rewards)}, run twice")
    nothing = task.nothing.reward if task.nothing else None
    if task.nothing and nothing is None:
        wrong.append(f"an agent that does nothing got no reward ({task.nothing.outcome}): {_said(task.nothing)}")
    elif nothing is not None and nothing >= full:
        wrong.append(f"an agent that does nothing got {nothing:g}")
    return Checked(str(task.task["task"]), task.place, rewards, nothing, wrong)


def _named(name: str, _: Dict[str, Any]) -> str:
    return name


class _Runner:
    def __init__(self, client: Client, tasks: List[_Task], jobs: int) -> None:
        self.client, self.left, self.jobs = client, list(reversed(tasks)), jobs
        self.stream = f"check-{time.time_ns():x}"
        self.open: Dict[str, Tuple[_Task, str]] = {}
        self.submitted = 0

    def submit(self) -> None:
        """As many more as may be open."""
        while self.left and len(self.open) < 2 * self.jobs:
            task = self.left.pop()
            for kind, value, samples in task.variants():
                self.submitted += 1
                name = f"{self.stream}-{self.submitted}"
                self.open[name] = (task, kind)
                self.client.submit(value, self.stream, samples=samples, group=functools.partial(_named, name))

    def run(self) -> Iterator[_Task]:
        """Each as it is done."""
        self.submit()
        for t in self.client.trajectories(self.stream, from_seq=1, until_idle=True):
            task, kind = self.open[t.group]
            if kind == "none":
                task.nothing = t
            else:
                task.oracle.append(t)
            if kind == "none" or len(task.oracle) == ORACLE_RUNS:
                del self.open[t.group]
            if task.is_done():
                yield task
            self.client.ack(self.stream, t.seq)
            self.submit()


def check(client: Client, tasks: List[Tuple[str, Any]], jobs: int = 64, full: float = 1.0) -> Iterator[Checked]:
    """tasks: (place, task or a sentence that says why it is none). In the order in which they end."""
    good = []
    for place, task in tasks:
        if isinstance(task, str):
            yield Checked(place, place, [], None, [task])
        else:
            good.append(_Task(place, task))
    for done in _Runner(client, good, jobs).run():
        yield judge(done, full)


# ---- the command -----------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="sluice task check", description="Says whether tasks are sound: the solution must get the full reward, "
                                    "twice alike, and an agent that does nothing less.", epilog=STATUS,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("tasks", nargs="+", metavar="TASKS", help="a file of tasks (JSON lines or a JSON list), or a directory of Harbor's (docs/tasks/harbor.md)")
    found.add_argument("--jobs", type=int, default=64, metavar="N", help="tasks at a time (64)")
    found.add_argument("--full-reward", type=float, default=1.0, metavar="X", help="what a solution must get (1)")
    found.add_argument("--json", action="store_true", help="one JSON object a task, as they end, in place of the table")
    found.add_argument("--all", action="store_true", help="sound tasks are in the table, too")
    found.add_argument("--broker", metavar="URL", help="the broker's FRONT ($SLUICE_BROKER, else tcp://127.0.0.1:5750)")
    found.add_argument("--key", metavar="FILE", help="who you are, for a broker that asks ($SLUICE_KEY)")
    found.add_argument("--allow-plaintext", action="store_true", help="goes over a network without a key")
    return found


def _rewards(rewards: List[Optional[float]]) -> str:
    return " ".join("-" if one is None else f"{one:g}" for one in rewards) or "-"


def _print_table(rows: List[Checked]) -> None:
    cells = [("task", "solution", "nothing", "what is wrong")]
    cells += [(row.task, _rewards(row.oracle), _rewards([row.nothing]), "; ".join(row.wrong) or "nothing") for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(3)]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) + "  " + row[3])


def _progress(done: int, count: int, wrong: int, begun: float, last: bool) -> None:
    draws = sys.stderr.isatty()
    if draws or last or done % 100 == 0:
        print(f"\r{done} of {count} tasks checked, {wrong} not sound, {time.monotonic() - begun:.0f} s", file=sys.stderr,
              end="\n" if last or not draws else "\x1b[K")


def _run(given: argparse.Namespace) -> int:
    notes, rows, begun = Notes(), [], time.monotonic()
    choices = HarborChoices(**given.choices)
    tasks = [one for path in given.tasks for one in read(path, choices, notes)]
    for line in notes.lines():
        print(line, file=sys.stderr)
    with Client(given.broker, key=given.key, allow_plaintext=given.allow_plaintext) as client:
        for row in check(client, tasks, max(1, given.jobs), given.full_reward):
            rows.append(row)
            if given.json:
                print(json.dumps(row._asdict(), ensure_ascii=False), flush=True)
            _progress(len(rows), len(tasks), sum(bool(one.wrong) for one in rows), begun, False)
    wrong = [row for row in rows if row.wrong]
    _progress(len(rows), len(tasks), len(wrong), begun, True)
    shown = rows if given.all else wrong
    if not given.json and shown:
        _print_table(shown)
    if not given.json:
        print(f"{len(rows) - len(wrong)} of {len(rows)} tasks are sound")
    return 1 if wrong or not rows else 0


def main(arguments: Optional[List[str]] = None) -> int:
    from .importers.harbor.command import add_choices, read_choices
    made = parser()
    add_choices(made)
    given = made.parse_args(arguments)
    given.choices = read_choices(made, given)._asdict()
    try:
        return _run(given)
    except SluiceError as why:
        print(f"sluice: {why}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
