"""Trainers that die, stay away, vanish, say things twice or too early, ask for too much or never read."""
import json
import os
import random
import sys
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, chat, noop, sandbox, script  # noqa: E402
from harness import BINARY, PYTHON, SLUICE, SOURCE, memory_bound  # noqa: E402
import msgpack  # noqa: E402
import zmq  # noqa: E402
from sluice import Refused  # noqa: E402

import hostile  # noqa: E402
import verdict  # noqa: E402

CHAOS = os.path.join(SOURCE, "tests", "chaos")


class BigWorker:
    """A run worker whose every result carries a record of some MiB."""

    def __init__(self, fleet, record):
        self.context, self.record = zmq.Context(), record
        self.lane, self.sink = self.context.socket(zmq.PULL), self.context.socket(zmq.PUSH)
        self.port = self.lane.bind_to_random_port("tcp://127.0.0.1", 20000, 29999)
        self.sink.setsockopt(zmq.LINGER, 0)
        self.sink.connect(f"tcp://127.0.0.1:{fleet.port + 1}")
        self.beats = 0

    def beat(self):
        self.beats += 1
        self.sink.send(hostile.message("worker.beat", {
            "worker": "big", "stage": "run", "slots": 1, "lane": f"tcp://127.0.0.1:{self.port}", "host": "here",
            "progress": self.beats, "draining": False, "epoch": 0, "jobs": []}))

    def do(self, count):
        """One job after the other."""
        self.beat()
        while count:
            if not self.lane.poll(500):
                self.beat()
                continue
            unpacker = msgpack.Unpacker(max_buffer_size=1 << 24)
            unpacker.feed(self.lane.recv())
            if unpacker.unpack() == "job.start":
                job = unpacker.unpack()
                self.sink.send(hostile.message("job.result", {
                    "worker": "big", "job": job["job"], "token": job["token"], "outcome": "ok", "ms": 1,
                    "record": self.record}))
                count -= 1

    def close(self):
        self.lane.close(0)
        self.sink.close(1000)
        self.context.term()


