"""What is measured: a broker and its workers as processes, and stand-ins that hold jobs without doing them."""
import json
import os
import signal
import subprocess
import time

import msgpack
import zmq

import processes

# Neighbouring free ports, as clients expect FEED; children of this process find the same.
FRONT = int(os.environ.setdefault("SLUICE_BENCH_PORT", str(processes.free_ports(3))))
SINK, FEED = FRONT + 1, FRONT + 2


def url(port):
    return f"tcp://127.0.0.1:{port}"


def pack(wire, **fields):
    return msgpack.packb(wire) + msgpack.packb(fields)


def unpack(data):
    """(wire name, fields) of a message's bytes."""
    reader = msgpack.Unpacker(raw=False, strict_map_key=False)
    reader.feed(data)
    return reader.unpack(), reader.unpack()


def thread_cpu_us(pid):
    """CPU that the process's main thread has used, and all others of it."""
    main = others = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            used = int(file.read().split()[0]) / 1000
        if int(thread) == pid:
            main += used
        else:
            others += used
    return main, others


class Broker:
    """A broker on a ledger of its own, and real workers beside it. With `with`; leaving ends them."""

    def __init__(self, build, data, durability="full", workers=0):
        self.build, self.data, self.durability, self.workers = build, data, durability, workers
        self.process, self.others = None, []

    def __enter__(self):
        os.makedirs(self.data)
        self.start()
        for stage in ("init", "run", "eval"):
            for _ in range(self.workers):
                self.spawn(f"{self.build}/workers/sluice-worker", stage, "--broker", url(FRONT), "--slots", "64",
                           "--data", self.data)
        return self

    def popen(self, *arguments):
        with open(f"{self.data}/log", "ab") as log:
            return subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def spawn(self, *arguments):
        self.others.append(self.popen(*arguments))
        return self.others[-1]

    def start(self):
        """Returns how many seconds it took until the broker answered."""
        began = time.monotonic()
        self.process = self.popen(f"{self.build}/broker/sluice-broker", "--front", str(FRONT), "--sink", str(SINK),
                                  "--feed", str(FEED), "--data", f"{self.data}/ledger", "--durability", self.durability,
                                  "--rollouts-max", "4000000", "--results-max", "4000000")
        self.ask("status.get")
        return time.monotonic() - began

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, wire, **fields):
        """The answer's fields. Tries to connect each 5 ms, so that a broker that starts is seen at once."""
        with zmq.Context.instance().socket(zmq.DEALER) as front:
            front.linger = 0
            front.reconnect_ivl = 5
            front.connect(url(FRONT))
            front.send(pack(wire, tag=1, **fields))
            until = time.monotonic() + 300
            while time.monotonic() < until and self.process.poll() is None:
                if front.poll(500):
                    return unpack(front.recv())[1]
        raise SystemExit(f"the broker does not answer: {self.data}/log")

    def status(self):
        return json.loads(self.ask("status.get")["json"])

    def cpu_us(self):
        """CPU used so far, by part."""
        workers = [thread_cpu_us(process.pid) for process in self.others]
        main, others = thread_cpu_us(self.process.pid)
        return {"broker's main thread": main, "broker's other threads (ledger, libzmq)": others,
                "workers' main threads": sum(main for main, _ in workers),
                "workers' other threads (libzmq)": sum(others for _, others in workers)}

    def memory_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        return int(fields["VmRSS"].split()[0]) * 1024

    def __exit__(self, *_):
        for process in self.others:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        self.process.terminate()
        for process in [*self.others, self.process]:
            process.wait(120)


class Asker:
    """A client that asks for `count` rollouts at once, and hears of each that has ended."""

    def __init__(self, count, task_bytes):
        context = zmq.Context.instance()
        self.count, self.stream = count, f"asked-{os.getpid()}-{time.monotonic_ns()}"
        task = {"task": "noop", "kind": "noop", "metadata": {"pad": "x" * max(0, task_bytes - 60)}}
        self.task = json.dumps(task, separators=(",", ":"))
        self.front, self.feed = context.socket(zmq.DEALER), context.socket(zmq.SUB)
        for each, port in ((self.front, FRONT), (self.feed, FEED)):
            each.linger = 0
            each.set_hwm(0)
            each.connect(url(port))
        self.feed.subscribe(f"t/{self.stream}/")
        self.seen, self.fetch_at = set(), 0.0

    def fetch(self):
        """Once a second what is missing is asked for again: the feed drops what it has before it knows of us."""
        if time.monotonic() < self.fetch_at:
            return
        self.fetch_at = time.monotonic() + 1
        missing = next(seq for seq in range(1, self.count + 2) if seq not in self.seen)
        self.front.send(pack("stream.fetch", tag=self.count, stream=self.stream, limit=256, **{"from": missing}))

    def answers(self):
        """How many are answered, whenever there are more."""
        for number in range(self.count):
            self.front.send(pack("group.submit", tag=number, group=f"{self.stream}-{number}", stream=self.stream,
                                 samples=1, task=self.task))
        while len(self.seen) < self.count:
            self.fetch()
            before = len(self.seen)
            for ready in zmq.select([self.front, self.feed], [], [], 0.1)[0]:
                wire, fields = unpack(ready.recv_multipart()[-1])
                if wire == "refused":
                    raise SystemExit(f"refused: {fields['text']}")
                if wire == "trajectory":
                    self.seen.add(fields["seq"])
            if len(self.seen) > before:
                yield len(self.seen)
        self.front.close()
        self.feed.close()


class StandIn:
    """A worker that takes jobs and keeps them. `number` is part of its id."""

    def __init__(self, number, slots, stage="init"):
        context = zmq.Context.instance()
        self.slots, self.stage = slots, stage
        self.name = f"stand-in-{number}-{os.getpid()}"
        self.sink, self.lane = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        for option in (zmq.SNDHWM, zmq.RCVHWM):
            self.sink.setsockopt(option, 0)
            self.lane.setsockopt(option, 0)
        self.sink.linger = 0
        self.sink.connect(url(SINK))
        self.lane.bind("tcp://127.0.0.1:*")
        self.endpoint = self.lane.last_endpoint.rstrip(b"\0").decode()
        self.held, self.epoch, self.beats, self.beat_at = {}, 0, 0, 0.0

    def beat(self):
        self.beats += 1
        self.beat_at = time.monotonic() + 1
        self.sink.send(pack("worker.beat", worker=self.name, stage=self.stage, slots=self.slots, lane=self.endpoint,
                            host="bench", progress=self.beats, draining=False, epoch=self.epoch,
                            jobs=[[job, token] for job, token in self.held.items()]))

    def work(self, until):
        """Beats and takes what comes until `until()`, which is asked after each message. Seconds it took."""
        began = time.monotonic()
        while not until():
            if time.monotonic() - began > 300:
                raise SystemExit(f"{self.name} waits in vain; it holds {len(self.held)} jobs")
            if time.monotonic() >= self.beat_at:
                self.beat()
            if self.lane.poll(5):
                self.hear(*unpack(self.lane.recv()))
        return time.monotonic() - began

    def hear(self, wire, fields):
        if wire == "job.start":
            self.held[fields["job"]] = fields["token"]
        elif wire == "lane.hello":
            self.epoch = fields["epoch"]
            self.beat_at = 0
        elif wire in ("job.cancel", "result.ack"):
            self.held.pop(fields["job"], None)

    def close(self):
        self.sink.close()
        self.lane.close()
