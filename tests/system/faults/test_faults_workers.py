"""Workers that die, freeze, hang, are cut off, or are killed by what they work on."""
import ctypes
import os
import re
import signal
import sys
import threading
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, Nodes, chat, script, why_not  # noqa: E402
from harness import free_ports, wait_until  # noqa: E402
import msgpack  # noqa: E402
import zmq  # noqa: E402

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WAIT_ALL = 17, 0x4206, 0x4207, 0x40000000
SOON = {"beat_timeout": "1500ms", "retry_first": "100ms"}


class HungThread:
    """Stops the main thread of a process and leaves the others running."""

    def __init__(self, pid):
        self.pid = pid

    def ptrace(self, request):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(request, self.pid, None, None) < 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request}")

    def __enter__(self):
        self.ptrace(PTRACE_SEIZE)
        self.ptrace(PTRACE_INTERRUPT)
        os.waitpid(self.pid, WAIT_ALL)

    def __exit__(self, *_):
        self.ptrace(PTRACE_DETACH)


def messages_of(came):
    """A message, or those of a bundle (common/net/bundle.h)."""
    if came[:1] != b"\xc1":
        yield came
        return
    at = 1
    while at < len(came):
        size = int.from_bytes(came[at:at + 4], "little")
        yield came[at + 4:at + 4 + size]
        at += 4 + size


class BeatRelay:
    """Between a worker and SINK: what it says goes on; told to, it repeats the last beat as if the worker did."""

    def __init__(self, fleet):
        base = free_ports(3)
        self.url = f"tcp://127.0.0.1:{base}"
        self.context, self.repeats, self.over = zmq.Context(), threading.Event(), threading.Event()
        self.here, self.sink = self.context.socket(zmq.PULL), self.context.socket(zmq.PUSH)
        self.here.bind(f"tcp://127.0.0.1:{base + 1}")
        self.sink.connect(f"tcp://127.0.0.1:{fleet.port + 1}")
        self.held = 0  # jobs in the last beat
        self.thread = threading.Thread(target=self.relay)

    def relay(self):
        beat = None
        while not self.over.is_set():
            if self.here.poll(300):
                came = self.here.recv()
                for message in messages_of(came):
                    unpacker = msgpack.Unpacker(max_buffer_size=1 << 24)
                    unpacker.feed(message)
                    if unpacker.unpack() == "worker.beat":
                        beat, self.held = message, len(unpacker.unpack()["jobs"])
                self.sink.send(came)
            elif self.repeats.is_set():
                self.sink.send(beat)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.context.destroy(linger=0)


def worker_id(member):
    return re.findall(r"worker ready stage=\w+ id=(\S+)", member.said(whole=True))[-1]


