"""Trainers and the command line against a real broker: what stands still, drops, shrinks, is full, vanishes or is restored."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from fleet import Fleet  # noqa: E402
from harness import PYTHON, SLUICE, wait_until  # noqa: E402

NOOP = {"kind": "noop"}
READER = """
import sys
from sluice import Client
with Client() as client:
    for t in client.trajectories(sys.argv[1]):
        print(t.seq, t.rollout, flush=True)
        if t.seq == int(sys.argv[2]):
            break
"""


def write_tasks(fleet, name, count, **fields):
    path = os.path.join(fleet.root, f"{name}.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for k in range(count):
            file.write(json.dumps({"task": f"{name}-{k}", **NOOP, **fields}) + "\n")
    return path


def python(fleet, program, *arguments):
    return subprocess.Popen([PYTHON, "-c", program, *arguments], env=fleet.environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def finish(process):
    """What is left of its two outputs, once it has ended."""
    said, errors = process.stdout.read(), process.stderr.read()
    process.wait(60)
    process.stdout.close()
    process.stderr.close()
    return said, errors


def submit(fleet, name, count, samples=1, *options, check=True):
    return fleet.run("submit", write_tasks(fleet, name, count), "--stream", name, "--samples", str(samples), *options,
                     check=check)


def stream_of(status, name):
    return next((s for s in status["streams"] if s["name"] == name), {"head": 0, "pending": 0})


def await_head(fleet, name, head):
    fleet.wait_for(lambda status: stream_of(status, name)["head"] >= head, 120, f"{head} ended in {name}")


class Readers(unittest.TestCase):
    def test_one_that_stood_still_while_thousands_ended_gets_each_once_and_in_order(self):
        with Fleet(slots=64) as fleet:
            submit(fleet, "still", 10)
            reader = python(fleet, READER, "still", "3010")
            self.assertEqual(reader.stdout.readline().split()[0], "1")
            reader.send_signal(signal.SIGSTOP)
            submit(fleet, "more", 100)  # another stream's, which must not be mixed in
            fleet.run("submit", write_tasks(fleet, "many", 300), "--stream", "still", "--samples", "10")
            await_head(fleet, "still", 3010)
            fleet["broker"].kill()
            fleet["broker"].start()
            reader.send_signal(signal.SIGCONT)
            said, errors = finish(reader)
        self.assertEqual([int(line.split()[0]) for line in said.splitlines()], list(range(2, 3011)), errors)
        self.assertEqual(len({line.split()[1] for line in said.splitlines()}), 3009)

    def test_one_that_comes_back_after_the_broker_was_restarted_several_times_goes_on(self):
        with Fleet(slots=64) as fleet:
            cursor = os.path.join(fleet.root, "cursor")
            submit(fleet, "away", 40)
            first = fleet.run("watch", "away", "--cursor", cursor, "--count", "15").stdout
            for turn in range(3):
                fleet["broker"].kill()
                fleet["broker"].start()
                fleet.run("submit", write_tasks(fleet, f"away{turn}", 10), "--stream", "away")
            await_head(fleet, "away", 70)
            rest = fleet.run("watch", "away", "--cursor", cursor, "--timeout", "1s").stdout
        numbers = [int(line.split()[0]) for line in (first + rest).splitlines()]
        self.assertEqual(numbers, list(range(1, 71)))

    def test_a_stream_that_is_kept_short_says_from_where_it_goes_on(self):
        with Fleet(settings={"keep_count": 10}, slots=64) as fleet:
            submit(fleet, "short", 40)
            await_head(fleet, "short", 40)
            fleet.wait_for(lambda status: stream_of(status, "short")["first"] == 31, 30, "the oldest are forgotten")
            done = fleet.run("watch", "short", "--from", "5", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("number 5 is no longer kept; the oldest is 31", done.stderr)
            self.assertIn("to go on: sluice watch short --from 31", done.stderr)
            self.assertEqual(len(fleet.run("watch", "short", "--from", "31", "--timeout", "1s").stdout.splitlines()), 10)

    def test_a_broker_restored_from_an_older_back_up_is_noticed_also_when_it_has_grown_again(self):
        with Fleet(slots=64) as fleet:
            cursor = os.path.join(fleet.root, "cursor")
            submit(fleet, "old", 20)
            await_head(fleet, "old", 20)
            said = fleet.run("backup", "early").stdout
            copy = os.path.join(fleet.data, "backups", "early.db")
            self.assertEqual(said, f"backups/early.db in the broker's data directory, {os.path.getsize(copy)} bytes\n")
            fleet.run("submit", write_tasks(fleet, "later", 20), "--stream", "old")
            await_head(fleet, "old", 40)
            fleet.run("watch", "old", "--cursor", cursor, "--count", "40")
            reader = python(fleet, READER, "old", "100")
            while reader.stdout.readline().split()[0] != "40":
                pass
            reader.send_signal(signal.SIGSTOP)
            fleet["broker"].kill()
            for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm", "lock"):
                if os.path.exists(os.path.join(fleet.data, name)):
                    os.remove(os.path.join(fleet.data, name))
            shutil.copy(copy, os.path.join(fleet.data, "ledger.db"))
            fleet["broker"].start()
            fleet.run("submit", write_tasks(fleet, "other", 30), "--stream", "old")
            await_head(fleet, "old", 50)
            reader.send_signal(signal.SIGCONT)
            _, errors = finish(reader)
            self.assertIn("OtherLedger: stream old: the broker has another ledger than before", errors)
            done = fleet.run("watch", "old", "--cursor", cursor, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("another ledger than before", done.stderr)
            self.assertIn(f"to go on, remove {cursor}: sluice watch old --from 1", done.stderr)


class Leases(unittest.TestCase):
    def test_work_of_a_trainer_that_was_killed_stops_and_that_of_one_that_reads_goes_on(self):
        trainer = ("import sys\nfrom sluice import Client\nwith Client() as client:\n"
                   "    client.submit([{'task': 'long', 'agent': {'kind': 'none'}, 'setup': ['sleep 600']}], stream=sys.argv[1],"
                   " lease=2)\n    print('there', flush=True)\n    list(client.trajectories(sys.argv[1], timeout=120))\n")
        with Fleet() as fleet:
            trainers = {}
            for name in ("alive", "gone"):
                trainers[name] = python(fleet, trainer, name)
                self.assertEqual(trainers[name].stdout.readline(), "there\n")
            gone, alive = trainers["gone"], trainers["alive"]
            gone.kill()
            finish(gone)
            await_head(fleet, "gone", 1)
            got = json.loads(fleet.run("watch", "gone", "--json", "--count", "1").stdout)
            self.assertEqual((got["outcome"], got["trainable"], got["reward"]), ("cancelled", False, None))
            # The other's lease is as long, and was made before.
            still = stream_of(fleet.status(), "alive")
            self.assertEqual((still["head"], still["pending"]), (0, 1))
            fleet.run("cancel", "--stream", "alive")
            alive.kill()
            finish(alive)


class Overload(unittest.TestCase):
    def test_it_warns_then_waits_then_gives_up_and_what_never_fits_is_refused_at_once(self):
        with Fleet(workers={"init": 1}, settings={"rollouts_max": 20}, slots=8) as fleet:
            path = write_tasks(fleet, "full", 20)
            start = time.monotonic()
            done = submit(fleet, "huge", 1, 21, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertLess(time.monotonic() - start, 20)
            self.assertNotIn("groups wait", done.stderr)
            done = submit(fleet, "some", 18)
            self.assertEqual(done.stderr.count("warning:"), 1, done.stderr)
            done = fleet.run("submit", path, "--stream", "full", "--patience", "2500ms", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("2 of 20 groups accepted", done.stdout)
            waiting = subprocess.Popen([SLUICE, "submit", path, "--stream", "full"], env=fleet.environment, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_until(lambda: "groups wait" in waiting.stderr.readline(), 30, "it waits")
            for name in ("run", "eval"):
                fleet.add_worker(name, f"{name}-1").start()
            said, _ = finish(waiting)
            self.assertEqual(waiting.returncode, 0)
            self.assertIn("20 of 20 groups accepted", said)
            await_head(fleet, "full", 20)


class Status(unittest.TestCase):
    def await_exit(self, fleet, code, seconds):
        end = time.monotonic() + seconds
        while (done := fleet.run("status", check=False)).returncode != code:
            self.assertLess(time.monotonic(), end, done.stdout)
        return done.stdout

    def test_its_first_line_and_its_exit_status_say_how_the_service_is(self):
        with Fleet(workers={"init": 1, "run": 2, "eval": 1}) as fleet:
            self.assertTrue(self.await_exit(fleet, 0, 6).startswith("health    healthy\n"))
            for number, code, health in ((2, 4, "degraded"), (1, 5, "down")):
                fleet[f"run-{number}"].kill()
                said = self.await_exit(fleet, code, 6)
                self.assertRegex(said, rf"\Ahealth    {health}\n          \S")
                self.assertRegex(said, r"\nlost worker +stage +host +jobs +ago ms +why\n")
            fleet["broker"].kill()
            self.assertEqual(fleet.run("status", check=False).returncode, 1)


class Drain(unittest.TestCase):
    def test_a_host_is_drained_and_what_it_had_is_done_by_others(self):
        with Fleet() as fleet:
            host = fleet.status()["workers"][0]["host"]
            tasks = write_tasks(fleet, "slow", 3, kind="sandbox", agent={"kind": "none"}, setup=["sleep 1"])
            fleet.run("submit", tasks, "--stream", "slow")
            fleet.wait_for(lambda status: status["stages"]["init"]["leased"] > 0, 30, "init jobs run")
            for member in fleet.members.values():
                member.may_end = member is not fleet["broker"]
            done = fleet.run("drain", "--host", host, "--grace", "0s", "--wait")
            self.assertEqual(done.stdout, "workers told to end: 3\ngone\n")
            self.assertFalse([w for w in fleet.status()["workers"] if w["host"] == host])
            self.assertEqual(fleet.run("drain", "--host", host, check=False).returncode, 1)
            for stage in ("init", "run", "eval"):
                wait_until(lambda s=stage: not fleet[f"{s}-1"].is_running(), 30, "it has ended")
                fleet[f"{stage}-1"].start()
            await_head(fleet, "slow", 3)
            lines = fleet.run("watch", "slow", "--json", "--count", "3").stdout.splitlines()
            self.assertEqual({json.loads(line)["outcome"] for line in lines}, {"ok"})


if __name__ == "__main__":
    unittest.main()
