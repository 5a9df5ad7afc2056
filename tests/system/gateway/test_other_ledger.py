#!/usr/bin/env python3
"""A broker that comes back with another ledger, emptied or an older back-up, and who waits at the gateway then: nobody does so for ever.
And the ordinary case beside it: a broker that was killed and has its own ledger loses and repeats nothing."""
import os
import shutil
import signal
import unittest

from gateway_world import Calling, Case, Events, Fleet, add_gateway, ask, call, noop, wait_until
from test_gym import row
from test_polar import Listener, task as polar_task

API = "/api/v1"
SCRIPT = {"template": "qwen", "rules": [
    {"path": "/completion", "if": "forever", "reply": "never", "delay_ms": 600000},
    {"path": "/completion", "if": "take your time", "reply": "It is \\boxed{2}.", "delay_ms": 8000},
    {"path": "/completion", "reply": "It is \\boxed{2}."}]}
SLOW, FOREVER = "Please take your time: 1+1?", "think forever"


class World(Case):
    options = ()

    @classmethod
    def setUpClass(cls):
        fleet = Fleet(slots=32)
        cls.engine = fleet.add_engine(SCRIPT)
        cls.gateway = add_gateway(fleet, *cls.options)
        cls.fleet = fleet.__enter__()
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)

    def ask(self, path, body=None, **more):
        return ask(self.gateway, path, body, **more)

    def later(self, path, body):
        return Calling(self.gateway.port, "POST", path, body)

    # ---- the broker's ledger ----------------------------------------------------------------------------------------

    def back_up(self, name):
        self.fleet.run("backup", name)
        return os.path.join(self.fleet.data, "backups", f"{name}.db")

    def swap_ledger(self, backup=None):
        """While the broker is away: none, or that of a back-up."""
        content = None
        if backup:
            with open(backup, "rb") as file:
                content = file.read()
        shutil.rmtree(self.fleet.data)
        os.mkdir(self.fleet.data, 0o700)
        if content:
            with open(os.path.join(self.fleet.data, "ledger.db"), "wb") as file:
                file.write(content)

    def replace_ledger(self, backup=None):
        self.fleet.broker.kill()
        self.swap_ledger(backup)
        self.fleet.broker.start()
        self.come_back()

    def come_back(self):
        """Engines are in the ledger as well."""
        self.fleet.wait_for_workers()
        self.fleet.run("engine", "add", self.engine.url)

    # ---- what there is ----------------------------------------------------------------------------------------------

    def head(self, stream):
        return next((one["head"] for one in self.fleet.status()["streams"] if one["name"] == stream), 0)

    def running(self):
        rows = self.ask(f"{API}/rollouts").json["rollouts"]
        return [one for one in rows if one["stage"] == "run" and one["state"] == "leased"]

    def wait_running(self, count):
        wait_until(lambda: len(self.running()) >= count, 60, f"{count} at work")

    def submit(self, group, stream, task=None):
        answer = self.ask(f"{API}/groups", {"stream": stream, "group": group, "task": task or noop(1)})
        self.assertIn(answer.status, (200, 201), answer)

    def end(self, group, stream):
        self.submit(group, stream)
        wait_until(lambda: "outcome" in self.ask(f"{API}/rollouts/{group}/0").json, 60, f"{group} ended")


