"""python -m sluice.handlers, driven as a worker drives it: real processes, both forms of the protocol, and what goes wrong."""
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from python_world import ENVIRONMENT  # before all that it finds

from sluice.handlers import results
from sluice.protocol.messages import MESSAGES, decode, encode

TASK = {"task": "add", "prompt": "1+1?", "metadata": {"gold": "2"}, "eval": {"kind": "grade", "config": {"strict": True}}}


class Frames:
    """The worker's side of frames: a socket, the other end descriptor 3."""

    def __init__(self, arguments, folder):
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(20)
        fd = theirs.fileno()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sluice.handlers", *arguments], cwd=folder, pass_fds=[fd], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(ENVIRONMENT, SLUICE_HANDLER_FD=str(fd)))
        theirs.close()

    def send(self, wire, **fields):
        message = encode(wire, **fields)
        self.socket.sendall(struct.pack(">I", len(message)) + message)

    def _read(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def receive(self):
        return decode(self._read(struct.unpack(">I", self._read(4))[0]))

    def close(self):
        self.socket.close()
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


class Lines:
    """The worker's side of lines of JSON."""

    def __init__(self, arguments, folder):
        self.process = subprocess.Popen([sys.executable, "-m", "sluice.handlers", *arguments], cwd=folder, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)

    def send(self, wire, **fields):
        told = {"type": wire}
        for name, value in fields.items():
            told[name] = json.loads(value) if MESSAGES[wire][name].get("json") else value
        if isinstance(told.get("data"), bytes):
            told["data"] = told["data"].decode()
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()

    def receive(self):
        told = json.loads(self.process.stdout.readline())
        wire = told.pop("type")
        return wire, {name: json.dumps(value) if MESSAGES[wire][name].get("json") else value for name, value in told.items()}

    def close(self):
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


class Decisions(unittest.TestCase):
    def test_what_is_given_back_is_no_longer_than_what_was_asked(self):
        messages = [{"role": "user", "content": "\u00e4\u4e2d\U0001f600"}]
        asked = json.dumps(messages, ensure_ascii=False, separators=(",", ":"))
        self.assertEqual(results.decision_fields(results.Change(messages=messages), None)["messages"], asked)
        reply = {"text": "\u4e2d", "calls": []}
        self.assertEqual(results.decision_fields(results.Change(text="\u00e4"), reply)["reply"], '{"text":"\u00e4","calls":[]}')

    def test_half_a_surrogate_is_an_error_of_the_hook(self):
        with self.assertRaises(UnicodeEncodeError):
            results.decision_fields(results.Change(text="\ud800"), {"text": "", "calls": []})


class Handlers(unittest.TestCase):
    form = Frames

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, text):
        with open(os.path.join(self.folder, "mine.py"), "w", encoding="utf-8") as file:
            file.write("from sluice.handlers import *\n" + textwrap.dedent(text))

    def start(self, text, *options):
        self.write(text)
        self.host = self.form(["mine.py", *options], self.folder)
        self.addCleanup(self.host.process.kill)
        wire, fields = self.host.receive()
        self.assertEqual((wire, fields["protocol"]), ("handler.hello", 1))
        return {f"{offer['role']}:{offer['name']}": offer for offer in json.loads(fields["offers"])}

    def begin(self, id, role, name, task=TASK, **fields):
        self.host.send("handler.begin", id=id, role=role, name=name, rollout="add-17/3", sample=3, left_ms=9000,
                       task=json.dumps(task), **fields)

    def evaluate(self, name, id=7, **fields):
        self.begin(id, "evaluator", name, answer=fields.pop("answer", "2"), **fields)
        return self.host.receive()

    def answer(self, **reply):
        """Answers the next request; what it was."""
        wire, fields = self.host.receive()
        self.host.send("handler.reply", id=fields["id"], call=fields["call"], **reply)
        return wire, fields

    def run_to_its_end(self, status=0):
        code, _, err = self.host.close()
        self.assertEqual(code, status, err)
        return err

    # ---- offers --------------------------------------------------------------------------

    def test_a_tools_schema_is_its_signature(self):
        offers = self.start('''
            from typing import List, Literal, Optional
            @tool("look.up", version="3")
            def look(job, word: str, how: Literal["exact", "near"] = "exact", most: Optional[int] = None, tags: List[str] = []) -> str:
                """Looks a word up.

                word: what to look for
                """
            ''')
        self.assertEqual(offers["tool:look.up"], {
            "role": "tool", "name": "look.up", "version": "3", "doc": "Looks a word up.",
            "parameters": {"type": "object", "required": ["word"], "properties": {
                "word": {"type": "string", "description": "what to look for"}, "how": {"type": "string", "enum": ["exact", "near"]},
                "most": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}}})
        self.run_to_its_end()

    def test_what_cannot_be_offered_is_named_at_its_start(self):
        for text, words in (("@evaluator\ndef grade(gold): pass", "the evaluator grade asks for 'gold'; it can be given job, task"),
                            ("@tool\ndef look(word): pass", "the tool look: the type of word is not said"),
                            ("@tool\ndef look(word: set): pass", "a parameter's type must be str, int"),
                            ("@tool\ndef look(*words: str): pass", "the model is told each by name"),
                            ("@agent('a b')\ndef a(): pass", "a name is 1 to 64 letters"),
                            ("@agent(version='a b')\ndef a(): pass", "version 'a b' must be"),
                            ("@agent\ndef a(): pass\n@agent('a')\ndef b(): pass", "the agent a exists already"),
                            ("x = 1", "nothing there is an @evaluator, @agent or @tool"),
                            ("def (", "SyntaxError")):
            self.write(text)
            run = subprocess.run([sys.executable, "-m", "sluice.handlers", "mine.py", "--list"], cwd=self.folder, text=True,
                                 capture_output=True, env=ENVIRONMENT, timeout=20)
            self.assertIn(words, run.stderr)
            self.assertNotEqual(run.returncode, 0)

    # ---- evaluators ----------------------------------------------------------------------

    def test_what_an_evaluator_returns_is_its_score(self):
        self.start('''
            @evaluator
            def grade(answer, metadata, config): return float(answer == metadata["gold"] and config["strict"])
            @evaluator
            async def later(job): return job.answer == job.metadata["gold"], "compared"
            @evaluator
            def nothing(): return None
            @evaluator
            def many(messages):
                return {"score": 0.5, "parts": {"format": 1, "length": (0.25, 2)}, "turns": len(messages), "detail": "so",
                        "tests": [Test("a", "passed"), {"name": "b", "status": "failed", "message": "no"}]}
            @evaluator
            def parts(): return Score(parts=[Part("a", 1.0, 0.5)])
            @evaluator
            def parts_by_name(): return Score(parts={"a": (1.0, 0.5)})
            @evaluator
            def long_why(): return 1.0, "\\0" + "\u00e4" * 5000
            @evaluator
            def no_parts(): return Score(parts=["a"])
            ''')
        self.assertEqual(self.evaluate("grade"), ("handler.score", {"id": 7, "reward": 1.0}))
        self.assertEqual(self.evaluate("grade", answer="3"), ("handler.score", {"id": 7, "reward": 0.0}))
        self.assertEqual(self.evaluate("later"), ("handler.score", {"id": 7, "reward": 1.0, "detail": "compared"}))
        self.assertEqual(self.evaluate("nothing"), ("handler.score", {"id": 7}))
        wire, fields = self.evaluate("many", messages='[{"role":"user","content":"1+1?"}]')
        self.assertEqual((fields["reward"], fields["detail"], json.loads(fields["metrics"])), (0.5, "so", {"turns": 1.0}))
        self.assertEqual(json.loads(fields["parts"]), [{"name": "format", "value": 1.0, "weight": 1.0},
                                                       {"name": "length", "value": 0.25, "weight": 2.0}])
        self.assertEqual(json.loads(fields["tests"]), [{"name": "a", "status": "passed"},
                                                       {"name": "b", "status": "failed", "message": "no"}])
        self.assertNotIn("reward", self.evaluate("parts")[1])
        self.assertEqual(self.evaluate("parts_by_name"), self.evaluate("parts"))
        why = self.evaluate("long_why")[1]["detail"]
        self.assertTrue(len(why.encode()) <= 2000 and why.startswith("\\0\u00e4") and why.endswith("\u00e4... (10002 bytes)"), why)
        self.assertEqual(self.evaluate("no_parts")[1]["error"], "TypeError: parts has 'a', which is no Part")
        self.run_to_its_end()

    def test_an_exception_is_told_with_its_traceback_and_is_no_reward(self):
        self.start('''
            @evaluator
            def grade(answer): return {}[answer]
            @evaluator
            def nan(): return float("nan")
            @evaluator
            def words(): return "good"
            @evaluator
            def leaves(): raise SystemExit(3)
            ''')
        wire, fields = self.evaluate("grade")
        self.assertEqual((wire, fields["error"]), ("handler.failed", "KeyError: '2'"))
        self.assertIn("mine.py", fields["trace"])
        self.assertNotIn("handlers/run.py", fields["trace"])
        self.assertEqual(self.evaluate("nan")[1]["error"], "ValueError: the reward is nan, which is not finite")
        self.assertEqual(self.evaluate("words")[1]["error"], "TypeError: the reward is str, not a number")
        self.assertEqual(self.evaluate("leaves")[1]["error"], "SystemExit: 3")
        self.assertEqual(self.evaluate("grade")[0], "handler.failed")  # and it lives
        self.run_to_its_end()

    def test_files_and_commands_of_the_sandbox_are_the_workers(self):
        for kind in ("def", "async def"):
            wait = "await " if "async" in kind else ""
            self.start(f'''
                @evaluator
                {kind} grade(job):
                    {wait}job.write_file("/tests/a.py", "print(1)", 0o755)
                    try:
                        {wait}job.read_file("none")
                    except Refused as why:
                        text = str(why)
                    data = {wait}job.read_file("b", 2, 3)
                    out = {wait}job.exec("make", timeout=1.5)
                    {wait}job.note(retries=2)
                    left = {wait}job.time_left()
                    return out.status + left, text + data.decode() + out.text
                ''')
            self.begin(9, "evaluator", "grade")
            self.assertEqual(self.answer()[1], {"id": 9, "call": 1, "path": "/tests/a.py", "mode": 0o755,
                                                "data": b"print(1)" if self.form is Frames else "print(1)"})
            self.assertEqual(self.answer(refusal="no such file")[0], "handler.read")
            self.assertEqual(self.answer(json='{"size":3}', data=b"abc")[1], {"id": 9, "call": 3, "path": "b", "offset": 2, "length": 3})
            wire, fields = self.answer(json='{"output":"x","status":3,"seconds":0.1}')
            self.assertEqual((wire, fields["command"], fields["timeout_ms"]), ("handler.exec", "make", 1500))
            self.assertEqual(json.loads(self.answer(json="{}")[1]["metrics"]), {"retries": 2.0})
            self.assertEqual(self.answer(json='{"left_ms":4000}')[0], "handler.clock")
            self.assertEqual(self.host.receive(), ("handler.score", {"id": 9, "reward": 7.0, "detail": "no such fileabcx"}))
            self.run_to_its_end()

    # ---- agents and tools ------------------------------------------------------------------

    def test_an_agent_samples_calls_tools_and_forks(self):
        self.start('''
            @agent("mine")
            async def mine(job):
                reply = await job.sample(tools=True)
                while reply.calls:
                    out = await job.tool(reply.calls[0].name, **reply.calls[0].arguments)
                    reply = await job.sample({"role": "tool", "content": out.text}, tools=True)
                await job.fork(["summary"], "compaction")
                return (await job.sample("more", max_tokens=5)).text
            ''')
        self.begin(1, "agent", "mine")
        wire, fields = self.answer(json='{"text":"hm","finish":"stop","tokens":4,"calls":[{"name":"bash","arguments":{"command":"ls"}}]}')
        self.assertEqual((wire, fields), ("handler.sample", {"id": 1, "call": 1, "tools": True}))
        wire, fields = self.answer(json='{"text":"a.txt","status":0}')
        self.assertEqual((wire, fields["name"], json.loads(fields["arguments"])), ("handler.tool", "bash", {"command": "ls"}))
        wire, fields = self.answer(json='{"text":"done","tokens":2}')
        self.assertEqual(json.loads(fields["messages"]), [{"role": "tool", "content": "a.txt"}])
        wire, fields = self.answer(json="{}")
        self.assertEqual((wire, fields["reason"], json.loads(fields["messages"])),
                         ("handler.fork", "compaction", [{"role": "user", "content": "summary"}]))
        self.assertEqual(self.answer(json='{"text":"42"}')[1]["max_tokens"], 5)
        self.assertEqual(self.host.receive(), ("handler.end", {"id": 1, "outcome": "ok", "answer": "42"}))
        self.run_to_its_end()

    def test_a_budget_that_is_used_up_ends_an_agent_that_lets_it_pass(self):
        self.start('''
            @agent
            def mine(job):
                while True:
                    job.sample("go on")
            @agent
            def catches(job):
                try:
                    job.sample()
                except Over as over:
                    return over.which
            ''')
        self.begin(1, "agent", "mine")
        self.answer(json='{"text":"a"}')
        self.answer(over="turns")
        self.assertEqual(self.host.receive(), ("handler.end", {"id": 1, "outcome": "agent", "detail": "turns"}))
        self.begin(2, "agent", "catches")
        self.answer(over="tokens")
        self.assertEqual(self.host.receive(), ("handler.end", {"id": 2, "outcome": "ok", "answer": "tokens"}))
        self.run_to_its_end()

    def test_a_tool_gives_text_json_or_the_answer(self):
        self.start('''
            @tool
            def look(word: str, most: int = 2): return word * most
            @tool
            async def rows(job): return {"n": len(job.task)}
            @tool
            def submit_word(word: str): return Answer(word)
            ''')
        self.begin(1, "tool", "look", arguments='{"word":"ab"}')
        self.assertEqual(self.host.receive(), ("handler.output", {"id": 1, "text": "abab"}))
        self.begin(2, "tool", "rows", arguments="{}")
        self.assertEqual(json.loads(self.host.receive()[1]["text"]), {"n": len(TASK)})
        self.begin(3, "tool", "submit_word", arguments='{"word":"x"}')
        self.assertEqual(self.host.receive()[1]["answer"], "x")
        self.begin(4, "tool", "look", arguments='{"wrong":"ab"}')
        self.assertEqual(self.host.receive()[0], "handler.failed")
        self.run_to_its_end()

    # ---- many, cancelled, printed, reloaded ------------------------------------------------

    def test_two_thousand_jobs_are_in_flight_at_once(self):
        self.start('''
            @evaluator
            async def grade(job):
                return (await job.exec("true")).status
            ''')
        for id in range(1, 2001):
            self.begin(id, "evaluator", "grade")
        asked = [self.host.receive()[1] for _ in range(2000)]
        self.assertEqual(sorted(one["id"] for one in asked), list(range(1, 2001)))
        for one in reversed(asked):
            self.host.send("handler.reply", id=one["id"], call=one["call"], json='{"status":1}')
        scores = [self.host.receive() for _ in range(2000)]
        self.assertEqual({score[1]["id"] for score in scores}, set(range(1, 2001)))
        self.assertEqual({score[1]["reward"] for score in scores}, {1.0})
        self.run_to_its_end()

    def test_requests_of_one_job_go_one_by_one(self):
        self.start('''
            import asyncio
            @evaluator
            async def grade(job):
                return sum(out.status for out in await asyncio.gather(job.exec("a"), job.exec("b"), job.exec("c")))
            ''')
        self.begin(1, "evaluator", "grade")
        for command in "abc":
            wire, fields = self.host.receive()
            self.assertEqual(fields["command"], command)
            self.begin(2 + ord(command), "evaluator", "grade")  # whose request is the next message: no other one of job 1 was sent
            self.assertEqual(self.host.receive()[1]["id"], 2 + ord(command))
            self.host.send("handler.reply", id=1, call=fields["call"], json='{"status":1}')
        self.assertEqual(self.host.receive(), ("handler.score", {"id": 1, "reward": 3.0}))
        self.run_to_its_end()

    def test_a_cancelled_job_says_nothing_more_and_its_function_ends(self):
        self.start('''
            import pathlib
            @evaluator
            def plain(job):
                try:
                    job.exec("sleep 100")
                finally:
                    pathlib.Path("plain").touch()
            @evaluator
            async def later(job):
                try:
                    await job.exec("sleep 100")
                finally:
                    pathlib.Path("later").touch()
            @evaluator
            def one(): return 1
            ''')
        for id, name in ((1, "plain"), (2, "later")):
            self.begin(id, "evaluator", name)
            _, asked = self.host.receive()
            self.host.send("handler.cancel", id=id, why="the time of the stage is up")
            self.host.send("handler.reply", id=id, call=asked["call"], json="{}")
            self.assertEqual(self.evaluate("one", id=9), ("handler.score", {"id": 9, "reward": 1.0}))
            end = time.monotonic() + 10
            while not os.path.exists(os.path.join(self.folder, name)) and time.monotonic() < end:
                time.sleep(0.01)
            self.assertTrue(os.path.exists(os.path.join(self.folder, name)))
        self.run_to_its_end()

    def test_a_plain_function_that_outlives_its_job_takes_no_others_place(self):
        self.start("""
            import time
            @evaluator
            def hang(job):
                job.exec("true")
                time.sleep(600)
            @evaluator
            def good(answer): return 1
            """, "--threads", "1")
        for id in (1, 2):
            self.begin(id, "evaluator", "hang", answer="2")
            self.answer(json='{"text": "", "status": 0, "timed_out": false, "seconds": 0}')
            self.begin(id + 10, "evaluator", "good", answer="2")
            self.host.send("handler.cancel", id=id, why="the time of the stage is up")
            if id == 1:
                self.assertEqual(self.host.receive(), ("handler.score", {"id": 11, "reward": 1.0}))
        self.host.process.wait(20)
        self.assertIn("too many functions go on after their jobs' time was up", self.run_to_its_end())

    def test_what_ends_a_program_or_a_loop_ends_a_job_alone(self):
        self.start("""
            @evaluator
            def interrupted(answer): raise KeyboardInterrupt
            @evaluator
            async def interrupted_too(answer): raise KeyboardInterrupt
            @evaluator
            def empty(answer): return next(iter([]))
            @evaluator
            def good(answer): return 1
            """)
        for name, words in (("interrupted", "KeyboardInterrupt"), ("interrupted_too", "KeyboardInterrupt"), ("empty", "StopIteration")):
            wire, fields = self.evaluate(name)
            self.assertEqual(wire, "handler.failed")
            self.assertIn(words, fields["error"])
            self.assertIn("mine.py", fields["trace"])
        self.assertEqual(self.evaluate("good")[1]["reward"], 1)
        self.run_to_its_end()

    def test_a_number_of_threads_that_cannot_be_is_refused(self):
        self.write("@tool\ndef look(word: str): pass")
        for number in ("0", "-1", "x", "5000"):
            run = subprocess.run([sys.executable, "-m", "sluice.handlers", "mine.py", f"--threads={number}"], cwd=self.folder, text=True,
                                 capture_output=True, env=ENVIRONMENT, stdin=subprocess.DEVNULL, timeout=20)
            self.assertEqual(run.returncode, 2)
            self.assertIn(f"argument --threads: must be 1 to 4096, not {number}", run.stderr)

    def test_what_functions_print_is_not_the_protocols(self):
        self.start('''
            import os
            print("loaded")
            @evaluator
            def grade():
                print("graded")
                os.system("echo from a child")
                return 1
            ''')
        self.assertEqual(self.evaluate("grade"), ("handler.score", {"id": 7, "reward": 1.0}))
        code, out, err = self.host.close()
        self.assertEqual(code, 0)
        for words in ("loaded", "graded", "from a child"):
            self.assertIn(words, out + err)

    def test_it_ends_with_the_worker_whatever_its_threads_do(self):
        self.start('''
            import time
            @evaluator
            def grade(): time.sleep(3600)
            ''')
        self.begin(1, "evaluator", "grade")
        self.run_to_its_end()

    def test_a_saved_file_is_loaded_again_and_a_broken_one_changes_nothing(self):
        self.start("@evaluator\ndef grade(): return 1\n", "--dev")
        self.assertEqual(self.evaluate("grade")[1]["reward"], 1.0)
        self.write("@evaluator\ndef grade(): return 12345\n")
        self.wait_for_reward(12345.0)
        self.write("@evaluator\ndef grade(: return 3\n")
        time.sleep(0.7)
        self.assertEqual(self.evaluate("grade")[1]["reward"], 12345.0)
        self.write("@evaluator\ndef grade(): return 4\n@evaluator\ndef other(): return 5\n")
        self.assertEqual(self.host.process.wait(20), 0)  # to be started anew with what is offered now
        self.assertIn("SyntaxError", self.host.close()[2])

    def wait_for_reward(self, reward):
        end = time.monotonic() + 20
        while self.evaluate("grade")[1]["reward"] != reward and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.evaluate("grade")[1]["reward"], reward)


class HandlersByLines(Handlers):
    form = Lines


if __name__ == "__main__":
    unittest.main()
