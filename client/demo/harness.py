"""Prints the demo's task for a harness (docs/harnesses.md): a loop that knows nothing of Sluice, and speaks to its model in OpenAI's form."""
import json

LOOP = '''
import json, os, urllib.request

def ask(messages):
    body = json.dumps({"model": "any", "messages": messages}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]

task = open(os.environ["SLUICE_PROMPT"]).read()
messages = [{"role": "user", "content": task}]
for again in ("Read that again, and give the word alone.", None):
    messages.append(ask(messages))
    print(messages[-1]["content"])
    if again:
        messages.append({"role": "user", "content": again})
'''

print(json.dumps({
    "task": "harness-loop", "prompt": "Which word is it? The word is: sluice", "files": [{"path": "/workspace/loop.py", "text": LOOP}],
    "agent": {"kind": "harness", "command": "python3 /workspace/loop.py", "max_turns": 4}, "sampling": {"max_tokens": 24},
    "eval": {"kind": "command", "command": "grep -qi sluice /run/sluice/answer"}}))
