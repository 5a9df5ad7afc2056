"""Real processes on free ports: a service that a test starts, hurts and stops, and what it must not leave behind."""
import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

SOURCE = os.environ.get("SLUICE_SOURCE_DIR") or os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BINARY = os.environ.get("SLUICE_BINARY_DIR") or os.path.join(SOURCE, "build", "release")
SLUICE = os.path.join(BINARY, "client", "sluice")
BROKER = os.path.join(BINARY, "broker", "sluice-broker")
WORKER = os.path.join(BINARY, "workers", "sluice-worker")
SCRIPTED_ENGINE = os.path.join(SOURCE, "tests", "engines", "scripted_engine.py")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"

SANITIZERS = os.environ.get("SLUICE_SANITIZE", "")


def memory_bound(plain, address=None, thread=None):
    """The bound of this build: sanitizers keep what was freed, and shadows of what is used."""
    if "thread" in SANITIZERS:
        return thread or 5 * plain
    return (address or plain) if SANITIZERS else plain


def wait_until(holds, seconds, what):
    """Polls `holds` until it is true and returns its value; fails with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = holds()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


CLAIMS = []  # open until this process ends


def claim_port(port):
    """Whether nobody else has it, bound or claimed (tests/port_claim.h claims alike)."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0sluice-test-port-{port}")
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    CLAIMS.append(claim.detach())
    return True


def free_ports(count):
    """The first of `count` neighbouring ports below those that workers and the system hand out: this test's until it
    ends, also while nothing listens there."""
    for _ in range(1000):
        base = random.randrange(10000, 19990)
        if all(claim_port(port) for port in range(base, base + count)):
            return base
    raise AssertionError("no free ports")


