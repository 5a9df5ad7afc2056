"""What the traces of a harness are, which of them train, and that each is made again of the record, whatever the harness did."""
import json
import os
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "service"))
import test_service  # noqa: E402
from harness import Engine, Service  # noqa: E402
from loops import said, task  # noqa: E402

CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls",  "times": 1000.0}}\n</tool_call>'
SCRIPT = {"template": "qwen", "rules": [
    {"if": "a title", "reply": "A title"},
    {"if": "in short", "reply": "They looked."},
    {"if": "count to", "reply": "one two three"},
    {"if": "slow", "reply": "at last", "delay_ms": 1500},
    {"if": "think", "reply": "<think>\nhm  \n</think>\n\nThought. \u00fcber <|im_end|> 1000.0"},
    {"if": "do call", "reply": "I look.\n" + CALL + "\n" + CALL},
    {"if": "tool_response", "reply": "It is there."},
    {"reply": "fine"}]}

# A title; sub-agents at once; a history that is tidied, then edited; a summary without tools, and what goes on from it; another way
# behind a reply; a turn that nobody reads.
LOOP = '''
SYSTEM = {"role": "system", "content": "You are it. <|im_start|> is no token here."}
def tidied(reply):
    calls = [dict(call, function={"name": "bash", "arguments": json.dumps({"times": 1000, "command": "ls"})}) for call in reply.get("tool_calls") or ()]
    return dict(reply, content=(reply["content"] or "") + " ", reasoning_content=(reply.get("reasoning_content") or "").rstrip(), tool_calls=calls or None)

chat([{"role": "system", "content": "Titles."}, user("a title for it")])
main = [SYSTEM, user("do call")]
first = chat(main, tools=[BASH])
main += [tidied(first)] + results(first, "a\\n")
threads = [threading.Thread(target=lambda i=i: chat([{"role": "system", "content": "You count."}, user(f"count to {i}")], tools=[BASH])) for i in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
second = chat(main, tools=[BASH])
thought = chat(main + [second, user("think")], tools=[BASH])
chat(main + [second, user("think"), tidied(thought), user("go on")], tools=[BASH])
chat(main + [second, user("another way")], tools=[BASH])
edited = main + [dict(second, content="It was never there."), user("go on")]
chat(edited, tools=[BASH])
chat(main + [second, user("in short, what was it?")])
compact = [SYSTEM, user("They looked. Go on.")]
more = chat(compact, tools=[BASH])
chat(compact + [more, user("do call")], tools=[BASH])
hang_up(compact + [more, user("slow")], tools=[BASH])
time.sleep(4)
'''


def labels(trajectory):
    return [trace.get("label") for trace in trajectory["traces"]]


