"""The page in a headless Chromium that can reach nothing but the page's own server: panels fill, text stays text, it comes back by itself."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from urllib.parse import quote

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import SOURCE, free_ports, wait_until  # noqa: E402
from browser import CHROMIUM, Browser  # noqa: E402

if not CHROMIUM:
    print("skipped: chromium is not installed (apt-get install --no-install-recommends chromium)")
    sys.exit(77)

from player import Server, put_together  # noqa: E402
from worlds import World  # noqa: E402

PAGE = put_together()
SOURCES = os.path.join(SOURCE, "client", "gateway", "page")
IMAGE = "<img src=x onerror=document.title='hurt'>"
PANELS = ("#/", "#/rollouts", "#/rollouts?view=ended", "#/groups", "#/streams", "#/stream/train", "#/failures", "#/fleet")
DRAWN = "document.querySelector('.link.is-live') && document.querySelectorAll('a.brief-row').length > 3"


def sources(*ends):
    for folder, _, names in os.walk(SOURCES):
        for name in names:
            if name.endswith(ends):
                with open(os.path.join(folder, name), encoding="utf-8") as text:
                    yield name, text.read()


class Page(unittest.TestCase):
    def start(self, name="busy", browser=None, **world):
        self.server = Server(World(name, **world), PAGE)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__)
        self.browser = Browser(**(browser or {}))
        self.addCleanup(self.browser.__exit__)
        self.browser.open(self.server.url)

    def show(self, fragment, text):
        self.browser.go(fragment)
        self.browser.wait_text(text)

    def tearDown(self):
        if hasattr(self, "browser"):
            self.assertEqual(self.browser.errors, [])

    def first(self, **wanted):
        return next(one for one in reversed(self.server.world.ended) if all(one[key] == value for key, value in wanted.items()))

    # ---- its text and its origin ---------------------------------------------------------------------------------

    def test_no_source_sets_html_or_runs_text(self):
        seen = 0
        for name, text in sources(".js", ".html"):
            seen += 1
            found = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|\son\w+=|https?://(?!www\.w3\.org)[\w.]+", text)
            self.assertEqual([one for one in found if one], [], name)
        self.assertGreater(seen, 20)

    def test_every_source_is_put_together(self):
        with open(os.path.join(SOURCES, "sources.cmake"), encoding="utf-8") as text:
            listed = re.findall(r"[\w/]+\.(?:js|css)", text.read())
        there = [os.path.relpath(os.path.join(folder, name), SOURCES) for folder, _, names in os.walk(SOURCES) for name in names if name.endswith((".js", ".css"))]
        self.assertEqual(sorted(listed), sorted(there))

    def test_the_policy_lets_only_its_own_style_and_script_run(self):
        self.assertRegex(PAGE[1], r"^default-src 'none'; style-src 'sha256-[\w+/]{43}='; script-src 'sha256-[\w+/]{43}='; connect-src 'self'; "
                                  r"img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$")
        self.start()
        self.browser.wait(DRAWN)
        self.browser.value("void document.body.append(Object.assign(document.createElement('script'), {textContent: 'document.title = \"hurt\"'}))")
        self.browser.wait("document.title === 'Sluice'")
        self.assertRegex(self.browser.errors.pop(), "Content Security Policy")

    def test_nothing_but_its_own_server_is_asked(self):
        self.start()
        self.browser.wait(DRAWN)
        for fragment in PANELS:
            self.browser.go(fragment)
            self.browser.wait("document.querySelector('main').innerText.length > 100")
        own = [url for url in self.browser.requests if not url.startswith((self.server.url, "data:"))]
        self.assertEqual(own, [])
        self.assertEqual([path for path in self.server.asked if not path.startswith("/api/v1/") and path != "/"], [])
        self.assertEqual(sum(path == "/api/v1/live" for path in self.server.asked), 1)

    def test_a_task_named_as_an_image_is_text(self):
        self.start()
        world = self.server.world
        one = {**world.summary(1, int(time.time() * 1000)), "rollout": IMAGE.replace("/", "") + "/0", "group": IMAGE, "task": IMAGE, "outcome": "task", "detail": IMAGE, "reward": None}
        world.trajectories[one["rollout"]] = {"messages": [{"role": "user", "content": IMAGE}, {"role": "tool", "tool": IMAGE, "content": IMAGE, "exit_status": 1}], "metadata": {IMAGE: IMAGE},
                                              "metrics": [{"name": IMAGE, "value": 1}], "traces": []}
        world.live[0].update(task=IMAGE, why=IMAGE, tool=IMAGE)
        world.ended.append(one)
        for fragment in ("#/rollouts?q=onerror", "#/rollouts?view=ended", "#/failures", "#/groups", "#/rollout/" + quote(one["rollout"])):
            self.show(fragment, IMAGE)
            self.assertEqual(self.browser.value("document.querySelectorAll('img').length"), 0)
            self.assertNotEqual(self.browser.value("document.title"), "hurt")

    # ---- what it shows -------------------------------------------------------------------------------------------

    def test_the_overview_says_what_the_fleet_waits_for(self):
        self.start()
        self.browser.wait_text("Rollouts wait for run slots")
        for text in ("All 64 run slots are taken, and 212 jobs wait.", "64 of 64 slots at work", "what work waits for", "Longest at work", "gpu1:8000", "node4"):
            self.browser.wait_text(text)

    def test_a_degraded_service_says_why(self):
        self.start("degraded")
        for text in ("Degraded", "Rollouts wait for engines", "1 of 3 engines are set aside after faults in a row.", "31 without an engine"):
            self.browser.wait_text(text)
        self.show("#/fleet", "connection refused")
        self.browser.wait_text("node3-4703-run (run, node3), 42 s ago: no beat for 10 s; 16 jobs were handed out again")
        self.show("#/failures", "ended as infra")

    def test_an_empty_service_is_told_in_words(self):
        self.start("empty")
        self.browser.wait_text("Work stands still")
        self.browser.wait_text("No init worker is ready.")
        for fragment, text in zip(PANELS, ("Nothing is live", "No rollout is like that", "No rollout is like that", "none is like that yet", "No stream yet", "no values yet", "Nothing has ended yet.", "No engine is registered")):
            self.show(fragment, text)

    def test_why_an_ended_rollout_was_slow(self):
        self.start()
        one = self.first(outcome="ok", traces=1)
        one.update(wait_ms=200, init_ms=300, run_ms=190_000, eval_ms=900)
        self.show("#/rollout/" + one["rollout"], "It ran to its end: the agent said it was done")
        self.browser.wait_text("It took 3 min 11 s.")
        self.browser.wait_text("times what the middle one of its stream takes")
        self.browser.wait_text("by its run: 3 min 10 s where")
        for text in ("tools", "sampling", "engine's queue", "exit 1", "Traces", "Sandbox"):
            self.browser.wait_text(text)
        self.browser.value("document.querySelector('.gantt-area').focus()")
        self.browser.press("ArrowRight")
        self.browser.wait("document.getElementById('tip').innerText.includes('in queues: 200 ms')")

    def test_why_a_rollout_failed(self):
        self.start("degraded")
        one = self.first(outcome="infra")
        self.show("#/rollout/" + one["rollout"], "The service failed it, not the agent: " + one["detail"])
        self.browser.go("#/failures")
        self.browser.wait("document.querySelectorAll('.failure').length > 2 && document.querySelector('.failure .examples a')")
        self.browser.value("document.querySelector('.failure .examples a').click()")
        self.browser.wait("location.hash.startsWith('#/rollout/') && document.querySelector('.one-head h1')")

    def test_tokens_tell_their_id_and_probability(self):
        self.start()
        one = self.first(outcome="ok", traces=2)
        self.show("#/rollout/" + one["rollout"], "A new trace began once")
        self.browser.wait("document.querySelectorAll('.cells i.lp0').length > 5")
        self.browser.value("[...document.querySelectorAll('.segments button')].find((one) => one.textContent === 'Tokens').click()")
        self.browser.wait_text("Trace 2: ")
        self.browser.value("document.querySelector('.turn.assistant').scrollIntoView({block: 'center'})")
        self.browser.hover(".turn.assistant .tok")
        self.browser.wait("/^id \\d+\\s+log-probability -?\\d\\.\\d+, [\\d.e+-]+ %\\s+version v40/.test(document.getElementById('tip').innerText)")

    def test_a_live_rollout_is_heard_as_it_is_said_and_becomes_its_trajectory(self):
        self.start()
        self.server.hold.clear()
        one = next(one for one in self.server.world.live if one["state"] == "leased" and one["stage"] == "run")
        self.show("#/rollout/" + one["rollout"], "It is at work")
        self.browser.wait("document.querySelector('.msg.is-live .text')")
        self.browser.wait_text("bash: pytest -q tests/")
        self.browser.wait_text("All tests pass now. DONE")
        self.browser.wait("document.querySelectorAll('.msg.is-live').length === 0 && document.querySelectorAll('.msg.assistant').length === 5")
        self.server.hold.set()
        self.browser.wait_text("It ran to its end")

    def test_a_rollout_of_a_million_tokens_is_no_trouble(self):
        self.start()
        one = self.first(outcome="ok")
        length = 5000
        turns = [{"role": "assistant" if k % 2 else "prompt", "offset": k * length, "length": length, "finish": "stop", "engine": "", "version": "v1", "prompt_tokens": 1, "cached_tokens": 0, "seconds": 1} for k in range(200)]
        self.server.world.trajectories[one["rollout"]] = {
            "traces": [{"token_ids": [7] * length * 200, "mask": ([0] * length + [1] * length) * 100, "logprobs": [-0.25] * length * 200, "turns": turns, "columns": [], "reason": ""}],
            "messages": [{"role": "assistant", "content": "word " * 1000, "sampled": True} if k % 2 else {"role": "tool", "tool": "bash: ls", "content": "x" * 9000, "exit_status": 0} for k in range(200)]}
        self.show("#/rollout/" + one["rollout"], "100 turns, 500,000 tokens sampled")
        self.browser.wait("document.querySelectorAll('.msg').length === 120")
        self.browser.value("document.querySelector('.msg.assistant .lazy').scrollIntoView()")
        self.browser.wait("document.querySelectorAll('.cells i').length >= 600")
        self.assertLess(self.browser.value("document.querySelectorAll('.cells i').length"), 20_000)
        self.browser.value("[...document.querySelectorAll('.segments button')].find((one) => one.textContent === 'Tokens').click()")
        self.browser.wait("document.querySelectorAll('.turn').length === 200 && document.querySelectorAll('.tok').length > 100")
        self.assertLess(self.browser.value("document.querySelectorAll('.tok').length"), 20_000)
        self.browser.wait("(() => { const last = [...document.querySelectorAll('.turn')].pop(); last.scrollIntoView(); return last.querySelectorAll('.tok').length === 400; })()")

    def test_why_a_queued_rollout_waits(self):
        self.start()
        one = next(one for one in self.server.world.live if one["state"] == "queued")
        self.show("#/rollout/" + one["rollout"], "Why it does not get on: All ")
        self.browser.wait_text("slots of")

    def test_panels_show_groups_streams_and_samplers(self):
        self.start()
        group = self.server.world.ended[-20]["group"]
        self.show("#/group/" + group, "Mean reward")
        self.browser.wait("document.querySelectorAll('.sample-card .chip.is-ok').length > 2")
        self.show("#/stream/train", "3 of 8 groups are ready, 40 are at work, 120 are held.")
        self.browser.wait("document.querySelectorAll('.histogram rect.bin').length > 12 && document.querySelector('.trend-line').getAttribute('d').length > 100")
        self.browser.value("document.querySelector('.histogram .chart-area').focus()")
        self.browser.press("ArrowRight")
        self.browser.wait("/rollouts?, /.test(document.getElementById('tip').innerText)")
        self.browser.go("#/groups?show=same")
        self.browser.wait("[...document.querySelectorAll('.group-mean small')].every((one) => one.textContent === 'all the same') && document.querySelector('.group-mean small')")

    # ---- how it holds out ----------------------------------------------------------------------------------------

    def test_a_deep_link_opens_its_panel(self):
        self.start()
        self.browser.wait(DRAWN)
        one = self.first(outcome="ok")
        for fragment, text in (("rollout/" + one["rollout"], one["rollout"]), ("stream/eval", "Its rollouts"), ("rollouts?view=ended&outcome=agent", "any outcome"), ("group/" + one["group"], "Mean reward"),
                               ("nothing/of/that/name", "No such panel"), ("rollout/nobody-1/0", "Nobody knows this rollout")):
            self.browser.open("about:blank")
            self.browser.open(self.server.url + "#/" + fragment)
            self.browser.wait_text(text)
        self.browser.errors = [error for error in self.browser.errors if "404" not in error]

    def test_filters_search_and_sorting(self):
        self.start("many", live=1500, ended=900)
        self.browser.go("#/rollouts")
        self.browser.wait_text("1,000 rollouts; the oldest 1,000 of 1,500 live ones are looked at")
        self.assertLess(self.browser.value("document.querySelectorAll('.row').length"), 60)
        self.browser.go("#/rollouts?view=ended&outcome=agent&sort=slow")
        self.browser.wait("[...document.querySelectorAll('.row:not([hidden]) .chip')].every((one) => one.textContent === 'agent') && document.querySelectorAll('.row:not([hidden])').length > 5")
        self.browser.value("(() => { const one = document.querySelector('.filters input'); one.value = 'find-leak'; one.dispatchEvent(new Event('input')); })()")
        self.browser.wait("location.hash.includes('q=find-leak') && [...document.querySelectorAll('.row:not([hidden]) .row-name b')].every((one) => one.textContent.startsWith('find-leak'))")

    def test_it_stays_smooth_with_many_rollouts_and_updates(self):
        self.start("many", live=2000, ended=1000)
        self.browser.wait(DRAWN)
        for fragment in ("#/", "#/rollouts", "#/groups", "#/stream/train"):
            self.browser.go(fragment)
            slow = self.browser.value("""new Promise((done) => {
              let worst = 0, last = performance.now();
              const end = last + 2500;
              const step = (at) => { worst = Math.max(worst, at - last); last = at; at < end ? requestAnimationFrame(step) : done(worst); };
              requestAnimationFrame(step); })""")
            for _ in range(30):
                self.server.world.tick()
            self.assertLess(slow, 1500, fragment)  # a frame of a browser that shares two cores with other tests
        self.assertLess(self.browser.value("document.querySelectorAll('*').length"), 6000)

    def test_a_phone_never_scrolls_sideways(self):
        self.start(browser={"width": 360, "height": 780, "phone": True})
        self.browser.wait(DRAWN)
        one = self.first(outcome="ok")
        for fragment in (*PANELS, "#/rollout/" + one["rollout"], "#/group/" + one["group"]):
            self.browser.go(fragment)
            self.browser.wait("document.querySelector('main').innerText.length > 100")
            wide = self.browser.value("[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('svg')).map((one) => one.className).slice(0, 5)")
            self.assertEqual((self.browser.value("document.documentElement.scrollWidth <= innerWidth"), wide if self.browser.value("document.documentElement.scrollWidth > innerWidth") else []), (True, []), fragment)

    def test_colours_follow_the_system_and_the_toggle(self):
        self.start(browser={"dark": True})
        back = "getComputedStyle(document.body).backgroundColor"
        self.browser.wait(DRAWN)
        dark = self.browser.value(back)
        self.browser.colours(False)
        self.browser.wait(f"{back} !== {json.dumps(dark)}")
        for _ in range(2):
            self.browser.value("document.getElementById('theme').click()")
        self.browser.wait(f"{back} === {json.dumps(dark)}")
        self.browser.open(self.server.url)
        self.browser.wait(f"{back} === {json.dumps(dark)}")

    def test_the_keyboard_reaches_what_the_mouse_does(self):
        self.start()
        self.browser.wait(DRAWN)
        self.browser.press("/")
        self.browser.wait("document.activeElement.id === 'find-text'")
        self.browser.press("Escape")
        self.browser.value("document.querySelector('.brand').focus()")
        for _ in range(2):
            self.browser.press("Tab")
        self.browser.wait("document.activeElement.textContent === 'Rollouts'")
        self.assertEqual(self.browser.value("""[...document.querySelectorAll('button, input, select, [role=img], svg.spark')]
            .filter((one) => !one.textContent.trim() && !one.getAttribute('aria-label') && !one.labels?.length).map((one) => one.outerHTML.slice(0, 120))"""), [])

    def test_a_key_is_asked_for_where_one_is_needed(self):
        self.start()
        self.server.world.needs_login = True
        self.browser.open(self.server.url)
        self.browser.wait_text("This service asks for a key")
        enter = "(() => { document.getElementById('login-token').value = %s; document.querySelector('#login-form button').click(); })()"
        self.browser.value(enter % "'wrong'")
        self.browser.wait_text("This token is not known.")
        self.browser.value(enter % "'secret'")
        self.browser.wait(DRAWN)
        self.assertNotIn("secret", " ".join(self.server.asked))
        self.browser.value("document.querySelector('#foot button').click()")
        self.browser.wait_text("This service asks for a key")
        self.browser.errors = [error for error in self.browser.errors if "401" not in error]

    def test_it_comes_back_by_itself_after_its_server_was_killed(self):
        port = free_ports(1)
        player = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "player.py"), "busy", str(port)]

        def start():
            process = subprocess.Popen(player, stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.addCleanup(process.stdout.close)
            return process, process.stdout.readline().strip()

        first, url = start()
        self.browser = Browser()
        self.addCleanup(self.browser.__exit__)
        self.browser.open(url)
        self.browser.wait(DRAWN)
        first.send_signal(signal.SIGKILL)
        self.browser.wait("document.querySelector('.link.is-away')")
        start()
        self.browser.wait(DRAWN, 30)
        ended = self.browser.value("document.querySelectorAll('.brief-row .stack').length")
        self.assertGreater(ended, 3)
        wait_until(lambda: self.browser.value("document.querySelector('.link').innerText") == "live", 10, "the page says that it is live")
        self.browser.errors = [error for error in self.browser.errors if "ERR_CONNECTION" not in error and "ERR_INCOMPLETE" not in error and "ERR_EMPTY" not in error]


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=1)
