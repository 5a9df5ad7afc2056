"""A broker that dies, freezes, or comes back while work is under way."""
import glob
import json
import os
import random
import signal
import sys
import threading
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Client, Fleet, chat, noop, sandbox, script  # noqa: E402


class SteppedClock:
    """The wall clock of one member, by libfaketime; the monotonic one is left alone."""

    def __init__(self, fleet, member):
        libraries = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        if not libraries:
            raise unittest.SkipTest("there is no libfaketime")
        self.path = os.path.join(fleet.root, "wall-clock")
        self.step("+0")
        asan = fleet.environment.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        member.environment.update(LD_PRELOAD=libraries[0], FAKETIME_TIMESTAMP_FILE=self.path, FAKETIME_NO_CACHE="1",
                                  FAKETIME_DONT_FAKE_MONOTONIC="1", DONT_FAKE_MONOTONIC="1", ASAN_OPTIONS=asan)

    def step(self, offset):
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            file.write(offset + "\n")
        os.replace(self.path + ".new", self.path)


class Broker(Case):
    def test_work_that_runs_while_the_broker_is_away_is_adopted_not_repeated(self):
        fleet = Fleet(slots=8)
        fleet.add_engine(script(2500))
        self.enter(fleet)
        client = self.client(fleet, timeout=30)
        client.submit([chat(k) for k in range(8)], stream="s")
        self.wait_leased(fleet, "run", 8)
        fleet.broker.kill()
        fleet.broker.start()
        fleet.wait_for(lambda s: s["counters"]["adopted"] == 8, 10, "eight jobs adopted")
        self.assert_all(self.read(client, "s", 8))
        self.assertEqual(fleet.status()["counters"]["duplicates"], 0)

    def test_results_that_came_while_the_broker_was_away_are_kept_by_their_workers(self):
        fleet = self.enter(Fleet(slots=8))
        client = self.client(fleet, timeout=30)
        client.submit([sandbox(k, "sleep 1.5") for k in range(4)], stream="s")
        self.wait_leased(fleet, "eval", 4)
        fleet.broker.kill()
        time.sleep(2.5)  # the evaluators end meanwhile
        fleet.broker.start()
        self.assert_all(self.read(client, "s", 4))
        self.assertEqual(fleet.status()["counters"]["dispatched"], 0)

    def test_a_frozen_broker_is_waited_for_and_loses_no_worker(self):
        fleet = self.enter(Fleet(slots=8, settings={"beat_timeout": "1500ms"}))
        client = self.client(fleet, timeout=30)
        client.submit([sandbox(k, "sleep 1") for k in range(8)], stream="s")
        fleet.broker.send(signal.SIGSTOP)
        threading.Timer(4, lambda: fleet.broker.send(signal.SIGCONT)).start()
        client.submit([noop(k) for k in range(8)], stream="s")
        self.assert_all(self.read(client, "s", 16))
        self.assertEqual(fleet.status()["counters"]["lost"], 0)

    def test_a_wall_clock_that_jumps_ends_nothing_early_and_nothing_late(self):
        fleet = Fleet(workers={"init": 1, "run": 0, "eval": 1}, settings={"beat_timeout": "1500ms"})
        clock = SteppedClock(fleet, fleet.broker)
        self.enter(fleet)
        client = self.client(fleet, timeout=30)

        def end_one(stream, hours):
            """One that is cancelled says by which clock the broker lives."""
            client.submit([noop(stream)], stream=stream)
            client.cancel(stream=stream)
            ended = json.loads(fleet.run("watch", stream, "--count", "1", "--json").stdout)
            self.assertAlmostEqual(ended["ended_ms"] / 1000, time.time() + hours * 3600, delta=120)

        def live(count):
            fleet.wait_for(lambda s: s["rollouts"]["live"] == count, 15, f"{count} rollouts live")

        client.submit([noop(1, samples=3, limits={"total_s": 3600})], stream="total")
        client.submit([noop(2, samples=3)], stream="lease", lease=3600)
        end_one("before", 0)
        clock.step("+2h")
        end_one("later", 2)
        client.submit([noop(3, samples=3)], stream="short", lease=5)
        live(9)
        clock.step("-3h")
        end_one("earlier", -3)
        live(6)  # the short lease is over, although it began five hours from now
        self.assert_all(self.read(client, "short", 3), "cancelled", None)
        fleet.broker.kill()
        fleet.broker.start()
        self.assertEqual(fleet.status()["rollouts"]["live"], 6)
        fleet.add_worker("run", "run-1").start()
        for stream in ("total", "lease"):
            self.assert_all(self.read(client, stream, 3))
        self.assertEqual(fleet.status()["counters"]["lost"], 0)

    def test_a_wall_clock_that_goes_on_by_days_forgets_nothing_and_ends_nothing(self):
        """Stepped while the broker runs, and stepped again while it is away: nothing is older than it is."""
        fleet = Fleet(workers={"init": 1, "run": 0, "eval": 1}, settings={"keep_time": "3600000ms", "head_period": "200ms"})
        clock = SteppedClock(fleet, fleet.broker)
        self.enter(fleet)
        client = self.client(fleet, timeout=30)

        def expect_all_there():
            state = fleet.status()
            self.assertEqual((state["rollouts"]["live"], state["counters"]["expired"]), (3, 0))
            kept = fleet.run("watch", "ended", "--from", "1", "--count", "2", "--json").stdout.splitlines()
            self.assertEqual(len(kept), 2)

        def cancel_one(stream):
            """Two head periods and more: its head is heard of, and its end is published."""
            client.submit([noop(stream)], stream=stream)
            client.cancel(stream=stream)
            fleet.run("watch", stream, "--count", "1", "--json")
            time.sleep(0.5)

        client.submit([noop(1, samples=3, limits={"total_s": 7200})], stream="live")
        client.submit([noop(2, samples=2)], stream="ended")
        client.cancel(stream="ended")
        cancel_one("before")
        clock.step("+48h")
        cancel_one("after")
        expect_all_there()
        fleet.broker.kill()
        fleet.broker.start()
        cancel_one("started")
        expect_all_there()
        fleet.broker.kill()
        clock.step("+96h")
        fleet.broker.start()
        cancel_one("stepped")
        expect_all_there()
        fleet.add_worker("run", "run-1").start()
        self.assert_all(self.read(client, "live", 3))

    def test_what_was_acknowledged_before_any_kill_is_there_after_it(self):
        """Killed at arbitrary instants between submits: each acknowledged group ends once, whatever was in hand."""
        fleet = self.enter(Fleet(slots=8, settings={"adopt_grace": "300ms"}))
        dice, enough, accepted = random.Random(4), threading.Event(), []

        def submit_until_enough():
            with Client(fleet.url, timeout=60) as client:
                while not enough.is_set():
                    tasks = [noop(len(accepted) + k, samples=2) for k in range(10)]
                    accepted.extend(client.submit(tasks, stream="s"))

        submitter = threading.Thread(target=submit_until_enough)
        submitter.start()
        for _ in range(8):
            time.sleep(dice.uniform(0.05, 0.6))
            fleet.broker.kill()
            fleet.broker.start()
        enough.set()
        submitter.join()
        self.assertGreater(len(accepted), 50)
        self.assert_all(self.read(self.client(fleet, timeout=60), "s", 2 * len(accepted)))

    def test_without_a_broker_a_request_says_so_and_with_one_it_goes_on(self):
        fleet = self.enter(Fleet())
        fleet.broker.kill()
        done = fleet.run("status", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no broker", done.stderr + done.stdout)
        client = self.client(fleet, timeout=30)
        submitter = threading.Thread(target=lambda: client.submit([noop(1)], stream="s"))
        submitter.start()
        submitter.join(2)
        self.assertTrue(submitter.is_alive())
        fleet.broker.start()
        submitter.join(30)
        self.assert_all(self.read(client, "s", 1))


if __name__ == "__main__":
    unittest.main()
