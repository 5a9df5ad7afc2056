"""Hooks between a harness and its model: real processes of an operator's that watch, change and refuse what passes, and what the
record says of it."""
import os
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "service"))
import test_service  # noqa: E402
from harness import PYTHON, SOURCE, Engine, Service  # noqa: E402
from loops import said, task  # noqa: E402

CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "rm -rf /"}}\n</tool_call>'
SCRIPT = {"template": "qwen", "rules": [
    {"if": "SECRET", "reply": "I saw it."},
    {"if": "and the other user", "reply": "Hello, other."},
    {"if": "do call", "reply": "I look.\n" + CALL},
    {"if": "tool_response", "reply": "It is there."},
    {"reply": "fine"}]}
TALK = '''
first = chat([user("do call")], tools=[BASH])
second = chat([user("do call"), first] + results(first, "a SECRET"), tools=[BASH])
third = chat([user("do call"), first] + results(first, "a SECRET") + [second, user("go on")], tools=[BASH])
say(first=first["content"], command=json.loads(first["tool_calls"][0]["function"]["arguments"])["command"], second=second["content"],
    third=third["content"])
'''


def shape(trajectory):
    return [(trace["reason"].split(":")[0], [turn["role"] for turn in trace["turns"]]) for trace in trajectory["traces"]]


def learnt(trajectory):
    """Of each sampled turn, whether it is learned from."""
    return [trace["mask"][turn["offset"]] == 1 for trace in trajectory["traces"] for turn in trace["turns"] if turn["role"] == "assistant"]


def notes(trajectory):
    return [m["content"] for m in trajectory["messages"] if m["role"] == "note"]


