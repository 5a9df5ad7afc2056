"""ProRL's API where keys are asked for: what is started, stopped, cancelled and cleared is each key's own."""
import subprocess
import threading
import unittest

from prorl_world import Case, Fleet, add_gateway, call, job, math, script, wait_until
from harness import SLUICE

LONG = {"if": "forever", "path": "/completion", "delay_ms": 600000, "reply": "never"}


class Keys(Case):
    @classmethod
    def setUpClass(cls):
        fleet = Fleet(keys=True, slots=8)
        cls.engine = fleet.add_engine(dict(script(0, LONG), context=16384))
        cls.gateway = add_gateway(fleet, "--key", fleet.add_key("admin", "gate"))
        cls.tokens = {name: subprocess.run([SLUICE, "keys", "token", fleet.add_key(role, name)], capture_output=True, text=True,
                                           check=True).stdout.strip()
                      for role, name in (("trainer", "alice"), ("trainer", "bob"), ("admin", "root"))}  # known from the broker's start on
        cls.fleet = fleet.__enter__()
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)

    def post(self, name, path, body=None):
        return call(self.gateway.port, "POST", path, body, headers={"Authorization": f"Bearer {self.tokens[name]}"})

    def status(self, name):
        return call(self.gateway.port, "GET", "/status", headers={"Authorization": f"Bearer {self.tokens[name]}"})

    def test_nobody_stops_anothers_jobs(self):
        self.assertEqual(call(self.gateway.port, "POST", "/start").status, 401)
        for name in ("alice", "bob"):
            self.assertIn(self.post(name, "/start").status, (200, 400), name)
        answers = {}
        body = job(math(1, prompt="one that takes forever"), "shared")
        waiting = threading.Thread(target=lambda: answers.update(alice=self.post("alice", "/process", body)))
        waiting.start()
        wait_until(lambda: self.status("alice").json["pending_jobs"] == 1, 30, "alice waits")
        self.fleet.wait_for(lambda status: status["stages"]["run"]["leased"] == 1, 30, "her job runs")
        self.assertEqual(self.status("bob").json["pending_jobs"], 0)
        self.assertEqual(self.post("bob", "/cancel", {"job_id": "shared"}).status, 404)
        self.assertEqual(self.post("bob", "/stop").status, 200)
        self.assertEqual((self.status("bob").status, self.status("alice").status), (503, 200))
        self.assertEqual(self.post("alice", "/cancel", {"job_id": "shared"}).status, 200)
        waiting.join(10)
        self.assertEqual((answers["alice"].status, answers["alice"].json["filter"]), (200, True))

    def test_a_forged_token_of_a_known_name_stops_nothing(self):
        self.post("alice", "/start")
        self.tokens["forged"] = self.tokens["alice"][:-8] + "00000000"
        for path, body in (("/stop", None), ("/start", None), ("/clear_llm_server", None), ("/process", job(math(3))),
                           ("/add_llm_server", {"address": self.engine.url})):
            self.assertEqual(self.post("forged", path, body).status, 401, path)
        self.assertEqual(self.status("alice").status, 200)

    def test_engines_are_an_admins(self):
        self.post("alice", "/start")
        refused = self.post("alice", "/add_llm_server", {"address": "http://127.0.0.1:9/v1"})
        self.assertEqual(refused.status, 403, refused)
        self.assertEqual((self.post("alice", "/stop").status, self.post("alice", "/start").status), (200, 200))
        self.post("root", "/start")
        self.assertEqual(self.post("root", "/add_llm_server", {"address": self.engine.url}).status, 200)
        result = self.post("root", "/process", job(math(2)))
        self.assertEqual((result.status, result.json["resolved"]), (200, True), result)


if __name__ == "__main__":
    unittest.main(verbosity=2)