class NemoGym(World):
    """A `run` that waits is given to the broker again by the gateway itself."""

    def run_row(self, number, text=SLOW):
        return self.later("/run", row(number, text))

    def check(self, answer):
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual((answer.json["reward"], answer.json["outcome"]), (1.0, "ok"), answer)
        return answer.json

    def test_callers_of_an_emptied_ledger_are_answered(self):
        waiting = [self.run_row(number) for number in range(6)]
        self.wait_running(6)
        self.replace_ledger()
        rollouts = {self.check(one.get(60))["rollout"] for one in waiting}
        self.assertEqual(len(rollouts), 6)
        self.assertEqual(self.head("gateway"), 6)
        self.assertEqual(self.check(self.run_row(0).get(60))["reward"], 1.0)  # the same again, and its answer was had

    def test_numbers_that_the_new_ledger_gives_again_are_the_new_ones(self):
        for number in range(20, 23):
            self.check(self.run_row(number, "1+1?").get(60))
        waiting = [self.run_row(number) for number in range(23, 25)]
        self.wait_running(2)
        self.replace_ledger()
        for one in waiting:
            self.check(one.get(60))
        for number in range(20, 26):
            self.check(self.run_row(number, "1+1?").get(60))
        wait_until(lambda: self.kept("gateway") == 0, 30, "all of it acknowledged")

    def kept(self, stream):
        """How many trajectories nobody acknowledged."""
        one = next(one for one in self.fleet.status()["streams"] if one["name"] == stream)
        return one["head"] + 1 - one["first"]

    def test_an_older_back_up_goes_on_with_what_it_has_and_is_given_what_it_has_not(self):
        before = [self.run_row(number) for number in range(40, 42)]
        self.wait_running(2)
        backup = self.back_up("older")
        after = [self.run_row(number) for number in range(42, 45)]
        self.wait_running(5)
        self.replace_ledger(backup)
        answers = [self.check(one.get(60)) for one in before + after]
        self.assertEqual(len({one["rollout"] for one in answers}), 5)
        wait_until(lambda: self.kept("gateway") == 0, 30, "all of it acknowledged")

    def test_a_ledger_that_has_grown_again_before_the_gateway_looks(self):
        self.check(self.run_row(60, "1+1?").get(60))
        waiting = self.run_row(61)
        self.wait_running(1)
        head = self.head("gateway")
        self.fleet.broker.kill()
        self.gateway.send(signal.SIGSTOP)
        try:
            self.swap_ledger()
            self.fleet.broker.start()
            self.come_back()
            with self.client(self.fleet) as client:
                client.submit([noop(k) for k in range(head + 4)], stream="gateway", group=lambda task: f"other-{task['task']}")
                self.read(client, "gateway", head + 4)
        finally:
            self.gateway.send(signal.SIGCONT)
        self.check(waiting.get(60))
        self.replace_ledger()  # the others', which nobody waits for, are gone

    def test_a_broker_that_has_its_own_ledger_loses_and_repeats_nothing(self):
        before = self.head("gateway")
        waiting = [self.run_row(number) for number in range(80, 90)]
        self.wait_running(10)
        for _ in range(3):
            self.fleet.broker.kill()
            self.fleet.broker.start()
            self.fleet.wait_for_workers()
        answers = [self.check(one.get(90)) for one in waiting]
        self.assertEqual(len({one["rollout"] for one in answers}), 10)
        self.assertTrue(all(one["rollout"].endswith("-0/0") for one in answers), answers)
        self.assertEqual(self.head("gateway"), before + 10)
        self.assertNotIn("gateway.ledger", self.gateway.said()[self.gateway_said:])

    def setUp(self):
        self.gateway_said = len(self.gateway.said())

    def test_who_hung_up_and_comes_back_gets_a_rollout(self):
        body = row(95, FOREVER)
        hung_up = Calling(self.gateway.port, "POST", "/run", body, timeout=2)
        self.wait_running(1)
        hung_up.join(10)
        self.replace_ledger()
        answer = Calling(self.gateway.port, "POST", "/run", row(95, "1+1?"))
        again = Calling(self.gateway.port, "POST", "/run", body, timeout=30)
        self.check(answer.get(60))
        self.wait_running(1)
        again.join(40)
        self.assertIsNone(again.answer)  # it waits for a reply that does not come, and not for a rollout that is not there


class ProRL(World):
    """A `process` that waits is told so, with 503, and the same again is answered."""

    def process(self, number, text, **more):
        instance = {"data_source": "deepscaler", "instance_id": f"math-{number}", "trajectory_id": number,
                    "prompt": [{"role": "user", "content": text}], "reward_model": {"ground_truth": "2", "style": "rule"}}
        return self.later("/process", {"instance": dict(instance, is_reasoning_task=True, **more), "sampling_params": {"max_iterations": 2}})

    def come_back(self):
        """The engine is the gateway's to tell of."""
        self.fleet.wait_for_workers()

    def test_a_call_of_an_emptied_ledger_is_told_so_and_the_next_is_answered(self):
        self.fleet.run("engine", "remove", self.engine.url)
        self.assertEqual(self.ask("/add_llm_server", {"address": self.engine.url + "/v1"}).status, 200)
        self.assertEqual(self.ask("/start", method="POST").status, 200)
        waiting = [self.process(number, SLOW) for number in range(3)]
        self.wait_running(3)
        self.replace_ledger()
        for one in waiting:
            answer = one.get(60)
            self.assertEqual((answer.status, answer.headers["Retry-After"]), (503, "1"), answer)
            self.assertIn("its ledger was replaced", answer.json["detail"])
        for number in range(3):
            answer = self.process(number, SLOW).get(60)
            self.assertEqual((answer.status, answer.json.get("resolved")), (200, True), answer)
        self.replace_ledger()  # while nobody waits
        first = self.process(9, "1+1?").get(60)
        self.assertIn(first.status, (200, 503), first)
        self.assertEqual(self.process(9, "1+1?").get(60).json.get("resolved"), True)


