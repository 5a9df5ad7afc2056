"""Layers across processes: one set-up for a group, and a store that keeps what is needed and no more."""
import os
import re
import shutil
import signal
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, sandbox  # noqa: E402
from harness import wait_until  # noqa: E402

GRACE_S = 2
# Too much to be inline, and another one at each run of the set-up.
BIG = {"setup": ["head -c 200000 /dev/urandom >bytes; sha256sum bytes >sum"],
       "eval": {"kind": "command", "command": "sha256sum -c sum"}}
SAMPLES = 8


def stored(fleet):
    """Digests of the layers in the store."""
    return {f"sha256:{name[:64]}" for _, _, names in os.walk(fleet.store) for name in names if name.endswith(".tar.lz4")}


class Collection(Case):
    def make_fleet(self, **settings):
        fleet = Fleet(workers={"init": 1, "run": 0, "eval": 1}, settings={"store_grace": f"{GRACE_S}s", **settings})
        fleet.broker.arguments += ["--store", fleet.store]
        fleet.add_worker("run", "run-1")
        return self.enter(fleet)

    def wait_freed(self, fleet, count):
        return fleet.wait_for(lambda s: s["store"]["freed_layers"] >= count, 60, f"{count} layers freed")

    def wait_tended(self, fleet, times=3):
        """So long that everything that is old and not needed has gone."""
        fleet.wait_for(lambda s: s["store"]["state"] == "tended" and s["uptime_ms"] > times * GRACE_S * 1000, 60,
                       "the broker looked through the store")
        return fleet.status()

    def hold_back(self, fleet, client, number, group):
        """A group that waits for its run; the digest of its layer."""
        fleet["run-1"].end()
        before = stored(fleet)
        client.submit([dict(sandbox(number), samples=2, **BIG)], stream="s", group=lambda task: group)
        fleet.wait_for(lambda s: s["stages"]["run"]["queued"] == 2, 60, "init has ended")
        found = stored(fleet) - before
        self.assertEqual(len(found), 1)
        return found

    def test_layers_go_once_their_group_has_ended_and_those_of_others_stay(self):
        fleet = self.make_fleet()
        client = self.client(fleet)
        client.submit([dict(sandbox(1), samples=2, **BIG)], stream="s", group=lambda task: "first")
        self.assert_all(self.read(client, "s", 2))
        held = self.hold_back(fleet, client, 2, "second")
        self.wait_freed(fleet, 1)
        self.assertEqual(stored(fleet), held)  # beyond its grace soon, and needed
        fleet.broker.kill()
        fleet.broker.start()
        status = self.wait_tended(fleet)
        self.assertEqual(stored(fleet), held)
        self.assertEqual((status["store"]["layers"], status["store"]["freed_layers"]), (1, 0))
        fleet["run-1"].start()
        self.assert_all(self.read(client, "s", 2, from_seq=3))
        wait_until(lambda: not stored(fleet), 60, "the second group's layer goes too")
        self.assertIn("broker.store-freed", fleet.broker.said(whole=True))

    def test_a_broker_that_was_away_for_long_frees_nothing_that_a_retry_wants(self):
        """Killed while a result is on its way, and started again long after the layer's grace."""
        fleet = self.make_fleet()
        client = self.client(fleet)
        held = self.hold_back(fleet, client, 1, "late")
        fleet.broker.kill()
        for digest in held:
            path = os.path.join(fleet.store, digest[7:9], f"{digest[7:]}.tar.lz4")
            os.utime(path, (1e9, 1e9))
        fleet.broker.start()
        self.wait_tended(fleet)
        self.assertEqual(stored(fleet), held)
        fleet["run-1"].start()
        self.assert_all(self.read(client, "s", 2))

    def test_a_run_whose_layer_was_collected_before_its_result_came_is_done_again(self):
        """Its worker was cut off for longer than the grace, and the broker had never heard of the layer."""
        fleet = self.make_fleet(infra_budget=2, retry_first="50ms")
        client = self.client(fleet)
        command = "sleep 5; head -c 200000 /dev/urandom >bytes; sha256sum bytes >sum"
        client.submit([dict(sandbox(1), agent={"kind": "replay", "script": [
            {"tool": "bash", "arguments": {"command": command}}]}, eval=BIG["eval"])], stream="s")
        self.wait_leased(fleet, "run", 1)
        fleet.broker.kill()
        wait_until(lambda: stored(fleet), 60, "the run's layer is in the store")
        fleet["run-1"].send(signal.SIGSTOP)
        fleet.broker.start()
        self.wait_freed(fleet, 1)
        self.assertEqual(stored(fleet), set())
        fleet["run-1"].send(signal.SIGCONT)
        t, = self.read(client, "s", 1, seconds=120)
        self.assert_all([t])
        self.assertEqual(fleet.status()["counters"]["run_again"], 1)

    def test_a_second_broker_on_the_same_store_is_refused_by_name(self):
        fleet = self.make_fleet()
        other = Fleet(workers=0)
        self.addCleanup(shutil.rmtree, other.root)
        other.broker.arguments += ["--store", fleet.store]
        other.broker.may_fail = True
        other.broker.start(wait=False)
        wait_until(lambda: not other.broker.is_running(), 30, "the second broker has ended")
        self.assertEqual(other.broker.status, 1)
        self.assertIn(f"the store {fleet.store} belongs to the broker whose data is {fleet.data}", other.broker.said())

    def test_without_a_store_nothing_is_deleted_and_the_status_says_so(self):
        fleet = self.enter(Fleet())
        client = self.client(fleet)
        client.submit([dict(sandbox(1), **BIG)], stream="s")
        self.assert_all(self.read(client, "s", 1))
        self.assertEqual(fleet.status()["store"]["state"], "off")
        self.assertEqual(len(stored(fleet)), 1)


class OneSetUp(Case):
    def set_ups(self, fleet):
        """How many init jobs the workers have brought to an end."""
        return sum(len(re.findall(r"job\.ended .*job=init:", member.said(whole=True))) for member in fleet.named("init"))

    def make_fleet(self):
        fleet = Fleet(workers={"init": 2, "run": 2, "eval": 1}, slots=4, settings={"beat_timeout": "1000ms"})
        fleet.environment["SLUICE_LOG"] = "debug"
        return self.enter(fleet)

    def check(self, trajectories):
        self.assert_all(trajectories)
        self.assertEqual(len({t.init_layer for t in trajectories}), 1)
        self.assertEqual(len({t.sample for t in trajectories}), SAMPLES)

    def test_a_group_pays_one_set_up(self):
        fleet = self.make_fleet()
        client = self.client(fleet)
        client.submit([dict(sandbox(1), samples=SAMPLES, **BIG)], stream="s")
        self.check(self.read(client, "s", SAMPLES))
        self.assertEqual(self.set_ups(fleet), 1)

    def test_a_worker_that_is_lost_costs_no_second_set_up(self):
        fleet = self.make_fleet()
        client = self.client(fleet)
        slow = dict(BIG, eval={"kind": "command", "command": "sleep 1; sha256sum -c sum"})
        client.submit([dict(sandbox(1), samples=SAMPLES, **slow)], stream="s")
        self.wait_leased(fleet, "eval", 4)
        for name in ("eval-1", "init-1", "init-2", "run-1"):
            fleet[name].kill()
        fleet["eval-1"].start()
        self.check(self.read(client, "s", SAMPLES))
        self.assertEqual(self.set_ups(fleet), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
