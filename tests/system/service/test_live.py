"""A rollout watched while it works: what is said and sampled, tools, tokens, times; whoever comes late, stops, or breaks."""
import asyncio
import json
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "sessions"))
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "harnesses"))
sys.path.insert(0, os.path.join(__file__.rsplit("/", 4)[0], "client", "python"))
from fleet import Fleet  # noqa: E402
from harness import SLUICE, Engine, Service, wait_until  # noqa: E402
from loops import task as harness_task  # noqa: E402
from session_world import SCRIPT as SESSION_SCRIPT, World, chat, user  # noqa: E402
from sluice import AsyncClient, Client, Refused  # noqa: E402

COUNT = "I count: one two three four five six seven eight nine ten."
LOOK = COUNT + "\n```bash\nsleep 0.5; echo hello; exit 3\n```"
WRITE = "I write a lot.\n```bash\nseq 9000; echo the end\n```"
END = "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"
SCRIPT = {"dialect": "openai", "template": "qwen", "context": 1 << 18, "rules": [{"replies": [LOOK, WRITE, END], "token_ms": 10}]}
TASK = {"task": "one", "prompt": "Count, please.", "agent": {"kind": "bash", "max_turns": 6}, "limits": {"output_bytes": 30000},
        "eval": {"kind": "command", "command": "sleep 0.3"}}


class Watcher(threading.Thread):
    """One that watches in a thread of its own; `events` grows."""

    def __init__(self, url, rollout):
        super().__init__(daemon=True)
        self.client, self.rollout, self.events, self.error = Client(url), rollout, [], None
        self.start()

    def run(self):
        try:
            for event in self.client.watch(self.rollout):
                self.events.append(event)
        except BaseException as error:
            self.error = error
        finally:
            self.client.close()

    def finish(self, seconds=60):
        self.join(seconds)
        assert not self.is_alive(), f"still watching: {self.events[-3:]}"
        if self.error:
            raise self.error
        return self.events

    def has(self, kind, **fields):
        return any(event["event"] == kind and all(event.get(k) == v for k, v in fields.items()) for event in list(self.events))


def of(events, kind, stage="run"):
    """Those of that kind since the part began anew the last time."""
    part = [event for event in events if event.get("stage") == stage and "number" in event]
    starts = [i for i, event in enumerate(part) if event["number"] == 1]
    return [event for event in part[starts[-1] if starts else 0:] if event["event"] == kind]


