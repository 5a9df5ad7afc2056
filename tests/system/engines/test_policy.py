"""Several engines: pauses and new versions under load, a broker that dies in a pause, engines that die or are drained."""
import json
import os
import re
import sys
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet  # noqa: E402

SOON = {"retry_first": "50ms", "retry_last": "500ms", "breaker_first": "200ms", "breaker_last": "1000ms", "infra_budget": 50,
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
        self.version_path, self.hold_path = os.path.join(fleet.root, "version"), os.path.join(fleet.root, "hold")
        self.serve("step-0")
        blocks = [f"echo turn {k} >>turns" for k in range(TURNS)] + ["echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"]
        replies = [f"policy {{version}}.\n```bash\n{block}\n```\n" for block in blocks]
        script = {"version_path": self.version_path, "hold_path": self.hold_path,
                  "rules": [{"path": "/completion", "delay_ms": delay_ms, "replies": replies}]}
        self.engines = [fleet.add_engine(script, name=f"engine-{k}", host=f"127.0.0.{k + 1}") for k in range(engines)]
        self.enter(fleet)
        return fleet, self.client(fleet, timeout=60)

    def serve(self, version):
        """What the engines serve from now on, all at once."""
        with open(self.version_path + ".new", "w", encoding="utf-8") as file:
            file.write(version)
        os.replace(self.version_path + ".new", self.version_path)

    def wait_called(self, fleet):
        fleet.wait_for(lambda status: sum(e["calls"] for e in status["engines"]), 30, "a call in flight")

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

    def held_versions(self, trajectories):
        """Turns that went over an update are marked with both, as is one whose answer was under way; no other is."""
        held = set()
        for trace, turn in self.turns(trajectories):
            served = re.match(r"policy (\S+)\.\n", text_of(trace, turn)).group(1)
            if "+" in served:
                self.assertEqual(turn.version, served)
                held.add(served)
            self.assertIn(served, (turn.version, turn.version.split("+")[0]))
        return held

    def update_under_load(self, calls):
        fleet, client = self.start()
        fleet.run("policy", "set", "step-0")
        client.submit([talk(k) for k in range(24)], stream="s")
        self.wait_leased(fleet, "run", 6)
        for step in range(1, 5):
            time.sleep(0.5)  # under way
            client.policy_pause(calls=calls, bound=60, wait=30)
            if calls == "hold":
                self.hold()
            self.serve(f"step-{step}")
            client.policy_set(f"step-{step}")
            if calls == "hold":
                self.wait_heard(fleet, client)
                os.remove(self.hold_path)
            self.assertEqual(client.policy_resume(), 2)
        seen = self.read(client, "s", 24, 120)
        self.assert_all(seen)
        self.assertEqual(fleet.status()["counters"]["infra"], 0)
        if calls != "hold":
            self.assertGreaterEqual(len(self.assert_versions(seen)), 3)
        self.assertTrue(any(len({turn.version for _, turn in self.turns([t])}) > 1 for t in seen),
                        "no rollout went on over an update")
        return seen

    def hold(self):
        """The engines stop in mid-sequence, all calls where they are."""
        with open(self.hold_path, "w", encoding="utf-8"):
            pass

    def wait_heard(self, fleet, client):
        """Until every worker knows what the engines serve now, which is before any held call goes on."""
        client.policy_pause(calls="hold", bound=60, wait=30)

    def test_pausing_and_a_new_version_under_load_marks_every_turn_right(self):
        self.update_under_load("finish")

    def test_calls_that_are_aborted_are_made_again_and_marked_right(self):
        self.update_under_load("abort")

    def test_calls_that_the_engine_holds_go_on_in_mid_sequence_and_are_marked_with_both_versions(self):
        seen = self.update_under_load("hold")
        held = self.held_versions(seen)
        self.assertTrue(held, "no call was held")
        self.assertLessEqual(held, {f"step-{k}+step-{k + 1}" for k in range(4)})

    def test_updating_pauses_sets_the_version_and_resumes_whatever_happens(self):
        fleet, client = self.start()
        what = lambda: {(engine["state"], engine["version"]) for engine in fleet.status()["engines"]}
        client.policy_set("step-0")
        with client.updating("step-1"):
            self.assertEqual(what(), {("paused", "step-0")})
        resumed, = what()
        self.assertEqual((resumed[0] == "paused", resumed[1]), (False, "step-1"))
        with self.assertRaises(KeyError), client.updating("step-2"):
            raise KeyError("the weights cannot be read")
        self.assertEqual(what(), {resumed})

    def submit_marked(self, fleet):
        """From the command line."""
        path = os.path.join(fleet.root, "tasks.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(talk(k)) + "\n" for k in range(2))
        arguments = ["submit", path, "--stream", "mark", "--versions-behind", "1", "--on-stale"]
        refused = fleet.run(*arguments, "sing", check=False)
        self.assertEqual((refused.returncode, "--on-stale wants stop|refresh|mark" in refused.stderr), (2, True), refused.stderr)
        fleet.run(*arguments, "mark")

    def has_left_behind(self, status):
        """Those that are stopped by it are, and those that are marked have ended, however late they began."""
        ended = {stream["name"]: stream["head"] for stream in status["streams"]}
        return status["counters"]["stale"] == 2 and ended["mark"] == 2

    def test_a_rollout_that_the_policy_leaves_behind_is_stopped_begun_again_or_marked(self):
        fleet, client = self.start(delay_ms=1000)
        fleet.run("policy", "set", "step-0")
        for word in ("stop", "refresh"):
            client.submit([talk(k) for k in range(2)], stream=word, versions_behind=1, on_stale=word)
        self.submit_marked(fleet)
        client.submit([talk(k) for k in range(2)], stream="never")
        self.wait_leased(fleet, "run", 6)
        step = 0
        while not self.has_left_behind(status := fleet.status()):
            step += 1
            self.assertLess(step, 120, status)
            fleet.run("policy", "set", f"step-{step}")
            time.sleep(0.3)  # a third of a turn
        stopped = self.read(client, "stop", 2)
        self.assert_all(stopped, "cancelled", None)
        for t in stopped:
            self.assertRegex(t.detail, r"^stale: the policy has gone on by \d+ since the first turn, limits.versions_behind is 1$")
            self.assertTrue(0 < len(self.turns([t])) <= TURNS)
        refreshed = self.read(client, "refresh", 2, 120)
        self.assert_all(refreshed)
        for t in refreshed:
            self.assertEqual(len(self.turns([t])), TURNS + 1)
            steps = [int(version.split("-")[1]) for _, turn in self.turns([t]) for version in [turn.version.split("+")[0]]]
            self.assertLessEqual(max(steps) - steps[0], 1)
        marked = self.read(client, "mark", 2, 120)
        self.assert_all(marked)
        for t in marked:
            self.assertRegex(t.detail, r"^stale: a turn was \d+ versions behind; ended after 5 turns")
        for t in self.read(client, "never", 2, 120):
            self.assertNotIn("stale", t.detail)
        counters = fleet.status()["counters"]
        self.assertGreaterEqual(counters["refreshed"], 2)
        self.assertEqual((counters["stale"], counters["infra"]), (2, 0))

    def test_a_pause_outlives_a_broker_that_is_killed_and_ends_by_itself(self):
        fleet, client = self.start(settings={"adopt_grace": "3000ms"}, delay_ms=600)
        fleet.run("policy", "set", "step-0")
        client.submit([talk(k) for k in range(6)], stream="s")
        self.wait_called(fleet)
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
        self.wait_called(fleet)
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
        self.assertGreater(fleet.status()["counters"]["infra"] + fleet.status()["counters"]["uncounted"], 0)
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
