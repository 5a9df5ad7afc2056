"""What a harness's model says is streamed while it is sampled, in each form, and never anything that does not stand."""
import os
import sys
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "service"))
from harness import Engine, Service  # noqa: E402
from loops import said, task  # noqa: E402

CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
NUMBERS = "one two three four five six seven eight nine ten"
SCRIPT = {"dialect": "openai", "template": "qwen", "context": 1 << 14, "rules": [
    {"if": "count", "reply": NUMBERS, "token_ms": 30},
    {"if": "quick", "reply": NUMBERS},
    {"if": "think", "reply": "<think>\nhm hm\n</think>\n\nThöught.", "token_ms": 5},
    {"if": "call", "reply": "I look.\n" + CALL, "token_ms": 5},
    {"if": "break", "reply": NUMBERS, "cut_after": 3},
    {"reply": "fine"}]}

# What each form says, event by event: when it came, and what it adds to thinking, text and calls.
STREAMS = '''
FORMS = {
    "chat": ("/v1/chat/completions", lambda text: {"model": "m", "stream": True, "tools": [BASH], "messages": [user(text)]}),
    "responses": ("/v1/responses", lambda text: {"model": "m", "stream": True, "input": text, "tools": [dict(BASH["function"], type="function")]}),
    "anthropic": ("/v1/messages", lambda text: {"model": "m", "stream": True, "max_tokens": 99, "messages": [user(text)],
        "tools": [{"name": "bash", "description": "", "input_schema": BASH["function"]["parameters"]}]}),
    "google": ("/v1beta/models/m:streamGenerateContent?alt=sse", lambda text: {"contents": [{"role": "user", "parts": [{"text": text}]}],
        "tools": [{"functionDeclarations": [dict(BASH["function"], parameters=BASH["function"]["parameters"])]}]}),
}

def added(form, event):
    """(thinking, text, call's name)"""
    if form == "chat":
        delta = event["choices"][0]["delta"] if event.get("choices") else {}
        calls = delta.get("tool_calls", [])
        return delta.get("reasoning_content", ""), delta.get("content") or "", "".join(c["function"]["name"] for c in calls)
    if form == "responses":
        kind, item = event["type"], event.get("item", {})
        return (event["delta"] if kind == "response.reasoning_summary_text.delta" else "", event["delta"] if kind == "response.output_text.delta" else "",
                item["name"] if kind == "response.output_item.done" and item["type"] == "function_call" else "")
    if form == "anthropic":
        delta, block = event.get("delta", {}), event.get("content_block", {})
        return delta.get("thinking", ""), delta.get("text", ""), block.get("name", "") if event["type"] == "content_block_start" else ""
    parts = event["candidates"][0]["content"]["parts"]
    return ("".join(p["text"] for p in parts if p.get("thought")), "".join(p.get("text", "") for p in parts if not p.get("thought")),
            "".join(p["functionCall"]["name"] for p in parts if "functionCall" in p))

def stream(form, text):
    path, body = FORMS[form]
    request = urllib.request.Request(URL + path, json.dumps(body(text)).encode(), {"Content-Type": "application/json"})
    times, events, raw = [], [], b""
    with urllib.request.urlopen(request, timeout=60) as answer:
        for line in answer:
            raw += line
            if line.startswith(b"data: {"):
                times.append(time.monotonic())
                events.append(json.loads(line[6:]))
    parts = [added(form, event) for event in events if "error" not in event]
    thinking, text, calls = ("".join(part[i] for part in parts) for i in range(3))
    texts = [at for at, part in zip(times, parts) if part[1]]
    return {"thinking": thinking, "text": text, "calls": calls, "pieces": len(texts), "raw": raw.decode(),
            "spread": texts[-1] - texts[0] if texts else 0, "error": any("error" in event or event.get("type") == "response.failed" for event in events)}
'''