class Trainers(Case):
    def test_reading_until_idle_goes_on_with_what_is_submitted_meanwhile(self):
        fleet = self.enter(Fleet(slots=4))
        client = self.client(fleet, timeout=30)
        for stream in ("one", "two", "three", "four"):
            client.submit([noop(0)], stream=stream)
            fleet.wait_for(lambda status: status["rollouts"]["live"] == 0, 20, "it has ended before it is read")
            seen = []
            for t in client.trajectories(stream, until_idle=True, timeout=30):
                seen.append(t.seq)
                if len(seen) < 6:
                    client.submit([noop(len(seen))], stream=stream)
            self.assertEqual(seen, [1, 2, 3, 4, 5, 6], stream)

    def killed(self, program, kills, pause_s):
        """A trainer killed again and again reads each trajectory once and in order from its cursor."""
        fleet = Fleet(slots=8)
        where, stop = os.path.join(fleet.root, "trainer"), os.path.join(fleet.root, "stop")
        trainer = fleet.add("trainer-1", program(where, stop), ready="trainer ready")
        self.enter(fleet)
        dice = random.Random(6)
        for _ in range(kills):
            time.sleep(dice.uniform(0.1, pause_s))
            trainer.kill()
            trainer.start()
        trainer.may_end = True
        with open(stop, "w", encoding="utf-8"):
            pass
        self.wait_ended(trainer)
        found = verdict.Verdict()
        rows = verdict.judge_stream(found, "trainer-1", where)
        self.assertEqual(found.faults, [])
        self.assertGreater(len(rows), 100)

    def wait_ended(self, member, seconds=60):
        end = time.monotonic() + seconds
        while not member.finished:
            self.assertLess(time.monotonic(), end, member.said()[-2000:])
            member.is_running()
            time.sleep(0.05)

    def test_a_killed_trainer_goes_on_from_its_cursor(self):
        self.killed(lambda where, stop: [PYTHON, os.path.join(CHAOS, "trainer.py"), where, "trainer-1", "1", "--ack",
                                         "--stop", stop], kills=5, pause_s=1.0)

    def test_a_killed_trainer_in_c_goes_on_from_its_cursor(self):
        self.killed(lambda where, stop: [os.path.join(BINARY, "tests", "chaos", "chaos_trainer"), where, "trainer-1",
                                         stop], kills=8, pause_s=0.4)

    def test_a_trainer_that_was_away_finds_all_that_ended_meanwhile(self):
        fleet = self.enter(Fleet(slots=32))
        self.client(fleet, timeout=60).submit([noop(k, samples=10) for k in range(300)], stream="s")
        fleet.wait_for(lambda s: s["rollouts"]["live"] == 0, 60, "all ended")
        fleet.broker.kill()
        fleet.broker.start()
        self.assert_all(self.read(self.client(fleet), "s", 3000))

    def test_work_of_a_trainer_that_vanished_ends_with_its_lease(self):
        fleet = Fleet(slots=8)
        fleet.add_engine(script())
        self.enter(fleet)
        path = os.path.join(fleet.root, "tasks.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for task in (sandbox(1, "sleep 10"), *(sandbox(k, "sleep 100", limits={"command_s": 120}) for k in range(2, 8))):
                file.write(json.dumps(task) + "\n")
        trainer = fleet.add("trainer", [SLUICE, "submit", path, "--stream", "s", "--lease", "6s", "--wait"], ready="")
        trainer.start()
        client = self.client(fleet)  # asks for another stream only
        fleet.wait_for(lambda s: s["rollouts"]["accepted"] == 7 and s["rollouts"]["live"] == 6, 90,
                       "one has ended, later than the lease would have if it was not renewed")
        client.policy_pause()
        client.submit([chat(9)], stream="other")  # which waits for the engine
        fleet.wait_for(lambda s: s["rollouts"]["live"] == 7, 30, "all others live")
        trainer.kill()
        fleet.wait_for(lambda s: s["rollouts"]["live"] == 1, 30, "only the other stream's goes on")
        client.policy_resume()
        self.assert_all(self.read(client, "other", 1))
        seen = self.read(client, "s", 7)
        self.assert_all(seen[:1])
        self.assert_all(seen[1:], "cancelled", None)

    def test_a_cancel_ahead_of_its_submit_wins_even_over_a_kill_of_the_broker(self):
        fleet = self.enter(Fleet(slots=4))
        client = self.client(fleet, timeout=30)
        self.assertEqual(client.cancel(group="mine"), 0)
        self.assertEqual(client.cancel(rollout="half/1"), 0)
        fleet.broker.kill()
        fleet.broker.start()
        client.submit([noop(1, samples=3)], stream="s", group=lambda task: "mine")
        client.submit([noop(2, samples=2)], stream="t", group=lambda task: "half")
        client.submit([noop(3, samples=3)], stream="u", group=lambda task: "other")
        self.assert_all(self.read(client, "s", 3), "cancelled", None)
        self.assertEqual({t.rollout: t.outcome for t in self.read(client, "t", 2)},
                         {"half/0": "ok", "half/1": "cancelled"})
        self.assert_all(self.read(client, "u", 3))

    def test_a_submit_said_twice_is_one_group_and_another_content_is_refused(self):
        fleet = self.enter(Fleet())
        client = self.client(fleet)
        for _ in range(2):
            client.submit([noop(1, samples=3)], stream="s", group=lambda task: "mine")
        self.assert_all(self.read(client, "s", 3))
        client.submit([noop(1, samples=3)], stream="s", group=lambda task: "mine")
        with self.assertRaises(Refused) as caught:
            client.submit([noop(2, samples=3)], stream="s", group=lambda task: "mine")
        self.assertEqual(caught.exception.reason, "group-exists")
        self.assert_all(self.read(client, "s", 3))

    def test_a_flood_of_submits_is_refused_with_a_time_and_then_taken(self):
        fleet = self.enter(Fleet(slots=8, settings={"rollouts_max": 50}))
        flood, other = self.client(fleet, timeout=60), self.client(fleet, timeout=60)
        before = fleet.broker.resident_kib()
        flood.submit([sandbox(k, "sleep 0.05", samples=5) for k in range(40)], stream="flood")  # waits where it must
        other.submit([noop(1)], stream="other")
        self.assert_all(self.read(flood, "flood", 200))
        self.assert_all(self.read(other, "other", 1))
        self.assertGreater(fleet.status()["counters"]["refused"], 0)
        self.assertLess(fleet.broker.resident_kib() - before, memory_bound(100 << 10))

    def end_big_ones(self, fleet, client, count):
        """`count` trajectories of 4 MiB in stream "s"."""
        worker = BigWorker(fleet, os.urandom(4 << 20))
        try:
            client.submit([noop(k) for k in range(count)], stream="s")
            worker.do(count)
            fleet.wait_for(lambda s: s["rollouts"]["live"] == 0, 60, "all ended")
        finally:
            worker.close()

    def test_a_client_that_does_not_read_costs_nobody_else_anything(self):
        fleet = self.enter(Fleet(workers={"init": 1, "run": 0, "eval": 1}))
        client = self.client(fleet, timeout=60)
        self.end_big_ones(fleet, client, 40)
        silent = hostile.SilentReader(fleet.url, "s")
        try:
            for _ in range(15):
                silent.ask(10)  # each for all there is, and told 8 MiB of it
                client.status()
            silent.submit("last", "t", noop("last"))
            fleet.wait_for(lambda s: s["rollouts"]["live"] == 1, 60, "all that was asked is answered or cut short")
            self.assertLess(fleet.broker.resident_kib(), memory_bound(600 << 10))
        finally:
            silent.close()
        fleet.add_worker("run", "run-1").start()
        client.submit([noop("more")], stream="t")
        self.assert_all(self.read(client, "t", 2))

    def test_a_subscriber_that_does_not_read_holds_no_more_than_its_part_of_the_brokers_memory(self):
        fleet = self.enter(Fleet(workers={"init": 1, "run": 0, "eval": 1}))
        client = self.client(fleet, timeout=60)
        silent = zmq.Context()
        feed = silent.socket(zmq.SUB)
        for option, value in ((zmq.RCVHWM, 1), (zmq.RCVBUF, 4096), (zmq.SUBSCRIBE, b"t/s")):
            feed.setsockopt(option, value)
        feed.connect(f"tcp://127.0.0.1:{fleet.port + 2}")
        try:
            time.sleep(0.3)  # nothing tells a client that its subscription has arrived
            self.end_big_ones(fleet, client, 150)
            self.assertLess(fleet.broker.resident_kib(), memory_bound(450 << 10))
        finally:
            feed.close(0)
            silent.term()

    def test_a_subscriber_that_does_not_read_is_cut_off_before_others_wait_long(self):
        fleet = self.enter(Fleet(workers={"init": 1, "run": 0, "eval": 1}))
        client = self.client(fleet, timeout=60)
        context = zmq.Context()
        self.addCleanup(context.destroy, 0)
        silent, other = context.socket(zmq.SUB), context.socket(zmq.SUB)
        silent.set(zmq.RCVHWM, 1)
        silent.set(zmq.RCVBUF, 4096)
        for feed, topic in ((silent, b"t/s"), (other, b"t/more/")):
            feed.subscribe(topic)
            feed.connect(f"tcp://127.0.0.1:{fleet.port + 2}")
        time.sleep(0.3)  # nothing tells a client that its subscription has arrived
        self.end_big_ones(fleet, client, 150)
        fleet.add_worker("run", "run-1").start()
        until, number = time.monotonic() + 15, 0  # TCP itself would cut it off after 30 s
        while not self.hears_trajectory(other):
            self.assertLess(time.monotonic(), until, "nothing is published any more")
            number += 1
            client.submit([noop(f"more-{number}")], stream="more")

    @staticmethod
    def hears_trajectory(feed):
        """Within a second, in which heads may come as well."""
        until = time.monotonic() + 1
        while feed.poll(max(0, until - time.monotonic()) * 1000):
            if feed.recv_multipart()[1].startswith(b"\xaatrajectory"):
                return True
        return False


if __name__ == "__main__":
    unittest.main()
