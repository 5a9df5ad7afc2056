"""docs/contributing/reliability.md: each fault names its test, and the test is there and is run."""
import re
import subprocess
import sys
import unittest

sys.path += [__file__.rsplit("/", 2)[0], __file__.rsplit("/", 3)[0]]  # tests/system, tests
from harness import BINARY  # noqa: E402
from texts import cells, read  # noqa: E402

import mutants  # noqa: E402
from mutants_table import MUTANTS  # noqa: E402
from named_tests import NamedTest  # noqa: E402

MUST_HAVE = """worker killed|worker frozen|worker partitioned|hung|node lost|before a commit|after a commit, before sending
between sending and publishing|broker frozen|trainer killed|away for an hour|vanished with a lease|engine down|engine hanging
engine slow|500|garbage|another model|disk low|disk full|ledger damaged|WAL torn|layer missing|layer damaged|image missing
evaluator broken|poison|clock stepped|flood of submits|does not read|hostile peer|cancel before submit|duplicate submit
PUB drops"""


def rows():
    """Of the tables of faults: the fault first, its test last."""
    return [row for row in cells(read("docs", "contributing", "reliability.md"), "Faults") if row[0] != "fault"]


class Table(unittest.TestCase):
    def test_each_fault_names_a_test_that_is_there(self):
        for row in rows():
            self.assertEqual(len(row), 5, row)
            self.assertRegex(row[4], r"^`[^`]+`$", row[0])
            NamedTest(row[4])

    def test_each_named_test_is_run_by_ctest(self):
        said = subprocess.run(["ctest", "--test-dir", BINARY, "-N"], capture_output=True, text=True, check=True).stdout
        registered = set(re.findall(r"Test\s+#\d+: (\S+)", said))
        for row in rows():
            self.assertIn(NamedTest(row[4]).ctest, registered, row[0])

    def test_no_fault_is_missing(self):
        faults = " / ".join(row[0] for row in rows())
        for fault in re.split(r"[|\n]", MUST_HAVE):
            self.assertIn(fault, faults)

    def test_what_is_no_test_is_refused(self):
        for name in ("system/nothing: test_a", "system/chaos: test_nothing", "broker/test_shell: set_up_nothing", "chaos"):
            with self.assertRaises(ValueError):
                NamedTest(name)


class Mutants(unittest.TestCase):
    def test_each_mutants_text_is_there_once_and_its_test_exists(self):
        self.assertEqual(list(mutants.find_faults(MUTANTS)), [])


if __name__ == "__main__":
    unittest.main()
