"""The page before a real gateway: a fleet with a scripted engine is seen at work, its rollouts are found out about, and kill -9 of the
gateway is nothing that anybody has to do something about (O3, O5)."""
import sys
import unittest

from gateway_world import Case, Fleet, add_gateway, ask, chat, noop, sandbox
from browser import CHROMIUM, Browser

if not CHROMIUM:
    print("skipped: chromium is not installed (apt-get install --no-install-recommends chromium)")
    sys.exit(77)

IMAGE = "<img src=x onerror=document.title='hurt'>"
SCRIPT = {"dialect": "openai", "template": "qwen", "context": 1 << 13, "rules": [
    {"if": "slowly", "delay_ms": 2000, "token_ms": 150, "reply": "It took me long: \\boxed{2}."},
    {"if": "1+1", "delay_ms": 30, "reply": "It is \\boxed{2}."},
    {"if": "<returncode>", "delay_ms": 30, "reply": "It is done.\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```\n"},
    {"delay_ms": 30, "reply": "I write it.\n```bash\necho hello >answer.txt; sleep 1.2\n```\n"}]}


def shell(number, **more):
    return dict({"task": "write", "prompt": f"Please write hello ({number}).", "agent": {"kind": "bash", "max_turns": 4},
                 "eval": {"kind": "command", "command": "grep -qx hello answer.txt"}, "limits": {"run_s": 60}}, **more)


class Service(Case):
    @classmethod
    def setUpClass(cls):
        fleet = Fleet(slots=4, worker_options=[])
        cls.engine = fleet.add_engine(SCRIPT)
        cls.gateway = add_gateway(fleet)
        cls.fleet = fleet.__enter__()
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)

    def setUp(self):
        self.browser = self.enter(Browser())
        self.url = f"http://127.0.0.1:{self.gateway.port}/"

    def submit(self, stream, group, task, samples=2):
        answer = ask(self.gateway, "/api/v1/groups", {"stream": stream, "group": group, "samples": samples, "task": task})
        self.assertIn(answer.status, (200, 201), answer)

    def open(self, fragment=""):
        self.browser.open(self.url + fragment)
        self.browser.wait("document.querySelector('.link.is-live')")

    def assert_quiet(self, *forgiven):
        self.assertEqual([error for error in self.browser.errors if not any(word in error for word in forgiven)], [])
        self.assertEqual([url for url in self.browser.requests if not url.startswith((self.url, "data:"))], [])

    def test_a_program_that_asks_is_told_ok_and_a_browser_is_given_the_page(self):
        self.assertEqual(ask(self.gateway, "/", headers={"Accept": "*/*"}).json, {"status": "ok"})
        page = ask(self.gateway, "/", headers={"Accept": "text/html,application/xhtml+xml"})
        self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
        self.assertEqual(page.headers["Content-Type"], "text/html; charset=utf-8")

    def test_o3_rollouts_are_seen_from_their_submit_to_their_end_with_the_network_off(self):
        self.open()
        self.submit("seen", "seen-1", shell(1), samples=3)
        self.submit("seen", "seen-2", dict(chat(2), task="<img>", prompt=f"What is 1+1, {IMAGE}?", metadata={IMAGE: IMAGE}), samples=2)
        self.browser.wait("document.querySelectorAll('a.brief-row .stack').length >= 5", 60)
        self.browser.wait_text("seen-1/2")
        for fragment, text in (("#/rollouts?view=ended&stream=seen", "<img>"), ("#/rollout/seen-2/0", f"What is 1+1, {IMAGE}?"), ("#/groups", "seen-1"), ("#/group/seen-1", "3 samples, all ended. Mean reward 1, from 1 to 1."),
                               ("#/streams", "mean reward of the last"), ("#/stream/seen", "ok 5, 100\u00a0%"), ("#/fleet", "Workers by host")):
            self.browser.go(fragment)
            self.browser.wait_text(text)
            self.assertEqual(self.browser.value("document.querySelectorAll('img').length"), 0)
        self.assert_quiet()

    def test_an_ended_rollout_tells_its_turns_tools_and_tokens(self):
        self.submit("told", "told-1", shell(1), samples=1)
        self.open("#/rollout/told-1/0")
        self.browser.wait_text("It ran to its end: the agent said it was done, and the evaluator gave a reward of 1.", 60)
        self.browser.wait_text("bash: echo hello >answer.txt; sleep 1.2")
        self.browser.wait("/The longest single step|(Most of it|The largest part), [\\d.]+ s .*was /.test(document.body.innerText)")
        self.browser.wait("document.querySelector('.msg.assistant .lazy') !== null")
        self.browser.value("document.querySelector('.msg.assistant .lazy').scrollIntoView({block: 'center'})")
        self.browser.wait("document.querySelectorAll('.msg.assistant .cells i').length > 20")
        self.browser.value("[...document.querySelectorAll('.segments button')].find((one) => one.textContent === 'Tokens').click()")
        self.browser.wait("document.querySelector('.turn.assistant') !== null")
        self.browser.value("document.querySelector('.turn.assistant').scrollIntoView({block: 'center'})")
        self.browser.hover(".turn.assistant .tok")
        self.browser.wait("/^id \\d+\\s+log-probability -\\d/.test(document.getElementById('tip').innerText)")
        self.assert_quiet()

    def test_a_live_rollout_says_what_it_is_at_and_then_how_it_ended(self):
        self.submit("live", "live-1", dict(chat(1), prompt="Say slowly what 1+1 is.", setup=["sleep 2"]), samples=1)  # streamed is what is looked at when it begins
        self.open("#/rollout/live-1/0")
        self.browser.wait_text("It is being set up")
        self.browser.wait_text("It is at work")
        self.browser.wait_text("Right now: sampling")
        self.browser.wait("/^It took/.test((document.querySelector('.msg.is-live .text') || {}).textContent)")
        self.browser.wait_text("Say slowly what 1+1 is.")
        self.browser.wait("document.querySelectorAll('.gantt rect.k-sampling').length > 0")
        self.browser.wait_text("It ran to its end", 60)
        self.browser.wait("document.querySelectorAll('.msg.is-live').length === 0 && document.querySelectorAll('.msg.assistant').length === 1")
        self.assert_quiet()

    def test_why_one_failed_and_what_the_fleet_waits_for(self):
        self.submit("failing", "failing-1", sandbox(1, setup=["echo no such parser >&2; exit 3"]), samples=2)
        self.open("#/failures")
        self.browser.wait_text("no such parser", 60)
        self.browser.wait("document.querySelector('.failure .examples a')")
        self.browser.value("document.querySelector('.failure .examples a').click()")
        self.browser.wait_text("The task is at fault, not the agent: ")
        for number in range(12):
            self.submit("crowd", f"crowd-{number}", dict(chat(number), prompt="Say slowly what 1+1 is."), samples=4)
        self.browser.go("#/")
        self.browser.wait_text("Rollouts wait for run slots")
        self.browser.wait_text("All 4 run slots are taken, and")
        self.browser.go("#/rollouts?state=queued&stream=crowd")
        self.browser.wait_text("all 4 slots of run workers are taken")
        self.browser.value("document.querySelector('a.row:not([hidden])').click()")
        self.browser.wait_text("Why it does not get on: All 4 slots of run workers are taken")
        ask(self.gateway, "/api/v1/streams/crowd", method="DELETE")
        self.browser.wait_text("It was cancelled", 30)
        self.assert_quiet()

    def test_an_engine_that_died_is_named_where_its_rollouts_wait(self):
        self.engine.kill()
        try:
            self.submit("dead", "dead-1", chat(1), samples=4)
            self.open("#/")
            self.browser.wait_text("1 of 1 engines", 60)
            self.browser.wait_text("Degraded")
            self.browser.go("#/fleet")
            self.browser.wait("document.querySelector('.engine .chip.is-bad')", 60)
            self.browser.go("#/rollouts?stream=dead")
            self.browser.wait("document.querySelectorAll('a.row:not([hidden])').length === 4")
            self.browser.wait("/engine|tried again/.test(document.querySelector('a.row:not([hidden]) .row-main').textContent)")
            self.browser.value("document.querySelector('a.row:not([hidden])').click()")
            self.browser.wait_text("Why it does not get on: ")
            self.browser.wait_text(f"{self.engine.url}")
        finally:
            self.engine.start()
        self.browser.wait_text("It ran to its end", 120)
        self.assert_quiet()

    def test_o5_the_page_comes_back_after_the_gateway_was_killed(self):
        self.open()
        self.submit("back", "back-1", dict(chat(1), prompt="Say slowly what 1+1 is."), samples=2)
        self.gateway.kill()
        self.browser.wait("document.querySelector('.link.is-away')")
        self.gateway.start()
        self.browser.wait("document.querySelector('.link.is-live')", 30)
        self.browser.go("#/rollouts?view=ended&stream=back")
        self.browser.wait("document.querySelectorAll('a.row:not([hidden])').length === 2", 60)
        self.assert_quiet("ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY")


