"""The fake broker for tests of the Python client, and where its package is: the sources, or what SLUICE_PYTHON_INSTALLED
says is installed."""
import os
import subprocess
import sys
import unittest

SOURCE = os.environ["SLUICE_SOURCE_DIR"]
FAKE_BROKER = os.environ["SLUICE_FAKE_BROKER"]
PACKAGE = os.path.join(SOURCE, "client", "python")
IS_INSTALLED = "SLUICE_PYTHON_INSTALLED" in os.environ
if not IS_INSTALLED:
    sys.path.insert(0, PACKAGE)
# Of programs that a test runs: they find the package as the test does.
ENVIRONMENT = dict(os.environ) if IS_INSTALLED else dict(os.environ, PYTHONPATH=PACKAGE)

try:
    import lz4.block  # noqa: F401
    import msgpack  # noqa: F401
    import numpy  # noqa: F401
    import zmq  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)

from sluice import Client  # noqa: E402


class FakeBroker:
    def __enter__(self):
        self.process = subprocess.Popen([FAKE_BROKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait(10) != 0:
            raise AssertionError("the fake broker failed")

    def __call__(self, order, number=0):
        self.process.stdin.write(f"{order} {number}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


class Case(unittest.TestCase):
    def setUp(self):
        self.broker = self.enter(FakeBroker())
        self.client = self.enter(Client(self.broker.url))

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def expect(self, trajectories, first, last):
        for seq in range(first, last + 1):
            self.assertEqual(next(trajectories).seq, seq)