class Polar(World):
    def submit_task(self, body):
        answer = self.ask("/rollout/task/submit", body)
        self.assertEqual(answer.status, 200, answer)

    def told(self, task_id):
        return self.ask(f"/rollout/task/{task_id}")

    def wait_over(self, task_id):
        def over():
            answer = self.told(task_id)
            return answer.json if answer.status == 200 and answer.json["status"] == "completed" else None
        return wait_until(over, 60, f"{task_id} over")

    def test_a_task_of_an_emptied_ledger_ends_in_errors_and_is_called_back(self):
        with Listener() as listener:
            self.submit_task(polar_task("had", num_samples=1))
            self.wait_over("had")
            self.submit_task(polar_task("lost", FOREVER, num_samples=3, callback_url=listener.url))
            self.wait_running(3)
            self.replace_ledger()
            wait_until(lambda: listener.taken, 60, "called back")
            [(_, told)] = listener.taken
            self.assertEqual((told["task_id"], told["status"], told["completed_sessions"]), ("lost", "completed", 3))
            for one in told["results"]:
                self.assertEqual((one["status"], one["task_id"], one["trajectory"]["traces"]), ("ERROR", "lost", []))
                self.assertIn("its ledger was replaced", one["error"])
            self.assertEqual(self.told("lost").json, told)
            self.assertEqual(self.told("had").status, 404)
            self.submit_task(polar_task("lost", "1+1?", num_samples=3, callback_url=listener.url))
            self.assertEqual([one["status"] for one in self.wait_over("lost")["results"]], ["COMPLETED"] * 3)
            wait_until(lambda: len(listener.taken) == 2, 60, "called back for the second")
            self.submit_task(polar_task("had", num_samples=1))
            self.assertEqual(self.wait_over("had")["completed_sessions"], 1)

    def test_an_older_back_up_goes_on_with_the_tasks_that_it_has(self):
        with Listener() as listener:
            self.submit_task(polar_task("old", SLOW, num_samples=2, callback_url=listener.url))
            self.wait_running(2)
            backup = self.back_up("older")
            self.submit_task(polar_task("new", FOREVER, num_samples=2, callback_url=listener.url))
            self.wait_running(4)
            self.replace_ledger(backup)
            self.assertEqual([one["status"] for one in self.wait_over("old")["results"]], ["COMPLETED"] * 2)
            self.assertEqual([one["status"] for one in self.wait_over("new")["results"]], ["ERROR"] * 2)
            wait_until(lambda: len(listener.taken) == 2, 60, "both called back")
            self.assertEqual({body["task_id"] for _, body in listener.taken}, {"old", "new"})

    def test_a_broker_that_has_its_own_ledger_loses_and_repeats_nothing(self):
        with Listener() as listener:
            self.submit_task(polar_task("own", SLOW, num_samples=4, callback_url=listener.url))
            self.wait_running(4)
            for _ in range(2):
                self.fleet.broker.kill()
                self.fleet.broker.start()
                self.fleet.wait_for_workers()
            told = self.wait_over("own")
            self.assertEqual([one["status"] for one in told["results"]], ["COMPLETED"] * 4)
            self.submit_task(polar_task("own-after", "1+1?", callback_url=listener.url))
            self.wait_over("own-after")
            wait_until(lambda: len(listener.taken) == 2, 60, "called back once each")
            self.assertEqual([body["task_id"] for _, body in listener.taken], ["own", "own-after"])


