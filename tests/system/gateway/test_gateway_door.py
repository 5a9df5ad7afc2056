"""Who and what comes in at the gateway: tokens, cookies, other sites' pages, smuggled requests, floods, TLS."""
import contextlib
import http.client
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

from gateway_world import GATEWAY, SLUICE, Case, Fleet, add_gateway, ask, free_ports, noop, say, wait_until

API = "/api/v1"
ALIKE = ("k" * 59 + "1", "k" * 59 + "2")


def run(*arguments, **more):
    return subprocess.run(arguments, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **more)


class Keys(Case):
    @classmethod
    def setUpClass(cls):
        fleet = Fleet(keys=True, slots=8)
        cls.gateway = add_gateway(fleet, "--key", fleet.add_key("admin", "gate"))
        cls.tokens = {name: cls.token(fleet, role, name) for role, name in (  # known from the broker's start on
            ("trainer", "alice"), ("trainer", "bob"), ("trainer", "carol"), *(("trainer", name) for name in ALIKE), ("admin", "root"))}
        cls.fleet = fleet.__enter__()
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)

    @staticmethod
    def token(fleet, role, name):
        return run(SLUICE, "keys", "token", fleet.add_key(role, name)).stdout.strip()

    def ask(self, name, path, body=None, **more):
        return ask(self.gateway, path, body, headers={"Authorization": f"Bearer {self.tokens[name]}"}, **more)

    def test_each_key_may_what_it_may(self):
        body = {"stream": "of-alice", "group": "alice-1", "task": noop(1)}
        self.assertEqual(self.ask("alice", f"{API}/groups", body).status, 201)
        other = self.ask("bob", f"{API}/groups", dict(body, group="bob-1"))
        self.assertEqual((other.status, other.json["error"]["reason"]), (403, "not-allowed"))
        self.assertEqual(self.ask("bob", f"{API}/rollouts/alice-1/0").status, 403)
        self.assertEqual(self.ask("root", f"{API}/rollouts/alice-1/0").status, 200)
        self.assertEqual(self.ask("alice", f"{API}/engines", {"url": "http://127.0.0.1:9"}).status, 403)
        self.assertEqual(self.ask("alice", "/metrics").status, 403)
        self.assertEqual(self.ask("root", "/metrics").status, 200)
        self.assertEqual([one["name"] for one in self.ask("bob", f"{API}/status").json["streams"]], [])
        self.assertEqual(self.ask("alice", f"{API}/me").json, {"name": "alice", "role": "trainer", "needs_login": False})

    def test_who_brings_no_token_or_a_wrong_one_is_told_so_and_nothing_is_given_away(self):
        none = ask(self.gateway, f"{API}/status")
        self.assertEqual((none.status, none.headers["WWW-Authenticate"]), (401, "Bearer"))
        self.assertEqual(ask(self.gateway, f"{API}/me").json, {"name": None, "role": None, "needs_login": True})
        forged = self.tokens["alice"][:-8] + "00000000"
        for header in ("Bearer nonsense", "Basic " + self.tokens["alice"], "Bearer " + forged, "Bearer", "Bearer " + "x" * 4000):
            answer = ask(self.gateway, f"{API}/status", headers={"Authorization": header})
            self.assertEqual(answer.status, 401, (header, answer))
            self.assertNotIn(self.tokens["alice"].encode(), answer.body)
        as_admin = self.tokens["alice"].replace("slk.trainer.alice", "slk.admin.root")
        self.assertEqual(ask(self.gateway, f"{API}/engines", {"url": "http://127.0.0.1:9"}, headers={"Authorization": "Bearer " + as_admin}).status, 403)
        in_query = ask(self.gateway, f"{API}/status?token={self.tokens['alice']}")
        self.assertEqual(in_query.status, 400)
        self.assertIn("a key in a query string ends up in logs", in_query.json["error"]["text"])
        self.assertEqual(ask(self.gateway, "/healthz").status, 200)

    def test_who_takes_anothers_name_has_nothing_of_theirs(self):
        self.assertEqual(self.ask("bob", "/start", method="POST").status, 200)
        forged = self.tokens["alice"].replace(".alice.", ".bob.")
        headers = {"Authorization": "Bearer " + forged}
        self.assertEqual(ask(self.gateway, "/status", headers=headers).status, 503)
        ask(self.gateway, "/stop", method="POST", headers=headers)
        self.assertEqual(self.ask("bob", "/status").status, 200)

    def test_a_removed_key_is_refused_at_once(self):
        self.assertEqual(self.ask("carol", f"{API}/status").status, 200)
        run(SLUICE, "keys", "remove", "carol", "--dir", self.fleet.keys)
        wait_until(lambda: self.ask("carol", f"{API}/status").status in (401, 403), 15, "refused")

    def test_the_page_logs_in_with_a_cookie_that_other_sites_cannot_send(self):
        self.assertEqual(ask(self.gateway, f"{API}/login", {"token": "nonsense"}).status, 401)
        good = ask(self.gateway, f"{API}/login", {"token": self.tokens["alice"]})
        self.assertEqual(good.status, 204)
        cookie = good.headers["Set-Cookie"]
        for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(part, cookie)
        headers = {"Cookie": cookie.split(";")[0]}
        self.assertEqual(ask(self.gateway, f"{API}/me", headers=headers).json["name"], "alice")
        self.assertEqual(ask(self.gateway, f"{API}/status", headers=headers).status, 200)
        cross = ask(self.gateway, f"{API}/groups", {"stream": "x", "task": noop(1)}, headers=dict(headers, Origin="http://evil.example"))
        self.assertEqual((cross.status, cross.json), (403, {"error": {"reason": "cross-origin", "field": "", "text": "pages of other sites may not ask here"}}))
        own = ask(self.gateway, f"{API}/groups", {"stream": "of-alice", "task": noop(1)},
                  headers=dict(headers, Origin=f"http://127.0.0.1:{self.gateway.port}"))
        self.assertEqual(own.status, 201)
        self.assertIn("Max-Age=0", ask(self.gateway, f"{API}/logout", method="POST").headers["Set-Cookie"])

    def test_guessing_costs_the_broker_nothing(self):
        before = self.ask("root", f"{API}/status").json
        tokens = [f"slk.trainer.guess.{k:064x}" for k in range(1, 40)]
        for token in tokens:
            self.assertEqual(ask(self.gateway, f"{API}/status", headers={"Authorization": "Bearer " + token}).status, 401)
        after = self.ask("root", f"{API}/status").json
        self.assertEqual(after["rollouts"]["accepted"], before["rollouts"]["accepted"])
        self.assertEqual(after["health"], "healthy")

    def test_keys_whose_long_names_begin_alike_have_streams_of_their_own(self):
        for name in ALIKE:
            answer = self.ask(name, "/run_code", {"code": "print(1)", "language": "python"})
            self.assertEqual((answer.status, answer.json.get("status")), (200, "Success"), answer)

    def test_guesses_keep_nobody_out(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=60)
        self.addCleanup(connection.close)
        for k in range(1, 200):  # more than are asked about at a time
            connection.request("GET", f"{API}/me", headers={"Authorization": f"Bearer slk.trainer.guess.{k + 2 ** 200:064x}"})
            self.assertEqual(connection.getresponse().read()[:1], b"{")
        headers = {"Authorization": "Bearer " + self.token(self.fleet, "trainer", "dave")}
        # The broker reads its keys anew in its own time, and who was refused is so for some seconds.
        wait_until(lambda: ask(self.gateway, f"{API}/status", headers=headers).status == 200, 20, "the key is known")


