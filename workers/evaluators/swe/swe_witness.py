"""A plugin of pytest that the evaluator "swe" loads: a second account of the tests, beside what pytest prints.

It takes its nonce, and the file goes with it, before anything of the repository is imported; what it saw is written when
pytest's session ends, and only then: "began" first, and at the end the nonce, the exit status, and a line for each test.
"""
import os

OUT = "/run/sluice/out"


def take_nonce():
    path = os.path.join(OUT, "swe_nonce")
    try:
        with open(path) as file:
            nonce = file.read()
        os.unlink(path)
        with open(os.path.join(OUT, "swe_began"), "w"):
            return nonce
    except (IOError, OSError):
        return None


class Witness(object):
    def __init__(self, nonce, config):
        self.nonce, self.config, self.lines = nonce, config, []

    def add(self, status, nodeid):
        relative = getattr(self.config, "cwd_relative_nodeid", None)
        name = relative(nodeid) if relative else nodeid
        self.lines.append("%s %s" % (status, name.replace("\n", "\\n").replace("\r", "\\r")))

    def pytest_collectreport(self, report):
        if report.failed:
            self.add("ERROR", report.nodeid)

    def pytest_runtest_logreport(self, report):
        expected = hasattr(report, "wasxfail")
        if report.failed:
            self.add("FAILED" if report.when == "call" else "ERROR", report.nodeid)
        elif report.skipped:
            self.add("XFAIL" if expected else "SKIPPED", report.nodeid)
        elif report.when == "call" and not expected:
            self.add("PASSED", report.nodeid)

    def pytest_sessionfinish(self, session, exitstatus):
        text = "\n".join(["%s %d" % (self.nonce, int(exitstatus)), "= short test summary info ="] + self.lines) + "\n"
        data = text.encode("utf-8", "backslashreplace") if isinstance(text, type(u"")) else text
        with open(os.path.join(OUT, "swe_witness"), "wb") as file:
            file.write(data)


NONCE = [take_nonce()]


def pytest_configure(config):
    nonce = NONCE.pop() if NONCE else None
    if nonce:
        config.pluginmanager.register(Witness(nonce, config), "swe_witness_of_this_run")
