"""Of a harness's prompts only what is new is tokenized: counted by what the engine was asked, with requests in the form that Claude Code
and mini-swe-agent send them."""
import os
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "service"))
from harness import Engine, Service  # noqa: E402
from loops import task  # noqa: E402

TURNS = 16
OUTPUT = 160  # bytes of each result, about as many as `ls -l` of a few files


def script(tool, arguments):
    call = f'I look.\n<tool_call>\n{{"name": "{tool}", "arguments": {arguments}}}\n</tool_call>'
    return {"template": "qwen", "context": 1 << 17, "rules": [{"replies": [call] * (TURNS - 1) + ["Done."]}]}


# Each streams or not as it does; the prompt's size, the tools and what moves from request to request are as they were recorded.
CLAUDE_CODE = '''
def tool(name, **properties):
    return {"name": name, "description": name + " does what it says. " * 30, "input_schema": {"type": "object", "properties": properties,
            "required": list(properties), "additionalProperties": False, "$schema": "http://json-schema.org/draft-07/schema#"}}

TOOLS = [tool("Bash", command={"type": "string"}, timeout={"type": "number"}), tool("Edit", file_path={"type": "string"}), tool("Read", file_path={"type": "string"})]
SYSTEM = [{"type": "text", "text": "You are a Claude agent."}, {"type": "text", "text": "Work in /workspace. " * 150, "cache_control": {"type": "ephemeral"}}]
first, messages = "<system-reminder>Today is a day.</system-reminder>", []

def ask():
    """The newest message has the mark of the cache; the first is a list of blocks only in the first request."""
    opening = [{"type": "text", "text": first}, {"type": "text", "text": "Count the files."}] if not messages else first + "\\nCount the files."
    sent = json.loads(json.dumps([{"role": "user", "content": opening}] + messages))
    if messages:
        sent[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    status, events = post("/v1/messages?beta=true", {"model": "claude", "max_tokens": 32000, "stream": True, "system": SYSTEM, "tools": TOOLS,
                          "messages": sent, "metadata": {"user_id": "{}"}})
    assert status == 200, events
    return [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: ")]

def blocks(events):
    """The message's content as the client puts it together; its arguments as a parser of JSON gives them: 1000 for 1000.0."""
    told = {}
    for event in events:
        if event["type"] == "content_block_start":
            told[event["index"]] = dict(event["content_block"], given="")
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], told[event["index"]]
            block["given"] += delta.get("partial_json", "")
            for key in ("text", "thinking", "signature"):
                block[key] = block[key] + delta[key] if key in delta else block.get(key)
    for block in told.values():
        given = block.pop("given")
        if block["type"] == "tool_use":
            block["input"] = {key: int(value) if value == 1000.0 else value for key, value in json.loads(given or json.dumps(block["input"])).items()}
    return [{key: value for key, value in block.items() if value is not None} for block in told.values()]

while True:
    content = blocks(ask())
    uses = [block for block in content if block["type"] == "tool_use"]
    if not uses:
        break
    messages += [{"role": "assistant", "content": content}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": use["id"], "content": f"{len(messages)} ".ljust(SIZE, "x"), "is_error": False} for use in uses]}]
'''
MINI = '''
TOOL = {"type": "function", "function": {"name": "bash", "description": "Execute a bash command", "parameters": {
    "type": "object", "properties": {"command": {"type": "string", "description": "The bash command to execute"}}, "required": ["command"]}}}
messages = [{"role": "system", "content": "You are a helpful assistant that can interact with a computer."},
            user("Please solve this issue. " + "Follow the workflow and its rules. " * 110)]
while True:
    status, answer = post("/v1/chat/completions", {"model": "m", "messages": messages, "tools": [TOOL]})
    assert status == 200, answer
    message = answer["choices"][0]["message"]
    if not message.get("tool_calls"):
        break
    messages.append(dict(message, function_call=None, provider_specific_fields={"refusal": None}))
    messages += [{"role": "tool", "tool_call_id": call["id"],
                  "content": f"<returncode>0</returncode>\\n<output>\\n{len(messages)} ".ljust(SIZE, "x") + "\\n</output>"} for call in message["tool_calls"]]
'''


def tokens_asked(line):
    """How many tokens the engine was to make or render text for: in the scripted engine's tokenizer each byte is one."""
    request = line["request"]
    if line["path"] == "/tokenize":
        return len(request["content"].encode())
    return sum(len(m["content"].encode()) for m in request["messages"]) if line["path"] == "/apply-template" else 0


class Cache(unittest.TestCase):
    def count(self, loop, tool, arguments):
        """Of a second rollout, which finds what is learnt once of a template: of each turn but the first its prompt, what was asked of it, and what
        is new."""
        with Engine(script(tool, arguments)) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            service.submit([task("warm", f"SIZE = {OUTPUT}\n" + loop)], "warm")
            begun = len(engine.log())
            t, = service.submit([task("one", f"SIZE = {OUTPUT}\n" + loop)], "train")
            log = engine.log()[begun:]
        self.assertEqual(t["outcome"], "ok", t["messages"][-1])
        trace, = t["traces"]
        turns = [turn for turn in trace["turns"] if turn["role"] == "assistant"]
        self.assertEqual(len(turns), TURNS)
        asked, which = [0], 0
        for line in log:
            if line["path"] == "/completion":
                which += 1
                asked.append(0)
            asked[which] += tokens_asked(line)
        self.assertEqual(which, TURNS)
        new = [turn["length"] for turn in trace["turns"] if turn["role"] == "tool"]
        return [turn["prompt_tokens"] for turn in turns[1:]], asked[1:TURNS], new

    def check(self, loop, tool, arguments):
        prompts, asked, new = self.count(loop, tool, arguments)
        for prompt, made, observation in zip(prompts, asked, new):
            self.assertLessEqual(made, observation, (prompts, asked, new))  # special tokens are known
            self.assertGreater(made, OUTPUT // 2, (prompts, asked, new))
        taken = 1 - sum(asked) / sum(prompts)
        print(f"{tool}: {sum(prompts)} tokens of {len(prompts)} prompts behind the first, {sum(asked)} of them tokenized: {taken:.1%} taken from the tree")
        self.assertGreaterEqual(taken, 0.95, (prompts, asked, new))

    def test_claude_code(self):
        self.check(CLAUDE_CODE, "Bash", '{"command": "ls",  "timeout": 1000.0}')

    def test_mini_swe_agent(self):
        self.check(MINI, "bash", '{"command": "ls"}')


if __name__ == "__main__":
    unittest.main()