def single(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def tokens_of(events):
    """Of each turn (its ids, its log-probabilities)."""
    turns = {}
    for event in of(events, "tokens"):
        ids, logprobs = turns.setdefault(event["turn"], ([], []))
        assert event["offset"] == len(ids), event
        ids += event["ids"]
        logprobs += [single(value) for value in event.get("logprobs", [])]
        assert event["mask"] == ("logprobs" in event)
    return turns


class Live(unittest.TestCase):
    def check_told(self, events, t):
        """All that the trajectory has was told: messages, traces, turns, tokens."""
        messages = of(events, "message")
        self.assertEqual([m["index"] for m in messages], list(range(len(t.messages))))
        for told, is_so in zip(messages, t.messages):
            self.assertEqual((told["role"], told.get("tool"), told["sampled"]), (is_so.role, is_so.tool, is_so.sampled))
            if "left_out" in told:
                self.assertTrue(is_so.content.startswith(told["content"][:4000]) and is_so.content.endswith(told["content"][-2000:]))
                self.assertLess(len(told["content"]), 13000)
            else:
                self.assertEqual(told["content"], is_so.content)
        turns = [(trace, turn) for trace in t.traces for turn in trace.turns]
        told = of(events, "turn")
        self.assertEqual([(turn["turn"], turn["role"], turn["tokens"]) for turn in told],
                         [(i, turn.role, turn.length) for i, (_, turn) in enumerate(turns)])
        self.assertEqual([event["reason"] for event in of(events, "trace")], [trace.reason for trace in t.traces])
        tokens = tokens_of(events)
        for i, (trace, turn) in enumerate(turns):
            ids = list(trace.token_ids[turn.offset:turn.offset + turn.length])
            most = 16384 if turn.role == "assistant" else 4096
            self.assertEqual(tokens.get(i, ([],))[0], ids[:most])
            if turn.role == "assistant":
                self.assertEqual(tokens[i][1], [float(p) for p in trace.logprobs[turn.offset:turn.offset + turn.length]])
                self.assertEqual((told[i]["finish"], told[i]["prompt_tokens"]), (turn.finish, turn.prompt_tokens))

    def test_all_there_is_is_told_as_it_happens_and_tokens_are_the_trajectorys(self):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url]) as service, Client(service.url) as client:
            group, = client.submit([TASK], stream="train", samples=1)
            watcher = Watcher(service.url, f"{group}/0")
            events = watcher.finish()
            t = client.get(f"{group}/0")
            self.assertEqual(t.outcome, "ok", t.detail)
            self.check_told(events, t)
            said = "".join(event["text"] for event in of(events, "delta") if event["sampling"] == 1)
            self.assertTrue(LOOK.startswith(said) and len(said) > len(COUNT) / 2, said)
            self.assertGreater(sum(event["sampling"] == 1 for event in of(events, "delta")), 2)
            order = [(e["event"], e.get("sampling")) for e in events if e["event"] in ("delta", "sampled")]
            self.assertLess(max(i for i, e in enumerate(order) if e == ("delta", 1)), order.index(("sampled", 1)))
            tool, = [m for m in of(events, "message") if "echo hello" in (m.get("tool") or "")]
            self.assertIn("hello", tool["content"])
            self.assertTrue(any(m.get("left_out") for m in of(events, "message")))
            phases = [(event["phase"], event.get("of", "")) for event in events if event["event"] == "phase"]
            for phase in (("agent", ""), ("sampling", ""), ("tool", "bash"), ("packing", ""), ("evaluating", "command")):
                self.assertIn(phase, phases)
            times = [event["ms"] for event in of(events, "phase")]
            self.assertEqual(times, sorted(times))
            spans = {}
            run = of(events, "phase") + of(events, "end")
            for phase, after in zip(run, run[1:]):
                spans[phase["phase"]] = spans.get(phase["phase"], 0) + after["ms"] - phase["ms"]
            self.assertGreater(spans["tool"], 450)
            self.assertGreater(spans["sampling"], 10 * len(LOOK) / 2)
            self.assertAlmostEqual(sum(spans.values()), t.run_ms, delta=500)
            self.assertEqual([(e["stage"], e["outcome"]) for e in events if e["event"] == "end" and e["stage"] != "init"],
                             [("run", "ok"), ("eval", "ok")])
            self.assertEqual(events[-1], {"rollout": f"{group}/0", "event": "ended"})
            self.assertEqual([e for e in events if e["event"] == "dropped"], [])
            self.assertEqual(list(client.watch(f"{group}/0")), [events[-1]])
            with self.assertRaises(Refused) as caught:
                list(client.watch("nobody/0"))
            self.assertEqual(caught.exception.reason, "unknown-rollout")

    def test_who_comes_late_is_told_all_and_who_was_there_sees_it_once_more_from_number_1(self):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url]) as service, Client(service.url) as client:
            group, = client.submit([TASK], stream="train", samples=1)
            first = Watcher(service.url, f"{group}/0")
            wait_until(lambda: first.has("phase", phase="tool"), 30, "the first tool")
            late = Watcher(service.url, f"{group}/0")
            for watcher in (first, late):
                self.check_told(watcher.finish(), client.get(f"{group}/0"))
            begun = [e["number"] for e in late.events if e.get("stage") == "run" and "number" in e][0]
            self.assertEqual(begun, 1)
            self.assertEqual(of(late.events, "times")[0]["seconds"], {})
            phases = [event["phase"] for event in of(late.events, "phase")]
            self.assertEqual(phases[:4], ["sandbox", "agent", "sampling", "agent"])
            self.assertGreater(sum(e.get("number") == 1 for e in first.events if e.get("stage") == "run"), 1)

    def test_who_comes_in_mid_turn_is_told_what_was_said_of_it(self):
        script = dict(SCRIPT, rules=[{"replies": [LOOK, END], "token_ms": 40}])
        with Engine(script) as engine, Service(engines=[engine.url]) as service, Client(service.url) as client:
            group, = client.submit([TASK], stream="train", samples=1)
            first = Watcher(service.url, f"{group}/0")
            wait_until(lambda: sum(e["event"] == "delta" for e in list(first.events)) > 3, 30, "some of the first turn")
            late = Watcher(service.url, f"{group}/0")
            wait_until(lambda: late.has("delta"), 30, "the same, told again")
            self.assertTrue(next(e for e in late.events if e["event"] == "delta")["text"].startswith("I count: "))
            first.finish()
            late.finish()

    def test_without_watchers_nothing_is_sent_and_with_one_only_that_rollout(self):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url]) as service, Client(service.url) as client:
            group, = client.submit([TASK], stream="train", samples=3)
            for _ in client.trajectories("train", until_idle=True):
                pass
            self.assertEqual(service.status()["counters"]["live"], 0)
            other, = client.submit([dict(TASK, task="two")], stream="train", samples=3)
            events = Watcher(service.url, f"{other}/1").finish()
            self.assertEqual({event["rollout"] for event in events}, {f"{other}/1"})
            self.assertGreater(service.status()["counters"]["live"], 0)
            self.assertEqual(service.status()["counters"]["live_dropped"], 0)

    def test_a_stream_that_fails_is_taken_back_and_the_turn_is_what_it_would_have_been(self):
        for name, more in (("cut", {"cut_after": 40, "if": "hello", "times": 1}), ("no streams", {})):
            script = dict(SCRIPT, streams=name == "cut", rules=[dict({"replies": [LOOK, WRITE, END], "token_ms": 10}, **more),
                                                                {"replies": [LOOK, WRITE, END], "token_ms": 10}])
            with self.subTest(name), Engine(script) as engine, Service(engines=[engine.url]) as service, Client(service.url) as client:
                group, = client.submit([TASK], stream="train", samples=1)
                watcher = Watcher(service.url, f"{group}/0")
                events = watcher.finish()
                t = client.get(f"{group}/0")
                self.assertEqual((t.outcome, t.run_attempt), ("ok", 1), t.detail)
                self.assertEqual([m.content for m in t.messages if m.sampled], [LOOK, WRITE, END])
                self.check_told(events, t)
                self.assertEqual(any(e["event"] == "taken-back" for e in events), name == "cut")

    def test_a_session_is_seen_too(self):
        with World(dict(SESSION_SCRIPT, dialect="openai")) as world:
            with world.session(stream="s") as s:
                watcher = Watcher(world.service.url, s.rollout)
                wait_until(lambda: watcher.has("phase", phase="waiting"), 30, "it waits for its loop")
                messages = [user("go")]
                messages += [chat(s.url, messages), user("on")]
                chat(s.url, messages)
                chat(s.url, [user("something else")])
                wait_until(lambda: len(of(watcher.events, "turn")) == 6, 30, "six turns")
                turns = of(watcher.events, "turn")
                self.assertEqual([turn["after"] for turn in turns], [None, 0, 1, 2, None, 4])
                self.assertEqual([turn["trace"] for turn in turns], [0, 0, 0, 0, 1, 1])
                self.assertIn("branch", of(watcher.events, "trace")[1]["reason"])
                s.end(reward=1.0)
            t = s.trajectory()
            self.check_told(watcher.finish(), t)

    def test_a_harness_is_seen_too(self):
        loop = """
first = chat([user("count")])
chat([user("count"), first, user("more")])
chat([user("other")])
"""
        script = dict(SCRIPT, rules=[{"if": "count", "reply": COUNT, "token_ms": 10}, {"reply": "fine"}])
        with Engine(script) as engine, Service(engines=[engine.url]) as service, Client(service.url) as client:
            service.run("policy", "pause", "--bound", "60s")
            group, = client.submit([harness_task("one", loop)], stream="train", samples=1)
            watcher = Watcher(service.url, f"{group}/0")
            wait_until(lambda: watcher.events, 30, "it is watched before it runs")
            service.run("policy", "resume")
            events = watcher.finish()
            self.check_told(events, client.get(f"{group}/0"))
            self.assertIn("I count: ", "".join(event["text"] for event in events if event["event"] == "delta"))
            phases = [event["phase"] for event in of(events, "phase")]
            self.assertEqual(phases.count("sampling"), 3)

    def test_an_async_client_watches_several_at_once(self):
        async def watch(client, rollout):
            return [event async for event in client.watch(rollout)]

        async def all_of(url, rollouts):
            async with AsyncClient(url) as client:
                return await asyncio.gather(*(watch(client, rollout) for rollout in rollouts))

        with Engine(SCRIPT) as engine, Service(engines=[engine.url]) as service, Client(service.url) as client:
            group, = client.submit([TASK], stream="train", samples=3)
            heard = asyncio.run(all_of(service.url, [f"{group}/{k}" for k in range(3)]))
            for k, events in enumerate(heard):
                self.assertEqual({event["rollout"] for event in events}, {f"{group}/{k}"})
                self.check_told(events, client.get(f"{group}/{k}"))

    def test_who_is_stopped_costs_nobody_and_is_told_again_when_it_goes_on(self):
        script = dict(SCRIPT, rules=[{"replies": [WRITE] * 12 + [END], "token_ms": 25}])
        with Engine(script) as engine, Service(engines=[engine.url]) as service, Client(service.url) as client:
            task = dict(TASK, agent={"kind": "bash", "max_turns": 20})
            group, = client.submit([task], stream="train", samples=1)
            stopped = subprocess.Popen([SLUICE, "logs", f"{group}/0", "--follow", "--json"], env=service.environment,
                                       stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
            watcher = Watcher(service.url, f"{group}/0")
            wait_until(lambda: watcher.has("phase", phase="tool"), 60, "the first tool")
            stopped.send_signal(signal.SIGSTOP)
            broker, = service.processes("sluice-broker")
            before = resident_kib(broker)
            events = watcher.finish(120)
            self.assertLess(resident_kib(broker) - before, 20000)
            stopped.send_signal(signal.SIGCONT)
            said, _ = stopped.communicate(timeout=60)
            self.assertEqual(stopped.returncode, 0)
            t = client.get(f"{group}/0")
            self.check_told(events, t)
            self.assertEqual(json.loads(said.splitlines()[-1])["event"], "ended")

    def test_watching_goes_on_when_the_broker_was_killed(self):
        script = dict(SCRIPT, rules=[{"replies": [LOOK, WRITE, LOOK, END], "token_ms": 25}])
        fleet = Fleet()
        fleet.add_engine(script)
        with fleet, Client(fleet.url, allow_plaintext=True, timeout=30) as client:
            group, = client.submit([TASK], stream="train", samples=1)
            watcher = Watcher(fleet.url, f"{group}/0")
            wait_until(lambda: watcher.has("phase", phase="tool"), 60, "the first tool")
            fleet.broker.kill()
            heard = len(watcher.events)
            fleet.broker.start()
            wait_until(lambda: any(e.get("number") == 1 for e in watcher.events[heard:]), 30, "it is told anew")
            events = watcher.finish(120)
            t = client.get(f"{group}/0")
            self.assertEqual(t.outcome, "ok", t.detail)
            self.check_told(events, t)

    def test_the_command_prints_what_is_said_and_how_it_ended(self):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url]) as service, Client(service.url) as client:
            group, = client.submit([TASK], stream="train", samples=1)
            said = service.run("logs", f"{group}/0", "--follow").stdout
            for words in (COUNT, "  | hello", "-- turn 1: ", "tool bash", "run ended: ok", "eval ended: ok", "reward    1"):
                self.assertIn(words, said)
            self.assertNotIn("\x1b", said)
            self.assertEqual(said.count(COUNT), 1)
            after = service.run("logs", f"{group}/0").stdout
            self.assertIn("  | " + COUNT, after)
            self.assertIn("outcome   ok", after)
            lines = [json.loads(line) for line in service.run("logs", f"{group}/0", "--json").stdout.splitlines()]
            self.assertEqual({line["event"] for line in lines}, {"message", "trace", "turn", "tokens", "ended"})
            self.assertEqual((lines[-1]["outcome"], lines[-1]["reward"]), ("ok", 1.0))
            self.assertEqual(service.run("logs", "nobody/0", check=False).returncode, 1)
            self.assertEqual(service.run("logs", "nobody", check=False).returncode, 2)


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as text:
        return int(re.search(r"VmRSS:\s+(\d+)", text.read()).group(1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=2)
