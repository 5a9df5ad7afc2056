"""docs/tasks/prorl-handlers.md as it stands: each of its tasks runs, with its Python as the handlers, and gets its
reward."""
import json
import os
import re
import shlex
import sys
import tempfile
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import PYTHON, SOURCE, Engine, Service  # noqa: E402

PAGE = os.path.join(SOURCE, "docs", "tasks", "prorl-handlers.md")


def call(name, **arguments):
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


# What a good model says to each, by words of its last turn.
RULES = [
    {"if": "1/2 + 1/3", "reply": call("ipython", code="from fractions import Fraction as F\nF(1, 2) + F(1, 3)")},
    {"if": "Fraction(5, 6)", "reply": call("submit", answer="It is \\boxed{5/6}.")},
    {"if": "most of its ATP", "reply": call("look_up", word="mitochondrion")},
    {"if": "powerhouse", "reply": call("submit", answer="The answer is B.")},
    {"if": "print their sum", "reply": "```python\nprint(sum(map(int, input().split())))\n```"},
    {"if": "Repair it", "reply": "I repair it.\n```bash\nsed -i 's/ - 1//' add.py\n```"},
    {"if": "<returncode>0", "reply": "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
    {"if": "6*7", "reply": "It is 42."},
    {"if": "Check your answer", "reply": "42"},
]
REWARDS = {"math": 1.0, "stem": 1.0, "code": 1.0, "swe": 1.0, "own": 1.1}


class ProrlPage(unittest.TestCase):
    def setUp(self):
        with open(PAGE, encoding="utf-8") as page:
            text = page.read()
        self.tasks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.S)]
        self.python = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))

    def test_each_kind_of_task_runs_as_the_page_has_it(self):
        rules = [dict(rule, path="/completion") for rule in RULES]
        package = shlex.quote(os.path.join(SOURCE, "client", "python"))
        with tempfile.TemporaryDirectory() as folder, Engine({"context": 16384, "rules": rules}) as engine:
            path = os.path.join(folder, "mine.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.python)
            handler = f"mine=PYTHONPATH={package} {PYTHON} -m sluice.handlers {shlex.quote(path)}"
            with Service(engines=[engine.url], options=["--handler", handler]) as service:
                ended = {t["task"]: t for t in service.submit(self.tasks, "page", timeout=200)}
        for name, reward in REWARDS.items():
            t = ended[name]
            self.assertEqual((t["outcome"], t.get("reward")), ("ok", reward), (t["detail"], t["messages"][-3:]))
        self.assertEqual(set(ended), set(REWARDS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
