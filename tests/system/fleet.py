"""A broker, workers and whatever else a test wants, each a process of its own that can be killed, stopped and started again.

`Service` (harness.py) is the service as its users start it; a `Fleet` has no supervisor: what dies stays dead until the
test says otherwise, and a process that ends without having been told to is remembered as a surprise.
"""
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid

from harness import (BROKER, PYTHON, SCRIPTED_ENGINE, SLUICE, SOURCE, WORKER, environment_of, free_ports, wait_until)

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
SANITIZER_REPORT = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|Assertion .* failed|stack smashing")


def before_exec():
    """Dies with the thread that started it; leaves a core where the fleet's files are."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


class Member:
    """One process that may be started again and again; its output goes on in one file."""

    def __init__(self, fleet, name, arguments, ready="ready", prefix=()):
        self.fleet, self.name, self.arguments, self.ready, self.prefix = fleet, name, arguments, ready, list(prefix)
        self.log_path = os.path.join(fleet.logs, name)
        self.environment = {}  # beside the fleet's
        self.process, self.told, self.stopped, self.starts, self.status = None, False, False, 0, None
        self.may_end, self.may_fail, self.finished = False, False, False  # by itself: with status 0, with any
        self.may_end_with = set()                                         # by itself: these

    def start(self, wait=True):
        assert not self.is_running(), self.name
        self.offset = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.prefix + self.arguments, stdout=log, stderr=log,
                                            env=dict(self.fleet.environment, **self.environment), stdin=subprocess.DEVNULL, preexec_fn=before_exec, cwd=self.fleet.root)
        self.told = self.stopped = False
        self.starts += 1
        if wait and self.ready:
            wait_until(self.is_ready, 60, f"{self.name} ready")
        return self

    def is_ready(self):
        if not self.is_running():
            raise AssertionError(f"{self.name} ended with {self.status}:\n{self.said()[-3000:]}")
        return self.ready in self.said()

    def said(self, whole=False):
        """What it wrote since its last start, or ever."""
        with open(self.log_path, "rb") as log:
            log.seek(0 if whole else self.offset)
            return log.read().decode(errors="replace")

    @property
    def pid(self):
        return self.process.pid

    def is_running(self):
        """Reaps it if it has ended; an end nobody asked for is a surprise."""
        if not self.process:
            return False
        if self.process.poll() is None:
            return True
        self.status, self.process = self.process.returncode, None
        self.finished = self.may_end and self.status == 0
        expected = self.told and self.status in (0, -signal.SIGKILL, -signal.SIGTERM)
        if not (expected or self.finished or self.may_fail or self.status in self.may_end_with):
            self.fleet.surprises.append(f"{self.name} ended by itself, status {self.status}: {self.said()[-1500:]}")
        return False

    def send(self, number):
        if not self.is_running():
            return
        self.told = self.told or number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
        self.stopped = number == signal.SIGSTOP or (self.stopped and number not in (signal.SIGCONT, signal.SIGKILL))
        self.process.send_signal(number)

    def kill(self):
        """kill -9, and gone when it returns."""
        self.end(signal.SIGKILL, 30)

    def end(self, number=signal.SIGTERM, seconds=60):
        """Told to end, and gone when it returns; its exit status."""
        self.send(number)
        wait_until(lambda: not self.is_running(), seconds, f"{self.name} gone after signal {number}:\n")
        return self.status

    def resident_kib(self):
        try:
            with open(f"/proc/{self.pid}/status", encoding="utf-8") as text:
                return int(re.search(r"VmRSS:\s+(\d+)", text.read()).group(1))
        except (AttributeError, OSError):
            return 0


class Fleet:
    """Use it with `with`: leaving stops everything and checks that nothing is left.

    workers: how many of each stage, {"init": 1, ...}, or a number for all. slots: of each worker. settings: the
    broker's, {"beat_timeout": "1000ms"}. ipc: sockets in a directory instead of ports. bind, prefix_of: for workers on
    other nodes (tests/chaos/nodes.py). keys: CURVE on all sockets, a key for each member; `sluice` has an admin's.
    """

    def __init__(self, workers=1, slots=None, settings=None, ipc=False, grace_s=5, bind="127.0.0.1", data=None,
                 options=(), worker_options=(), keys=False):
        self.mark = f"sluice-test-{uuid.uuid4().hex}"
        self.root = tempfile.mkdtemp(prefix="sluice-fleet-")
        self.tmp, self.logs = os.path.join(self.root, "tmp"), os.path.join(self.root, "logs")
        self.sockets = os.path.join(self.root, "sockets")
        for folder in (self.tmp, self.logs, self.sockets):
            os.mkdir(folder, 0o700)
        self.data = data or os.path.join(self.root, "data")
        self.store = os.path.join(self.root, "store")
        self.surprises, self.members = [], {}
        self.port = None if ipc else free_ports(3)
        self.url = f"ipc://{self.sockets}/front" if ipc else f"tcp://{bind}:{self.port}"
        sanitizers = {name: ":".join(filter(None, (os.environ.get(name), extra))) for name, extra in (
            ("ASAN_OPTIONS", "quarantine_size_mb=8:malloc_context_size=8"), ("UBSAN_OPTIONS", "print_stacktrace=1"))}
        self.environment = dict(os.environ, SLUICE_BROKER=self.url, SLUICE_TEST_MARK=self.mark, TMPDIR=self.tmp,
                                PYTHONPATH=os.path.join(SOURCE, "client", "python"), PYTHONDONTWRITEBYTECODE="1",
                                **sanitizers)
        where = ["--ipc", self.sockets] if ipc else [
            "--bind", f"tcp://{bind}", "--front", str(self.port), "--sink", str(self.port + 1), "--feed",
            str(self.port + 2)]
        self.worker_options = list(worker_options)
        self.keys = os.path.join(self.root, "keys") if keys else None
        if keys:
            self.run("keys", "init", self.keys)
            where += ["--keys", self.keys]
            self.environment["SLUICE_KEY"] = self.add_key("admin", "somebody")
        elif bind != "127.0.0.1":
            where.append("--allow-plaintext")
            self.worker_options.append("--allow-plaintext")
            self.environment["SLUICE_ALLOW_PLAINTEXT"] = "1"
        said = [part for name, value in (settings or {}).items() for part in ("--" + name.replace("_", "-"), str(value))]
        self.broker = self.add("broker", [BROKER, "--data", self.data, *where, *said, *options], ready="broker ready")
        self.slots, self.grace_s = slots, grace_s
        counts = workers if isinstance(workers, dict) else dict.fromkeys(("init", "run", "eval"), workers)
        for stage, count in counts.items():
            for k in range(count):
                self.add_worker(stage, f"{stage}-{k + 1}")

    def add_key(self, role, name):
        """The path of a new key."""
        self.run("keys", "add", role, name, "--dir", self.keys)
        return os.path.join(self.keys, f"{name}.key")

    def move_data(self, data):
        """Before the first start: the broker's directory elsewhere."""
        self.broker.arguments[self.broker.arguments.index(self.data)] = self.data = data

    def add(self, name, arguments, **keywords):
        """keywords: Member's. With keys, `role` says which it gets."""
        role = keywords.pop("role", None)
        self.members[name] = member = Member(self, name, arguments, **keywords)
        if self.keys and role:
            member.environment["SLUICE_KEY"] = self.add_key(role, name)
        return member

    def add_worker(self, stage, name, prefix=(), options=()):
        arguments = [WORKER, stage, "--broker", self.url, "--store", self.store, "--cache",
                     os.path.join(self.root, f"cache-{name}"), "--grace", f"{self.grace_s}s", *self.worker_options, *options]
        if self.slots:
            arguments += ["--slots", str(self.slots)]
        return self.add(name, arguments, ready="worker ready", prefix=prefix, role="worker")

    def add_engine(self, script, name="engine", host="127.0.0.1"):
        """A scripted engine on a port of its own, which it keeps across restarts."""
        path = self.write_script(name, script)
        port = free_ports(1)
        engine = self.add(name, [PYTHON, SCRIPTED_ENGINE, "--host", host, "--port", str(port), "--script", path])
        engine.url = f"http://{host}:{port}"
        return engine

    def write_script(self, name, script):
        """What an engine says from its next start on."""
        path = os.path.join(self.root, f"{name}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(script, file)
        return path

    def __getitem__(self, name):
        return self.members[name]

    def named(self, start):
        return [member for name, member in self.members.items() if name.startswith(start)]

    def __enter__(self):
        try:
            for member in self.members.values():
                member.start(wait=member is self.broker)
            for member in self.members.values():
                wait_until(member.is_ready, 60, f"{member.name} ready")
            self.wait_for_workers()
            for member in self.members.values():
                if hasattr(member, "url"):
                    self.run("engine", "add", member.url)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind:
                for member in self.members.values():
                    if member.starts:
                        print(f"---- {member.name}\n{member.said(whole=True)[-2500:]}", file=sys.stderr)
            self.stop()
            if not kind:
                self.check()
        finally:
            for member in self.members.values():
                if member.is_running():
                    member.kill()
            shutil.rmtree(self.root, ignore_errors=True)
        return False

    def stop(self):
        """All told to end and gone: workers first, as `sluice up` does it."""
        order = sorted(self.members.values(), key=lambda member: member is self.broker)
        for last in (False, True):
            some = [member for member in order if (member is self.broker) == last]
            for member in some:
                member.send(signal.SIGCONT)
                member.send(signal.SIGTERM)
            for member in some:
                wait_until(lambda m=member: not m.is_running(), 60, f"{member.name} gone after SIGTERM")

    def check(self):
        """What holds after the end of any fleet: no surprise, no word of a sanitizer, nothing left."""
        assert not self.surprises, "\n".join(self.surprises)
        for member in self.members.values():
            if member.starts:
                found = SANITIZER_REPORT.search(member.said(whole=True))
                assert not found, f"{member.name}: {member.said(whole=True)[found.start() - 200:][:4000]}"
        wait_until(lambda: not self.processes(), 15, f"no process left: {self.processes()}")
        left = os.listdir(self.tmp) + os.listdir(self.sockets)
        left = [name for name in left if name != "lock" and not name.startswith("lane-")]  # the next worker sweeps those
        assert not left, f"left in TMPDIR or among the sockets: {left}"
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            mine = [line for line in mounts if self.root in line and not self.data.startswith(line.split()[4] + "/")]
        assert not mine, f"left mounted: {mine}"

    def processes(self):
        return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()
                and self.mark.encode() in environment_of(int(pid))]

    def run(self, *arguments, check=True, timeout=120):
        done = subprocess.run([SLUICE, *arguments], env=self.environment, capture_output=True, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError(f"sluice {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def status(self):
        """The broker's status, or None while it does not answer."""
        done = self.run("status", "--json", check=False, timeout=60)
        try:
            return json.loads(done.stdout)
        except ValueError:
            return None

    def wait_for(self, holds, seconds, what):
        """Until `holds(status)`; returns what it returned."""
        def asked():
            status = self.status()
            return status and holds(status)
        return wait_until(asked, seconds, what)

    def wait_for_workers(self):
        running = {}
        for name, member in self.members.items():
            stage = name.rsplit("-", 1)[0]
            if stage in ("init", "run", "eval") and member.is_running() and not member.stopped:
                running[stage] = running.get(stage, 0) + 1
        self.wait_for(lambda status: all(status["stages"][stage]["workers"] >= count for stage, count in running.items()),
                      60, f"workers known: {running}")