class Keyed(Case):
    def test_a_token_opens_the_page_to_what_its_key_may_see(self):
        fleet = Fleet(keys=True, slots=2)
        gateway = add_gateway(fleet, "--key", fleet.add_key("admin", "gate"))
        tokens = {name: fleet.run("keys", "token", fleet.add_key("trainer", name)).stdout.strip() for name in ("alice", "bob")}
        with fleet:
            for name, token in tokens.items():
                answer = ask(gateway, "/api/v1/groups", {"stream": f"of-{name}", "group": f"{name}-1", "samples": 2, "task": noop(1)}, headers={"Authorization": f"Bearer {token}"})
                self.assertEqual(answer.status, 201, answer)
            browser = self.enter(Browser())
            browser.open(f"http://127.0.0.1:{gateway.port}/#/rollouts?view=ended")
            browser.wait_text("This service asks for a key")
            browser.value("(() => { document.getElementById('login-token').value = 'sluice-no-such-token'; document.querySelector('#login-form button').click(); })()")
            browser.wait("document.getElementById('login-error').textContent.length > 5")
            browser.value("(() => { document.getElementById('login-token').value = %r; document.querySelector('#login-form button').click(); })()" % tokens["alice"])
            browser.wait_text("alice-1/1", 30)
            self.assertNotIn("bob-1", browser.text())
            browser.go("#/")
            browser.wait_text("Only admins see their names and how they are.")
            browser.open(f"http://127.0.0.1:{gateway.port}/#/group/alice-1")
            browser.wait_text("2 samples, all ended.")
            self.assertEqual([url for url in browser.requests if tokens["alice"] in url], [])
            self.assertEqual(browser.value("document.cookie"), "")
            browser.value("document.querySelector('#foot button').click()")
            browser.wait_text("This service asks for a key")
            self.assertEqual([error for error in browser.errors if "401" not in error], [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=1)
