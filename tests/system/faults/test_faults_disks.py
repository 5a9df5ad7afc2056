"""Disks that fill, files that are damaged, images that are not there, evaluators that break."""
import glob
import os
import random
import shutil
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, noop, sandbox  # noqa: E402
from harness import wait_until  # noqa: E402

from sluice import BrokerSilent, Full, Refused  # noqa: E402

import hostile  # noqa: E402

BIG = {"setup": ["head -c 200000 /dev/urandom >bytes; sha256sum bytes >sum"],
       "eval": {"kind": "command", "command": "sleep 0.3; sha256sum -c sum"}}


class SmallDisk:
    """A tmpfs of some MiB."""

    def __init__(self, path, mib):
        self.path, self.mib = path, mib

    def __enter__(self):
        os.mkdir(self.path)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.mib}m", "sluice-test", self.path], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=True)

    def take(self, mib):
        with open(os.path.join(self.path, "ballast"), "wb") as file:
            file.write(b"x" * (mib << 20))

    def fill(self):
        with open(os.path.join(self.path, "ballast"), "wb", buffering=0) as file:
            size = 1 << 16
            while size:
                try:
                    file.write(b"x" * size)
                except OSError:
                    size //= 16

    def empty(self):
        os.unlink(os.path.join(self.path, "ballast"))


class Ledger(Case):
    def test_a_full_disk_loses_nothing_that_was_acknowledged(self):
        """The broker may refuse or stop; with room again, and started again, all that it took is there."""
        if os.geteuid() != 0:
            self.skipTest("a small disk needs root")
        fleet = Fleet(slots=8, options=("--disk-reserve", "0"))
        disk = self.enter(SmallDisk(os.path.join(fleet.root, "disk"), 64))
        fleet.move_data(os.path.join(disk.path, "data"))
        self.enter(fleet)
        client = self.client(fleet, timeout=5)
        fleet.broker.may_fail = True
        client.submit([sandbox(k, "sleep 1") for k in range(16)], stream="s")
        disk.fill()
        with self.assertRaises((BrokerSilent, Refused)):  # both are honest
            for k in range(20):
                client.submit([noop(k, metadata={"pad": "x" * 50000})], stream="s")
        disk.empty()
        if not fleet.broker.is_running():
            self.assertIn("disk", fleet.broker.said().lower())
            fleet.broker.start()
        fleet.broker.may_fail = False
        for k in range(20):
            client.submit([noop(k, metadata={"pad": "x" * 50000})], stream="s")
        self.assert_all(self.read(client, "s", 36))

    def test_a_low_disk_refuses_submits_until_there_is_room_and_work_goes_on(self):
        if os.geteuid() != 0:
            self.skipTest("a small disk needs root")
        fleet = Fleet(slots=8, options=("--disk-reserve", "32MiB"))
        disk = self.enter(SmallDisk(os.path.join(fleet.root, "disk"), 128))
        fleet.move_data(os.path.join(disk.path, "data"))
        self.enter(fleet)
        client = self.client(fleet, timeout=30, patience=0)
        client.submit([sandbox(k, "sleep 3") for k in range(8)], stream="s")
        disk.take(96)
        wait_until(lambda: "broker.disk-low" in fleet.broker.said(), 10, "the broker notices")
        with self.assertRaises(Full) as caught:
            client.submit([noop(1)], stream="s")
        self.assertEqual(caught.exception.reason, "disk-low")
        self.assert_all(self.read(client, "s", 8))
        disk.empty()
        wait_until(lambda: "broker.disk-enough" in fleet.broker.said(), 10, "the broker notices")
        client.submit([noop(1)], stream="s")
        self.assert_all(self.read(client, "s", 1, from_seq=9))

    def test_a_torn_write_at_the_end_of_the_wal_is_passed_over(self):
        fleet = self.enter(Fleet(slots=8))
        client = self.client(fleet, timeout=30)
        dice = random.Random(2)
        for k in range(5):
            client.submit([noop(10 * k + j) for j in range(10)], stream="s")
            fleet.broker.kill()
            with open(os.path.join(fleet.data, "ledger.db-wal"), "ab") as wal:
                wal.write(hostile.noise(dice))
            fleet.broker.start()
        self.assert_all(self.read(client, "s", 50))

    def test_a_damaged_ledger_is_refused_by_name_not_served(self):
        fleet = self.enter(Fleet(slots=8))
        client = self.client(fleet, timeout=30)
        client.submit([noop(k, samples=10) for k in range(100)], stream="s")
        self.read(client, "s", 1000)
        fleet.broker.end()
        path = os.path.join(fleet.data, "ledger.db")
        with open(path, "r+b") as file:
            file.write(b"\0" * 4096)
        fleet.broker.may_fail = True
        fleet.broker.start(wait=False)
        wait_until(lambda: not fleet.broker.is_running(), 30, "the broker refuses to start")
        self.assertNotIn(fleet.broker.status, (0, -6, -11))
        self.assertIn("ledger", fleet.broker.said())


