"""The gateway's own API: what libsluice can do, over HTTP; streams that resume, rollouts that are watched, kill -9 of it."""
import json
import os
import re
import selectors
import socket
import sys
import threading
import unittest

sys.path.append(__file__.rsplit("/", 2)[0] + "/service")
from gateway_world import SOURCE, Case, Events, Fleet, add_gateway, ask, chat, noop, script, wait_until  # noqa: E402
from test_trace import Collector  # noqa: E402

API = "/api/v1"


class Gateway(Case):
    @classmethod
    def setUpClass(cls):
        fleet = Fleet(slots=16, worker_options=[])
        cls.engine = fleet.add_engine(script(0, {"if": "slow", "path": "/completion", "delay_ms": 3000, "reply": "at last"}))
        cls.gateway = add_gateway(fleet)
        cls.fleet = fleet.__enter__()
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)

    def submit(self, task, stream, **more):
        answer = ask(self.gateway, f"{API}/groups", dict({"stream": stream, "task": task}, **more))
        self.assertIn(answer.status, (200, 201), answer)
        return answer.json

    def await_ended(self, rollout, seconds=60):
        def ended():
            answer = ask(self.gateway, f"{API}/rollouts/{rollout}")
            self.assertEqual(answer.status, 200, answer)
            return answer.json if "outcome" in answer.json else None
        return wait_until(ended, seconds, f"{rollout} ended") or ended()

    def test_a_group_is_submitted_once_and_told_as_show_tells_it(self):
        first = ask(self.gateway, f"{API}/groups", {"stream": "one", "group": "g-one", "samples": 2, "task": chat(1)})
        again = ask(self.gateway, f"{API}/groups", {"stream": "one", "group": "g-one", "samples": 2, "task": chat(1)})
        self.assertEqual((first.status, again.status, again.json["known"]), (201, 200, True))
        other = ask(self.gateway, f"{API}/groups", {"stream": "one", "group": "g-one", "samples": 3, "task": chat(1)})
        self.assertEqual((other.status, other.json["error"]["reason"]), (409, "group-exists"))
        told = self.await_ended("g-one/1")
        shown = json.loads(self.fleet.run("show", "g-one/1", "--json").stdout)
        self.assertEqual(told, shown)
        self.assertEqual((told["outcome"], told["reward"]), ("ok", 1.0))

    def test_a_task_keeps_its_numbers(self):
        task = dict(chat(2), sampling={"temperature": 0.6, "top_p": 1.0, "max_tokens": 100}, metadata={"e": 1e-7, "n": 12345678901234567, "f": 0.1})
        group = self.submit(task, "numbers")["group"]
        told = self.await_ended(group + "/0")
        self.assertEqual(told["metadata"], task["metadata"])
        self.assertEqual(told["traces"][0]["turns"][1]["sampling"]["temperature"], 0.6)

    def test_what_is_wrong_is_named(self):
        good = {"stream": "wrong", "task": noop(1)}
        for body, status, reason, field in (
                (b"{", 400, "malformed", ""), (b"[]", 400, "wrong-type", ""), (b'{"a":1,"a":2}', 400, "malformed", ""),
                ({**good, "tusk": 1}, 400, "unknown-field", "tusk"), ({**good, "samples": "8"}, 400, "wrong-type", "samples"),
                ({**good, "samples": -1}, 400, "wrong-type", "samples"), ({**good, "samples": 5000}, 400, "too-large", "samples"),
                ({**good, "stream": "a b"}, 400, "bad-name", "stream"), ({**good, "task": "x"}, 400, "wrong-type", "task"),
                ({"stream": "wrong"}, 400, "missing-field", "task"), ({**good, "task": {"task": "t"}}, 400, "bad-task", None)):
            answer = ask(self.gateway, f"{API}/groups", body)
            error = answer.json["error"]
            self.assertEqual((answer.status, error["reason"]), (status, reason), (body, answer))
            if field is not None:
                self.assertEqual(error["field"], field, (body, answer))
            self.assertTrue(error["text"], answer)
        for task in ("x", None, [], 1, True):
            answer = ask(self.gateway, f"{API}/sessions", {"stream": "wrong", "task": task})
            self.assertEqual((answer.status, answer.json["error"]["field"]), (400, "task"), answer)
        other = ask(self.gateway, f"{API}/sessions", {"stream": "wrong", "task": {"task": "t", "prompt": "p", "agent": {"kind": "bash"}}})
        self.assertEqual((other.status, other.json["error"]["field"]), (400, "task.agent.kind"), other)
        for path, status in (("/rollouts/none/0", 404), ("/nothing", 404), ("/rollouts?limit=x", 400), ("/rollouts?limit=2000", 400),
                             ("/streams/none/events?from=x", 400), ("/streams/a%20b/events", 400), ("/samplers/none", 404)):
            self.assertEqual(ask(self.gateway, API + path).status, status, path)
        wrong = ask(self.gateway, f"{API}/groups", method="PUT")
        self.assertEqual((wrong.status, wrong.headers["Allow"]), (405, "POST"))

    def test_a_stream_is_read_in_order_and_goes_on_where_it_was_left(self):
        for k in range(40):
            self.submit(noop(k), "s", group=f"s-{k}", samples=2)
        seen = []
        with Events(self.gateway, f"{API}/streams/s/events?view=summary") as events:
            for event, number, data in events:
                if event == "trajectory":
                    seen.append((number, data["rollout"]))
                    self.assertEqual(number, data["seq"])
                if len(seen) == 50:
                    break
        with Events(self.gateway, f"{API}/streams/s/events?view=summary", {"Last-Event-ID": str(seen[-1][0])}) as events:
            for event, number, data in events:
                if event == "trajectory":
                    seen.append((number, data["rollout"]))
                if len(seen) == 80:
                    break
            self.submit(noop(99), "s", group="s-last")
            seen.append(next((number, data["rollout"]) for event, number, data in events if event == "trajectory"))
        self.assertEqual([number for number, _ in seen], list(range(1, 82)))
        self.assertEqual(len({rollout for _, rollout in seen}), 81)

    def test_large_trajectories_come_through_to_who_reads(self):
        self.submit(noop(1, metadata={"pad": "x" * 60000}), "large", group="large-1", samples=64)
        self.await_ended("large-1/63")
        self.submit(noop(1, metadata={"pad": "x" * 900000}), "large", group="large-2", samples=4)
        seen = []
        with Events(self.gateway, f"{API}/streams/large/events", timeout=60) as events:
            for event, number, data in events:
                if event == "trajectory":
                    seen.append(number)
                    self.assertGreater(len(data["metadata"]["pad"]), 50000)
                if len(seen) == 68:
                    break
        self.assertEqual(seen, list(range(1, 69)))

    def test_what_was_acknowledged_is_said_to_be_gone(self):
        self.submit(noop(1), "acked", group="acked-1")
        self.await_ended("acked-1/0")
        self.assertEqual(ask(self.gateway, f"{API}/streams/acked/ack", {"seq": 1}).json["count"], 1)
        wait_until(lambda: ask(self.gateway, f"{API}/rollouts/acked-1/0").status in (404, 410), 10, "forgotten")
        with Events(self.gateway, f"{API}/streams/acked/events?from=1") as events:
            event, _, data = next(iter(events))
        self.assertEqual((event, data["reason"]), ("failed", "forgotten"))

    def test_a_rollout_is_watched_until_it_ends(self):
        group = self.submit(dict(chat(3), prompt="slow: What is 1+1?"), "watched")["group"]
        heard, names = [], set()
        with Events(self.gateway, f"{API}/rollouts/{group}/0/events") as events:
            for event, _, batch in events:
                self.assertEqual((event, batch["rollout"]), ("live", group + "/0"))
                heard += batch["events"]
        names = {one["event"] for one in heard}
        self.assertEqual(heard[-1]["event"], "ended")
        self.assertLessEqual({"state", "phase", "message", "turn", "tokens"}, names)
        told = self.await_ended(group + "/0")
        ids = [i for one in heard if one["event"] == "tokens" for i in one["ids"]]
        self.assertEqual(ids, told["traces"][0]["token_ids"])
        self.assertEqual(ask(self.gateway, f"{API}/rollouts/none/0/events").status, 404)

    def test_rollouts_are_listed_and_cancelled(self):
        group = self.submit(dict(chat(4), prompt="slow: What is 1+1?"), "cancelled", samples=3)["group"]
        listed = ask(self.gateway, f"{API}/rollouts?group={group}&limit=2").json
        self.assertEqual((listed["matched"], len(listed["rollouts"])), (3, 2))
        self.assertEqual(ask(self.gateway, f"{API}/rollouts/{group}/1", method="DELETE").json["count"], 1)
        self.assertEqual(ask(self.gateway, f"{API}/groups/{group}", method="DELETE").json["count"], 2)
        self.assertEqual(self.await_ended(group + "/1")["outcome"], "cancelled")
        ended = ask(self.gateway, f"{API}/rollouts?ended=true&stream=cancelled&outcome=cancelled").json
        self.assertEqual(ended["matched"], 3)

    def test_engines_are_only_those_of_addresses_that_the_operator_allows(self):
        refused = ask(self.gateway, f"{API}/engines", {"url": "http://169.254.169.254/latest"})
        self.assertEqual((refused.status, refused.json["error"]["field"]), (403, "url"))
        for body in ({}, {"url": "http://127.0.0.1:9"}):  # what is looked at is what is asked for
            refused = ask(self.gateway, f"{API}/engines?url=http://169.254.169.254", body)
            self.assertEqual((refused.status, refused.json["error"]["field"]), (400, "url"), refused)
        self.assertEqual(ask(self.gateway, f"{API}/engines", {"url": "http://127.0.0.1:9", "policy": "other"}).status, 200)
        self.assertEqual(ask(self.gateway, f"{API}/engines?url=http://127.0.0.1:9", method="DELETE").status, 200)
        self.assertEqual(ask(self.gateway, f"{API}/policy/version", {"version": "step-1"}).json["count"], 1)

    def test_status_metrics_and_description(self):
        status = ask(self.gateway, f"{API}/status").json
        self.assertEqual(status["health"], "healthy")
        text = ask(self.gateway, "/metrics")
        self.assertEqual((text.status, text.headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        self.assertIn(b'sluice_http_requests_total{path="/api/v1/status",code="200"}', text.body)
        opened = ask(self.gateway, "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        self.assertTrue(opened.body.endswith(b"# EOF\n"), opened)
        self.assertEqual(opened.body.count(b"# EOF\n"), 1)
        about = ask(self.gateway, f"{API}/openapi.json").json
        self.assertEqual(about["openapi"], "3.0.3")
        self.assertIn("samples", about["paths"][f"{API}/groups"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"])
        self.assertEqual([p["name"] for p in about["paths"][f"{API}/rollouts/{{group}}/{{sample}}"]["get"]["parameters"]], ["group", "sample"])
        self.assertEqual((ask(self.gateway, "/healthz").status, ask(self.gateway, "/readyz").status), (200, 200))

    def test_the_page_of_the_docs_has_each_path_and_no_other(self):
        with open(os.path.join(SOURCE, "docs", "gateway.md"), encoding="utf-8") as page:
            rows = re.findall(r"^\| ([A-Z, ]+) \| (`/.*?`) \|", page.read(), re.M)
        told = {(method, API + path) for methods, paths in rows for method in methods.split(", ") for path in re.findall("`([^`]+)`", paths)}
        paths = ask(self.gateway, f"{API}/openapi.json").json["paths"]
        self.assertEqual(told, {(method.upper(), path) for path, item in paths.items() for method in item})
        self.assertEqual([one["url"] for one in ask(self.gateway, f"{API}/engines").json["engines"]], [self.engine.url])

    def test_the_page_is_told_of_what_there_is_and_what_ends(self):
        self.submit(noop(1), "page", group="page-1")
        self.await_ended("page-1/0")
        with Events(self.gateway, f"{API}/live") as events:
            kinds, rollouts = set(), set()
            for event, _, data in events:
                kinds.add(event)
                rollouts |= {one["rollout"] for one in data} if event == "history" else {data["rollout"]} if event == "ended" else set()
                if {"status", "live", "history"} <= kinds and "page-1/0" in rollouts:
                    break
            self.submit(noop(2), "page", group="page-2")
            ended = next(data for event, _, data in events if event == "ended")
        self.assertEqual((ended["rollout"], ended["stream"], ended["outcome"]), ("page-2/0", "page", "ok"))


class Spans(Case):
    def test_every_rollout_that_ends_is_told_to_a_collector_and_one_that_is_gone_costs_nothing(self):
        collector = Collector()
        fleet = Fleet(slots=16)
        gateway = add_gateway(fleet, "--otlp", collector.url)
        self.enter(fleet)
        for stream in ("a", "b"):
            ask(gateway, f"{API}/groups", {"stream": stream, "group": f"of-{stream}", "samples": 3, "task": noop(1)})

        def told():
            return [one for one in collector.spans if one["name"].startswith("invoke_agent") or one.get("parentSpanId", "") == ""]
        wait_until(lambda: len({one["traceId"] for one in told()}) == 6, 30, "six rollouts told")
        self.assertIn(b'sluice_otlp_spans_total{state="dropped"} 0', ask(gateway, "/metrics").body)
        collector.close()
        ask(gateway, f"{API}/groups", {"stream": "a", "group": "later", "samples": 3, "task": noop(2)})
        wait_until(lambda: all("outcome" in ask(gateway, f"{API}/rollouts/later/{k}").json for k in range(3)), 30, "ended")


class Alone(Case):
    """Each with a gateway of its own."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(slots=16)
        cls.fleet.__enter__()
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)

    def open(self, name):
        gateway = add_gateway(self.fleet, name=name).start()
        self.addCleanup(gateway.end)
        return gateway

    def hold(self, gateway, path, count, receive_bytes=None):
        """Connections that have asked, and read nothing yet."""
        held = []
        for _ in range(count):
            connection = socket.socket()
            if receive_bytes:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            connection.connect(("127.0.0.1", gateway.port))
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.addCleanup(connection.close)
            held.append(connection)
        return held

    def test_o4_readers_that_stand_still_are_sent_away_and_others_hear_all(self):
        gateway = self.open("readers")
        readers = self.hold(gateway, f"{API}/streams/read/events?view=summary", 450)
        still = self.hold(gateway, f"{API}/streams/read/events", 50, receive_bytes=4096)
        wait_until(lambda: b"sluice_sse_clients 500" in ask(gateway, "/metrics").body, 60, "500 read")
        before, count = gateway.resident_kib(), 24
        for k in range(count):
            ask(gateway, f"{API}/groups", {"stream": "read", "group": f"read-{k}", "task": noop(k, metadata={"pad": "x" * 400000})})
        ears, left = selectors.DefaultSelector(), {}
        for reader in readers:
            ears.register(reader, selectors.EVENT_READ)
            left[reader] = (b"", 0)
        while left:
            ready = ears.select(60)
            self.assertTrue(ready, f"{len(left)} readers hear nothing more")
            for key, _ in ready:
                tail, seen = left[key.fileobj]
                got = key.fileobj.recv(1 << 16)
                self.assertTrue(got, "a reader was sent away")
                text = tail + got
                seen += text.count(b"event: trajectory\n")
                left[key.fileobj] = (text[-17:] if not text.endswith(b"event: trajectory\n") else b"", seen)
                if seen >= count:
                    ears.unregister(key.fileobj)
                    del left[key.fileobj]
        wait_until(lambda: b"sluice_sse_dropped_total 50" in ask(gateway, "/metrics").body, 60, "those that stand still sent away")
        self.assertLess(gateway.resident_kib() - before, 800 << 10)
        self.assertEqual(len(still), 50)

    def test_a_gateway_that_is_killed_and_started_again_goes_on_where_its_clients_were(self):
        gateway = self.open("killed")
        for k in range(10):
            ask(gateway, f"{API}/groups", {"stream": "s", "group": f"g-{k}", "task": noop(k)})
        seen = []
        with Events(gateway, f"{API}/streams/s/events?view=summary") as events:
            for event, number, _ in events:
                seen += [number] if event == "trajectory" else []
                if len(seen) == 5:
                    break
        gateway.kill()
        gateway.start()
        with Events(gateway, f"{API}/streams/s/events?view=summary", {"Last-Event-ID": str(seen[-1])}) as events:
            for event, number, _ in events:
                seen += [number] if event == "trajectory" else []
                if len(seen) == 10:
                    break
        self.assertEqual(seen, list(range(1, 11)))

    def test_a_broker_that_is_away_is_503_and_nothing_waits_for_ever(self):
        gateway = self.open("waiting")
        self.fleet.broker.kill()
        try:
            answers = []
            threads = [threading.Thread(target=lambda: answers.append(ask(gateway, f"{API}/status"))) for _ in range(20)]
            for thread in threads:
                thread.start()
            self.assertEqual(ask(gateway, "/healthz").status, 200)
            for thread in threads:
                thread.join()
        finally:
            self.fleet.broker.start()
        self.assertEqual({answer.status for answer in answers}, {503})
        self.assertTrue(all(answer.headers["Retry-After"] for answer in answers))
        self.assertEqual(answers[0].json["error"]["reason"], "broker-away")
        wait_until(lambda: ask(gateway, "/readyz").status == 200, 30, "ready again")


if __name__ == "__main__":
    unittest.main(verbosity=2)
