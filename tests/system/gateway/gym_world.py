"""What the tests of the gateway's other APIs share: a fleet with a gateway that can be killed, and a client that says what it got."""
import http.client
import json
import os
import sys
import threading

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, load  # noqa: E402,F401
from harness import BINARY, free_ports, wait_until  # noqa: E402

GATEWAY = os.path.join(BINARY, "client", "sluice-gateway")
if not os.path.exists(GATEWAY):
    print("skipped: sluice-gateway is not built")
    sys.exit(77)


def add_gateway(fleet, *options):
    """A gateway of the fleet's, on a port that it keeps across restarts."""
    port = free_ports(1)
    gateway = fleet.add("gateway", [GATEWAY, "--listen", str(port), "--broker", fleet.url, "--state",
                                    os.path.join(fleet.root, "gateway.ids"), *options], ready="gateway ready")
    gateway.port = port
    return gateway


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


def ask(port, method, path, body=None, headers=None, timeout=120, host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        data = json.dumps(body).encode() if body is not None and not isinstance(body, bytes) else body
        connection.request(method, path, data, dict({"Content-Type": "application/json"}, **(headers or {})))
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


class Asking(threading.Thread):
    """The same on a thread of its own; its answer, or its error, once it is joined."""

    def __init__(self, *arguments, **keywords):
        super().__init__(daemon=True)
        self.arguments, self.keywords, self.answer, self.error = arguments, keywords, None, None
        self.start()

    def run(self):
        try:
            self.answer = ask(*self.arguments, **self.keywords)
        except (OSError, http.client.HTTPException) as error:
            self.error = error

    def get(self, seconds=120):
        self.join(seconds)
        assert self.answer is not None, self.error or f"no answer within {seconds} s"
        return self.answer


class Events:
    """A stream of server-sent events, read one by one."""

    def __init__(self, port, path, headers=None, timeout=60, body=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self.connection.request("POST" if body is not None else "GET", path, json.dumps(body) if body is not None else None,
                                dict({"Content-Type": "application/json"}, **(headers or {})))
        self.answer = self.connection.getresponse()

    def __iter__(self):
        """(event, data as JSON, id); of a comment (None, its text, None)."""
        event = {}
        while line := self.answer.readline():
            line = line.decode().rstrip("\n")
            if not line:
                if "data" in event:
                    yield event.get("event"), json.loads(event["data"]), event.get("id")
                event = {}
            elif line.startswith(":"):
                yield None, line[1:], None
            else:
                name, _, value = line.partition(":")
                event[name] = value.lstrip()

    def close(self):
        self.connection.close()


class GatewayCase(Case):
    """One fleet for a class of tests: an engine, workers, a gateway."""
    script, options, workers, slots, extra, run_options = {}, (), 1, 4, {}, ()

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(workers={"init": 1, "eval": 1} if cls.run_options else cls.workers, slots=cls.slots, **cls.extra)
        if cls.run_options:
            cls.fleet.add_worker("run", "run-1", options=cls.run_options)
        cls.engine = cls.fleet.add_engine(cls.script)
        cls.gateway = add_gateway(cls.fleet, *cls.options)
        cls.fleet.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.fleet.__exit__(*sys.exc_info())

    def ask(self, method, path, body=None, **keywords):
        return ask(self.gateway.port, method, path, body, **keywords)

    def later(self, method, path, body=None, **keywords):
        return Asking(self.gateway.port, method, path, body, **keywords)

    def rollouts(self, **query):
        """Those that are at work."""
        text = "&".join(f"{name}={value}" for name, value in query.items())
        return self.ask("GET", f"/api/v1/rollouts?{text}").json["rollouts"]

    def restart_gateway(self):
        self.gateway.kill()
        self.gateway.start()

    def wait_running(self, count=1, **query):
        return wait_until(lambda: (lambda found: found if len(found) >= count else None)(
            [one for one in self.rollouts(**query) if one["stage"] == "run" and one["state"] == "leased"]), 60, f"{count} at work")
