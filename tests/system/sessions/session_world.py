"""Sessions in tests: loops of plain http.client in this process, against a service whose run worker takes them."""
import http.client
import json
import os
import sys
import urllib.parse

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "service"))
sys.path.insert(0, os.path.join(__file__.rsplit("/", 4)[0], "client", "python"))
from harness import Engine, Service  # noqa: E402
from sluice import Client  # noqa: E402

SCRIPT = {"template": "qwen", "rules": [
    {"if": "slow", "reply": "at last", "delay_ms": 1500},
    {"if": "very long", "reply": "never", "delay_ms": 60000},
    {"if": "a sum", "reply": "It is \\boxed{2}."},
    {"reply": "fine"}]}
POSTED = {"task": "one", "agent": {"kind": "session", "form": "hermes", "max_turns": 20}, "eval": {"kind": "posted"}}


def ask(url, path, body=None, method=None, timeout=60):
    """The status, and the answer as JSON, or as the text it is."""
    to = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(to.hostname, to.port, timeout=timeout)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method or ("GET" if data is None else "POST"), to.path + path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    return answer.status, json.loads(text) if text.startswith("{") else text


def user(text):
    return {"role": "user", "content": text}


def chat(url, messages, **more):
    status, answer = ask(url, "/v1/chat/completions", dict({"model": "any", "messages": messages}, **more))
    assert status == 200, answer
    return answer["choices"][0]["message"]


class World:
    """An engine, a service that takes sessions, and a client of it."""

    def __init__(self, script=None, options=(), **more):
        self.engine = Engine(script or SCRIPT)
        self.options, self.more = ["--tries", "2", "--sessions", "0", *options], more

    def __enter__(self):
        self.engine.__enter__()
        try:
            self.service = Service(engines=[self.engine.url], options=self.options, **self.more).__enter__()
        except BaseException:
            self.engine.__exit__()
            raise
        self.client = Client(self.service.url)
        return self

    def __exit__(self, *why):
        self.client.close()
        try:
            self.service.__exit__(*why)
        finally:
            self.engine.__exit__()

    def session(self, task=None, **more):
        return self.client.session(POSTED if task is None else task, **dict({"wait": 60.0}, **more))


def roles(trajectory):
    """Of each trace its turns' roles."""
    return [[turn.role for turn in trace.turns] for trace in trajectory.traces]
