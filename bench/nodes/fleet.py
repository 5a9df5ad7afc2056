"""A broker, its workers on nodes, an engine with drawn latencies, and a trainer that keeps so many rollouts outstanding."""
import collections
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import zmq

from parts import pack, unpack

LIBC = ctypes.CDLL(None)
# Of a rollout: uniform between the two. As the task's agent, engine, setup and evaluator have them.
TURNS, TOKENS, TOOL_MS, TOKENS_PER_S, INIT_S, EVAL_S = (4, 8), (40, 120), (100, 700), 100, 0.2, 0.3
TASK = {"task": "nodes", "prompt": "Mend it.", "agent": {"kind": "bash", "max_turns": 16}, "setup": [f"sleep {INIT_S}"],
        "eval": {"kind": "command", "command": f"sleep {EVAL_S}"}}


def before_exec():
    LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: nothing of it outlives the bench


def free_ports(address):
    """Four neighbouring ones that can be bound now."""
    for first in range(15000 + os.getpid() * 7 % 4000, 20000, 4):
        sockets = [socket.socket() for _ in range(4)]
        try:
            for k, one in enumerate(sockets):
                one.bind((address, first + k))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise SystemExit("no free ports")


class Fleet:
    """With `with`; leaving ends all processes and removes all files."""

    def __init__(self, build, net, engine_load=(), options=()):
        self.build, self.net, self.serial = build, net, 0
        self.root = tempfile.mkdtemp(prefix="sluice-nodes-")
        self.port = free_ports(net.address)
        self.processes, self.nodes, self.others = [], {}, {"init": [], "eval": []}
        self.engine_load = [str(word) for word in engine_load or
                            (TOKENS_PER_S, *TURNS, *TOKENS, *TOOL_MS, 1)]
        self.options = options

    def url(self, offset):
        return f"tcp://{self.net.address}:{self.port + offset}"

    def popen(self, name, *command, ready=None):
        log = open(f"{self.root}/{name}.log", "ab")
        with log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                       preexec_fn=before_exec)
        self.processes.append(process)
        until = time.monotonic() + 30
        while ready and ready not in self.said(name):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{name} does not start: {self.said(name)[-800:]}")
            time.sleep(0.02)
        return process

    def said(self, name):
        with open(f"{self.root}/{name}.log", encoding="utf-8", errors="replace") as file:
            return file.read()

    def __enter__(self):
        try:
            address, port = self.net.address, self.port
            plain = [] if address == "127.0.0.1" else ["--allow-plaintext"]
            self.broker = self.popen("broker", f"{self.build}/broker/sluice-broker", "--bind", f"tcp://{address}", "--front",
                                     str(port), "--sink", str(port + 1), "--feed", str(port + 2), "--data",
                                     f"{self.root}/ledger", *plain, *self.options, ready="broker ready")
            self.popen("engine", f"{self.build}/bench/bench_nodes_engine", str(port + 3), address, *self.engine_load,
                       ready="ready")
            self.trainer = Trainer(self.url(0), self.url(2))
            self.trainer.ask("engine.add", url=f"http://{address}:{port + 3}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
        for process in self.processes:
            process.wait()
        if hasattr(self, "trainer"):
            self.trainer.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def hire(self, stage, slots, node=None):
        self.serial += 1
        name = f"{stage}-{self.serial}"
        prefix = self.net.prefix(node) if node is not None else []
        plain = [] if self.net.address == "127.0.0.1" else ["--allow-plaintext"]
        process = self.popen(name, *prefix, f"{self.build}/workers/sluice-worker", stage, "--broker", self.url(0), "--slots",
                             str(slots), "--store", f"{self.root}/store", "--cache", f"{self.root}/cache-{name}", *plain)
        if node is None:
            self.others[stage].append(process)
        else:
            self.nodes[node] = process
        return process

    def await_workers(self, stages):
        """Until so many slots of each stage are known: {stage: slots}."""
        until = time.monotonic() + 60
        while any(self.trainer.status()["stages"][stage]["slots"] < slots for stage, slots in stages.items()):
            if time.monotonic() > until:
                raise SystemExit("workers do not come: " + "".join(self.said(f"run-{self.serial}")[-800:]))
            time.sleep(0.05)


class Trainer:
    """Keeps `outstanding` rollouts in the service and remembers what ended, and when."""

    def __init__(self, front, feed):
        context = zmq.Context.instance()
        self.front, self.feed = context.socket(zmq.DEALER), context.socket(zmq.SUB)
        self.front.linger = self.feed.linger = 0
        self.front.connect(front)
        self.feed.setsockopt(zmq.RCVHWM, 0)
        self.feed.connect(feed)
        self.feed.setsockopt(zmq.SUBSCRIBE, b"t/nodes/")
        self.submitted, self.names, self.ends = 0, collections.Counter(), []
        time.sleep(0.3)  # a PUB drops what it sends before the subscription has arrived

    def ask(self, wire, **fields):
        """The answer's fields; what else comes on FRONT meanwhile are acceptances."""
        self.front.send(pack(wire, tag=1, **fields))
        while self.front.poll(60000):
            name, answer = unpack(self.front.recv())
            if name == "refused":
                raise SystemExit(f"{wire}: {answer['text']}")
            if answer.get("tag") == 1:
                return answer
        raise SystemExit(f"{wire}: the broker does not answer")

    def status(self):
        return json.loads(self.ask("status.get")["json"])

    def submit(self, task, samples=1):
        self.front.send(pack("group.submit", tag=2, group=f"g{self.submitted}", stream="nodes", samples=samples,
                             task=json.dumps(task)))
        self.submitted += samples

    def work(self, seconds, outstanding=0, task=None, every=None):
        """Submits and hears for so long; `every` is called about five times a second."""
        until, look = time.monotonic() + seconds, 0.0
        while (now := time.monotonic()) < until:
            while task and self.submitted - len(self.ends) < outstanding:
                self.submit(task)
            if every and now >= look:
                every()
                look = now + 0.2
            if self.feed.poll(20):
                self.hear()

    def hear(self):
        while self.feed.poll(0):
            frames = self.feed.recv_multipart()
            name, fields = unpack(frames[-1])
            if name == "trajectory":
                self.names[fields["rollout"]] += 1
                fields = {key: fields.get(key) for key in ("outcome", "wait_ms", "run_ms", "detail")}
                self.ends.append((time.monotonic(), fields))

    def finish(self, seconds=60):
        """Until all have ended. How many are missing, and how many came twice."""
        until = time.monotonic() + seconds
        while len(self.names) < self.submitted and time.monotonic() < until:
            self.work(0.1)
        return self.submitted - len(self.names), sum(self.names.values()) - len(self.names)

    def close(self):
        self.front.close()
        self.feed.close()