class Streams(unittest.TestCase):
    def run_one(self, loop, script=None, **of):
        with Engine(script or SCRIPT) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            t, = service.submit([task("one", STREAMS + loop, **of)], "train")
        self.assertIn(t["outcome"], ("ok", "agent"), (t["detail"], t["messages"][-1]))
        return t

    def test_text_comes_as_it_is_sampled_in_each_form_and_is_the_answer_that_is_not_streamed(self):
        t = self.run_one('''
plain = chat([user("quick")])["content"]
say(plain=plain, **{form: {k: v for k, v in stream(form, f"count for {form}").items() if k != "raw"} for form in FORMS})
''')
        got = said(t)
        for form in ("chat", "responses", "anthropic", "google"):
            with self.subTest(form):
                one = got[form]
                self.assertEqual((one["text"], one["thinking"], one["calls"], one["error"]), (got["plain"], "", "", False))
                self.assertGreater(one["pieces"], 20)
                self.assertGreater(one["spread"], 0.03 * len(NUMBERS) / 2)
        self.assertEqual(sum(turn["role"] == "assistant" for trace in t["traces"] for turn in trace["turns"]), 5)

    def test_thinking_is_streamed_as_such_and_calls_come_at_the_end(self):
        t = self.run_one('''
say(**{f"{form} {what}": {k: v for k, v in stream(form, f"{what} for {form}").items() if k in ("thinking", "text", "calls", "raw")}
       for form in FORMS for what in ("think", "call")})
''')
        got = said(t)
        for form in ("chat", "responses", "anthropic", "google"):
            with self.subTest(form):
                think, call = got[f"{form} think"], got[f"{form} call"]
                self.assertEqual((think["thinking"], think["text"], think["calls"]), ("hm hm", "Thöught.", ""))
                self.assertEqual((call["thinking"], call["text"], call["calls"]), ("", "I look.", "bash"))
                self.assertNotIn("<", call["raw"] + think["raw"])

    def test_a_prompt_that_begins_the_thinking_is_known(self):
        script = dict(SCRIPT, template="primed", rules=[{"if": "think", "reply": "hm hm\n</think>\n\nSo.", "token_ms": 5}, {"reply": "never closed"}])
        t = self.run_one('''
got = {form: {k: v for k, v in stream(form, f"think for {form}").items() if k in ("thinking", "text")} for form in FORMS}
say(plain=chat([user("think")]), cut=chat([user("other")]), **got)
''', script)
        got = said(t)
        for form in ("chat", "responses", "anthropic", "google"):
            self.assertEqual(got[form], {"thinking": "hm hm", "text": "So."}, form)
        self.assertEqual((got["plain"]["reasoning_content"], got["plain"]["content"]), ("hm hm", "So."))
        self.assertEqual((got["cut"]["reasoning_content"], got["cut"]["content"]), ("never closed", ""))

    def test_who_asks_the_same_in_mid_stream_is_given_all_of_it(self):
        t = self.run_one('''
got = []
threads = [threading.Thread(target=lambda: got.append(stream("chat", "count")["raw"])) for _ in range(2)]
threads[0].start()
time.sleep(0.7)
threads[1].start()
[thread.join() for thread in threads]
say(same=got[0] == got[1], ends=[one.endswith("data: [DONE]\\n\\n") for one in got])
''')
        self.assertEqual(said(t), {"same": True, "ends": [True, True]})
        self.assertEqual([len(trace["turns"]) for trace in t["traces"]], [2])

    def test_a_stream_that_a_pause_aborts_goes_on_where_it_was(self):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            service.run("policy", "set", "v1")
            waiting, out = service.submit([task("one", STREAMS + 'open("began", "w")\nsay(text=stream("chat", "count")["text"])')], "train", wait=False)
            while not any(line["path"] == "/v1/completions" and (line["request"] or {}).get("stream") for line in engine.log()):
                time.sleep(0.05)
            time.sleep(0.4)
            service.run("policy", "pause", "--calls", "abort")
            service.run("policy", "set", "v2")
            service.run("policy", "resume")
            t, = service.finish(waiting, out, timeout=100)
        self.assertEqual(said(t), {"text": NUMBERS})
        turn = t["traces"][0]["turns"][1]
        self.assertEqual((turn["version"], [span["version"] for span in turn["versions"]]), ("v1+v2", ["v1", "v2"]), turn)
        self.assertEqual(turn["length"], len(NUMBERS) + 1)

    def test_an_engine_that_fails_in_mid_stream_ends_it_with_an_error(self):
        with Engine(SCRIPT) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            t, = service.submit([task("one", STREAMS + 'one = stream("chat", "break")\nopen("/workspace/said", "w").write(json.dumps(one))')], "train")
        self.assertEqual(t["outcome"], "infra", t["detail"])


if __name__ == "__main__":
    unittest.main()
