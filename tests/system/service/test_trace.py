"""`sluice trace` of a real service: where time went, once each (O6); and collectors that are ill (O7)."""
import collections
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, chat, noop, sandbox  # noqa: E402
from harness import SLUICE, wait_until  # noqa: E402

COMMAND = "```bash\nls\n```"
SUBMIT = "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"


def talk(number):
    """Two turns and a tool call between them, and a third that ends it."""
    return {"task": f"talk-{number}", "prompt": "Please look.", "agent": {"kind": "bash", "max_turns": 3},
            "eval": {"kind": "command", "command": "true"}}


class Collector:
    """Takes OTLP, or answers `status`, or hangs; `spans` is what it took."""

    def __init__(self, status=200, hangs=False, retry_after=None):
        self.spans, self.asked, self.status = [], 0, status
        self.batches = []
        self.free = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked += 1
                if hangs:
                    outer.free.wait(60)
                self.send_response(outer.status)
                if retry_after:
                    self.send_header("Retry-After", retry_after)
                self.send_header("Content-Length", "0")
                self.end_headers()
                if outer.status == 200 and not hangs:
                    outer.take(self.path, self.headers, json.loads(body))

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def take(self, path, headers, body):
        assert (path, headers["Content-Type"]) == ("/v1/traces", "application/json")
        (resource,) = body["resourceSpans"]
        (scope,) = resource["scopeSpans"]
        self.resource, self.schema = attributes(resource["resource"]), scope["schemaUrl"]
        self.batches.append(len(scope["spans"]))
        self.spans += scope["spans"]

    def close(self):
        self.free.set()
        self.server.shutdown()
        self.server.server_close()


def attributes(of):
    """{key: value} of OTLP's list; numbers as they are."""
    values = {}
    for item in of["attributes"]:
        ((kind, value),) = item["value"].items()
        values[item["key"]] = int(value) if kind == "intValue" else value
    return values


