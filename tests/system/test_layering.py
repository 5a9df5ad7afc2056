"""The walls of the house: dependencies point one way, the core does no I/O, files stay readable."""
import os
import re
import sys
import unittest

ROOT = os.environ.get("SLUICE_SOURCE_DIR") or os.path.join(os.path.dirname(__file__), "..", "..")
MAY_INCLUDE = {
    "common": {"common"},
    "schemas": {"schemas", "common"},
    "broker": {"broker", "schemas", "common"},
    "workers": {"workers", "schemas", "common"},
    "client": {"client", "schemas", "common"},
}
CORE_MAY_NOT = re.compile(r'#include\s*[<"](zmq|czmq|sqlite3|time|unistd|poll|fcntl|pthread|signal|sys/|common/clock)')


def sources(folder):
    for where, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in names:
            if name.endswith((".c", ".h")):
                yield os.path.join(where, name)


class Layering(unittest.TestCase):
    def test_each_folder_includes_only_what_it_stands_on(self):
        seen = 0
        for folder, allowed in MAY_INCLUDE.items():
            for path in sources(folder):
                seen += 1
                with open(path, encoding="utf-8") as text:
                    for line in text:
                        included = re.match(r'#include\s+"([a-z]+)/', line)
                        if included and included.group(1) in MAY_INCLUDE:
                            self.assertIn(included.group(1), allowed, f"{path}: {line.strip()}")
        self.assertGreater(seen, 20)

    def test_the_core_does_no_io_and_asks_no_clock(self):
        core = list(sources("broker/core"))
        self.assertGreater(len(core), 2)
        for path in core:
            with open(path, encoding="utf-8") as text:
                for line in text:
                    self.assertIsNone(CORE_MAY_NOT.match(line), f"{path}: {line.strip()}")

    def test_no_source_file_is_longer_than_500_lines(self):
        for folder in MAY_INCLUDE:
            for path in sources(folder):
                with open(path, encoding="utf-8") as text:
                    self.assertLessEqual(sum(1 for _ in text), 500, path)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
