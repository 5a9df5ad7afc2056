"""Sessions through the gateway alone: a loop that cannot reach the workers speaks to the policy, is recorded, and ends its rollout."""
import http.client
import http.server
import json
import re
import subprocess
import threading
import time
import unittest
import urllib.parse

from gateway_world import SLUICE, Case, Fleet, add_gateway, ask, call, chat, free_ports, say, wait_until

API = "/api/v1"
LONG = "a long reply, " * 5000 + "done"
SCRIPT = {"dialect": "openai", "template": "qwen", "context": 1 << 17, "rules": [
    {"if": "very long", "reply": "never", "delay_ms": 60000}, {"if": "Say much", "reply": LONG}, {"if": "slowly", "reply": "one two three", "token_ms": 150},
    {"reply": "fine"}]}
POSTED = {"task": "one", "agent": {"form": "hermes", "max_turns": 20}}
STREAM = {"model": "any", "stream": True}


def user(text):
    return {"role": "user", "content": text}


def speak(url, path, body=None, method=None, headers=None, timeout=60):
    to = urllib.parse.urlsplit(url)
    return call(to.port, method or ("GET" if body is None else "POST"), to.path + path, body, headers, timeout)


def begin(url, text, **more):
    """A turn whose answer is not read yet: its connection."""
    to = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(to.hostname, to.port, timeout=60)
    connection.request("POST", to.path + "/v1/chat/completions", json.dumps(dict(more, model="any", messages=[user(text)])))
    return connection


def add_run_worker(fleet, *options):
    fleet.add_worker("run", "run-1", options=("--sessions", *options))


def said_in(events):
    """The text that an answer's events hold."""
    pieces = [json.loads(line[6:]) for line in events.decode().splitlines() if line.startswith("data: {")]
    return "".join(piece["choices"][0]["delta"].get("content") or "" for piece in pieces if piece["choices"])


