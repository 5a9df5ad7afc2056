"""Loops outside: whoever has a session's URL speaks to the policy and is recorded id for id; the rollout ends as they say."""
import importlib.util
import json
import os
import socket
import subprocess
import threading
import time
import unittest
import urllib.parse

from session_world import POSTED, World, ask, chat, roles, user  # noqa: E402
import test_service  # noqa: E402
from harness import SLUICE, wait_until  # noqa: E402
from sluice import BadArgument, Refused, SessionLost  # noqa: E402

MESSAGES = {"max_tokens": 100, "model": "any", "messages": [user("go")]}


def begin(url, body):
    """A connection that has sent half of its request, and the rest of it."""
    to = urllib.parse.urlsplit(url)
    data = json.dumps(body).encode()
    head = f"POST {to.path}/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    connection = socket.create_connection((to.hostname, to.port), timeout=30)
    connection.sendall(head + data[:10])
    return connection, data[10:]


def with_agent(**agent):
    return dict(POSTED, agent=dict(POSTED["agent"], **agent))


class Sessions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World(options=["--run-slots", "128"]).__enter__()
        cls.addClassCleanup(cls.world.__exit__, None, None, None)

    def test_ten_lines_make_a_loop_trainable(self):
        with self.world.session(stream="ten") as s:
            messages = [user("go")]
            messages += [chat(s.url, messages), user("on")]
            messages += [chat(s.url, messages), user("a sum")]
            reply = chat(s.url, messages)["content"]
            s.end(reward=0.25 + ("2" in reply), parts={"right": 1.0}, metrics={"turns": 3}, detail="all said")
        t = s.trajectory()
        self.assertEqual((t.outcome, t.reward, t.trainable, t.detail), ("ok", 1.25, True, "all said"))
        self.assertEqual((list(t.rewards), t.metrics["turns"]), (["right"], 3))
        self.assertEqual(roles(t), [["prompt", "assistant", "user", "assistant", "user", "assistant"]])
        self.assertEqual(t.agent, "session")
        shown = json.loads(self.world.service.run("show", t.rollout, "--json").stdout)
        test_service.WithEngine.check_tokens(self, [shown], self.world.engine)

    def test_all_four_dialects_are_spoken_and_make_one_tree(self):
        with self.world.session() as s:
            said = [ask(s.url, "/v1/chat/completions", {"messages": [user("go")]}),
                    ask(s.url, "/v1/messages", MESSAGES),
                    ask(s.url, "/v1/responses", {"input": "go"}),
                    ask(s.url, "/v1beta/models/any:generateContent", {"contents": [{"role": "user", "parts": [{"text": "go"}]}]})]
            status, events = ask(s.url, "/v1/messages", dict(MESSAGES, stream=True))
            self.assertEqual(ask(s.url, "/v1/models")[1]["data"][0]["object"], "model")
            self.assertEqual(ask(s.url, "/")[1], {"status": "ok"})
            self.assertEqual(ask(s.url, "")[1], {"status": "ok"})
        self.assertEqual([one[0] for one in said], [200] * 4, said)
        self.assertEqual(said[1][1]["content"][0]["text"], "fine")
        self.assertEqual(status, 200)
        self.assertIn("message_stop", events)
        self.assertEqual(sum(turn == "assistant" for trace in roles(s.trajectory()) for turn in trace), 5)

    @unittest.skipUnless(importlib.util.find_spec("openai"), "the package openai is not there")
    def test_the_official_client_of_openai_is_content(self):
        import openai  # pylint: disable=import-outside-toplevel
        with self.world.session() as s:
            model = openai.OpenAI(base_url=s.url + "/v1", api_key="any")
            messages = [user("go")]
            reply = model.chat.completions.create(model="any", messages=messages).choices[0].message
            messages += [reply, user("on")]
            pieces = [chunk.choices[0].delta.content or "" for chunk in model.chat.completions.create(model="any", messages=messages, stream=True)
                      if chunk.choices]
            s.end(reward=1.0)
        self.assertEqual((reply.content, "".join(pieces)), ("fine", "fine"))
        self.assertEqual(roles(s.trajectory()), [["prompt", "assistant", "user", "assistant"]])

    def test_another_evaluator_scores_as_always_and_a_posted_reward_is_refused(self):
        task = dict(POSTED, eval={"kind": "math", "answer": "2"})
        with self.world.session(task) as s:
            chat(s.url, [user("a sum")])
            with self.assertRaises(BadArgument) as no:
                s.end(reward=0.0)
            self.assertIn("reward: this task's evaluator is math, which alone scores it", str(no.exception))
            s.end()
        self.assertEqual((s.trajectory().outcome, s.trajectory().reward), ("ok", 1.0))

    def test_an_evaluator_in_a_sandbox_finds_what_set_up_left(self):
        task = dict(POSTED, files={"there": "x"}, eval={"kind": "command", "command": "test -e there && ! test -e not"})
        with self.world.session(task) as s:
            chat(s.url, [user("go")])
        self.assertEqual((s.trajectory(120).outcome, s.trajectory().reward), ("ok", 1.0))

    def test_no_reward_is_no_reward_and_not_zero(self):
        with self.world.session() as s:
            chat(s.url, [user("go")])
        self.assertEqual((s.trajectory().outcome, s.trajectory().reward, s.trajectory().detail), ("ok", None, "no reward was posted"))

    def test_a_reward_is_shaped_as_an_evaluators_is(self):
        task = dict(POSTED, shaping={"max_tokens": 2, "buffer_tokens": 1, "penalty": 0.5})
        with self.world.session(task) as s:
            chat(s.url, [user("go")])
            s.end(reward=1.0)
        self.assertEqual((s.trajectory().reward, s.trajectory().raw_reward), (0.5, 1.0))

    def test_what_is_posted_wrongly_is_refused_by_name_and_the_session_goes_on(self):
        wrong = [(b'{"reward": NaN}', "no JSON"), (b'{"reward": 1e999}', "no JSON"), ({"reward": "1"}, "reward must be a number"),
                 ({"reward": True}, "reward must be a number"), ({"rewards": 1}, "rewards is no field"), ([1], "must be an object"),
                 (b"\xff\xfe", "no JSON"), ({"parts": {"a": None}}, "parts: a is not a number")]
        with self.world.session() as s:
            for body, words in wrong:
                status, answer = ask(s.url, "/end", body)
                self.assertEqual(status, 400, (body, answer))
                self.assertIn(words, answer["error"]["message"])
            self.assertEqual(ask(s.url, "/end", b" " * 65537)[0], 413)
            self.assertEqual(ask(s.url, "/end")[0], 405)
            for reward in (float("nan"), float("inf"), "1", True, 10 ** 400):
                with self.assertRaises(BadArgument, msg=reward):
                    s.end(reward=reward)
            self.assertEqual(chat(s.url, [user("go")])["content"], "fine")
            s.end(reward=-2.5)
        self.assertEqual(s.trajectory().reward, -2.5)

    def test_it_ends_once_and_whoever_ends_it_again_is_told_what_counts(self):
        with self.world.session() as s:
            chat(s.url, [user("go")])
            self.assertEqual(ask(s.url, "/end", {"reward": 0.5}), (200, {"ended": True, "reward": 0.5}))
            self.assertEqual(ask(s.url, "/end", {"reward": 0.5}), (200, {"ended": True, "reward": 0.5}))
            s.trajectory()
            self.assertEqual(ask(s.url, "/end", {"reward": 0.5}), (200, {"ended": True, "reward": 0.5}))
            s.end(reward=0.5)
            with self.assertRaisesRegex(BadArgument, "had ended before, with the reward 0.5"):
                s.end(reward=0.75)
            status, answer = ask(s.url, "/v1/messages", MESSAGES)
            self.assertEqual((status, answer["error"]["message"]), (403, "the session has ended"))
        self.assertEqual(s.trajectory().reward, 0.5)

    def test_a_request_that_is_at_work_at_the_end_is_told_so(self):
        with self.world.session() as s:
            chat(s.url, [user("go")])
            said = []
            asking = threading.Thread(target=lambda: said.append(ask(s.url, "/v1/chat/completions", {"messages": [user("very long")]})))
            asking.start()
            time.sleep(1)
            s.end(reward=1.0)
            asking.join(30)
        self.assertEqual(said[0][0], 403, said)
        t = s.trajectory()
        self.assertEqual((t.outcome, t.reward), ("ok", 1.0), t.detail)

    def test_what_is_half_asked_at_the_end_is_not_sampled(self):
        with self.world.session() as s:
            working = threading.Thread(target=ask, args=(s.url, "/v1/chat/completions", {"messages": [user("very long")]}))
            working.start()
            time.sleep(1)
            half = [begin(s.url, {"messages": [user(f"slow {k}")]}) for k in range(8)]
            s.end(reward=1.0)
            for connection, rest in half:
                connection.sendall(rest)
            said = [connection.makefile("rb").readline() for connection, _ in half]
            for connection, _ in half:
                connection.close()
            working.join(30)
        self.assertEqual(said, [b"HTTP/1.1 403 Forbidden\r\n"] * len(half))
        t = s.trajectory()
        self.assertEqual((t.outcome, t.reward, roles(t)), ("ok", 1.0, [["prompt"]]), t.detail)  # the prompt that was at work

    def test_who_asks_and_never_reads_keeps_nobody_out(self):
        with self.world.session() as s:
            to = urllib.parse.urlsplit(s.url)
            deaf = socket.create_connection((to.hostname, to.port))
            deaf.settimeout(2)
            with self.assertRaises(TimeoutError):
                while True:
                    deaf.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
            deaf.settimeout(60)
            with self.assertRaises(ConnectionError):  # is closed, with what nobody read
                while True:
                    deaf.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
            deaf.close()
            chat(s.url, [user("go")])

    def test_a_wrong_secret_and_anothers_path_lead_nowhere(self):
        with self.world.session() as s, self.world.session() as other:
            base, secret = s.url.rsplit("/s/", 1)
            self.assertRegex(secret, "^[0-9a-f]{64}$")
            self.assertNotEqual(s.url, other.url)
            for path in (f"/s/{secret[:-1]}", f"/s/{secret[:-1]}g", "/s/" + "0" * 64, "/s/", "", f"/{secret}", f"/x/{secret}", f"/s/{secret.upper()}x"):
                status, answer = ask(base + path, "/v1/messages", MESSAGES)
                self.assertEqual(status, 404, path)
                status, answer = ask(base + path, "/end", {"reward": 1.0})
                self.assertEqual(status, 404, path)
            status, answer = ask(base + "/s/" + "0" * 64, "/v1/messages", MESSAGES)
            self.assertEqual(answer["type"], "error")
            self.assertIn("there is no session here", answer["error"]["message"])
            chat(s.url, [user("go")])
            self.assertEqual(ask(s.url, "/nothing", {})[0], 404)
            other.end(reward=1.0)
        self.assertEqual((len(s.trajectory().traces), len(other.trajectory().traces)), (1, 0))

    def test_turns_that_are_used_up_leave_the_time_to_post_a_reward(self):
        with self.world.session(with_agent(max_turns=2)) as s:
            messages = [user("go")]
            for _ in range(2):
                messages += [chat(s.url, messages), user("on")]
            status, answer = ask(s.url, "/v1/chat/completions", {"messages": messages})
            self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))
            s.end(reward=0.5)
        t = s.trajectory()
        self.assertEqual((t.outcome, t.end, t.reward), ("agent", "turns", 0.5), t.detail)

    def test_tokens_and_time_are_budgets_too(self):
        with self.world.session(dict(POSTED, limits={"sampled_tokens": 3})) as s:
            chat(s.url, [user("go")])
            self.assertEqual(ask(s.url, "/v1/chat/completions", {"messages": [user("on")]})[0], 400)
        self.assertEqual((s.trajectory().outcome, s.trajectory().end), ("agent", "tokens"), s.trajectory().detail)
        with self.world.session(dict(POSTED, limits={"run_s": 2})) as s:
            chat(s.url, [user("go")])
            t = s.trajectory(30)
        self.assertEqual((t.outcome, t.end, t.reward), ("agent", "time", None), t.detail)

    def test_a_loop_that_falls_silent_ends_and_a_slow_request_is_no_silence(self):
        with self.world.session(with_agent(idle_s=1)) as s:
            self.assertEqual(chat(s.url, [user("slow")])["content"], "at last")
            t = s.trajectory(30)
        self.assertEqual((t.outcome, t.end, t.reward), ("agent", "idle", None), t.detail)
        self.assertIn("nobody spoke to the session for agent.idle_s, 1 s", t.detail)

    def test_a_loop_that_never_comes_is_no_doing_of_the_policys(self):
        with self.world.session(dict(with_agent(idle_s=1), eval={"kind": "math", "answer": "2"})) as s:
            t = s.trajectory(60)
        self.assertEqual((t.outcome, t.reward, t.trainable), ("task", None, False), t.detail)
        self.assertIn("nobody spoke to the session within agent.idle_s, 1 s", t.detail)

    def test_it_is_cancelled_where_the_block_raises_and_by_others(self):
        with self.assertRaises(KeyError), self.world.session() as s:
            chat(s.url, [user("go")])
            raise KeyError("mine")
        self.assertEqual(s.trajectory().outcome, "cancelled")
        with self.assertRaises(SessionLost) as lost, self.world.session() as s:
            self.world.client.cancel(s.rollout)
            wait_until(s.is_lost, 10, "it is told")
            chat(s.url, [user("go")])
        self.assertEqual(lost.exception.rollout, s.rollout)
        self.assertEqual(s.trajectory().outcome, "cancelled")
        with self.assertRaises(SessionLost):
            s.reopen()

    def test_a_hundred_at_once(self):
        sessions = [self.world.session(stream="hundred").open() for _ in range(100)]
        threads = [threading.Thread(target=lambda s=s, i=i: (chat(s.url, [user(f"go {i}")]), s.end(reward=float(i))))
                   for i, s in enumerate(sessions)]
        [thread.start() for thread in threads]
        [thread.join(120) for thread in threads]
        for i, s in enumerate(sessions):
            t = s.trajectory()
            self.assertEqual((t.outcome, t.reward, len(t.traces)), ("ok", float(i), 1), t.detail)
            self.assertIn(f"go {i}<", "".join(chr(id) if id < 128 else "<" for id in t.traces[0].token_ids))

    def test_the_command_opens_one_and_ends_it(self):
        path = os.path.join(self.world.service.root, "session.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(POSTED, file)
        opened = subprocess.Popen([SLUICE, "session", "open", path, "--json"], env=self.world.service.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        url = json.loads(opened.stdout.readline())["url"]
        chat(url, [user("go")])
        no = self.world.service.run("session", "end", url, "--reward", "x", check=False)
        self.assertEqual((no.returncode, "--reward wants a number, not 'x'" in no.stderr), (2, True), no.stderr)
        self.world.service.run("session", "end", url, "--reward", "0.5", "--detail", "by hand")
        again = self.world.service.run("session", "end", url, "--reward", "1", check=False)
        self.assertEqual((again.returncode, "that one counts" in again.stderr), (1, True), again.stderr)
        out, err = opened.communicate(timeout=60)
        self.assertEqual(opened.returncode, 0, err)
        t = json.loads(out)
        self.assertEqual((t["outcome"], t["reward"], t["detail"]), ("ok", 0.5, "by hand"))
        nowhere = self.world.service.run("session", "end", url[:-1] + "x", check=False)
        self.assertEqual((nowhere.returncode, "there is no session here" in nowhere.stderr), (1, True), nowhere.stderr)

    def test_the_command_opens_none_for_a_task_of_another_kind(self):
        path = os.path.join(self.world.service.root, "other.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"task": "other", "prompt": "p", "agent": {"kind": "chat"}}, file)
        no = self.world.service.run("session", "open", path, "--group", "other", check=False)
        self.assertEqual((no.returncode, "this one's is chat" in no.stderr), (1, True), no.stderr)
        self.assertRaises(Refused, self.world.client.get, "other/0")

    def test_the_command_cancels_at_ctrl_c(self):
        path = os.path.join(self.world.service.root, "cancelled.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(POSTED, file)
        opened = subprocess.Popen([SLUICE, "session", "open", path, "--group", "by-hand"], env=self.world.service.environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        url = opened.stdout.readline().strip()
        chat(url, [user("go")])
        opened.send_signal(2)
        _, err = opened.communicate(timeout=30)
        self.assertEqual((opened.returncode, "by-hand/0 is cancelled" in err), (1, True), err)
        self.assertEqual(self.world.client.get("by-hand/0").outcome, "cancelled")

    def test_what_was_recorded_verifies(self):
        with self.world.session(stream="verified") as s:
            messages = [{"role": "system", "content": "Be quick."}, user("go")]
            for words in ("on", "and on"):
                messages += [chat(s.url, messages), user(words)]
            chat(s.url, messages)
            s.end(reward=1.0)
        t = s.trajectory()
        self.assertEqual(roles(t), [["prompt", "assistant", "user", "assistant", "user", "assistant"]])
        path = os.path.join(self.world.service.root, "verified.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.world.service.run("show", t.rollout, "--json").stdout)
        done = self.world.service.run("verify", path, "--engine", self.world.engine.url, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
