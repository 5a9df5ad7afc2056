"""Peers that are libraries of Python: installed once, and run as a process of their own that does what a line of its
standard input says (lines.py)."""
import os
import shutil
import subprocess
import sys

import processes
from peer_systems.servers import Missing
from tools import tools

HERE = os.path.dirname(os.path.abspath(__file__))
INSTALL_S, START_S = 900, 60


def library(name):
    """Where the package and all that it needs is; installed at the first time."""
    directory = f"{tools.cache()}/{name}-python{sys.version_info[0]}.{sys.version_info[1]}"
    if not os.path.isdir(directory):
        print(f"  installing {name} from PyPI, some minutes", flush=True)
        shutil.rmtree(f"{directory}.new", ignore_errors=True)
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir",
                               "--disable-pip-version-check", "--root-user-action=ignore", "--target",
                               f"{directory}.new", name], timeout=INSTALL_S, capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing(f"pip cannot install {name}: {done.stderr.strip().splitlines()[-1:]}")
        os.rename(f"{directory}.new", directory)
    return directory


class Holder:
    """The worker that keeps its jobs, known by its pid."""

    def __init__(self, directory):
        self.path, self.by = f"{directory}/hold", f"{directory}/held-by"

    def send_signal(self, number):
        """Nobody holds any more: who does the jobs again, does them."""
        with open(self.by, encoding="ascii") as file:
            pid = int(file.read())
        os.unlink(self.path)
        os.kill(pid, number)

    def has_jobs(self):
        return os.path.exists(self.by) and os.path.getsize(self.by)


class PythonWay:
    """Its workers are its own to start; a script beside this file is its client."""

    def __init__(self, name, _, root, plan):
        self.name, self.plan, self.directory = name, plan, f"{root}/{name}"
        self.library, self.process = library(name), None

    def __enter__(self):
        os.makedirs(self.directory)
        environment = {**os.environ, "PYTHONPATH": f"{self.library}:{HERE}", "RAY_AUTH_MODE": "disabled",
                       "RAY_USAGE_STATS_ENABLED": "0", "HOME": self.directory, "PYTHONDONTWRITEBYTECODE": "1"}
        with open(f"{self.directory}/log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, f"{HERE}/{self.name}_peer.py", str(self.plan.workers), self.directory],
                env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        if self.line() != "ready":
            with open(f"{self.directory}/log", encoding="utf-8") as log:
                text = log.read()[-2000:]
            self.__exit__()
            raise SystemExit(f"{self.name} does not start:\n{text}")
        return self

    def line(self):
        return self.process.stdout.readline().strip()

    def order(self, *words):
        print(*words, file=self.process.stdin, flush=True)

    def staff(self, *_):
        pass

    def flow(self, count, window):
        self.order("flow", count, window)
        return [float(word) for word in self.line().split()]

    def cpu_s(self):
        return processes.cpu_s(self.process)

    def hold(self):
        holder = Holder(self.directory)
        with open(holder.path, "w", encoding="ascii"):
            pass
        return holder, lambda: processes.await_that(holder.has_jobs, START_S, "a worker that holds jobs")

    def ask(self):
        self.order("ask", self.plan.asked)
        while (line := self.line()):
            yield int(line)
            if int(line) == self.plan.asked:
                return

    def rest(self):
        pass

    def __exit__(self, *_):
        processes.stop(self.process)
        shutil.rmtree(self.directory, ignore_errors=True)


def versions():
    """Of those that are installed."""
    found = []
    for name in ("verifiers", "ray"):
        directory = f"{tools.cache()}/{name}-python{sys.version_info[0]}.{sys.version_info[1]}"
        if os.path.isdir(directory):
            found += [word.split(".dist-info")[0].replace("-", " ") for word in os.listdir(directory)
                      if word.startswith(f"{name}-") and word.endswith(".dist-info")]
    return found