class Plain(Case):
    @classmethod
    def setUpClass(cls):
        fleet = Fleet(slots=8)
        cls.gateway = add_gateway(fleet, "--body-max", "64KiB")
        cls.fleet = fleet.__enter__()
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)

    def alive(self):
        self.assertEqual(ask(self.gateway, f"{API}/status").status, 200)

    def test_a_page_whose_name_was_pointed_here_is_refused(self):
        for host, status in (("evil.example", 421), ("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("127.0.0.1.evil.example", 421)):
            self.assertEqual(ask(self.gateway, f"{API}/status", headers={"Host": host}).status, status, host)
        for origin in ("null", "http://localhost", "file://"):
            self.assertEqual(ask(self.gateway, f"{API}/status", headers={"Origin": origin}).status, 403, origin)

    def test_requests_that_two_readers_read_differently_are_refused(self):
        tail = b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for head in (b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                     b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"Content-Length: +5\r\n", b"Content-Length: 5, 5\r\n",
                     b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: xchunked\r\n", b"X : y\r\n",
                     b"Host: localhost\r\n", b" folded: x\r\n"):
            got = say(self.gateway, b"POST /api/v1/groups HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\nhello" + tail, timeout=3)
            self.assertRegex(got[:12], rb"^HTTP/1.1 (4|5)", (head, got))
            self.assertNotIn(b'"health"', got, head)
        got = say(self.gateway, b"POST /api/v1/groups HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nhello\r\n0\r\n\r\n" + tail, timeout=3)
        self.assertNotIn(b'"health"', got)
        self.alive()

    def test_paths_do_no_tricks(self):
        for path in ("/api/v1/../../etc/passwd", "/api/v1/%2e%2e/status", "/api/v1/rollouts/a%2Fb/0", "/%00", "/api/v1//status", "/api/v1/status/",
                     "//api/v1/status", "/api/v1/rollouts/" + "a" * 3000 + "/0", "/api/v1/status%0d%0aX:y"):
            self.assertIn(ask(self.gateway, path).status, (400, 404, 414), path)
        self.alive()

    def test_what_is_too_large_is_refused_and_held_by_nobody(self):
        self.assertEqual(ask(self.gateway, f"{API}/groups", b"{" + b" " * (100 << 10)).status, 413)
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.assertIn(ask(self.gateway, f"{API}/status", headers={f"x-{k}": "y" * 200 for k in range(200)}).status, (400, 431))
        before = self.gateway.resident_kib()
        connections = []
        for _ in range(500):
            with contextlib.suppress(OSError):
                connection = socket.create_connection(("127.0.0.1", self.gateway.port), timeout=5)
                connection.sendall(b"POST /api/v1/groups HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n{")
                connections.append(connection)
        self.alive()
        self.assertLess(self.gateway.resident_kib() - before, 500 * 100)
        for connection in connections:
            connection.close()
        self.alive()

    def test_json_that_is_deep_or_odd_is_refused(self):
        for body in (b"[" * 30000, b'{"task":' + b"[" * 20000, b"\xff\xfe{}", b'{"a":"\\ud800"}', b'{"stream":"s\\u0000","task":{}}', b"nul", b"1e999"):
            self.assertEqual(ask(self.gateway, f"{API}/groups", body).status, 400, body[:40])
        self.alive()

    def test_a_second_gateway_is_told_that_the_address_is_taken(self):
        second = run(GATEWAY, "--listen", str(self.gateway.port), "--broker", self.fleet.url)
        self.assertEqual(second.returncode, 1)
        self.assertIn("Address already in use", second.stderr)


class Wrong(unittest.TestCase):
    def test_a_wrong_command_line_says_what_to_do(self):
        for arguments, words in ((["--listen", "x"], "HOST:PORT"), (["--listen", "0.0.0.0:0"], "--tls-cert"), (["--tls-cert", "x"], "go together"),
                                 (["--anonymous", "x"], "--key"), (["--api", "none"], "native"), (["--engine", "a b"], "ADDRESS/BITS"),
                                 (["--key", "/nothing/there"], "/nothing/there")):
            got = run(GATEWAY, *arguments, env={k: v for k, v in os.environ.items() if k != "SLUICE_KEY"})
            self.assertIn(words, got.stderr, arguments)
            self.assertIn(got.returncode, (1, 2), arguments)


class Tls(Case):
    def certificate(self, folder, name):
        paths = os.path.join(folder, f"{name}.crt"), os.path.join(folder, f"{name}.key")
        made = run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                   "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", paths[1], "-out", paths[0])
        self.assertEqual(made.returncode, 0, made.stderr)
        return paths

    def name_of(self, port, trusted):
        context = ssl.create_default_context(cafile=trusted)
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
        connection.request("GET", "/api/v1/status")
        answer = connection.getresponse()
        names = dict(pair[0] for pair in connection.sock.getpeercert()["subject"])
        connection.close()
        return answer.status, names["commonName"]

    def test_tls_is_spoken_and_its_certificate_renewed_while_it_runs(self):
        fleet = Fleet(workers=0)
        first, second = self.certificate(fleet.root, "first"), self.certificate(fleet.root, "second")
        now = os.path.join(fleet.root, "now.crt"), os.path.join(fleet.root, "now.key")
        for a, b in zip(first, now):
            os.link(a, b)
        gateway = add_gateway(fleet, "--tls-cert", now[0], "--tls-key", now[1])
        self.enter(fleet)
        self.assertEqual(self.name_of(gateway.port, first[0]), (200, "first"))
        with self.assertRaises((http.client.HTTPException, OSError)):
            ask(gateway, f"{API}/status", timeout=10)
        for a, b in zip(second, now):
            os.replace(a, b)
        gateway.send(signal.SIGHUP)
        wait_until(lambda: "gateway.tls action=renewed" in gateway.said(), 20, "renewed")
        self.assertEqual(self.name_of(gateway.port, now[0]), (200, "second"))
        with open(now[0], "w", encoding="utf-8") as file:
            file.write("no certificate")
        gateway.send(signal.SIGHUP)
        wait_until(lambda: "action=kept" in gateway.said(), 20, "kept")
        self.assertEqual(self.name_of(gateway.port, self.renewed(fleet, gateway))[0], 200)

    def renewed(self, fleet, gateway):
        path = os.path.join(fleet.root, "served.crt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ssl.get_server_certificate(("127.0.0.1", gateway.port)))
        return path

    def test_tls_files_that_are_missing_or_wrong_are_named(self):
        folder = self.enter(tempfile.TemporaryDirectory())
        cert, key = self.certificate(folder, "one")
        other = self.certificate(folder, "two")[1]
        port = str(free_ports(1))
        for files, words in (((cert, "/nothing"), "/nothing"), (("/nothing", key), "/nothing"), ((key, cert), "TLS: "), ((cert, other), "TLS: ")):
            got = run(GATEWAY, "--listen", port, "--tls-cert", files[0], "--tls-key", files[1])
            self.assertIn(got.returncode, (1, 2), files)
            self.assertIn(words, got.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