def learnt(trajectory):
    """Of each trace its label, and of its turns of the assistant what masks them."""
    return [(trace["label"], [turn.get("masked", "") for turn in trace["turns"] if turn["role"] == "assistant"]) for trace in trajectory["traces"]]


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = cls.enterClassContext(Engine(SCRIPT))
        cls.service = cls.enterClassContext(Service(engines=[cls.engine.url], options=["--tries", "1"]))

    def run_one(self, loop, name="one", **agent):
        t, = self.service.submit([task(name, loop, agent=agent)], name)
        self.assertEqual((t["outcome"], t["end"]), ("ok", "done"), (t["detail"], t["messages"][-1]))
        test_service.WithEngine.check_tokens(self, [t], self.engine)
        return t

    def verify(self, *lines, status):
        path = os.path.join(self.service.root, "verify.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        done = self.service.run("verify", path, "--engine", self.engine.url, "--json", "--once", check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_each_trace_of_a_tree_says_what_it_is_and_is_made_again(self):
        t = self.run_one(LOOP, "tree", train=["main", "sub-agent", "branch"])
        self.assertEqual(sorted(labels(t)), sorted(["auxiliary"] * 1 + ["main"] * 4 + ["sub-agent"] * 2 + ["branch"] * 1 + ["undelivered"]), learnt(t))
        for label, masked in learnt(t):
            self.assertEqual(set(masked), {label} if label in ("auxiliary", "undelivered") else {""}, learnt(t))
        totals = self.verify(t, status=0)[-1]
        self.assertEqual(totals["errors"], dict.fromkeys(totals["errors"], 0))
        self.assertEqual(totals["traces"], len(t["traces"]))
        self.assertEqual(totals["turns"], sum(turn["role"] == "assistant" for trace in t["traces"] for turn in trace["turns"]))
        shown = self.service.run("show", t["rollout"]).stdout
        for label in set(labels(t)):
            self.assertIn(f" tokens, {label}", shown)
        self.assertIn("masked as auxiliary", shown)
        self.each_changed_id_is_named(t)

    def each_changed_id_is_named(self, t):
        """Of every trace an id in the middle and at the end of each turn that was given, or that is masked and so not scored."""
        lines = []
        for which, trace in enumerate(t["traces"]):
            for turn in trace["turns"]:
                if turn["length"] < 2 or (turn["role"] == "assistant" and not turn.get("masked")):
                    continue
                for at in {turn["offset"] + turn["length"] // 2, turn["offset"] + turn["length"] - 2}:
                    changed = json.loads(json.dumps(t))
                    changed["rollout"] = f"{which}/{at}"
                    changed["traces"][which]["token_ids"][at] ^= 1
                    lines.append(changed)
        *each, totals = self.verify(*lines, status=1)
        self.assertEqual(len(each), len(lines))
        for one in each:
            trace, token = one["rollout"].split("/")
            self.assertGreater(sum(one["errors"].values()), 0, one)
            self.assertIn(f"{one['rollout']}, trace {trace}, t", one["first"])

    def test_a_template_that_trims_thinking_is_made_again_in_each_of_its_traces(self):
        script = {"template": "qwen3", "rules": [{"reply": "<think>\nhm\n</think>\n\nThought."}]}
        with Engine(script) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            t, = service.submit([task("one", """
messages = [user("hello")]
for _ in range(4):
    reply = chat(messages, tools=[BASH])
    reply.pop("reasoning_content", None)
    messages += [reply, user("and?")]
""")], "train")
            checked = service.run("verify", os.path.join(service.root, "train.out.jsonl"), "--engine", engine.url, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertEqual([trace["reason"].split(":")[0] for trace in t["traces"]], ["", "rewrite", "rewrite", "rewrite"])
        self.assertEqual(set(labels(t)), {"main"})
        self.assertLess(len(t["messages"]), 20)  # what prompts begin with alike is said once

    def test_which_traces_train_is_the_tasks(self):
        loop = '''
chat([{"role": "system", "content": "Titles."}, user("a title")])
chat([{"role": "system", "content": "S"}, user("hello")], tools=[BASH])
chat([{"role": "system", "content": "T"}, user("count to 3")], tools=[BASH])
'''
        cases = [({}, {"auxiliary"}), ({"train": ["auxiliary"]}, {"main", "sub-agent"}), ({"train": ["main"]}, {"auxiliary", "sub-agent"}),
                 ({"train": ["main", "auxiliary", "sub-agent"]}, set())]
        for i, (agent, masked) in enumerate(cases):
            t = self.run_one(loop, f"train-{i}", **agent)
            self.assertEqual(labels(t), ["auxiliary", "main", "sub-agent"])
            for trace in t["traces"]:
                self.assertEqual(any(trace["mask"]), trace["label"] not in masked, (agent, trace["label"]))
            self.verify(t, status=0)

    def test_a_loop_without_tools_is_learned_from_though_one_request_has_some(self):
        t = self.run_one('''
chat([{"role": "system", "content": "Route."}, user("hello")], tools=[BASH])
messages = [{"role": "system", "content": "S"}, user("hello")]
for _ in range(3):
    messages += [chat(messages), user("and?")]
''', "routed", train=["main"])
        self.assertEqual(learnt(t), [("sub-agent", ["sub-agent"]), ("main", ["", "", ""])])
        self.verify(t, status=0)

    def test_of_max_traces_is_what_is_not_auxiliary(self):
        t, = self.service.submit([task("bounded", '''
title = [{"role": "system", "content": "Titles."}, user("a title")]
messages = [{"role": "system", "content": "S"}, user("hello")]
chat(title)
messages += [chat(messages, tools=[BASH]), user("and?")]
chat(title[:1] + [user("a title again")])
chat(messages, tools=[BASH])
say(beyond=chat([{"role": "system", "content": "T"}, user("hello")], tools=[BASH])[1])
''', agent={"max_traces": 1})], "bounded")
        self.assertEqual((t["outcome"], t["end"]), ("agent", "context"), t["detail"])
        self.assertEqual(labels(t), ["auxiliary", "main", "auxiliary"])
        self.assertIn("agent.max_traces is 1", json.dumps(said(t)["beyond"]))

    def test_branches_of_a_sub_agent_are_the_sub_agents(self):
        t = self.run_one('''
main, sub = ([{"role": "system", "content": name}, user("hello")] for name in "ST")
main += [chat(main, tools=[BASH]), user("and?")]
sub.append(chat(sub, tools=[BASH]))
for way in ("one way", "another"):
    chat(sub + [user(way)], tools=[BASH])
chat(main, tools=[BASH])
''', "branches", train=["main", "branch"])
        self.assertEqual(learnt(t), [("main", ["", ""]), ("sub-agent", ["sub-agent"] * 2), ("sub-agent", ["sub-agent"])])
        self.verify(t, status=0)

    def test_a_loop_without_tools_is_the_main_conversation(self):
        t = self.run_one('say(text=chat([user("hello")])["content"])', "bare")
        self.assertEqual((labels(t), said(t)), (["main"], {"text": "fine"}))
        self.assertTrue(any(t["traces"][0]["mask"]))

    def test_steps_are_traces_that_say_so(self):
        steps = [{"name": name, "prompt": "p", "eval": {"command": "true"}} for name in ("first", "second")]
        of = task("steps", 'chat([user("hello")], tools=[BASH])')
        del of["prompt"]
        of.update(steps=steps, eval={"kind": "command", "sandbox": "agent"})
        t, = self.service.submit([of], "steps")
        self.assertEqual([trace["reason"] for trace in t["traces"]], ["", "step: second"], t["detail"])
        self.verify(t, status=0)


if __name__ == "__main__":
    unittest.main()