class Workers(Case):
    def start(self, fleet, count, delay_ms=1000, rules=()):
        fleet.add_engine(script(delay_ms, *rules))
        self.enter(fleet)
        client = self.client(fleet)
        client.submit([chat(k) for k in range(count)], stream="s")
        return client

    def test_one_of_two_workers_killed_with_200_in_flight(self):
        fleet = Fleet(workers={"init": 1, "run": 2, "eval": 1}, slots=100)
        client = self.start(fleet, 200, delay_ms=2500)
        self.wait_leased(fleet, "run", 200, 60)
        lost = worker_id(fleet["run-2"])
        killed = time.monotonic()
        fleet["run-2"].kill()
        wait_until(lambda: lost in fleet.run("status", check=False).stdout and
                   "lost" in fleet.run("status", check=False).stdout, 6, f"status tells that {lost} is lost")
        self.assertLess(time.monotonic() - killed, 6)
        self.assert_all(self.read(client, "s", 200, 120))

    def test_a_frozen_worker_loses_its_jobs_and_its_late_results_change_nothing(self):
        fleet = Fleet(workers={"init": 1, "run": 2, "eval": 1}, slots=8, settings=SOON)
        client = self.start(fleet, 16)
        self.wait_leased(fleet, "run", 16)
        fleet["run-1"].send(signal.SIGSTOP)
        seen = self.read(client, "s", 16)
        self.assert_all(seen)
        self.assertEqual(fleet.status()["counters"]["lost"], 1)
        fleet["run-1"].send(signal.SIGCONT)
        fleet.wait_for(lambda s: s["stages"]["run"]["workers"] == 2 and s["stages"]["run"]["free"] == 16, 30,
                       "the frozen worker is back and idle")
        again = self.read(client, "s", 16)
        self.assertEqual([(t.rollout, t.reward) for t in again], [(t.rollout, t.reward) for t in seen])

    def test_a_worker_whose_thread_hangs_loses_its_jobs(self):
        fleet = Fleet(workers={"init": 1, "run": 2, "eval": 1}, slots=4, settings=SOON)
        client = self.start(fleet, 8)
        self.wait_leased(fleet, "run", 8)
        try:
            with HungThread(fleet["run-1"].pid):
                self.assert_all(self.read(client, "s", 8))
                self.assertEqual(fleet.status()["counters"]["lost"], 1)
        except PermissionError:
            self.skipTest("ptrace is not permitted here")
        fleet.wait_for_workers()

    def test_a_worker_that_hangs_while_its_beats_go_on_loses_its_jobs(self):
        fleet = Fleet(workers={"init": 1, "run": 1, "eval": 1}, slots=4, settings=SOON)
        relay = self.enter(BeatRelay(fleet))
        hung = fleet.add_worker("run", "run-2")
        hung.arguments[hung.arguments.index(fleet.url)] = relay.url
        client = self.start(fleet, 8, delay_ms=3000)
        wait_until(lambda: relay.held == 4, 30, "a beat lists its jobs")
        relay.repeats.set()
        hung.send(signal.SIGSTOP)
        self.assert_all(self.read(client, "s", 8))
        states = {worker["worker"]: worker["state"] for worker in fleet.status()["workers"]}
        self.assertEqual(states[worker_id(hung)], "hung")
        self.assertEqual(fleet.status()["counters"]["lost"], 1)
        relay.repeats.clear()
        hung.send(signal.SIGCONT)
        fleet.wait_for(lambda s: s["stages"]["run"]["workers"] == 2 and s["stages"]["run"]["free"] == 8, 30,
                       "it is back and idle")

    def cut_off(self, kill):
        if why_not():
            self.skipTest(why_not())
        nodes = self.enter(Nodes(2))
        fleet = Fleet(workers=0, slots=4, settings=SOON, bind=nodes.address)
        for k, stage in enumerate(("init", "run", "eval")):
            for node in ("node-1", "node-2"):
                fleet.add_worker(stage, f"{stage}-{node}", prefix=nodes.prefix(node))
        engine = fleet.add_engine(script(1000), host=nodes.address)
        self.enter(fleet)
        self.assertTrue(engine.is_running())
        client = self.client(fleet)
        client.submit([chat(k) for k in range(8)], stream="s")
        self.wait_leased(fleet, "run", 8)
        nodes.cut_off("node-1")
        if kill:
            for stage in ("init", "run", "eval"):
                fleet[f"{stage}-node-1"].kill()
        fleet.wait_for(lambda s: s["counters"]["lost"] == 3, 10, "its three workers are lost")
        self.assert_all(self.read(client, "s", 8))
        nodes.heal("node-1")
        if not kill:
            fleet.wait_for_workers()
        self.assert_all(self.read(client, "s", 8))

    def test_a_worker_that_is_cut_off_loses_its_jobs_and_comes_back(self):
        self.cut_off(kill=False)

    def test_a_node_that_is_lost_with_all_its_workers(self):
        self.cut_off(kill=True)

    def test_the_sockets_that_killed_workers_left_are_swept_by_later_ones(self):
        fleet = self.enter(Fleet(workers={"init": 1, "run": 1, "eval": 2}, ipc=True))
        for _ in range(3):
            fleet["eval-1"].kill()
            fleet["eval-1"].start()
        lanes = [os.path.join(fleet.sockets, name) for name in os.listdir(fleet.sockets) if name.startswith("lane-")]
        self.assertEqual(len(lanes), 7)
        for lane in lanes:
            os.utime(lane, (0, 0))  # as if some seconds had passed
        fleet["eval-2"].end()
        fleet["eval-2"].start()
        self.assertEqual(len([name for name in os.listdir(fleet.sockets) if name.startswith("lane-")]), 4)
        fleet.wait_for_workers()

    def test_a_task_that_kills_its_workers_is_set_aside_alone(self):
        """Whoever holds the poison dies; the others' tasks are none the worse."""
        fleet = Fleet(workers={"init": 1, "run": 2, "eval": 1}, slots=4, settings=SOON)
        client = self.start(fleet, 6, delay_ms=300, rules=[{"path": "/completion", "if": "poison", "fault": "hang"}])
        poison = dict(chat("poison"), prompt="I am poison.")
        client.submit([poison], stream="s", group=lambda task: "poison")
        deadline = time.monotonic() + 90
        while isinstance(state := client.get("poison/0"), dict):
            self.assertLess(time.monotonic(), deadline, state)
            is_held = state["stage"] == "run" and state["state"] == "leased"
            holders = [m for m in fleet.named("run") if is_held and worker_id(m) == state["worker"]]
            for member in holders:
                member.kill()
                member.start()
            if not holders:  # or the broker has not yet heard of the end of the one before
                fleet.broker.is_running()
                time.sleep(0.02)
        self.assertEqual((state.outcome, state.reward, state.trainable), ("infra", None, False))
        self.assertRegex(state.detail, "worker")
        seen = self.read(client, "s", 7)
        self.assert_all([t for t in seen if t.rollout != "poison/0"])


if __name__ == "__main__":
    unittest.main()