class TraceCase(Case):
    def service(self, count, **fleet):
        """A fleet that has ended `count` rollouts of stream train; of them some talk, others chat."""
        fleet = self.fleet = Fleet(slots=8, **fleet)
        fleet.add_engine({"rules": [{"path": "/completion", "delay_ms": 3, "replies": [COMMAND, COMMAND, SUBMIT]}]})
        self.enter(fleet)
        client = self.client(fleet, timeout=60)
        client.submit([talk(k) for k in range(3)] + [sandbox(0)], stream="train", samples=3)
        client.submit([chat(k) for k in range((count - 12) // 4)], stream="train", samples=4)
        return client, self.read(client, "train", count, seconds=300)

    def trace(self, *arguments, check=True):
        return self.fleet.run("trace", *arguments, check=check)


class Traces(TraceCase):
    def test_o6_each_call_once_and_the_sums_are_the_records(self):
        _, read = self.service(1000)
        path = os.path.join(self.fleet.root, "trace.json")
        self.trace("train", "--output", path)
        self.assertFalse(os.path.exists(path + ".part"))
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        self.check_calls(events, read)
        self.check_lanes(events)
        self.check_stages(events, read)

    def of_rollouts(self, events, category):
        found = collections.defaultdict(list)
        for event in events:
            if event.get("cat") == category:
                found[event["args"]["rollout"]].append(event)
        return found

    def check_calls(self, events, read):
        engines, tools = self.of_rollouts(events, "engine"), self.of_rollouts(events, "tool")
        for t in read:
            turns = [turn for trace in t.traces for turn in trace.turns]
            sampled = [turn for turn in turns if turn.role == "assistant"]
            called = [message for message in t.messages if message.tool]
            self.assertEqual(len(engines[t.rollout]), len(sampled), t)
            self.assertLess(abs(sum(e["dur"] for e in engines[t.rollout]) - sum(u.seconds for u in sampled) * 1e6), len(sampled) + 1)
            self.assertEqual([e["args"]["prompt_tokens"] for e in engines[t.rollout]], [u.prompt_tokens for u in sampled])
            self.assertEqual(sum(e["args"]["calls"] for e in tools[t.rollout]), len(called), t)
            told = sum(turn.seconds for turn in turns if turn.role != "assistant")
            self.assertLess(abs(sum(e["dur"] for e in tools[t.rollout]) - told * 1e6), len(turns) + 1)
            if t.task.startswith("talk"):
                self.assertEqual([e["name"] for e in tools[t.rollout]], ["bash"] * 3)
                self.assertEqual(len(sampled), 3)

    def check_lanes(self, events):
        """In a lane spans stand beside or inside each other."""
        lanes = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                lanes[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
        self.assertGreater(len(lanes), 10)
        for lane, spans in lanes.items():
            open_ends = []
            for start, minus in sorted(spans):
                while open_ends and open_ends[-1] <= start:
                    open_ends.pop()
                if open_ends:
                    self.assertLessEqual(start - minus, open_ends[-1], lane)
                open_ends.append(start - minus)

    def check_stages(self, events, read):
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(list(names.values()), ["rollouts", "queues", "init", "run", "eval", "conversations side by side"])
        for stage in ("run", "eval"):
            of = self.of_rollouts(events, stage)
            for t in read:
                milliseconds = getattr(t, stage + "_ms")
                if milliseconds:
                    (event,) = of[t.rollout]
                    self.assertLessEqual(abs(event["dur"] - milliseconds * 1000), 1000)
        whole = self.of_rollouts(events, "rollout")
        for t in read:
            (event,) = whole[t.rollout]
            self.assertEqual(event["ts"] + event["dur"], t.ended_ms * 1000)
        self.assertEqual({e["args"]["rollout"].split("/")[0] for e in events if e.get("cat") == "init"},
                         {t.group for t in read if t.init_ms})

    def test_o6_a_rollout_a_group_and_part_of_a_stream(self):
        _, read = self.service(24)
        talked = next(t for t in read if t.task == "talk-1")
        one = json.loads(self.trace(talked.rollout).stdout)["traceEvents"]
        self.assertEqual({e["args"]["rollout"] for e in one if e["ph"] == "X"}, {talked.rollout})
        group = json.loads(self.trace(talked.group).stdout)["traceEvents"]
        self.assertEqual(len(self.of_rollouts(group, "rollout")), 3)
        part = json.loads(self.trace("train", "--from", "20").stdout)["traceEvents"]
        self.assertEqual(sorted(e["args"]["seq"] for e in part if e.get("cat") == "rollout"), list(range(20, 25)))
        lines = self.trace(talked.rollout, "--format", "otlp").stdout.splitlines()
        self.assertEqual(len(lines), 1)
        self.assertEqual(len(json.loads(lines[0])["resourceSpans"][0]["scopeSpans"][0]["spans"]),
                         len([e for e in one if e["ph"] == "X"]))

    def test_o6_a_file_that_follows_is_whole_when_it_is_told_to_end(self):
        client, _ = self.service(12)
        path = os.path.join(self.fleet.root, "follow.json")
        process = subprocess.Popen([SLUICE, "trace", "train", "--follow", "--output", path], env=self.fleet.environment)

        def written():
            if not os.path.exists(path + ".part"):
                return 0
            with open(path + ".part", encoding="utf-8") as file:
                return file.read().count('"cat":"rollout"')
        wait_until(lambda: written() == 12, 60, "what was there is written")
        client.submit([noop(0)], stream="train", samples=3)
        wait_until(lambda: written() == 15, 60, "what came is written")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(len(self.of_rollouts(json.load(file)["traceEvents"], "rollout")), 15)

    def test_o6_what_is_wrong_is_said(self):
        self.service(12)
        for arguments, status, words in ((("none",), 1, "none"), (("none/0",), 1, "none/0"), (("a/b",), 2, "GROUP/NUMBER"),
                                         (("train", "--otlp", "ftp://x"), 1, "http://HOST:PORT"),
                                         (("train", "--output", "/nowhere/x"), 1, "/nowhere/x.part"),
                                         (("train", "--otlp", "http://x", "--output", "y"), 2, "say one of the two"),
                                         (("x/0", "--follow"), 2, "--follow is of a stream")):
            done = self.trace(*arguments, check=False)
            self.assertEqual(done.returncode, status, arguments)
            self.assertIn(words, done.stderr)

    def test_spans_go_to_a_collector_as_one_trace_each(self):
        _, read = self.service(200)
        collector = Collector()
        self.addCleanup(collector.close)
        done = self.trace("train", "--otlp", collector.url)
        self.assertIn(f"{len(collector.spans)} spans of 200 rollouts sent", done.stderr)
        self.assertLessEqual(max(collector.batches), 512)
        traces = collections.defaultdict(list)
        for span in collector.spans:
            traces[span["traceId"]].append(span)
        self.assertEqual(len(traces), 200)
        self.assertEqual(len({(span["traceId"], span["spanId"]) for span in collector.spans}), len(collector.spans))
        for spans in traces.values():
            ids = {span["spanId"] for span in spans}
            self.assertEqual([span["name"].split()[0] for span in spans if "parentSpanId" not in span], ["invoke_agent"])
            self.assertTrue(all(span.get("parentSpanId") in ids for span in spans[1:]))
        talked = next(t for t in read if t.task == "talk-0")
        (spans,) = [spans for spans in traces.values() if attributes(spans[0])["sluice.rollout"] == talked.rollout]
        calls = [attributes(span) for span in spans if span["name"] == "chat"]
        turns = [turn for turn in talked.traces[0].turns if turn.role == "assistant"]
        self.assertEqual([(call["gen_ai.usage.input_tokens"], call["gen_ai.usage.output_tokens"]) for call in calls],
                         [(turn.prompt_tokens, turn.length) for turn in turns])
        self.assertEqual([span["name"] for span in spans if span["name"].startswith("execute")], ["execute_tool bash"] * 3)
        self.assertNotIn("Please look", json.dumps(collector.spans))
        self.assertEqual(collector.resource["service.name"], "sluice")
        again = Collector()
        self.addCleanup(again.close)
        self.trace("train", "--otlp", again.url)
        self.assertEqual(again.spans, collector.spans)


class IllCollectors(TraceCase):
    """A trace that follows a stream while rollouts end, with a collector that is ill."""

    def follow(self, url, count=400):
        """The seconds that `count` rollouts took meanwhile, and what the command said at its end."""
        fleet = self.fleet
        log = tempfile.TemporaryFile("w+")
        self.addCleanup(log.close)
        process = subprocess.Popen([SLUICE, "trace", "train", "--follow", "--otlp", url], env=fleet.environment,
                                   stdout=log, stderr=log)
        try:
            client = self.client(fleet, timeout=60)
            first = self.head + 1
            began = time.monotonic()
            client.submit([noop(k, metadata={"number": first + k}) for k in range(count // 4)], stream="train", samples=4)
            for t in client.trajectories("train", from_seq=first, timeout=60):
                if t.seq == first + count - 1:
                    break
            took = time.monotonic() - began
            self.head += count
            self.let_it_see(process)
            process.send_signal(signal.SIGINT)
            self.assertIsNotNone(process.wait(60))
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        log.seek(0)
        return took, log.read()

    head = 0

    def let_it_see(self, process):
        """It reads what the trainer read: its own ack is none, so ask for its CPU to come to rest."""
        def ticks():
            with open(f"/proc/{process.pid}/stat", encoding="utf-8") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])
        seen = [ticks(), 0]

        def rests():
            seen[0], before = ticks(), seen[0]
            seen[1] = seen[1] + 1 if seen[0] == before else 0
            return seen[1] > 25
        wait_until(rests, 60, "it has read all")

    def test_o7_a_collector_that_is_ill_costs_its_spans_and_no_time(self):
        self.fleet = self.enter(Fleet(slots=8))
        healthy = Collector()
        self.addCleanup(healthy.close)
        usual, said = self.follow(healthy.url)
        self.assertEqual(len({span["traceId"] for span in healthy.spans}), 400, said)
        self.assertNotIn("dropped", said)
        hanging, refusing, busy = Collector(hangs=True), Collector(status=400), Collector(status=503, retry_after="1")
        with socket.socket() as gone:
            gone.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{gone.getsockname()[1]}"
            for name, url, words in (("gone", nobody, "connect"), ("400", refusing.url, "HTTP 400"),
                                     ("hangs", hanging.url, ""), ("503", busy.url, "HTTP 503")):
                with self.subTest(name):
                    took, said = self.follow(url)
                    self.assertLess(took, 2 * usual + 3, said)
                    self.assertRegex(said, r"(?m)^sluice: [1-9]\d* spans dropped: ")
                    self.assertIn(words, said)
        for collector in (hanging, refusing, busy):
            collector.close()
        self.assertGreater(busy.asked, 1)  # tried again

    def test_o7_a_collector_that_recovers_gets_what_waited(self):
        self.service(40)
        collector = Collector(status=503, retry_after="1")
        self.addCleanup(collector.close)
        process = subprocess.Popen([SLUICE, "trace", "train", "--otlp", collector.url], env=self.fleet.environment,
                                   stderr=subprocess.PIPE, text=True)
        wait_until(lambda: collector.asked, 60, "it was asked")
        collector.status = 200
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(len({span["traceId"] for span in collector.spans}), 40)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
