"""The bench cannot rot: bench/measure.py --quick, on this build's programs, has every row that docs/benchmarks.md shows."""
import os
import re
import subprocess
import tempfile
import unittest

from harness import BINARY, PYTHON, SOURCE, free_ports

PARTS = ("service", "sandbox", "tools", "engines", "peers", "trajectories")  # nodes need a machine of their own
BOUND_S = 840  # on a busy machine, with sanitizers
PAGE = os.path.join(SOURCE, "docs", "benchmarks.md")


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
                            for part in PARTS)
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

    def test_every_row_of_the_page_is_there_or_skipped_by_name(self):
        there = rows(self.said)
        for what in rows(self.shown):
            if what not in there:
                self.assertTrue([why for why in self.skipped if re.sub(r"[0-9][0-9,]*", "#", why).startswith(what)], what)

    def test_every_row_has_numbers(self):
        seen = 0
        for what, cells in rows(self.said).items():
            if what in ("what", "system") or set(what) <= set("-|"):
                continue
            seen += 1
            self.assertRegex(" ".join(cells), r"\d", what)
            self.assertNotRegex(" ".join(cells), r"\b(nan|inf)\b", what)
        self.assertGreater(seen, 60)

    def test_nothing_is_written_and_nothing_left(self):
        self.assertEqual(read(PAGE), self.page)
        self.assertEqual(self.left, [])


if __name__ == "__main__":
    unittest.main()
