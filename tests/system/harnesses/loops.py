"""What stands in for harnesses in these tests: small loops that run inside a sandbox and speak to their model over HTTP."""
import json

# A module for them, in the sandbox.
SAID = '''
import json, os, socket, sys, threading, time, urllib.error, urllib.request

URL = os.environ["SLUICE_MODEL_URL"]
BASH = {"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}, "times": {"type": "number"}}, "required": ["command"]}}}


def post(path, body, raw=None):
    """The status, and the answer as JSON or, of a stream, as the text it is."""
    data = json.dumps(body).encode() if raw is None else raw
    request = urllib.request.Request(URL + path, data, {"Content-Type": "application/json", "x-session-id": "another"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode()
    return status, json.loads(text) if text.startswith("{") else text


def chat(messages, **more):
    status, answer = post("/v1/chat/completions", dict({"model": "any", "messages": messages}, **more))
    return answer["choices"][0]["message"] if status == 200 else (status, answer)


def hang_up(messages, **more):
    """Asks, and is gone before the answer comes."""
    body = json.dumps(dict({"model": "any", "messages": messages}, **more)).encode()
    host, port = URL[7:].split(":")
    with socket.create_connection((host, int(port))) as gone:
        gone.sendall(b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: m\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
        time.sleep(0.3)


def user(text):
    return {"role": "user", "content": text}


def results(message, text="done"):
    return [{"role": "tool", "tool_call_id": call["id"], "content": text} for call in message["tool_calls"]]


def say(**what):
    print("SAID " + json.dumps(what))
'''


def task(name, loop, **more):
    """A task whose harness is that Python."""
    agent = dict({"kind": "harness", "command": "exec python3 /workspace/loop.py", "form": "hermes", "max_turns": 20}, **more.pop("agent", {}))
    return dict({"task": name, "prompt": f"do {name}", "agent": agent, "eval": {"kind": "command", "command": "true"},
                 "files": [{"path": "/workspace/loop.py", "text": SAID + loop}]}, **more)


def said(trajectory):
    """What its loop said last."""
    notes = [m["content"] for m in trajectory["messages"] if m["role"] == "note"]
    lines = [line for line in notes[-1].splitlines() if line.startswith("SAID ")]
    assert lines, notes[-1]
    return json.loads(lines[-1][5:])
