"""Several engines: pauses and new versions under load, a broker that dies in a pause, engines that die or are drained."""
import os
import time
import unittest

from faults import Case, Fleet

SOON = {"retry_first_ms": 50, "retry_last_ms": 500, "breaker_first_ms": 200, "breaker_last_ms": 1000, "infra_budget": 50,
        "breaker_faults": 2}
TURNS = 4


def talk(number):
    """A rollout of some turns, whose evaluator sees that all of them were carried out."""
    return {"task": f"talk-{number}", "prompt": f"Please count, {number}.", "agent": {"kind": "bash", "max_turns": TURNS + 2},
            "eval": {"kind": "command", "command": f"test $(wc -l <turns) = {TURNS}"}, "metadata": {"number": number}}


def text_of(trace, turn):
    ids = trace.token_ids[turn.offset:turn.offset + turn.length]
    return bytes(int(i) for i in ids if i < 256).decode()


class Policy(Case):
    def start(self, engines=2, delay_ms=200, slots=6, settings=None):
        fleet = Fleet(slots=slots, settings=dict(SOON, **(settings or {})))
        self.version_path = os.path.join(fleet.root, "version")
        self.serve("step-0")
        blocks = [f"echo turn {k} >>turns" for k in range(TURNS)] + ["echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"]
        replies = [f"policy {{version}}.\n```bash\n{block}\n```\n" for block in blocks]
        script = {"version_path": self.version_path,
                  "rules": [{"path": "/completion", "delay_ms": delay_ms, "replies": replies}]}
        self.engines = [fleet.add_engine(script, name=f"engine-{k}", host=f"127.0.0.{k + 1}") for k in range(engines)]
        self.enter(fleet)
        return fleet, self.client(fleet, timeout=60)

    def serve(self, version):
        """What the engines serve from now on, all at once."""
        with open(self.version_path + ".new", "w", encoding="utf-8") as file:
            file.write(version)
        os.replace(self.version_path + ".new", self.version_path)

    def turns(self, trajectories):
        return [(trace, turn) for t in trajectories for trace in t.traces for turn in trace.turns
                if turn.role == "assistant"]

    def assert_versions(self, trajectories):
        """What a turn is marked with is what the engine says itself that it was sampled by."""
        seen = set()
        for trace, turn in self.turns(trajectories):
            self.assertIn(f"policy {turn.version}.", text_of(trace, turn))
            seen.add(turn.version)
        return seen

    def update_under_load(self, calls):
        fleet, client = self.start()
        fleet.run("policy", "set", "step-0")
        client.submit([talk(k) for k in range(24)], stream="s")
        self.wait_leased(fleet, "run", 6)
        for step in range(1, 5):
            time.sleep(0.5)  # under way
            client.policy_pause(calls=calls, bound=60, wait=30)
            self.serve(f"step-{step}")
            client.policy_set(f"step-{step}")
            self.assertEqual(client.policy_resume(), 2)
        seen = self.read(client, "s", 24, 120)
        self.assert_all(seen)
        self.assertEqual(fleet.status()["counters"]["infra"], 0)
        self.assertGreaterEqual(len(self.assert_versions(seen)), 3)
        self.assertTrue(any(len({turn.version for _, turn in self.turns([t])}) > 1 for t in seen),
                        "no rollout went on over an update")

    def test_pausing_and_a_new_version_under_load_marks_every_turn_right(self):
        self.update_under_load("finish")

    def test_calls_that_are_aborted_are_made_again_and_marked_right(self):
        self.update_under_load("abort")

    def test_a_pause_outlives_a_broker_that_is_killed_and_ends_by_itself(self):
        fleet, client = self.start(settings={"adopt_grace_ms": 3000})
        fleet.run("policy", "set", "step-0")
        client.submit([talk(k) for k in range(6)], stream="s")
        self.wait_leased(fleet, "run", 6)
        fleet.run("policy", "pause", "--bound", "20s")
        before = time.monotonic()
        fleet.broker.kill()
        self.serve("step-1")
        fleet.broker.start()
        fleet.run("policy", "set", "step-1")
        fleet.wait_for_workers()
        self.assertEqual({e["state"] for e in fleet.status()["engines"]}, {"paused"})
        seen = self.read(client, "s", 6, 90)
        self.assertGreater(time.monotonic() - before, 15)
        self.assert_all(seen)
        self.assertEqual(self.assert_versions(seen), {"step-0", "step-1"})
        self.assertEqual(fleet.status()["counters"]["unresumed"], 2)
        late = fleet.run("policy", "resume", check=False)
        self.assertEqual((late.returncode, "nothing was paused" in late.stderr), (1, True))

    def test_a_pause_that_calls_do_not_let_come_true_is_taken_back(self):
        fleet, client = self.start(delay_ms=4000)
        client.submit([talk(0)], stream="s")
        fleet.wait_for(lambda status: sum(e["calls"] for e in status["engines"]), 30, "a call in flight")
        done = fleet.run("policy", "pause", "--wait", "1s", check=False)
        self.assertEqual((done.returncode, "taken back" in done.stderr), (1, True))
        self.assertNotIn("paused", {e["state"] for e in fleet.status()["engines"]})
        self.assert_all(self.read(client, "s", 1, 90))

    def test_rollouts_of_an_engine_that_dies_begin_again_on_others_and_earn_what_they_get(self):
        fleet, client = self.start(engines=3)
        client.submit([talk(k) for k in range(18)], stream="s")
        self.wait_leased(fleet, "run", 6)
        time.sleep(0.5)  # in mid-rollout
        victim = self.engines[0]
        victim.kill()
        seen = self.read(client, "s", 18, 120)
        self.assert_all(seen)
        for t in seen:
            self.assertEqual(len(self.turns([t])), TURNS + 1)
            self.assertEqual(len({turn.engine for _, turn in self.turns([t])}), 1)
        self.assertGreater(fleet.status()["counters"]["infra"] + fleet.status()["counters"]["excused"], 0)
        victim.start()

    def test_an_engine_that_drains_ends_what_it_has_and_gets_no_more(self):
        fleet, client = self.start(engines=2)
        drained = self.engines[1].url
        client.submit([talk(k) for k in range(18)], stream="s")
        fleet.wait_for(lambda status: all(e["live"] for e in status["engines"]), 30, "rollouts on both engines")
        done = fleet.run("engine", "drain", drained, "--wait")
        self.assertIn("rollouts that are there: 0", done.stdout)
        self.engines[1].kill()  # nobody misses it
        seen = self.read(client, "s", 18, 120)
        self.assert_all(seen)
        self.assertEqual(fleet.status()["counters"]["infra"], 0)
        there = [t for t in seen if t.engine == drained]
        self.assertTrue(0 < len(there) < 10, len(there))
        self.engines[1].start()


if __name__ == "__main__":
    unittest.main()