def environment_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as text:
            return text.read()
    except OSError:
        return b""


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as text:
            return text.read().decode(errors="replace").split("\0")
    except OSError:
        return []


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as text:
            return int(text.read().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


class Service:
    """`sluice up` with its data in a directory of its own. Use it with `with`; leaving checks that nothing is left."""

    def __init__(self, engines=(), init=1, run=1, evaluate=1, options=()):
        self.mark = f"sluice-test-{uuid.uuid4().hex}"
        self.root = tempfile.mkdtemp(prefix="sluice-test-")
        self.tmp = os.path.join(self.root, "tmp")
        os.mkdir(self.tmp)
        self.data = os.path.join(self.root, "data")
        self.port = free_ports(3)
        self.url = f"tcp://127.0.0.1:{self.port}"
        self.environment = dict(os.environ, SLUICE_BROKER=self.url, SLUICE_TEST_MARK=self.mark, TMPDIR=self.tmp)
        self.arguments = [SLUICE, "up", "--front", str(self.port), "--data", self.data, "--init", str(init),
                          "--run", str(run), "--eval", str(evaluate), *options]
        for engine in engines:
            self.arguments += ["--engine", engine]
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def start(self):
        self.log = open(os.path.join(self.root, "log"), "ab")
        self.process = subprocess.Popen(self.arguments, env=self.environment, stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL)
        wait_until(self.is_complete, 60, f"service up; its log:\n{self.read_log()}")

    def is_complete(self):
        if self.process.poll() is not None:
            raise AssertionError(f"sluice up ended with {self.process.returncode}:\n{self.read_log()}")
        status = self.status()
        return status and all(status["stages"][stage]["workers"] > 0 for stage in ("init", "run", "eval"))

    def __exit__(self, kind, error, trace):
        if kind:
            print(self.read_log()[-6000:])
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)
        return False

    def stop(self, with_signal=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        try:
            self.process.wait(60)
        finally:
            self.log.close()
            if self.process.poll() is None:
                for pid in self.processes():
                    os.kill(pid, signal.SIGKILL)
        self.check_nothing_left()

    def check_nothing_left(self):
        wait_until(lambda: not self.processes(), 10,
                   f"every process gone; left: {[(p, command_of(p)) for p in self.processes()]}")
        left = os.listdir(self.tmp)
        assert not left, f"left in TMPDIR: {left}"
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            mine = [line for line in mounts if self.root in line]
        assert not mine, f"left mounted: {mine}"

    def read_log(self):
        try:
            with open(os.path.join(self.root, "log"), encoding="utf-8", errors="replace") as text:
                return text.read()
        except OSError:
            return ""

    def processes(self, program=None, stage=None):
        """Pids of this service: all, or of one program (`sluice-worker`) and stage, parents of sandboxes only."""
        found = []
        for path in glob.glob("/proc/[0-9]*"):
            pid = int(path[6:])
            if pid == os.getpid() or self.mark.encode() not in environment_of(pid):
                continue
            command = command_of(pid)
            if program and (not command or os.path.basename(command[0]) != program):
                continue
            if stage and stage not in command:
                continue
            if program and os.path.basename((command_of(parent_of(pid)) or [""])[0]) == program:
                continue  # a spawner or a sandbox's first process, not the worker itself
            found.append(pid)
        return found

    def kill(self, program, stage=None):
        """kill -9 of one; waits until it is gone."""
        pids = wait_until(lambda: self.processes(program, stage), 30, f"a {program} {stage or ''} to kill")
        os.kill(pids[0], signal.SIGKILL)
        wait_until(lambda: pids[0] not in self.processes(program, stage), 10, "it is gone")

    def run(self, *arguments, check=True, timeout=300, stdin=None):
        done = subprocess.run([SLUICE, *arguments], env=self.environment, capture_output=True, text=True,
                              timeout=timeout, input=stdin)
        if check and done.returncode != 0:
            raise AssertionError(f"sluice {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def status(self):
        done = self.run("status", "--json", check=False, timeout=30)
        return json.loads(done.stdout) if done.returncode in (0, 4, 5) else None  # healthy, degraded, down

    def submit(self, tasks, stream, samples=None, wait=True, timeout=300):
        """Submits; with wait returns the trajectories as the command wrote them, else the process that waits."""
        tasks_path = os.path.join(self.root, f"{stream}.jsonl")
        out_path = os.path.join(self.root, f"{stream}.out.jsonl")
        with open(tasks_path, "w", encoding="utf-8") as file:
            for task in tasks:
                file.write(json.dumps(task) + "\n")
        arguments = [SLUICE, "submit", tasks_path, "--stream", stream, "--wait", "--out", out_path]
        if samples:
            arguments += ["--samples", str(samples)]
        waiting = subprocess.Popen(arguments, env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
        if not wait:
            return waiting, out_path
        return self.finish(waiting, out_path, timeout)

    def finish(self, waiting, out_path, timeout=300):
        try:
            said, _ = waiting.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            waiting.kill()
            raise AssertionError(f"submit --wait did not end; status: {self.status()}") from None
        assert waiting.returncode in (0, 3), f"submit: exit {waiting.returncode}\n{said}"
        with open(out_path, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


class Engine:
    """The scripted engine: llama.cpp's HTTP interface, replies from rules, a log of what it reported."""

    def __init__(self, script=None, proxy=None):
        self.root = tempfile.mkdtemp(prefix="sluice-engine-")
        self.log_path = os.path.join(self.root, "log.jsonl")
        self.arguments = [PYTHON, SCRIPTED_ENGINE, "--log", self.log_path]
        if proxy:
            self.arguments += ["--proxy", proxy]
        if script is not None:
            path = os.path.join(self.root, "script.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(script, file)
            self.arguments += ["--script", path]

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        assert "ready" in line, f"the scripted engine said: {line}"
        self.url = "http://127.0.0.1:" + line.rsplit("port=", 1)[1].split()[0]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def log(self):
        with open(self.log_path, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


def check_trajectories(test, trajectories, groups, samples):
    """What holds of every complete stream: each rollout once, numbers without gaps, arrays of equal length."""
    test.assertEqual(len(trajectories), groups * samples)
    test.assertEqual(len({t["rollout"] for t in trajectories}), groups * samples)
    test.assertEqual(sorted(t["seq"] for t in trajectories), list(range(1, groups * samples + 1)))
    layers = {}
    for t in trajectories:
        layers.setdefault(t["group"], set()).add(t.get("init_layer"))
        for trace in t.get("traces", []):
            length = len(trace["token_ids"])
            test.assertEqual((len(trace["mask"]), len(trace["logprobs"])), (length, length))
            test.assertEqual(sum(turn["length"] for turn in trace["turns"]), length)
            for bit, logprob in zip(trace["mask"], trace["logprobs"]):
                test.assertTrue(bit == 1 or logprob == 0)
        if t.get("reward") is not None:
            test.assertIn(t["outcome"], ("ok", "agent"))
    test.assertTrue(all(len(found) == 1 for found in layers.values()), layers)