class Streams(World):
    """Events of a stream: `replaced`, and then all that the new ledger has."""

    def follow(self, stream, query="?view=summary", **headers):
        return self.enter(Events(self.gateway, f"{API}/streams/{stream}/events{query}", headers, timeout=60))

    def until(self, events, name):
        """(number, rollout) of the trajectories before the next event of that name, and what it says."""
        seen = []
        for event, number, data in events:
            if event == name:
                return seen, data
            if event == "trajectory":
                seen.append((number, data["rollout"]))
            else:
                self.assertNotEqual(event, "replaced")
        raise AssertionError(f"no event {name} after {seen}")

    def test_an_emptied_ledger_is_told_and_read_from_its_beginning(self):
        for k in range(3):
            self.end(f"old-{k}", "s")
        events = iter(self.follow("s"))
        seen, head = self.until(events, "head")
        self.assertEqual(([number for number, _ in seen], head["head"]), ([1, 2, 3], 3))
        self.replace_ledger()
        seen, told = self.until(events, "replaced")
        self.assertEqual((seen, told["head"], told["first"]), ([], 0, 1))
        self.assertNotEqual(told["start_id"], head["start_id"])
        for k in range(2):
            self.end(f"new-{k}", "s")
        again = [next((number, data["rollout"]) for event, number, data in events if event == "trajectory") for _ in range(2)]
        self.assertEqual(again, [(1, "new-0/0"), (2, "new-1/0")])
        late = iter(self.follow("s", **{"Last-Event-ID": "3"}))  # of the ledger that is gone
        seen, told = self.until(late, "replaced")
        self.assertEqual((seen, told["head"]), ([], 2))
        self.assertEqual(self.until(late, "head")[0], again)
        good = iter(self.follow("s", **{"Last-Event-ID": "2"}))
        self.assertEqual(self.until(good, "head")[0], [])

    def test_a_back_up_that_has_grown_again_before_the_gateway_looks_is_told(self):
        self.end("kept", "b")
        backup = self.back_up("older")
        for k in range(2):
            self.end(f"lost-{k}", "b")
        events = iter(self.follow("b"))
        self.assertEqual(len(self.until(events, "head")[0]), 3)
        self.fleet.broker.kill()
        self.gateway.send(signal.SIGSTOP)
        try:
            self.swap_ledger(backup)
            self.fleet.broker.start()
            self.come_back()
            with self.client(self.fleet) as client:
                client.submit([noop(k) for k in range(4)], stream="b", group=lambda task: f"grown-{task['task']}")
                self.read(client, "b", 5)
        finally:
            self.gateway.send(signal.SIGCONT)
        seen, told = [], None
        for event, number, data in events:
            told = data if event == "replaced" else told
            if event == "trajectory" and told:
                seen.append((number, data["rollout"]))
            if len(seen) == 5:
                break
        self.assertEqual(told["first"], 1)
        self.assertEqual([number for number, _ in seen], [1, 2, 3, 4, 5])
        self.assertEqual(seen[0], (1, "kept/0"))
        self.assertEqual({rollout.split("-")[0] for _, rollout in seen[1:]}, {"grown"})

    def test_a_broker_that_has_its_own_ledger_repeats_nothing(self):
        self.end("own-0", "o")
        events = iter(self.follow("o"))
        self.assertEqual(len(self.until(events, "head")[0]), 1)
        for k in range(1, 4):
            self.fleet.broker.kill()
            self.fleet.broker.start()
            self.fleet.wait_for_workers()
            self.end(f"own-{k}", "o")
            for event, number, data in events:
                self.assertNotEqual(event, "replaced")
                if event == "trajectory":
                    self.assertEqual((number, data["rollout"]), (k + 1, f"own-{k}/0"))
                    break

    def test_a_number_that_is_still_to_come_is_waited_for(self):
        events = iter(self.follow("f", "?view=summary&from=2"))
        self.assertEqual(self.until(events, "head")[0], [])
        self.end("f-1", "f")
        self.end("f-2", "f")
        self.assertEqual(next((number, data["rollout"]) for event, number, data in events if event == "trajectory"), (2, "f-2/0"))

    def test_the_page_is_told(self):
        self.end("page-1", "p")
        with Events(self.gateway, f"{API}/live", timeout=60) as live:
            events = iter(live)
            next(None for event, _, data in events if event == "history" and any(one["rollout"] == "page-1/0" for one in data))
            self.replace_ledger()
            next(None for event, _, data in events if event == "replaced" and data == {"stream": "p"})
            self.end("page-2", "p")
            ended = next(data for event, _, data in events if event == "ended" and data["stream"] == "p")
        self.assertEqual((ended["rollout"], ended["seq"]), ("page-2/0", 1))

    def test_a_rollout_that_is_watched_ends_as_unknown(self):
        self.submit("watched", "w", {"task": "w", "prompt": FOREVER, "agent": {"kind": "chat"}, "eval": {"kind": "math", "answer": "2"}})
        self.wait_running(1)
        with Events(self.gateway, f"{API}/rollouts/watched/0/events", timeout=60) as live:
            events = iter(live)
            next(events)
            self.replace_ledger()
            self.assertEqual([event for event, _, _ in events][-1], "failed")


class OneStateFile(Case):
    def test_a_second_gateway_on_one_state_file_is_refused(self):
        with Fleet(workers={"init": 1}) as fleet:
            first = add_gateway(fleet, name="first").start()
            second = add_gateway(fleet, name="second")
            second.arguments[second.arguments.index("--state") + 1] = first.arguments[first.arguments.index("--state") + 1]
            second.may_fail = True
            second.start(wait=False)
            wait_until(lambda: not second.is_running(), 30, "refused")
            self.assertNotEqual(second.status, 0)
            self.assertIn("another gateway uses it", second.said())
            self.assertEqual(call(first.port, "GET", "/readyz").status, 200)
            first.kill()
            second.start()  # what was killed holds nothing
            self.assertEqual(call(second.port, "GET", "/readyz").status, 200)


if __name__ == "__main__":
    unittest.main()
