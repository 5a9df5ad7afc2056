"""What a token is worth at the gateway before, while and after the broker takes its key: forged ones, claims, names that others took first."""
import os
import re
import signal
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

from gateway_world import SLUICE, Case, Fleet, add_gateway, ask, noop, script, wait_until

API = "/api/v1"
ROW = {"responses_create_params": {"input": "What is 1+1?"}, "task": {"task": "row", "kind": "noop"}, "_ng_task_index": 1}
ASKED_MAX, OWN = 64, 2  # identities.h; the gateway's own connections


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def forged(number):
    return f"slk.trainer.guess.{number + 2 ** 200:064x}"


class Tokens(Case):
    @classmethod
    def setUpClass(cls):
        fleet = Fleet(keys=True, slots=8)
        fleet.add_engine(script())
        cls.gateway = add_gateway(fleet, "--key", fleet.add_key("admin", "gate"), "--access-log")
        cls.tokens = {name: subprocess.run([SLUICE, "keys", "token", fleet.add_key(role, name)], capture_output=True, text=True,
                                           check=True).stdout.strip()
                      for role, name in (("trainer", "alice"), ("trainer", "bob"), ("trainer", "carol"), ("trainer", "dave"), ("admin", "root"))}
        cls.fleet = fleet.__enter__()
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)

    def ask(self, name, path, body=None, **more):
        return ask(self.gateway, path, body, headers=bearer(self.tokens.get(name, name)), **more)

    def claiming(self, name, claims):
        """The token of that key, whose owner calls themselves something else."""
        return re.sub(r"^slk\.[a-z]+\.[^.]+\.", f"slk.{claims}.", self.tokens[name])

    def connections(self):
        """How many the gateway has to FRONT, or tries to have."""
        folder = f"/proc/{self.gateway.pid}/fd"
        own = set()
        for name in os.listdir(folder):
            try:
                own.add(os.readlink(os.path.join(folder, name)))
            except OSError:
                pass
        with open("/proc/net/tcp", encoding="utf-8") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        return sum(row[2].endswith(f":{self.fleet.port:04X}") and f"socket:[{row[9]}]" in own for row in rows)

    def test_me_says_what_the_broker_has_accepted_and_no_more(self):
        self.assertEqual(self.ask("alice", f"{API}/me").json, {"name": "alice", "role": "trainer", "needs_login": False})
        self.assertEqual(self.ask("root", f"{API}/me").json["role"], "admin")
        self.assertEqual(self.ask(self.claiming("alice", "admin.root"), f"{API}/me").json,
                         {"name": "alice", "role": "trainer", "needs_login": False})
        for token in (forged(1), self.tokens["alice"][:-8] + "00000000", "nonsense"):
            answer = self.ask(token, f"{API}/me")
            self.assertEqual((answer.status, answer.json["error"]["reason"]), (401, "unknown-key"), answer)
        self.assertEqual(ask(self.gateway, f"{API}/me").json, {"name": None, "role": None, "needs_login": True})

    def test_me_forgets_a_key_that_was_removed(self):
        self.assertEqual(self.ask("carol", f"{API}/me").json["name"], "carol")
        self.fleet.run("keys", "remove", "carol", "--dir", self.fleet.keys)
        wait_until(lambda: self.ask("carol", f"{API}/me").status == 401, 15, "refused")

    def test_the_access_log_says_no_name_that_the_broker_does_not(self):
        self.assertEqual(self.ask(self.claiming("alice", "admin.root"), f"{API}/rollouts?limit=7").status, 200)
        self.ask(forged(2), f"{API}/rollouts?limit=8")
        wait_until(lambda: re.search(r'path="/api/v1/rollouts" status=401 .*client=""', self.gateway.said()), 10, "logged")
        self.assertRegex(self.gateway.said(), r'path="/api/v1/rollouts" status=200 .*client="alice"')
        self.assertNotIn('client="guess"', self.gateway.said())

    def test_nobody_takes_anothers_stream_or_names_first(self):
        for stream in ("gateway", "gateway.dave", "polar.dave", "gateway.dave-"):
            self.assertEqual(self.ask("bob", f"{API}/groups", {"stream": stream, "task": noop(1)}).status, 201, stream)
        as_dave = self.claiming("bob", "trainer.dave")
        code = {"code": "print(1)", "language": "python"}
        for name in (as_dave, "dave", "bob"):
            self.assertEqual(self.ask(name, "/run", ROW).json["outcome"], "ok", name)
            answer = self.ask(name, "/run_code", code)
            self.assertEqual((answer.status, answer.json.get("status")), (200, "Success"), answer)
        task = {"task_id": "one", "instruction": "x", "runtime": {"image": "/no/such"}, "agent": {"harness": "shell", "custom_shell": {"command": "true"}}}
        for name in (as_dave, "dave"):
            answer = self.ask(name, "/rollout/task/submit", task)
            self.assertEqual(answer.status, 200, answer)
        owners = {one["name"]: one["owner"] for one in self.ask("root", f"{API}/status").json["streams"]}
        self.assertEqual(sorted(owner for name, owner in owners.items() if re.match(r"(gateway|polar)\.(bob|dave)-[0-9a-f]{20}$", name)),
                         ["bob", "bob", "dave", "dave"], owners)

    def test_a_flood_of_forged_tokens_costs_few_connections_and_displaces_nobody(self):
        self.assertEqual(self.ask("alice", f"{API}/status").status, 200)
        wait_until(lambda: self.connections() <= OWN + len(self.tokens), 60, "only those of known keys")
        before = self.connections()
        self.fleet.broker.send(signal.SIGSTOP)
        try:
            with ThreadPoolExecutor(200) as pool:
                asking = [pool.submit(self.ask, forged(1000 + k), f"{API}/status") for k in range(200)]
                wait_until(lambda: self.connections() >= before + ASKED_MAX, 20, "as many as may be")
                wait_until(lambda: sum(one.done() for one in asking) >= 200 - ASKED_MAX, 20, "the others are told that there are too many")
                self.assertEqual(self.connections(), before + ASKED_MAX)
                waiting = pool.submit(self.ask, "alice", f"{API}/status")
                self.fleet.broker.send(signal.SIGCONT)
                self.assertEqual(waiting.result(60).status, 200)
                statuses = [one.result(60).status for one in asking]
        finally:
            self.fleet.broker.send(signal.SIGCONT)
        self.assertEqual(set(statuses), {401, 503})
        self.assertEqual(statuses.count(503), 200 - ASKED_MAX)
        wait_until(lambda: self.connections() <= before, 20, "those that were refused have no connection")


if __name__ == "__main__":
    unittest.main(verbosity=2)