class Calls(Case):
    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(workers={"init": 1, "eval": 1}, slots=16, settings={"beat_timeout": "2s", "retry_first": "200ms"})
        add_run_worker(cls.fleet, "0")
        cls.fleet.add_engine(SCRIPT)
        cls.gateway = add_gateway(cls.fleet)
        cls.fleet.__enter__()
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)

    def open(self, task=POSTED, **more):
        answer = ask(self.gateway, f"{API}/sessions", dict({"stream": "calls", "task": task}, **more))
        self.assertEqual(answer.status, 201, answer)
        return answer.json

    def chat(self, url, *messages, **more):
        answer = speak(url, "/v1/chat/completions", dict({"model": "any", "messages": list(messages)}, **more))
        self.assertEqual(answer.status, 200, answer)
        return answer.json["choices"][0]["message"]

    def await_ended(self, rollout):
        return wait_until(lambda: (lambda told: told if "outcome" in told else None)(ask(self.gateway, f"{API}/rollouts/{rollout}").json), 30, rollout)

    def test_a_loop_of_several_turns_is_recorded_and_its_reward_counts(self):
        session = self.open()
        url = session["url"]
        self.assertEqual(url, f"http://127.0.0.1:{self.gateway.port}{API}/sessions/{session['rollout']}/1")
        first = self.chat(url, user("go"))
        self.chat(url, user("go"), first, user("on"))
        events = speak(url, "/v1/chat/completions", dict(STREAM, messages=[user("go"), first, user("as a stream")]))
        self.assertEqual((events.headers["Content-Type"], said_in(events.body)), ("text/event-stream", "fine"))
        self.assertEqual(speak(url, "/v1/models").json["data"][0]["object"], "model")
        self.assertEqual((speak(url, "").json, speak(url, "/").json), ({"status": "ok"}, {"status": "ok"}))
        self.assertEqual(speak(url, "/end", {"reward": 0.5, "parts": {"right": 0.5}}).json, {"ended": True, "reward": 0.5})
        told = self.await_ended(session["rollout"])
        self.assertEqual((told["outcome"], told["reward"], told["agent"]), ("ok", 0.5, "session"))
        self.assertEqual([[turn["role"] for turn in trace["turns"]] for trace in told["traces"]],
                         [["prompt", "assistant", "user", "assistant"], ["prompt", "user", "assistant"]])

    def test_where_it_is_may_be_asked_again_and_behind_a_proxy_with_tls(self):
        session = self.open()
        self.assertEqual(ask(self.gateway, f"{API}/sessions/{session['rollout']}").json, session)
        told = ask(self.gateway, f"{API}/sessions/{session['rollout']}", headers={"Host": "localhost:443", "X-Forwarded-Proto": "https"}).json
        self.assertEqual(told["url"], f"https://localhost:443{API}/sessions/{session['rollout']}/1")
        self.assertRegex(told["worker_url"], r"^http://127\.0\.0\.1:\d+/s/[0-9a-f]{64}$")
        self.assertEqual(speak(session["worker_url"], "/end", {}).status, 200)

    def test_what_a_session_refuses_is_told_in_its_own_words(self):
        url = self.open()["url"]
        for path, body, status, words in (("/v1/chat/completions", {"messages": [user("go")], "n": 2}, 400, "n"), ("/end", {"reward": "1"}, 400, "reward must be a number"),
                                          ("/end", b" " * 65537, 413, "65536"), ("/nothing", {}, 404, "there is nothing at this path")):
            answer = speak(url, path, body)
            self.assertEqual(answer.status, status, (path, answer))
            self.assertIn(words, answer.json["error"]["message"])
        self.assertEqual(speak(url, "/end", method="PUT").headers["Allow"], "GET, POST")
        self.assertEqual(self.chat(url, user("go"))["content"], "fine")

    def test_a_stream_is_passed_on_as_it_is_sampled(self):
        url = self.open()["url"]
        connection = begin(url, "Speak slowly.", stream=True)
        self.addCleanup(connection.close)
        answer, times, text = connection.getresponse(), [], b""
        while line := answer.readline():
            text += line
            if b'"content":"' in line:
                times.append(time.monotonic())
        self.assertEqual(said_in(text), "one two three")
        self.assertGreater(times[-1] - times[0], 0.3)

    def test_of_who_reads_slowly_little_is_held_and_nothing_lost(self):
        url = self.open(dict(POSTED, sampling={"max_tokens": len(LONG) + 100}))["url"]
        connection = begin(url, "Say much.", stream=True)
        self.addCleanup(connection.close)
        answer = connection.getresponse()
        wait_until(lambda: self.metric("sluice_http_held_bytes") > 32 << 10, 60, "more was said than the kernel takes for who reads nothing")
        held = [self.metric("sluice_http_held_bytes") for _ in range(30)]
        text = answer.read()
        self.assertEqual(said_in(text), LONG)
        self.assertGreater(len(text), 1 << 20)
        self.assertLess(max(held), 128 << 10)
        self.assertEqual(self.metric("sluice_http_held_bytes"), 0)

    def metric(self, name):
        return int(re.search(rf"^{name} (\d+)", ask(self.gateway, "/metrics").body.decode(), re.M).group(1))

    def test_a_large_request_comes_whole(self):
        session = self.open(dict(POSTED, limits={"context_tokens": 100000}))
        self.assertEqual(self.chat(session["url"], user("x" * 60000))["content"], "fine")
        speak(session["url"], "/end", {})
        self.assertIn("x" * 60000, self.await_ended(session["rollout"])["messages"][0]["content"])

    def test_who_hangs_up_hangs_up_at_the_worker(self):
        session = self.open()
        port = urllib.parse.urlsplit(session["worker_url"]).port
        connection = begin(session["url"], "very long")
        wait_until(lambda: self.connections(port) == 1, 30, "the call was passed on")
        connection.close()
        wait_until(lambda: self.connections(port) == 0, 30, "the worker's connection is closed")
        self.assertEqual(self.chat(session["url"], user("go"))["content"], "fine")

    @staticmethod
    def connections(port):
        """Those to that port which are established."""
        with open("/proc/net/tcp", encoding="ascii") as table:
            rows = [line.split() for line in table]
        return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows[1:])

    def test_a_lost_session_is_told_so_and_its_loop_does_not_go_on_in_another(self):
        session = self.open()
        self.chat(session["url"], user("go"))
        self.fleet["run-1"].kill()
        lost = speak(session["url"], "/v1/chat/completions", {"messages": [user("go")]})
        self.assertIn(lost.status, (502, 503), lost)
        self.assertIn(lost.json["error"]["reason"], ("session-away", "no-session"))
        self.fleet["run-1"].start()
        again = wait_until(lambda: (lambda told: told if "url" in told and told["attempt"] == 2 else None)(
            ask(self.gateway, f"{API}/sessions/{session['rollout']}?after=1&wait_ms=1000").json), 60, "the next attempt")
        for path, body in (("/v1/chat/completions", {"messages": [user("go")]}), ("/end", {"reward": 1}), ("/v1/models", None)):
            answer = speak(session["url"], path, body)
            self.assertEqual((answer.status, answer.json["error"]["reason"]), (410, "session-lost"), answer)
        self.assertEqual(self.chat(again["url"], user("go again"))["content"], "fine")
        self.assertEqual(speak(again["url"], "/end", {"reward": 0.25}).json["reward"], 0.25)
        told = self.await_ended(session["rollout"])
        self.assertEqual((told["outcome"], told["reward"], told["run_attempt"]), ("ok", 0.25, 2))
        self.assertEqual((speak(session["url"], "/end", {}).status, speak(again["url"], "/end", {}).json["reward"]), (410, 0.25))

    def test_a_broker_that_was_restarted_costs_a_session_nothing(self):
        session = self.open()
        first = self.chat(session["url"], user("go"))
        self.fleet.broker.kill()
        self.fleet.broker.start()
        self.assertEqual(self.chat(session["url"], user("go"), first, user("on"))["content"], "fine")
        speak(session["url"], "/end", {"reward": 1})
        self.assertEqual(self.await_ended(session["rollout"])["run_attempt"], 1)

    def test_who_ends_it_again_is_told_what_counts(self):
        session = self.open()
        self.chat(session["url"], user("go"))
        for reward in (0.5, 0.75):
            self.assertEqual(speak(session["url"], "/end", {"reward": reward}).json, {"ended": True, "reward": 0.5})
        self.await_ended(session["rollout"])
        self.assertEqual(speak(session["url"], "/end", {"reward": 1}).json, {"ended": True, "reward": 0.5})
        over = speak(session["url"], "/v1/chat/completions", {"messages": [user("go")]})
        self.assertEqual((over.status, over.json["error"]["reason"]), (404, "no-session"))

    def test_nothing_but_what_the_broker_says_is_connected_to(self):
        session = self.open()
        rollout = session["rollout"]
        ask(self.gateway, f"{API}/groups", {"stream": "calls", "group": "plain", "task": chat(1)})
        for path, status in (("none/0/1/v1/models", 404), ("plain/0/1/v1/models", 404), (f"{rollout}/0/v1/models", 404), (f"{rollout}/x/v1/models", 404),
                             (f"{rollout}/01/v1/models", 404), (f"{rollout}/-1/v1/models", 404), (f"{rollout}/99999999/v1/models", 404),
                             (f"{rollout}/1/../../../../s/x", 400), (f"{rollout}/1/%2e%2e/x/v1/models", 400), (f"{rollout}/1/v1%2fmodels", 400),
                             (f"{rollout}/1//127.0.0.1:1/v1/models", 404), (f"{rollout}/1/@127.0.0.1:1/v1/models", 404), (f"{rollout}/1/http://127.0.0.1:1/", 404),
                             (f"{rollout}/1/%252e%252e/v1/models", 404), (f"{rollout}/1/v1/models%3fa", 404), (f"{rollout}/1/v1/models%23a", 404),
                             (f"{rollout}/1/v1/models?a=%2f..%2f&b=@x", 200)):
            answer = say(self.gateway, f"GET {API}/sessions/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            self.assertEqual(int(answer.split()[1]), status, (path, answer))
        for path in ("none/0", f"{rollout}"):
            self.assertEqual(ask(self.gateway, f"{API}/sessions/{path}?url=http://127.0.0.1:1").status, 404 if path == "none/0" else 200)


class Front(http.server.BaseHTTPRequestHandler):
    """What a worker may have in front of it, and name as its own: it notes what it is asked, and passes it on or answers as it is told."""
    protocol_version = "HTTP/1.1"
    answer, asked, worker = None, [], None

    def log_message(self, *arguments):  # pylint: disable=arguments-differ
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((self.path, dict(self.headers), body))
        if self.answer:
            self.wfile.write(self.answer)
            self.close_connection = True
            return
        passed = call(self.worker, self.command, self.path, body if self.command == "POST" else None)
        self.send_response(passed.status)
        self.send_header("Content-Type", passed.headers["Content-Type"])
        self.send_header("Content-Length", str(len(passed.body)))
        self.end_headers()
        self.wfile.write(passed.body)

    do_GET = do_POST


class Fronted(Case):
    @classmethod
    def setUpClass(cls):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        Front.worker = free_ports(1)
        cls.fleet = fleet = Fleet(keys=True, workers={"init": 1, "eval": 1}, slots=8)
        add_run_worker(fleet, str(Front.worker), "--sessions-url", f"http://127.0.0.1:{server.server_port}")
        fleet.add_engine(SCRIPT)
        cls.gateway = add_gateway(fleet, "--key", fleet.add_key("admin", "gate"))
        cls.tokens = {name: subprocess.run([SLUICE, "keys", "token", fleet.add_key("trainer", name)], capture_output=True, text=True,
                                           check=True).stdout.strip() for name in ("alice", "bob")}
        fleet.__enter__()
        cls.addClassCleanup(fleet.__exit__, None, None, None)

    def setUp(self):
        Front.answer, Front.asked[:] = None, []
        opened = self.ask("alice", f"{API}/sessions", {"stream": "of-alice", "task": POSTED})
        self.assertEqual(opened.status, 201, opened)
        self.session = opened.json

    def ask(self, name, path, body=None, **more):
        return ask(self.gateway, path, body, headers={"Authorization": f"Bearer {self.tokens[name]}"}, **more)

    def models(self, **headers):
        return speak(self.session["url"], "/v1/models", headers={name.replace("_", "-"): value for name, value in headers.items()})

    def test_whose_session_it_is_speaks_to_it_as_clients_of_models_send_their_keys(self):
        alice, bob = self.tokens["alice"], self.tokens["bob"]
        for headers in ({"Authorization": f"Bearer {alice}"}, {"x_api_key": alice}, {"x_goog_api_key": alice}):
            self.assertEqual(self.models(**headers).status, 200, headers)
        for headers, status in (({}, 401), ({"x_api_key": "any"}, 401), ({"Authorization": f"Bearer {bob}"}, 403), ({"x_goog_api_key": bob}, 403)):
            answer = self.models(**headers)
            self.assertEqual(answer.status, status, (headers, answer))
        self.assertEqual(speak(self.session["url"], f"/v1/models?key={alice}").status, 400)
        twice = say(self.gateway, f"GET {urllib.parse.urlsplit(self.session['url']).path}/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {alice}\r\n"
                                  f"X-Api-Key: {bob}\r\nConnection: close\r\n\r\n".encode())
        self.assertIn(b" 400 ", twice[:20])
        self.assertEqual(len(Front.asked), 3)

    def test_the_worker_is_told_no_key_and_what_is_asked_comes_as_it_was(self):
        body = json.dumps({"model": "any", "messages": [user("\u00e4 go")]}, ensure_ascii=False).encode()
        headers = {"Authorization": f"Bearer {self.tokens['alice']}", "Cookie": "sluice=x", "X-Api-Key": "any", "Content-Type": "application/json; charset=utf-8"}
        answer = speak(self.session["url"], "/v1/chat/completions?a=%C3%A4&b=c%20d", body, headers=headers)
        self.assertEqual((answer.status, answer.json["choices"][0]["message"]["content"]), (200, "fine"), answer)
        [(path, told, came)] = Front.asked
        self.assertEqual((path, came), (urllib.parse.urlsplit(self.session["worker_url"]).path + "/v1/chat/completions?a=%C3%A4&b=c%20d", body))
        self.assertEqual(told["Content-Type"], headers["Content-Type"])
        self.assertEqual({name.lower() for name in told}, {"host", "accept", "content-type", "content-length"})

    def test_an_answer_runs_nothing_in_a_browser_and_sets_nothing(self):
        page = b"<script>alert(1)</script>"
        Front.answer = (b"HTTP/1.1 302 Found\r\nContent-Type: text/html\r\nSet-Cookie: sluice=evil\r\nLocation: http://127.0.0.1:1/\r\nRetry-After: 7\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(page) + page)
        answer = self.models(Authorization=f"Bearer {self.tokens['alice']}")
        self.assertEqual((answer.status, answer.body, answer.headers["Retry-After"]), (302, page, "7"))
        self.assertEqual((answer.headers["Content-Type"], answer.headers["X-Content-Type-Options"]), ("text/plain; charset=utf-8", "nosniff"))
        self.assertEqual((answer.headers["Set-Cookie"], answer.headers["Location"]), (None, None))

    def test_an_answer_that_breaks_off_breaks_off_and_what_is_none_is_told(self):
        authorization = {"Authorization": f"Bearer {self.tokens['alice']}"}
        for head in (b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n"):
            Front.answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + head + b'{"choices":'
            with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
                self.models(**authorization)
        for wrong in (b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 101 Other\r\n\r\n", b"\r\n" * 100):
            Front.answer = wrong
            answer = self.models(**authorization)
            self.assertEqual((answer.status, answer.json["error"]["reason"]), (502, "session-away"), (wrong, answer))
        Front.answer = None
        self.assertEqual(self.models(**authorization).status, 200)


if __name__ == "__main__":
    unittest.main()
