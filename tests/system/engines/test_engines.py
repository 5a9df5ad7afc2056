"""Engines that nobody calls are probed: what dies idle, comes back, or says that its cache is full."""
import os
import sys
import tempfile
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, chat, script  # noqa: E402

SOON = {"engine_probe_interval": "300ms", "overload": "1000ms", "retry_first": "50ms", "retry_last": "500ms", "infra_budget": 1, "breaker_faults": 100}
TURNS = 10


class Engines(Case):
    def start(self, count, rules=None, **more):
        fleet = Fleet(slots=16, settings=SOON)
        for k in range(count):
            fleet.add_engine(dict(rules or script(), **more), name=f"engine-{k}", host=f"127.0.0.{k + 1}")
        self.enter(fleet)
        return fleet, self.client(fleet, timeout=60)

    def wait_state(self, fleet, url, state):
        return fleet.wait_for(lambda status: [e for e in status["engines"] if e["url"] == url and e["state"] == state], 30,
                              f"{url} {state}")[0]

    def test_an_engine_that_died_while_idle_gets_no_rollout_and_is_used_again_once_it_answers(self):
        fleet, client = self.start(2)
        victim, other = fleet["engine-0"], fleet["engine-1"]
        victim.kill()
        engine = self.wait_state(fleet, victim.url, "silent")
        self.assertIn(victim.url + "/health", engine["error"])
        self.assertIn("1 of 2 engines do not answer", fleet.run("status", check=False).stdout)
        self.assertIn("silent: " + victim.url, fleet.run("engine", "list").stdout)
        client.submit([chat(k) for k in range(8)], stream="s")
        seen = self.read(client, "s", 8)
        self.assert_all(seen)  # with a budget of one fault
        self.assertEqual({t.engine for t in seen}, {other.url})
        self.assertEqual(fleet.status()["counters"]["infra"], 0)
        other.kill()
        self.wait_state(fleet, other.url, "silent")
        client.submit([chat(k) for k in range(8, 12)], stream="s")
        fleet.wait_for(lambda status: status["stages"]["run"]["no_engine"] == 4, 30, "rollouts that wait for an engine")
        victim.start()
        seen = self.read(client, "s", 4, from_seq=9)
        self.assert_all(seen)
        self.assertEqual({t.engine for t in seen}, {victim.url})
        self.assertEqual(fleet.status()["counters"]["infra"], 0)
        other.start()
        self.wait_state(fleet, other.url, "healthy")

    def test_an_engine_that_still_loads_its_model_is_waited_for(self):
        loading = {"path": "/health", "fault": "503", "times": 4}
        fleet, client = self.start(1, script(0, loading))
        self.assertIn("503", self.wait_state(fleet, fleet["engine-0"].url, "silent")["error"])
        client.submit([chat(0)], stream="s")
        self.assert_all(self.read(client, "s", 1))

    def test_an_engines_password_is_used_by_run_workers_and_shown_nowhere(self):
        fleet = Fleet(settings=SOON)
        engine = fleet.add_engine(dict(script(), credentials="rollouts:top/SECRET"), name="engine")
        base, engine.url = engine.url, engine.url.replace("//", "//rollouts:top%2FSECRET@")
        said = []

        def tell(*arguments):
            done = fleet.run(*arguments, check=False)
            said.append(done.stdout + done.stderr)
            return done
        self.enter(fleet)  # adds it by that name
        client = self.client(fleet, timeout=60)
        client.submit([chat(k) for k in range(2)], stream="s")
        seen = self.read(client, "s", 2)
        self.assert_all(seen)
        self.assertEqual({t.engine for t in seen}, {base})
        said += [repr(vars(t)) for t in seen]
        fleet["run-1"].kill()
        fleet["run-1"].start()
        fleet.broker.kill()
        fleet.broker.start()  # both have it from the ledger
        client.submit([chat(k) for k in range(2, 4)], stream="s")
        self.assert_all(self.read(client, "s", 2, from_seq=3))
        self.assertEqual(tell("engine", "check", engine.url).returncode, 0)
        tell("engine", "add", base)  # as it was
        tell("engine", "add", engine.url.replace("SECRET", "SECRET2"))  # which is wrong
        client.submit([chat(4)], stream="s")
        t, = self.read(client, "s", 1, from_seq=5)
        self.assertEqual(t.outcome, "infra")
        self.assertIn("wants credentials", t.detail)
        said.append(repr(vars(t)))
        for arguments in (("status",), ("status", "--json"), ("engine", "list"), ("engine", "drain", engine.url),
                          ("engine", "add", engine.url.replace("26", "26:")), ("engine", "remove", engine.url)):
            tell(*arguments)
        said += [fleet[name].said(whole=True) for name in ("broker", "run-1")]
        self.assertIn(base, "".join(said))
        for text in said:
            self.assertNotIn("SECRET", text)

    def submit_groups(self, client, stream, groups, first=0, **more):
        for k in range(first, first + groups):
            client.submit([chat(k, **more)], stream=stream, samples=4, group=lambda task, k=k: f"{stream}-{k}")

    def assert_unmixed(self, seen):
        """Each group has one tokenizer and one template."""
        groups = {}
        for t in seen:
            for trace in t.traces:
                groups.setdefault(t.group, set()).add((trace.tokenizer_digest, trace.template_digest))
        self.assertEqual({len(identities) for identities in groups.values()}, {1}, groups)

    def test_an_engine_with_another_tokenizer_is_refused_unless_it_is_named_as_another_policys(self):
        fleet, client = self.start(1, script(50))
        first = fleet["engine-0"]
        for name, other in (("tokenizer", {"other_tokenizer": True}), ("template", {"template": "qwen3"})):
            engine = fleet.add_engine(dict(script(50), **other), name=name)
            engine.start()
            done = fleet.run("engine", "add", engine.url, check=False)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(f"{engine.url} gets no rollouts: its {'tokenizer' if name == 'tokenizer' else 'chat template'} "
                          "is not the policy's (default)", done.stderr)
            self.assertIn("--policy NAME", done.stderr)
            self.assertIn("other: its", fleet.run("engine", "list").stdout)
            status = fleet.status()
            self.assertEqual(status["health"], "degraded")
            self.assertIn("1 of 2 engines serve another tokenizer or chat template than their policy", status["reasons"])
            self.submit_groups(client, name, 6)
            seen = self.read(client, name, 24)
            self.assert_all(seen)
            self.assertEqual({t.engine for t in seen}, {first.url})
            self.assert_unmixed(seen)
            fleet.broker.kill()
            fleet.broker.start()  # it knows both, and what each serves
            self.wait_state(fleet, engine.url, "other")
            fleet.run("engine", "add", engine.url, "--policy", name)
            self.submit_groups(client, name + "-own", 3, first=100, policy=name)
            self.submit_groups(client, name + "-usual", 3, first=200)
            own, usual = self.read(client, name + "-own", 12), self.read(client, name + "-usual", 12)
            self.assert_all(own + usual)
            self.assertEqual({t.engine for t in own}, {engine.url})
            self.assertEqual({t.engine for t in usual}, {first.url})
            self.assertEqual(fleet.status()["reasons"], [])
            fleet.run("engine", "remove", engine.url)
            engine.end()
        self.assertEqual(fleet.status()["counters"]["infra"], 0)
        with self.assertRaisesRegex(Exception, "no engine of the policy 'tokenizer' is registered"):
            self.submit_groups(client, "late", 1, policy="tokenizer")

    def test_a_group_that_has_results_takes_none_of_another_template(self):
        """Its engine comes back as another in the middle of it, and the broker is killed meanwhile."""
        slow = {"path": "/completion", "delay_ms": 2000, "call": 2, "reply": "It is \\boxed{2}."}
        fleet = Fleet(slots=1, settings=dict(SOON, infra_budget=8))
        engine = fleet.add_engine(script(50, slow), name="engine")
        self.enter(fleet)
        client = self.client(fleet, timeout=60)
        client.submit([chat(0)], stream="s", samples=4)
        fleet.wait_for(lambda status: status["streams"][0]["head"] == 1, 30, "the first of the group")
        engine.kill()
        fleet.write_script("engine", dict(script(50), template="qwen3"))
        engine.start()
        self.wait_state(fleet, engine.url, "other")
        self.assertIn("its chat template is not the policy's (default)", fleet.run("status", check=False).stdout)
        fleet.broker.kill()
        fleet.broker.start()
        self.wait_state(fleet, engine.url, "other")
        fleet.wait_for(lambda status: status["stages"]["run"]["no_engine"] == 3, 30, "the others to wait")
        engine.kill()
        fleet.write_script("engine", script(50))
        engine.start()
        seen = self.read(client, "s", 4)
        self.assert_all(seen)
        self.assert_unmixed(seen)
        engine.kill()  # nothing is bound to it any more: it may be another from now on
        fleet.write_script("engine", dict(script(50), template="qwen3"))
        engine.start()
        old = seen[0].traces[0].template_digest
        fleet.wait_for(lambda status: status["engines"][0]["template_digest"] != old, 30, "its new template known")
        self.assertEqual(fleet.status()["engines"][0]["state"], "healthy")
        client.submit([chat(1)], stream="s", samples=4)
        more = self.read(client, "s", 4, from_seq=5)
        self.assert_all(more)
        self.assert_unmixed(more)
        self.assertNotEqual(more[0].traces[0].template_digest, old)

    def gauge(self, part):
        """A file that tells an engine how full its cache is, and what says it anew."""
        path = os.path.join(self.enter(tempfile.TemporaryDirectory()), "cache")

        def fill(part):
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(str(part))
            os.replace(path + ".new", path)
        fill(part)
        return path, fill

    def test_an_engine_whose_cache_is_full_gets_fewer_rollouts(self):
        path, fill = self.gauge(0.5)
        fleet, client = self.start(1, {"rules": [{"delay_ms": 20000, "reply": "ok"}]}, dialect="vllm", cache_path=path)
        client.submit([chat(k, limits={"run_s": 60}) for k in range(16)], stream="s")
        self.wait_leased(fleet, "run", 16)
        fleet.wait_for(lambda status: status["engines"][0].get("cache_permille") == 500, 30, "its cache known")
        self.assertEqual(fleet.status()["engines"][0]["limit"], 0)
        fill(1)
        engine = fleet.wait_for(lambda status: status["engines"][0]["limit"] and status["engines"][0], 30, "a limit")
        self.assertEqual((engine["limit"], engine["cache_permille"]), (11, 1000))  # 16 at 700 of 1000
        self.assertIn("16 rollouts of 11", fleet.run("engine", "list").stdout)
        self.assertIn("cache 100 %", fleet.run("engine", "list").stdout)
        fill(0.1)
        self.assertEqual(client.cancel(stream="s"), 16)

    def migrate(self, **other):
        """Six rollouts of many turns on an engine that is overloaded; then another one comes."""
        path, fill = self.gauge(1)
        blocks = ["```bash\necho turn >>turns\n```\n"] * TURNS + ["```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```\n"]
        rules = {"rules": [{"path": "/completion", "delay_ms": 700, "replies": blocks}], "cache_path": path}
        fleet = Fleet(slots=6, settings=SOON)
        full = fleet.add_engine(rules, name="full", host="127.0.0.1")
        self.enter(fleet)
        empty = fleet.add_engine(dict(rules, cache_path=self.gauge(0.1)[0], **other), name="empty", host="127.0.0.2")
        empty.start()
        client = self.client(fleet, timeout=60)
        client.submit([{"task": f"t-{k}", "prompt": f"Please count, {k}.",
                        "agent": {"kind": "bash", "max_turns": TURNS + 2},
                        "eval": {"kind": "command", "command": f"test $(wc -l <turns) = {TURNS}"}} for k in range(6)],
                      stream="s")
        self.wait_leased(fleet, "run", 6)
        fleet.run("engine", "add", empty.url)
        return fleet, full.url, empty.url, self.read(client, "s", 6, 120)

    def test_rollouts_leave_an_overloaded_engine_between_two_turns_and_go_on_id_for_id(self):
        fleet, full, empty, seen = self.migrate()
        self.assert_all(seen)
        migrated = 0
        for t in seen:
            trace, = t.traces  # the same ids go on
            turns = [turn for turn in trace.turns if turn.role == "assistant"]
            self.assertEqual(len(turns), TURNS + 1)
            engines = [turn.engine for turn in turns]
            self.assertEqual(sorted(engines, key=[full, empty].index), engines, "to and fro")
            migrated += empty in engines
            self.assertEqual(t.engine, engines[-1])
            for turn in turns:
                self.assertEqual(turn.prompt_tokens, turn.offset)
        self.assertGreater(migrated, 0)
        self.assertEqual(fleet.status()["counters"]["migrated"], migrated)
        self.assertEqual(fleet.status()["counters"]["infra"], 0)

    def test_a_rollout_stays_where_it_is_when_the_other_engine_serves_something_else(self):
        fleet, full, _, seen = self.migrate(model="other.gguf")
        self.assert_all(seen)
        self.assertEqual({turn.engine for t in seen for turn in t.traces[0].turns if turn.role == "assistant"}, {full})
        self.assertEqual(fleet.status()["counters"]["migrated"], 0)


if __name__ == "__main__":
    unittest.main()