class Store(Case):
    def submit(self, harm):
        """A group whose layer is harmed between init and its rollouts; what comes of it, and of another group."""
        fleet = Fleet(workers={"init": 1, "run": 0, "eval": 1}, settings={"infra_budget": 2, "retry_first": "50ms"})
        fleet.add_worker("run", "run-1")
        self.enter(fleet)
        client = self.client(fleet)
        fleet["run-1"].end()
        client.submit([dict(sandbox(1), samples=2, **BIG)], stream="s", group=lambda task: "harmed")
        fleet.wait_for(lambda s: s["stages"]["run"]["queued"] == 2, 30, "init has ended")
        self.assertTrue(harm(fleet.store))
        fleet["run-1"].start()
        client.submit([dict(sandbox(2), **BIG)], stream="s", group=lambda task: "whole")
        seen = self.read(client, "s", 3)
        self.assert_all([t for t in seen if t.group == "whole"])
        harmed = [t for t in seen if t.group == "harmed"]
        self.assertEqual({(t.outcome, t.reward, t.trainable) for t in harmed}, {("infra", None, False)}, harmed)
        self.assertTrue(all("layer" in t.detail for t in harmed), harmed)

    def test_a_layer_that_is_missing_is_infra_without_a_reward(self):
        def remove(store):
            paths = [os.path.join(where, name) for where, _, names in os.walk(store) for name in names]
            for path in paths:
                os.unlink(path)
            return paths
        self.submit(remove)

    def test_a_layer_that_is_damaged_is_infra_without_a_reward(self):
        self.submit(lambda store: hostile.turn_bytes_over(random.Random(1), store))


class Cache(Case):
    def test_a_cache_that_is_removed_under_working_workers_costs_no_rollout_and_changes_no_reward(self):
        """Evaluators that find nothing would say 0; those of a sandbox that is not whole are not believed."""
        fleet = self.enter(Fleet(slots=4))
        client = self.client(fleet)
        tasks = [dict(sandbox(k, "sleep 0.5; test -e keep && test -e bytes"), files={"keep": "x"},
                      setup=["head -c 200000 /dev/urandom >bytes"]) for k in range(12)]
        client.submit(tasks, stream="s")
        fleet.wait_for(lambda s: s["stages"]["eval"]["leased"] > 0, 30, "something is evaluated")
        caches = [os.path.join(fleet.root, name) for name in os.listdir(fleet.root) if name.startswith("cache-")]
        for cache in caches:
            shutil.rmtree(cache, ignore_errors=True)
        self.assert_all(self.read(client, "s", 12))
        status = fleet.wait_for(
            lambda s: len([w for w in s["workers"] if w.get("node_error") and w["state"] == "ready"]) == len(caches) and s,
            30, "all have begun anew")
        self.assertEqual(status["health"], "degraded")
        self.assertTrue(any("cache" in reason and "was removed" in reason for reason in status["reasons"]), status["reasons"])

    def test_files_that_go_from_cached_layers_cost_no_rollout_and_change_no_reward(self):
        """As where something sweeps single files by their age: the layers' directories stay."""
        fleet = self.enter(Fleet(slots=4))
        client = self.client(fleet)
        tasks = [dict(sandbox(k, "sleep 0.5; test -e sub/keep && test -e bytes"), files={"sub/keep": "x"},
                      setup=["head -c 200000 /dev/urandom >bytes"], samples=2) for k in range(6)]
        client.submit(tasks, stream="s")
        fleet.wait_for(lambda s: s["stages"]["eval"]["leased"] > 0, 30, "something is evaluated")
        kept = glob.glob(os.path.join(fleet.root, "cache-*", "*", "root", "workspace", "sub", "keep"))
        gone = [path for path in kept if ".tmp." not in path]
        self.assertTrue(gone)
        for path in gone:
            os.unlink(path)
        self.assert_all(self.read(client, "s", 12))


class Tasks(Case):
    def test_an_image_that_is_missing_is_the_tasks_fault_and_costs_others_nothing(self):
        fleet = self.enter(Fleet(slots=4))
        client = self.client(fleet)
        client.submit([sandbox(k, image="/no/such/image") for k in range(4)], stream="bad")
        client.submit([sandbox(k) for k in range(4)], stream="good")
        bad = self.read(client, "bad", 4)
        self.assert_all(bad, "task", None)
        self.assertTrue(all("image" in t.detail for t in bad), bad[0])
        self.assert_all(self.read(client, "good", 4))

    def test_an_evaluator_that_breaks_gives_no_reward_whatever_way_it_breaks(self):
        fleet = self.enter(Fleet(slots=4))
        client = self.client(fleet)
        ways = ["kill -9 $$", "kill -SEGV $$", "exit 126", "exit 127", "sleep 60", "/no/such/program"]
        tasks = [sandbox(k, way, limits={"command_s": 2}) for k, way in enumerate(ways)]
        tasks += [dict(sandbox(100), eval={"kind": "command", "command": f"echo {word} >/tmp/r", "reward_file": "/tmp/r"})
                  for word in ("nan", "inf", "1e999", "yes", "''")]
        client.submit(tasks, stream="s")
        self.assert_all(self.read(client, "s", len(tasks)), "task", None)

    def test_an_agent_that_breaks_a_limit_has_no_reward_for_the_files_of_before(self):
        """It removes what the evaluator looks for, and then takes too much, or leaves what cannot be kept."""
        fleet = self.enter(Fleet(slots=4))
        client = self.client(fleet)
        ways = {"memory": "head -c 400M /dev/zero | tail", "packed": "mkdir -p $(printf 'd/%.0s' {1..300})"}
        tasks = [dict(sandbox(k, "test -e keep"), files={"keep": "x"}, limits={"memory_mib": 100}, samples=2,
                      agent={"kind": "replay", "script": [{"tool": "bash", "arguments": {"command": f"rm keep; {way}"}}]})
                 for k, way in enumerate(ways.values())]
        client.submit(tasks, stream="s")
        for t in self.read(client, "s", 4):
            self.assertEqual((t.outcome, t.reward, t.trainable), ("agent", None, False), t)
            self.assertIn(list(ways)[int(t.task.rsplit("-", 1)[1])], t.detail)
            self.assertIn("nothing was scored", t.detail)


if __name__ == "__main__":
    unittest.main()
