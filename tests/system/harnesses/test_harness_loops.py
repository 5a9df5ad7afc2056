"""Programs that speak to their model over HTTP, in the sandbox: what they are told is what was sampled, and the record has it id for
id, whatever they make of the history they give back."""
import json
import os
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "service"))
import test_service  # noqa: E402
from harness import PYTHON, SOURCE, Engine, Service  # noqa: E402
from loops import said, task  # noqa: E402

CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls",  "times": 1000.0}}\n</tool_call>'
SCRIPT = {"template": "qwen", "rules": [
    {"if": "a title", "reply": "A title"},
    {"if": "count to", "reply": "one two three"},
    {"if": "slow", "reply": "at last", "delay_ms": 1500},
    {"if": "think", "reply": "<think>\nhm\n</think>\n\nThought."},
    {"if": "do cd", "reply": CALL.replace("ls", "cd /workspace && ls  \\n")},
    {"if": "do call", "reply": "I look.\n" + CALL},
    {"if": "tool_response", "reply": "It is there."},
    {"reply": "fine"}]}


def shape(trajectory):
    """Of each trace its reason and its turns' roles."""
    return [(trace["reason"].split(":")[0], [turn["role"] for turn in trace["turns"]]) for trace in trajectory["traces"]]


class Loops(unittest.TestCase):
    def run_one(self, script=None, **of):
        return self.run_all([task("one", **of)], script)[0]

    def run_all(self, tasks, script=None):
        with Engine(script or SCRIPT) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            ended = service.submit(tasks, "train")
            test_service.WithEngine.check_tokens(self, ended, engine)
        order = [one["task"] for one in tasks]
        return sorted(ended, key=lambda t: order.index(t["task"]))

    def test_the_demos_harness_solves_its_task(self):
        demo = subprocess.run([PYTHON, os.path.join(SOURCE, "client", "demo", "harness.py")], capture_output=True, text=True, check=True)
        t, = self.run_all([json.loads(demo.stdout)], {"rules": [{"if": "word alone", "reply": "sluice"}, {"reply": "It is a word."}]})
        self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), t["detail"])
        self.assertEqual(shape(t), [("", ["prompt", "assistant", "user", "assistant"])])

    def test_a_linear_run_is_one_trace_whatever_was_done_to_the_bytes_of_its_history(self):
        t = self.run_one(loop='''
messages = [{"role": "system", "content": "Be quick."}, user("do call")]
first = chat(messages, tools=[BASH])
call = first["tool_calls"][0]
given = dict(json.loads(call["function"]["arguments"]), times=1000)
again = {"role": "assistant", "content": [{"type": "text", "text": first["content"] + "  "}], "refusal": None, "tool_calls": [
    {"id": call["id"], "type": "function", "function": {"name": "bash", "arguments": json.dumps(given, sort_keys=False, indent=2)}}]}
second = chat(messages + [again] + results(first), tools=[BASH])
third = chat(messages + [again] + results(first) + [second, user("go on")], tools=[BASH], stream=False)
say(first=first["content"], arguments=json.loads(call["function"]["arguments"]), second=second["content"], third=third["content"])
''')
        self.assertEqual((t["outcome"], t["end"]), ("ok", "done"), t["detail"])
        self.assertEqual(shape(t), [("", ["prompt", "assistant", "tool", "assistant", "user", "assistant"])])
        self.assertEqual(said(t), {"first": "I look.", "arguments": {"command": "ls", "times": 1000.0}, "second": "It is there.", "third": "fine"})

    def test_an_edited_reply_begins_a_new_trace_and_counts_no_token_twice(self):
        t = self.run_one(loop='''
first = chat([user("do call")], tools=[BASH])
edited = dict(first, content="I never looked.")
chat([user("do call"), edited] + results(first), tools=[BASH])
''')
        self.assertEqual(shape(t), [("", ["prompt", "assistant"]), ("rewrite", ["prompt", "assistant"])])

    def test_an_edited_reply_deep_in_a_conversation_is_told_as_the_models_not_as_the_users(self):
        t = self.run_one(loop='''
first = chat([user("do call")], tools=[BASH])
second = chat([user("do call"), first] + results(first), tools=[BASH])
edited = dict(second, content="It was never there.")
chat([user("do call"), first] + results(first) + [edited, user("go on")], tools=[BASH])
''')
        self.assertEqual(shape(t), [("", ["prompt", "assistant", "tool", "assistant"]), ("history", ["prompt", "assistant"])])

    def test_a_call_as_its_schema_has_it_by_default_and_as_claude_code_tidies_it_is_the_same_call(self):
        t = self.run_one(loop='''
BASH["function"]["parameters"]["properties"]["quiet"] = {"type": "boolean", "default": False}
first = chat([user("do cd")], tools=[BASH])
call = first["tool_calls"][0]
def given(**more):
    return dict(first, tool_calls=[dict(call, function={"name": "bash", "arguments": json.dumps(dict({"command": "ls\\n", "times": 1000}, **more))})])
chat([user("do cd"), given(quiet=False)] + results(first), tools=[BASH])
chat([user("do cd"), given(quiet=True)] + results(first), tools=[BASH])
''')
        self.assertEqual(shape(t), [("", ["prompt", "assistant", "tool", "assistant"]), ("rewrite", ["prompt", "assistant"])])

    def test_sub_agents_titles_and_the_main_conversation_are_traces_of_one_tree(self):
        t = self.run_one(loop='''
title = chat([user("a title for it")])
main = [{"role": "system", "content": "You are it."}, user("do it")]
main.append(chat(main, tools=[BASH]))
threads = [threading.Thread(target=lambda i=i: chat([user(f"count to {i}")], tools=[BASH])) for i in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
main += [user("go on")]
main.append(chat(main, tools=[BASH]))
chat(main[:2] + [main[2], user("another way")], tools=[BASH])
''')
        reasons = sorted(reason for reason, _ in shape(t))
        self.assertEqual(reasons, ["", "branch", "branch", "branch", "branch", "branch"])
        self.assertEqual(sum(turn["role"] == "assistant" for trace in t["traces"] for turn in trace["turns"]), 7)

    def test_a_second_try_of_a_request_is_given_the_same_turn(self):
        t = self.run_one(loop='''
answers = []
ask = lambda: answers.append(chat([user("slow")]))
threads = [threading.Thread(target=ask) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
say(answers=len({json.dumps(a) for a in answers}))
''')
        self.assertEqual(said(t), {"answers": 1})
        self.assertEqual(shape(t), [("", ["prompt", "assistant"])])

    def test_who_hung_up_and_asks_again_is_given_the_turn_that_was_sampled(self):
        t = self.run_one(loop='''
hang_up([user("slow")])
say(answer=chat([user("slow")])["content"])
''')
        self.assertEqual(said(t), {"answer": "at last"})
        self.assertEqual(shape(t), [("", ["prompt", "assistant"])])

    def test_a_turn_that_nobody_read_is_recorded_and_not_learnt(self):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            t, = service.submit([task("one", """
messages = [user("go")]
messages += [chat(messages), user("slow")]
hang_up(messages)
time.sleep(5)
""")], "train")
        self.assertEqual(shape(t), [("", ["prompt", "assistant", "user", "assistant"])])
        trace = t["traces"][0]
        learnt = [sum(trace["mask"][turn["offset"]:turn["offset"] + turn["length"]]) for turn in trace["turns"]]
        self.assertEqual([n > 0 for n in learnt], [False, True, False, False])

    def test_a_prompt_that_fits_again_goes_on(self):
        t = self.run_one(dict(SCRIPT, context=400), loop="""
messages = [user("go")]
messages += [chat(messages), user("x" * 1000)]
long = chat(messages)
say(status=long[0], code=long[1]["error"]["code"], fine=chat([user("shorter")])["content"])
""")
        self.assertEqual(said(t), {"status": 400, "code": "context_length_exceeded", "fine": "fine"})
        self.assertEqual((t["outcome"], t["end"]), ("ok", "done"), t["detail"])

    def test_each_dialect_goes_on_in_its_own_form_streaming_or_not(self):
        t = self.run_one(loop='''
status, first = post("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [user("do call")], "tools": [
    {"name": "bash", "description": "Runs it.", "input_schema": BASH["function"]["parameters"]}]})
used = [block for block in first["content"] if block["type"] == "tool_use"][0]
back = {"role": "assistant", "content": first["content"]}
answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": used["id"], "content": "done"}]}
status, events = post("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [user("do call"), back, answer], "stream": True, "tools": [
    {"name": "bash", "description": "Runs it.", "input_schema": BASH["function"]["parameters"]}]})
status, count = post("/v1/messages/count_tokens", {"model": "m", "messages": [user("do call")]})
status, item = post("/v1/responses", {"model": "m", "input": "think"})
status, more = post("/v1/responses", {"model": "m", "input": [user("think")] + item["output"] + [user("more")], "stream": True})
status, part = post("/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]})
say(stop=first["stop_reason"], last=events.strip().splitlines()[-1], tokens=count["input_tokens"] > 0,
    types=[i["type"] for i in item["output"]], done="response.completed" in more, text=part["candidates"][0]["content"]["parts"][0]["text"])
''')
        self.assertEqual(said(t), {"stop": "tool_use", "last": 'data: {"type":"message_stop"}', "tokens": True, "types": ["reasoning", "message"],
                                   "done": True, "text": "fine"})
        self.assertEqual([roles for _, roles in shape(t)], [["prompt", "assistant", "tool", "assistant"], ["prompt", "assistant", "user", "assistant"],
                                                            ["prompt", "assistant"]])

    def test_what_cannot_be_is_refused_in_the_dialects_own_form_and_the_rollout_goes_on(self):
        t = self.run_one(loop='''
refused = {
    "many": chat([user("x")], n=8),
    "image": chat([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]),
    "json": post("/v1/messages", None, raw=b"{broken"),
    "deep": post("/v1/chat/completions", None, raw=b"[" * 100000),
    "path": post("/v2/other", {}),
    "large": post("/v1/messages", None, raw=b" " * (33 << 20)),
    "empty": post("/v1/chat/completions", {}),
    "call": chat([user("x"), {"role": "tool", "tool_call_id": "call_forged", "content": "y"}]),
}
say(statuses={name: got[0] if isinstance(got, (list, tuple)) else 200 for name, got in refused.items()},
    words=refused["json"][1]["error"]["message"], kind=refused["json"][1]["type"], fine=chat([user("x")])["content"])
''')
        self.assertEqual(t["outcome"], "ok", t["detail"])
        got = said(t)
        self.assertEqual(got["statuses"], {"many": 400, "image": 400, "json": 400, "deep": 400, "path": 404, "large": 413, "empty": 400, "call": 200})
        self.assertEqual((got["kind"], got["fine"]), ("error", "fine"))
        self.assertIn("no JSON", got["words"])

    def test_what_the_models_template_refuses_is_told_in_its_words_in_each_form_and_the_rollout_goes_on(self):
        t = self.run_one(loop='''
raises = user("template raises")
told = [chat([raises]), post("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [raises]}), post("/v1/responses", {"input": [raises]}),
        post("/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "template raises"}]}]}),
        post("/v1/messages/count_tokens", {"model": "m", "messages": [raises]})]
say(statuses=[status for status, _ in told], words=[answer["error"]["message"] for _, answer in told], kind=told[1][1]["error"]["type"],
    fine=chat([user("x")])["content"])
''')
        self.assertEqual(t["outcome"], "ok", t["detail"])
        got = said(t)
        self.assertEqual((got["statuses"], got["kind"], got["fine"]), ([400] * 5, "invalid_request_error", "fine"))
        self.assertEqual(set(got["words"]), {"the model's chat template refuses the conversation: no such thing"})
        self.assertEqual(shape(t), [("", ["prompt", "assistant"])])

    def test_a_harness_of_which_the_template_takes_nothing_does_not_go_with_the_model_and_is_the_tasks_fault(self):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            t, = service.submit([task("one", "chat([user('template raises')]); sys.exit(1)")], "train")
        self.assertEqual((t["outcome"], t["reward"]), ("task", None), t["detail"])
        self.assertIn("ended with 1 without a turn: the model's chat template refuses the conversation: no such thing", t["detail"])

    def test_a_budget_that_is_used_up_ends_the_rollout(self):
        loop = '''
messages = [user("go")]
while True:
    answer = chat(messages)
    if isinstance(answer, tuple):
        say(status=answer[0], code=answer[1]["error"]["code"])
        break
    messages += [answer, user("go on")]
'''
        turns, endless = self.run_all([task("turns", loop, agent={"max_turns": 2}),
                                       task("endless", loop.replace("break", "continue"), agent={"max_turns": 2})])
        self.assertEqual((turns["outcome"], turns["end"]), ("agent", "turns"), turns["detail"])
        self.assertEqual(said(turns), {"status": 400, "code": "context_length_exceeded"})
        self.assertEqual((endless["outcome"], endless["end"]), ("agent", "turns"), endless["detail"])

    def test_a_program_that_never_asks_is_the_tasks_fault_and_one_that_fails_later_is_not(self):
        never, later, late = self.run_all([task("never", "sys.exit(3)"), task("later", "chat([user('x')]); sys.exit(3)"),
                                           task("late", "chat([user('x')])\nwhile True: pass", limits={"run_s": 6})])
        self.assertEqual((never["outcome"], never["reward"]), ("task", None), never["detail"])
        self.assertIn("never asked its model", never["detail"])
        self.assertEqual((later["outcome"], later["reward"]), ("ok", 1.0), later["detail"])
        self.assertEqual((late["outcome"], late["end"]), ("agent", "time"), late["detail"])

    def test_an_engine_that_fails_is_the_services_fault(self):
        with Engine({"rules": [{"path": "/completion", "fault": "500"}]}) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            t, = service.submit([task("one", "chat([user('x')])")], "train")
        self.assertEqual((t["outcome"], t["reward"]), ("infra", None), t["detail"])

    def test_nobody_inside_reaches_the_model_of_another_rollout(self):
        loop = '''
rows = [line.split() for path in ("/proc/net/tcp", "/proc/net/tcp6") if os.path.exists(path) for line in list(open(path))[1:]]
listening = {int(row[1].rsplit(":", 1)[1], 16) for row in rows if row[3] == "0A"}
say(ports=listening == {int(URL.rsplit(":", 1)[1])}, text=chat([user("slow")])["content"])
'''
        for t in self.run_all([task("one", loop), task("two", loop)]):
            self.assertEqual(said(t), {"ports": True, "text": "at last"})


if __name__ == "__main__":
    unittest.main()
