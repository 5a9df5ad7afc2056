"""Sessions outlive their broker, and are lost with their worker: then their client is told, and may begin again."""
import time
import unittest

from session_world import POSTED, SCRIPT, ask, chat, user  # noqa: E402
from fleet import Fleet  # noqa: E402
from harness import wait_until  # noqa: E402
from sluice import Client, SessionLost  # noqa: E402


class Deaths(unittest.TestCase):
    def start(self, **more):
        fleet = Fleet(settings={"beat_timeout": "2s", "retry_first": "200ms"}, **more)
        fleet.add_engine(SCRIPT)
        fleet["run-1"].arguments += ["--sessions", "0"]
        fleet.__enter__()
        self.addCleanup(lambda: fleet.__exit__(None, None, None))
        client = Client(fleet.url)
        self.addCleanup(client.close)
        return fleet, client

    def test_a_killed_worker_loses_its_session_and_the_next_attempt_has_another_url(self):
        fleet, client = self.start()
        s = client.session(POSTED).open()
        chat(s.url, [user("go")])
        lost = s.url
        fleet["run-1"].kill()
        self.assertTrue(s.is_lost())
        with self.assertRaises(SessionLost):
            s.end(reward=1.0)
        fleet["run-1"].start()
        s.reopen()
        self.assertNotEqual(s.url, lost)
        self.assertEqual(s.attempt, 2)
        chat(s.url, [user("go again")])
        s.end(reward=0.5)
        t = s.trajectory()
        self.assertEqual((t.outcome, t.reward, t.run_attempt), ("ok", 0.5, 2), t.detail)
        self.assertIn("go again", bytes(i for i in t.traces[0].token_ids if i < 256).decode())

    def test_a_block_whose_session_is_lost_says_so_and_leaves_nothing_behind(self):
        fleet, client = self.start()
        with self.assertRaises(SessionLost) as lost:
            with client.session(POSTED) as s:
                fleet["run-1"].kill()
                chat(s.url, [user("go")])
        self.assertIsInstance(lost.exception.__cause__, OSError)
        self.assertEqual(s.trajectory().outcome, "cancelled")
        fleet["run-1"].start()

    def test_a_killed_broker_is_not_noticed_and_knows_the_url_again(self):
        fleet, client = self.start()
        s = client.session(POSTED).open()
        first = chat(s.url, [user("go")])
        fleet.broker.kill()
        self.assertEqual(chat(s.url, [user("go"), first, user("on")])["content"], "fine")
        fleet.broker.start()
        with client.session(POSTED) as other:
            other.end()
        found = wait_until(lambda: client._run(s._ask(0, 0)).get("url"), 20, "the broker knows it again")
        self.assertEqual(found, s.url)
        s.end(reward=1.0)
        t = s.trajectory()
        self.assertEqual((t.outcome, t.reward, len(t.traces)), ("ok", 1.0, 1), t.detail)

    def test_a_broker_that_is_away_at_the_end_is_told_later(self):
        fleet, client = self.start()
        s = client.session(POSTED).open()
        chat(s.url, [user("go")])
        fleet.broker.kill()
        s.end(reward=1.0)
        self.assertEqual(ask(s.url, "/end", {"reward": 1.0})[1], {"ended": True, "reward": 1.0})
        fleet.broker.start()
        self.assertEqual(s.trajectory().reward, 1.0)

    def test_what_no_worker_takes_waits_and_says_for_what(self):
        fleet, client = self.start()
        fleet["run-1"].end()
        other = fleet.add_worker("run", "run-2")
        other.start()
        s = client.session(POSTED, wait=1.0)
        with self.assertWarnsRegex(UserWarning, "start one with --sessions HOST:PORT"), self.assertRaisesRegex(
                TimeoutError, "the agent session, which no run worker offers: start one with --sessions HOST:PORT"):
            s.open()
        self.assertEqual(s.trajectory().outcome, "cancelled")

    def test_a_drained_workers_session_goes_on_to_its_end_or_its_grace(self):
        fleet, client = self.start(grace_s=2)
        with client.session(POSTED) as s:
            fleet["run-1"].send(15)
            time.sleep(0.5)
            chat(s.url, [user("go")])
            s.end(reward=1.0)
        self.assertEqual(s.trajectory().reward, 1.0)


if __name__ == "__main__":
    unittest.main()
