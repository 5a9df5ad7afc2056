"""Peers that mean harm, or know no better: bytes at every socket, and workers that are none."""
import random
import sys
import unittest

import zmq

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, noop, sandbox  # noqa: E402
from harness import wait_until  # noqa: E402

import hostile  # noqa: E402


class Peers(Case):
    def urls(self, fleet):
        return [f"tcp://127.0.0.1:{fleet.port + k}" for k in range(3)]

    def test_no_bytes_at_any_socket_disturb_anybody(self):
        fleet = self.enter(Fleet(slots=8))
        client, dice = self.client(fleet, timeout=30), random.Random(9)
        client.submit([sandbox(k, "sleep 0.2") for k in range(20)], stream="s")
        for _ in range(10):
            hostile.at_all(dice, *self.urls(fleet))
        self.assert_all(self.read(client, "s", 20))
        self.assertEqual(fleet.status()["rollouts"]["accepted"], 20)

    def test_many_connections_that_say_nothing_shut_nobody_out(self):
        fleet = self.enter(Fleet(slots=8))
        client = self.client(fleet, timeout=30)
        silent = [hostile.connect(url) for url in self.urls(fleet) for _ in range(300)]
        try:
            client.submit([noop(k) for k in range(20)], stream="s")
            self.assert_all(self.read(client, "s", 20))
        finally:
            for one in silent:
                one.close()

    def test_a_worker_that_the_broker_cannot_reach_is_shown_with_the_cure_and_costs_no_job_anything(self):
        fleet = self.enter(Fleet(slots=2, settings={"lanes": "192.0.2.0/24"}))  # an address that nobody has
        client = self.client(fleet, timeout=30)
        worker = fleet.add_worker("run", "apart", options=["--advertise", "192.0.2.7", "--allow-plaintext"]).start()
        client.submit([noop(k) for k in range(30)], stream="s")
        seen = self.read(client, "s", 30)
        self.assertEqual({t.attempt for t in seen}, {1})
        advice = lambda status: " ".join(status["advice"])  # noqa: E731
        fleet.wait_for(lambda s: "cannot connect to its lane tcp://192.0.2.7:" in advice(s) and "--advertise" in advice(s),
                       10, "status says what would help")
        (shown,) = [w for w in fleet.status()["workers"] if "192.0.2.7" in w.get("unreached", "")]
        self.assertEqual((shown["stage"], shown["state"], shown["jobs"]), ("run", "unreached", 0))
        wait_until(lambda: "worker.unreached" in worker.said(), 10, "the worker says so")

    def test_a_worker_whose_lane_leads_nowhere_costs_its_jobs_some_time_and_no_more(self):
        fleet = self.enter(Fleet(slots=2, settings={"beat_timeout": "1500ms"}))
        client = self.client(fleet, timeout=30)
        beat = {"worker": "phantom", "stage": "eval", "slots": 64, "lane": "tcp://127.0.0.1:9", "host": "nowhere",
                "progress": 1, "draining": False, "epoch": 0, "jobs": []}
        hostile.as_peer(self.urls(fleet)[1], zmq.PUSH, [[hostile.message("worker.beat", beat)]])
        fleet.wait_for(lambda s: s["stages"]["eval"]["workers"] == 2, 10, "the phantom is taken for a worker")
        client.submit([noop(k) for k in range(30)], stream="s")
        self.assert_all(self.read(client, "s", 30))
        fleet.wait_for(lambda s: s["stages"]["eval"]["workers"] == 1, 10, "the phantom is lost")

    def test_results_of_what_nobody_asked_for_give_no_reward(self):
        fleet = self.enter(Fleet(slots=2))
        client = self.client(fleet, timeout=30)
        client.submit([sandbox(1, "sleep 1; false")], stream="s", group=lambda task: "g")
        self.wait_leased(fleet, "eval", 1)
        forged = {"worker": "phantom", "token": 1, "outcome": "ok", "ms": 1, "reward": 99.0}
        frames = [[hostile.message("job.result", dict(forged, job=job))]
                  for job in ("eval:none/0", "eval:g/1", "run:g/0", "init:g", "eval:g", "eval:g/0/0", "nap:g/0")]
        hostile.as_peer(self.urls(fleet)[1], zmq.PUSH, frames)
        seen = self.read(client, "s", 1)
        self.assertEqual((seen[0].outcome, seen[0].reward), ("ok", 0.0), seen[0])
        self.assertEqual(fleet.status()["rollouts"]["accepted"], 1)


if __name__ == "__main__":
    unittest.main()
