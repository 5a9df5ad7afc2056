"""Engines that are away, hang, dawdle, fail, talk nonsense, or come back as another model: never a reward of theirs."""
import re
import sys
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, chat, script  # noqa: E402
from harness import wait_until  # noqa: E402

SOON = {"retry_first": "50ms", "retry_last": "500ms", "breaker_first": "200ms", "breaker_last": "1000ms"}


def rule(**more):
    return dict({"path": "/completion"}, **more)


class Engines(Case):
    def start(self, rules, settings=None, delay_ms=0):
        fleet = Fleet(slots=8, settings=dict(SOON, **(settings or {})))
        fleet.add_engine(script(delay_ms, *rules))
        self.enter(fleet)
        return fleet, self.client(fleet, timeout=30)

    def passing(self, *rules):
        """A fault that passes costs time and nothing else."""
        fleet, client = self.start(rules)
        client.submit([chat(k) for k in range(8)], stream="s")
        self.assert_all(self.read(client, "s", 8))
        return fleet

    def lasting(self, *rules, seconds=60):
        """A fault that stays is infra, without a reward, after the budget; and what needs no engine goes on."""
        fleet, client = self.start(rules, {"infra_budget": 2})
        client.submit([chat(k, limits={"run_s": 3, "total_s": 8}) for k in range(3)], stream="s")
        seen = self.read(client, "s", 3, seconds)
        self.assert_all(seen, "infra", None)
        self.assertTrue(any(fleet["engine"].url in t.detail for t in seen), seen[0].detail)

    def test_an_engine_that_is_down_for_a_while_is_waited_for(self):
        fleet, client = self.start((), {"infra_budget": 100}, delay_ms=500)
        client.submit([chat(k) for k in range(8)], stream="s")
        self.wait_leased(fleet, "run", 8)
        fleet["engine"].kill()
        time.sleep(2)
        fleet["engine"].start()
        self.assert_all(self.read(client, "s", 8))

    def test_an_engine_that_fails_for_a_while_is_asked_again(self):
        self.passing(rule(fault="500", times=6))

    def test_an_engine_that_stays_broken_is_infra_without_a_reward(self):
        self.lasting(rule(fault="500"))

    def test_an_engine_that_talks_garbage_is_infra_without_a_reward(self):
        self.lasting(rule(fault="garbage"))

    def test_an_engine_that_hangs_is_infra_without_a_reward(self):
        self.lasting(rule(fault="hang"))

    def test_a_slow_engine_is_only_slow(self):
        self.passing(rule(delay_ms=3000, times=8, reply="It is \\boxed{2}."))

    def test_while_an_engine_is_away_it_is_left_alone_and_tried_now_and_then(self):
        """The breaker: few jobs try an engine that fails, and it is used again once one of them did well."""
        fleet, client = self.start((rule(fault="500", times=60),), {"infra_budget": 100, "breaker_faults": 2})
        client.submit([chat(k) for k in range(30)], stream="s")
        self.assert_all(self.read(client, "s", 30, 120))
        self.assertLess(fleet.status()["counters"]["infra"], 30)

    def until(self, look, holds, what):
        """What `look` gives once it holds."""
        seen = {}

        def now():
            seen["last"] = look()
            return holds(seen["last"])
        wait_until(now, 30, what)
        return seen["last"]

    def test_what_an_engine_refuses_is_told_while_it_happens(self):
        fleet, client = self.start((rule(fault="503"),), {"infra_budget": 100, "breaker_faults": 2, "breaker_first": "5s", "breaker_last": "5s"})
        group, = client.submit([chat(0, limits={"run_s": 10, "total_s": 60})], stream="s")
        rollout, url = f"{group}/0", fleet["engine"].url
        state = self.until(lambda: client.get(rollout), lambda state: re.search(r"tried \d time", state.get("why", "")), "refused calls")
        self.assertIn(url, state["why"])
        self.assertIn("503", state["why"])
        self.assertEqual((state["state"], state["turn"]), ("leased", 1))
        listed, = client.rollouts(stream="s")
        self.assertEqual((listed["turn"], listed["engine"]), (1, url))
        self.assertIn("503", fleet.run("list").stdout)
        state = self.until(lambda: client.get(rollout), lambda state: "is failing" in state.get("why", ""), "an engine set aside")
        self.assertRegex(state["why"], rf"^the engine {re.escape(url)} is failing, and is tried again in \d s: .*503.*; before: infra on ")
        failing, = client.status()["engines"]
        self.assertEqual((failing["state"], "503" in failing["error"]), ("failing", True))
        client.cancel(rollout)
        self.assertRegex(fleet["broker"].said(), rf'broker warn engine\.health of="{re.escape(url)}" news=failing faults=2 retry_in_ms=5000 why=".*503')
        self.assertRegex(fleet["run-1"].said(), rf'worker warn engine\.refused url={re.escape(url)} tries=1 why=".*503')

    def test_a_rollout_that_ends_by_an_engine_has_a_line_in_the_log(self):
        fleet, client = self.start((rule(fault="500"),), {"infra_budget": 1})
        client.submit([chat(0)], stream="s")
        t, = self.read(client, "s", 1)
        self.assertRegex(fleet["broker"].said(), rf"broker warn rollout\.failed outcome=infra rollout={re.escape(t.rollout)} stream=s seq=1 "
                         rf'attempt=1 engine="{re.escape(fleet["engine"].url)}" why=".*500')

    def test_a_rollout_at_work_says_its_turn_and_its_last_tool(self):
        task = {"task": "turns", "prompt": "Please wait.", "agent": {"kind": "bash", "max_turns": 4}}
        fleet, client = self.start((rule(reply="I wait.\n```bash\nsleep 25\n```\n"),))
        group, = client.submit([task], stream="s")
        state = self.until(lambda: client.get(f"{group}/0"), lambda state: state.get("tool"), "a tool called")
        self.assertEqual((state["turn"], state["tool"], state.get("why")), (1, "bash", None))
        self.assertIn("turn 1, last tool bash", fleet.run("show", f"{group}/0").stdout)
        fleet["broker"].kill()
        fleet["broker"].start()
        again = self.until(lambda: client.get(f"{group}/0"), lambda state: state.get("tool"), "told to the new broker, too")
        self.assertEqual((again["turn"], again["tool"], again["attempt"]), (1, "bash", 1))
        client.cancel(group=group)

    def come_back_as(self, **other):
        """The engine is another after its restart, which happens in the second turn of a rollout."""
        task = {"task": "turns", "prompt": "Please write hello.", "agent": {"kind": "bash", "max_turns": 4},
                "eval": {"kind": "command", "command": "grep -qx hello answer.txt"}}
        rules = [rule(**{"if": "write hello", "reply": "I write it.\n```bash\necho hello >answer.txt\n```\n"})]
        fleet, client = self.start((*rules, rule(fault="hang")), {"infra_budget": 50, "breaker_faults": 1})
        group, = client.submit([task], stream="s")
        self.until(lambda: client.get(f"{group}/0"), lambda state: state.get("turn") == 2, "in its second turn")
        fleet["engine"].kill()
        fleet.write_script("engine", {"rules": [*rules, rule(reply="TASK_DONE")], **other})
        fleet["engine"].start()
        t, = self.read(client, "s", 1)
        self.assert_all([t])
        self.assertGreater(t.run_attempt, 1, "it began again with the one that there is")
        return fleet["broker"].said()

    def test_an_engine_that_comes_back_as_another_model_does_not_go_on_with_the_old_ones_tokens(self):
        """To the broker it is the same: only the worker can tell."""
        self.assertRegex(self.come_back_as(model="another.gguf"),
                         r'engine\.health .* why=".*serves another model than the rollout began with: its name')

    def test_an_engine_that_comes_back_with_another_template_does_not_go_on_with_the_old_ones_tokens(self):
        self.come_back_as(template="trim", context=2048)


if __name__ == "__main__":
    unittest.main()