class Hooks(unittest.TestCase):
    def run_with(self, hook, loop=TALK, command=None, timeout="20s", tries="1", checks=True):
        return self.run_all(hook, [task("one", loop=loop)], command, timeout, tries, checks)[0]

    def run_all(self, hook, tasks, command=None, timeout="20s", tries="1", checks=True):
        """The rollouts of loops, and all that the run worker wrote, where `hook` is the file mine.py."""
        with Engine(SCRIPT) as engine:
            service = Service(engines=[engine.url])
            path = os.path.join(service.root, "mine.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write("import os, sys, time\nfrom sluice.handlers import Change, Refuse, hook\n" + hook)
            service.environment["PYTHONPATH"] = os.path.join(SOURCE, "client", "python")
            service.arguments += ["--tries", tries, "--hook", "guard=" + (command.replace("MINE", path) if command else f"{PYTHON} -m sluice.handlers {path}"),
                                  "--hook-timeout", timeout]
            with service:
                ended = service.submit(tasks, "train")
                if checks:
                    test_service.WithEngine.check_tokens(self, ended, engine)
                self.log = service.read_log()
        return ended

    # ---- what passes ------------------------------------------------------------------------------

    def test_what_a_hook_lets_pass_is_what_it_would_be_without(self):
        plain = self.run_with("@hook\ndef guard():\n    pass\n")
        self.assertEqual(plain["outcome"], "ok", plain["detail"])
        self.assertEqual(said(plain), {"first": "I look.", "command": "rm -rf /", "second": "I saw it.", "third": "fine"})
        self.assertEqual(shape(plain), [("", ["prompt", "assistant", "tool", "assistant", "user", "assistant"])])
        self.assertEqual(learnt(plain), [True] * 3)
        self.assertEqual([note for note in notes(plain) if "hook" in note], [])

    def test_a_hook_is_told_all_that_passes_in_words(self):
        t = self.run_with('''
@hook
async def guard(job, turn, messages, tools, reply):
    await job.note(f"{turn} {[m['role'] for m in messages]} {[t['name'] for t in tools]} {reply}")
''')
        seen = [note for note in notes(t) if note[0] in "123"]
        self.assertEqual(seen[:3], [
            "1 ['user'] ['bash'] None",
            "1 [] [] {'text': 'I look.', 'calls': [{'name': 'bash', 'arguments': {'command': 'rm -rf /'}}]}",
            "2 ['user', 'assistant', 'tool'] ['bash'] None"])
        self.assertEqual(len(seen), 6)

    def test_a_delay_is_a_delay_and_nothing_else(self):
        t = self.run_with("@hook\ndef guard(reply):\n    time.sleep(0.7)\n", loop='''
began = time.monotonic()
told = chat([user("hi")])["content"]
say(told=told, late=time.monotonic() - began >= 1.4)
''')
        self.assertEqual(said(t), {"told": "fine", "late": True})

    def test_more_than_a_hook_has_read_waits_and_is_no_fault_of_its(self):
        loop = '''
answers, errors = [], []
def ask(i):
    try:
        answers.append(chat([user(f"{i} " + "x" * (6 << 20))])[0])
    except Exception as error:
        errors.append(repr(error))
threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
say(refused=answers, errors=errors, told=chat([user("hi")])["content"])
'''
        for t in self.run_all('''
@hook
async def guard(messages):
    if len(messages) > 0 and len(messages[0]["content"]) > 1000:
        time.sleep(0.3)  # and nothing is read
        return Refuse("too long")
''', [task(f"n{i}", loop=loop) for i in range(4)], timeout="60s", checks=False):
            self.assertEqual((t["outcome"], said(t)), ("ok", {"refused": [400] * 4, "errors": [], "told": "fine"}), t["detail"])
        self.assertNotIn("it does not read", self.log)

    # ---- what is changed -----------------------------------------------------------------------------

    def test_a_result_that_is_redacted_is_never_seen_by_the_model_nor_breaks_the_trace(self):
        t = self.run_with('''
@hook
def guard(messages, reply):
    if reply is None and messages[-1]["role"] == "tool":
        messages[-1]["content"] = messages[-1]["content"].replace("SECRET", "thing")
        return Change(messages=messages)
''')
        self.assertEqual(said(t)["second"], "It is there.")
        self.assertEqual(shape(t), [("", ["prompt", "assistant", "tool", "assistant", "user", "assistant"])])
        self.assertEqual([m["content"] for m in t["messages"] if m["role"] == "tool"], ["a thing"])
        self.assertIn("changed by hook guard: the request of turn 2", notes(t))
        self.assertEqual(learnt(t), [True] * 3)

    def test_an_injected_user_stays_where_it_was_though_the_harness_knows_nothing_of_it(self):
        t = self.run_with('''
@hook
def guard(messages, reply, turn):
    if reply is None and turn == 1:
        return Change(messages=messages + [{"role": "user", "content": "and the other user"}])
''', loop='''
first = chat([user("hi")])
second = chat([user("hi"), first, user("go on")])
say(first=first["content"], second=second["content"])
''')
        self.assertEqual(said(t), {"first": "Hello, other.", "second": "fine"})
        self.assertEqual(shape(t), [("", ["prompt", "assistant", "user", "assistant"])])
        self.assertEqual(sum("changed by hook" in note for note in notes(t)), 1)

    def test_a_system_message_put_in_front_of_one_conversation_is_in_front_of_no_other(self):
        t = self.run_with('''
@hook
def guard(messages, tools, reply):
    if reply is None and len(tools) == 1 and "main" in messages[0]["content"]:
        return Change(messages=[{"role": "system", "content": "PRIVATE"}] + messages)
''', loop='''
first = chat([user("main")], tools=[BASH])
title = chat([user("a title")])
same = chat([user("main")])
agent = chat([user("a sub-agent")], tools=[BASH])
second = chat([user("main"), first, user("go on")], tools=[BASH])
say(told=[m["content"] for m in (first, title, same, agent, second)])
''')
        self.assertEqual(said(t), {"told": ["fine"] * 5})
        prompts = [bytes(i for i in trace["token_ids"][:trace["turns"][0]["length"]] if i < 256).decode() for trace in t["traces"]]
        self.assertEqual(["PRIVATE" in prompt for prompt in prompts], [True, False, False, False], prompts)
        self.assertEqual(len(t["traces"][0]["turns"]), 4)
        self.assertEqual(sum("changed by hook" in note for note in notes(t)), 1)

    def test_what_is_put_at_the_end_is_where_a_turn_or_nothing_follows(self):
        t = self.run_with('''
@hook
def guard(messages, reply, turn):
    if reply is None and turn == 1:
        return Change(messages=messages + [{"role": "user", "content": "and the other user"}])
''', loop='''
first = chat([user("hi")])
again = chat([user("hi")])
other = chat([user("hi"), user("you")])
say(first=first["content"], again=again["content"], other=other["content"])
''')
        self.assertEqual(said(t), {"first": "Hello, other.", "again": "Hello, other.", "other": "fine"})

    def test_what_is_the_same_in_other_words_is_not_changed(self):
        t = self.run_with('''
@hook
def guard(messages, reply):
    if reply is None:
        return Change(messages=[dict(message, mine=1) for message in messages])
    return Change(text=reply["text"], thinking="", calls=[dict(call, mine=1) for call in reply["calls"]])
''')
        self.assertEqual((said(t)["second"], learnt(t)), ("I saw it.", [True] * 3))
        self.assertEqual([note for note in notes(t) if "hook" in note], [])

    def test_what_an_answer_in_lines_leaves_out_stays(self):
        t = self.run_with(r"""
import json
print(json.dumps({"type": "handler.hello", "protocol": 1, "offers": [{"role": "hook", "name": "guard"}]}), flush=True)
for line in sys.stdin:
    told = json.loads(line)
    if told["type"] == "handler.begin":
        answer = {"action": "change", "reply": {"text": "hi"}} if "reply" in told else {"action": "pass"}
        print(json.dumps(dict({"type": "handler.decision", "id": told["id"]}, **answer)), flush=True)
""", command=f"json:{PYTHON} MINE", checks=False)
        self.assertEqual((said(t)["first"], said(t)["command"]), ("hi", "rm -rf /"))

    def test_a_request_that_is_too_large_for_a_hook_is_too_long_and_the_hook_is_not_to_blame(self):
        t = self.run_with("@hook\ndef guard():\n    pass\n", loop='''
first = chat([user("hi")])["content"]
status, answer = chat([user("x" * (17 << 20))])
say(first=first, status=status, code=answer["error"]["code"], words=answer["error"]["message"])
''')
        self.assertEqual((said(t)["first"], said(t)["status"], said(t)["code"]), ("fine", 400, "context_length_exceeded"))
        self.assertRegex(said(t)["words"], r"it has \d+ bytes of messages and tools; at most 16777216 pass a hook")
        self.assertNotEqual(t["outcome"], "infra", t["detail"])

    def test_more_messages_than_there_may_be_are_said_to_be_that(self):
        t = self.run_with('''
@hook
def guard(messages, reply, turn):
    if reply is None and turn == 1:
        return Change(messages=[{"role": "system", "content": "x"}] + messages)
''', loop='''
first = chat([user("hi")])
status, answer = chat([user("hi"), first] + [user("y")] * 4094)
say(status=status, words=answer["error"]["message"])
''', checks=False)
        self.assertEqual(said(t), {"status": 400, "words": "4097 messages with those of hooks, of at most 4096"})

    def test_a_reply_that_is_changed_is_what_the_harness_gives_back_and_is_not_learned_from(self):
        t = self.run_with('''
@hook
def guard(reply):
    if reply and reply["calls"]:
        return Change(calls=[{"name": "bash", "arguments": {"command": "ls"}}])
''', checks=False)
        turn = t["traces"][0]["turns"][1]
        sampled = t["traces"][0]["token_ids"][turn["offset"]:turn["offset"] + turn["length"]]
        self.assertEqual(bytes(sampled[:-1]).decode(), "I look.\n" + CALL)
        self.assertEqual((said(t)["first"], said(t)["command"]), ("I look.", "ls"))
        self.assertEqual(shape(t), [("", ["prompt", "assistant", "tool", "assistant", "user", "assistant"])])
        self.assertEqual(learnt(t), [False, True, True])
        self.assertIn("rm -rf /", [m["content"] for m in t["messages"] if m["role"] == "assistant"][0])
        self.assertIn("changed by hook guard: the reply of turn 1", notes(t))

    def test_a_stream_tells_nothing_before_it_has_passed(self):
        t = self.run_with("@hook\ndef guard(reply):\n    return reply and Change(text='[redacted]')\n", loop='''
status, events = post("/v1/chat/completions", {"model": "any", "stream": True, "messages": [user("hi")]})
say(status=status, told="[redacted]" in events, leaks="fine" in events, ends=events.rstrip().endswith("[DONE]"))
''', checks=False)
        self.assertEqual(said(t), {"status": 200, "told": True, "leaks": False, "ends": True})
        self.assertEqual(learnt(t), [False])

    # ---- what is refused --------------------------------------------------------------------------------

    def test_a_refused_request_is_an_error_in_the_dialects_own_form_and_samples_nothing(self):
        t = self.run_with('''
@hook
def guard(messages, reply):
    if reply is None and "bomb" in messages[-1]["content"]:
        return Refuse("no bombs here")
''', loop='''
status, answer = chat([user("a bomb")])
other, told = post("/v1/messages", {"model": "any", "max_tokens": 9, "messages": [user("a bomb")]})
say(status=status, words=answer["error"]["message"], other=other, kind=told["error"]["type"], after=chat([user("hi")])["content"])
''')
        self.assertEqual(said(t), {"status": 400, "words": "refused by hook guard: no bombs here", "other": 400,
                                   "kind": "invalid_request_error", "after": "fine"})
        self.assertEqual(shape(t), [("", ["prompt", "assistant"])])
        self.assertEqual(notes(t)[:2], ["refused by hook guard: no bombs here"] * 2)

    def test_a_refused_reply_stands_in_the_record_and_is_not_learned_from(self):
        t = self.run_with('''
@hook
def guard(reply):
    if reply and "look" in reply["text"]:
        return Refuse("no looking")
''', loop='''
status, answer = chat([user("do call")], tools=[BASH])
say(status=status, words=answer["error"]["message"], after=chat([user("hi")], tools=[BASH])["content"])
''', checks=False)
        self.assertEqual(said(t), {"status": 400, "words": "refused by hook guard: no looking", "after": "fine"})
        self.assertEqual(learnt(t), [False, True])

    # ---- what goes wrong: it never passes in silence --------------------------------------------------------

    def assert_is_handlers(self, t, words):
        self.assertEqual((t["outcome"], t["trainable"]), ("infra", False), t["detail"])
        self.assertIn(words, t["detail"])
        self.assertEqual([turn for trace in t["traces"] for turn in trace["turns"] if turn["role"] == "assistant"], [])

    def test_one_that_dies(self):
        self.assert_is_handlers(self.run_with("@hook\ndef guard():\n    os._exit(3)\n", checks=False), "the hook guard: ")

    def test_one_that_raises(self):
        self.assert_is_handlers(self.run_with("@hook\ndef guard():\n    return 1 / 0\n", checks=False), "ZeroDivisionError")

    def test_one_that_hangs(self):
        t = self.run_with("@hook\nasync def guard():\n    import asyncio\n    await asyncio.sleep(600)\n", timeout="1s", checks=False)
        self.assert_is_handlers(t, "the hook guard did not answer within 1 s")

    def test_one_that_answers_what_is_no_conversation(self):
        t = self.run_with("@hook\ndef guard():\n    return Change(messages=[{'role': 'king', 'content': 'x'}])\n", checks=False)
        self.assert_is_handlers(t, "the hook guard: messages[0] is none")

    def test_one_that_speaks_no_protocol(self):
        t = self.run_with("", command="json:while :; do echo garbage; sleep 0.2; done", timeout="2s", checks=False)
        self.assert_is_handlers(t, "the hook guard")

    def test_one_that_offers_no_hook(self):
        t = self.run_with("from sluice.handlers import tool\n@tool\ndef guard() -> str:\n    return ''\n", timeout="3s", checks=False)
        self.assert_is_handlers(t, "it offers no hook")

    def test_one_that_is_not_there(self):
        t = self.run_with("", command="exec /no/such/program", timeout="1s", checks=False)
        self.assert_is_handlers(t, "the hook guard did not answer within 1 s")


if __name__ == "__main__":
    unittest.main()
