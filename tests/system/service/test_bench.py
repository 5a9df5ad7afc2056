"""The bench cannot rot: bench/measure.py --quick, on this build's programs, has every row that
docs/contributing/benchmarks.md shows."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import BINARY, PYTHON, SLUICE, SOURCE, free_ports  # noqa: E402

PARTS = ("service", "sandbox", "tools", "evaluators", "engines", "harness", "gateway", "peers", "trajectories", "sampling")  # nodes need a machine of their own
BOUND_S = 840  # on a busy machine, with sanitizers
PAGE = os.path.join(SOURCE, "docs", "contributing", "benchmarks.md")


def rows(text):
    """{what, without its numbers: its cells} of every table."""
    found = {}
    for line in re.findall(r"^\| (.*) \|$", text, re.M):
        what, *cells = line.split(" | ")
        found[re.sub(r"[0-9][0-9,]*", "#", what.strip())] = cells
    return found


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = read(PAGE)
        cls.shown = "".join(re.search(rf"<!-- {part} -->(.*)<!-- end of {part} -->", cls.page, re.S).group(1)
                            for part in ("goals", *PARTS))
        with tempfile.TemporaryDirectory(prefix="sluice-test-") as directory:
            bench = subprocess.Popen([PYTHON, f"{SOURCE}/bench/measure.py", BINARY, "--quick", *PARTS], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     env={**os.environ, "TMPDIR": directory, "PYTHONDONTWRITEBYTECODE": "1",
                                          "SLUICE_BENCH_PORT": str(free_ports(3))})
            try:
                cls.said, _ = bench.communicate(timeout=BOUND_S)
            except subprocess.TimeoutExpired:
                bench.terminate()  # it stops what it has started
                cls.said, _ = bench.communicate()
            cls.left = os.listdir(directory)
        cls.status = bench.returncode
        cls.skipped = re.findall(r"skipped: (.*)", cls.said, re.I)

    def test_every_part_is_measured(self):
        self.assertEqual(self.status, 0, self.said[-4000:])
        for name in PARTS:
            self.assertRegex(self.said, rf"(?m)^{name}: took ")

    def test_each_goal_is_told_of_with_what_came_of_it(self):
        lines = re.findall(r"(?m)^\| .* \| (?:at least|at most|below) [\d.]+ \| .*$", self.said)
        self.assertGreater(len(lines), 15)
        missing = [line for line in lines if "not measured" in line and "Redis" not in line and "8 KiB" not in line]
        self.assertEqual(missing, [])

    def test_every_row_of_the_page_is_there_or_skipped_by_name(self):
        there = rows(self.said)
        for what in rows(self.shown):
            if what not in there:
                self.assertTrue([why for why in self.skipped if re.sub(r"[0-9][0-9,]*", "#", why).startswith(what)], what)

    def test_every_row_has_numbers(self):
        seen = 0
        for what, cells in rows(self.said).items():
            if what in ("what", "system", "programs", "evaluations") or set(what) <= set("-|"):
                continue
            seen += 1
            self.assertRegex(" ".join(cells), r"\d", what)
            self.assertNotRegex(" ".join(cells), r"\b(nan|inf)\b", what)
        self.assertGreater(seen, 60)

    def test_nothing_is_written_and_nothing_left(self):
        self.assertEqual(read(PAGE), self.page)
        self.assertEqual(self.left, [])


class NodesEngine(unittest.TestCase):
    """Of the part that is not measured here: an engine that workers can speak to."""

    def setUp(self):
        port = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        words = (1000, 4, 8, 50, 60, 100, 200, 1)  # tokens a second, then turns, tokens and milliseconds of a tool, a seed
        self.process = subprocess.Popen([f"{BINARY}/bench/bench_nodes_engine", str(port), "127.0.0.1", *map(str, words)],
                                        text=True, stdout=subprocess.PIPE)
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.assertEqual(self.process.stdout.readline(), "ready\n")

    def test_workers_take_its_turns(self):
        done = subprocess.run([SLUICE, "engine", "check", self.url, "--json"], text=True, stdout=subprocess.PIPE, timeout=60)
        found = {check["check"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}
        for name in ("template", "ids", "bridge", "stop", "text", "length", "logprobs"):
            self.assertEqual(found[name], "pass", done.stdout)

    def test_a_call_takes_as_long_as_its_tokens(self):
        began = time.monotonic()
        request = urllib.request.Request(f"{self.url}/completion", json.dumps({"prompt": [256], "n_predict": 100}).encode())
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            count = len(json.load(answer)["tokens"])
        self.assertIn(count, range(50, 62))
        self.assertGreaterEqual(time.monotonic() - began, (count - 1) / 1000)


if __name__ == "__main__":
    unittest.main()
