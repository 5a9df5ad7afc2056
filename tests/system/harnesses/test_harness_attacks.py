"""Programs in the sandbox that treat the model's server badly: nothing of it hangs, leaks or is noticed by another rollout."""
import os
import sys
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "service"))
import test_service  # noqa: E402
from harness import Engine, Service, wait_until  # noqa: E402
from loops import said, task  # noqa: E402

SCRIPT = {"template": "qwen", "context": 1 << 16, "rules": [
    {"if": "slow", "reply": "at last", "delay_ms": 1000},
    {"if": "patient", "reply": "at last", "delay_ms": 40000},
    {"if": "never", "reply": "late", "delay_ms": 60000},
    {"reply": "fine"}]}

RAW = '''
import gzip, socket, struct, time, zlib
HOST, PORT = URL[7:].split(":")

def connect():
    return socket.create_connection((HOST, int(PORT)), timeout=20)

def head(method="POST", path="/v1/chat/completions", **headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: m"] + [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\\r\\n".join(lines) + "\\r\\n\\r\\n").encode()

def body(text):
    return json.dumps({"model": "any", "messages": [user(text)]}).encode()

def answer(one):
    """All that it says until it closes or has said an answer that says how long it is."""
    got = b""
    try:
        while True:
            part = one.recv(65536)
            got += part
            if not part:
                break
            before, _, rest = got.partition(b"\\r\\n\\r\\n")
            length = [l.split(b":")[1] for l in before.split(b"\\r\\n") if l.lower().startswith(b"content-length")]
            if rest and length and len(rest) >= int(length[0]):
                break
    except OSError as error:
        got += repr(error).encode()
    return got

def ask(*parts):
    with connect() as one:
        try:
            for part in parts:
                one.sendall(part)
        except OSError:
            pass
        return answer(one)

def status(got):
    return int(got.split()[1]) if got.startswith(b"HTTP/1.1 ") else got.decode(errors="replace")[:60]
'''

FORMS = RAW + '''
def encoded(coding, data):
    return ask(head(Content_Length=len(data), Content_Encoding=coding) + data)

text = body("a")
half = len(text) // 2
got = {
    "chunked": ask(head(Transfer_Encoding="chunked") + b"%x\\r\\n%s\\r\\n%x\\r\\n%s\\r\\n0\\r\\n\\r\\n" % (half, text[:half], len(text) - half, text[half:])),
    "gzip": encoded("gzip", gzip.compress(body("b"), mtime=0)),
    "members": encoded("GZip", b"".join(gzip.compress(part, mtime=0) for part in (body("m")[:20], body("m")[20:]))),
    "deflate": encoded("deflate", zlib.compress(body("z"))),
    "bare": encoded("deflate", zlib.compress(body("w"), wbits=-15)),
    "bomb": encoded("gzip", gzip.compress(b" " * (33 << 20), mtime=0)),
    "short": encoded("gzip", gzip.compress(body("s"), mtime=0)[:-9]),
    "more": encoded("deflate", zlib.compress(body("n")) + b"x"),
    "false": encoded("gzip", body("b")),
    "brotli": encoded("br", body("b")),
    "both": encoded("gzip, gzip", gzip.compress(gzip.compress(body("b")))),
    "expect": ask(head(Content_Length=len(body("c")), Expect="100-continue"), body("c")).replace(b"HTTP/1.1 100 Continue\\r\\n\\r\\n", b""),
    "head": ask(head("HEAD", "/", Connection="close")),
    "options": ask(head("OPTIONS", "/v1/chat/completions", Connection="close")),
    "put": ask(head("PUT", "/v1/chat/completions", Content_Length=2) + b"{}"),
    "get": ask(head("GET", "/v1/chat/completions", Connection="close")),
    "headers": ask(head(X="y" * 100000, Content_Length=len(text)) + text),
    "noise": ask(b"\\x16\\x03\\x01\\x02\\x00\\x01\\x00" * 40 + b"\\r\\n\\r\\n"),
}
with connect() as one:
    one.sendall(b"".join(head(Content_Length=len(body(t))) + body(t) for t in ("d", "e", "f")))
    pipelined = b""
    while pipelined.count(b'"fine"') < 3:
        part = one.recv(65536)
        if not part:
            break
        pipelined += part
say(words={name: json.loads(got[name].split(b"\\r\\n\\r\\n", 1)[1])["error"]["message"] for name in ("bomb", "short", "more", "brotli")},
    pipelined=pipelined.count(b'"fine"'), **{name: status(one) for name, one in got.items()})
'''

HANGUPS = RAW + '''
whole = head(Content_Length=len(body("slow"))) + body("slow")
for k in range(3):
    for sent in (b"", b"POST", whole[:40], whole[:-5], whole):
        for rude in (False, True):
            one = connect()
            if rude:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.sendall(sent)
            if sent is whole:
                time.sleep(0.05)
            one.close()
held = []
for k in range(90):
    try:
        held.append(connect())
        held[-1].sendall(b"POST /v1/chat/completions HTTP/1.1\\r\\nX")
    except OSError:
        pass
time.sleep(0.2)
for one in held:
    one.close()
for k in range(300):
    assert post("/v1/models", None)[0] in (200, 404, 405), k
many = [chat([user(f"number {k}")])["content"] for k in range(40)]
stream = connect()
stream.sendall(head(Content_Length=len(body("slow"))) + body("slow"))
say(many=len(many), fine=set(many) == {"fine"}, slow=chat([user("slow")])["content"])
'''

# 62 that never send a whole request, in three ways, and one that waits for its answer all the while.
IDLERS = RAW + '''
patient = connect()
patient.settimeout(90)
patient.sendall(head(Content_Length=len(body("patient"))) + body("patient"))
held = [connect() for _ in range(62)]
for k, one in enumerate(held):
    one.sendall([b"", b"POST /v1/chat/completions HTTP/1.1\\r\\nX", head(Content_Length=100) + b"{"][k % 3])

def trickle():
    try:
        for _ in range(90):
            held[1].sendall(b"y")
            time.sleep(0.5)
    except OSError:
        pass

threading.Thread(target=trickle, daemon=True).start()
began = time.monotonic()
first = connect()
time.sleep(0.5)
late = chat([user("late")])["content"]
waited = time.monotonic() - began
say(late=late, soon=waited < 20, patient=b"at last" in answer(patient))
'''

LEAVES = '''
import subprocess
subprocess.Popen(["setsid", "sh", "-c", "sleep 300"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
say(text=chat([user("x")])["content"])
'''


def files_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Attacks(unittest.TestCase):
    def setUp(self):
        self.engine = self.enterContext(Engine(SCRIPT))
        self.service = self.enterContext(Service(engines=[self.engine.url]))

    def test_each_form_of_a_request_is_answered(self):
        t, = self.service.submit([task("forms", FORMS)], "train")
        self.assertEqual(t["outcome"], "ok", (t["detail"], t["messages"][-1]))
        got = said(t)
        words = got.pop("words")
        self.assertEqual(got, {"chunked": 200, "gzip": 200, "members": 200, "deflate": 200, "bare": 200, "bomb": 413, "short": 400, "more": 400,
                               "false": 400, "brotli": 400, "both": 400, "expect": 200, "head": 200, "options": 404, "put": 404, "get": 404,
                               "headers": 431, "noise": "", "pipelined": 3})
        self.assertEqual(words["bomb"], "Content-Encoding: the body was larger than 32 MiB")
        self.assertIn("it ends too soon", words["short"])
        self.assertIn("something follows", words["more"])
        self.assertEqual(words["brotli"], "Content-Encoding: br is not read; send the body as gzip, deflate or as it is")
        test_service.WithEngine.check_tokens(self, [t], self.engine)

    def test_who_hangs_up_floods_or_leaves_something_behind_costs_nobody_anything(self):
        self.service.submit([task("before", "chat([user('x')])")], "warm")
        worker, = self.service.processes("sluice-worker", "run")
        before = files_of(worker)
        both = self.service.submit([task("bad", HANGUPS, agent={"max_turns": 100}), task("good", LEAVES)], "train")
        for t in both:
            self.assertEqual(t["outcome"], "ok", (t["detail"], t["messages"][-1]))
        self.assertEqual([said(t) for t in sorted(both, key=lambda t: t["task"])],
                         [{"many": 40, "fine": True, "slow": "at last"}, {"text": "fine"}])
        wait_until(lambda: files_of(worker) <= before + 2, 20, "the worker's files are closed")
        self.assertEqual(self.service.processes("sluice-worker", "run"), [worker])

    def test_connections_that_ask_nothing_are_closed_and_those_that_wait_are_not(self):
        t, = self.service.submit([task("idlers", IDLERS)], "train")
        self.assertEqual(t["outcome"], "ok", (t["detail"], t["messages"][-1]))
        self.assertEqual(said(t), {"late": "fine", "soon": True, "patient": True})

    def wait_for_call(self, count=1):
        wait_until(lambda: self.service.status()["stages"]["run"]["leased"] >= count, 60, "it runs")
        time.sleep(1)

    def test_a_cancel_in_mid_call_ends_it(self):
        waiting, out = self.service.submit([task("one", "chat([user('never')])")], "gone", wait=False)
        self.wait_for_call()
        self.service.run("cancel", "--stream", "gone")
        t, = self.service.finish(waiting, out, timeout=60)
        self.assertEqual(t["outcome"], "cancelled")

    def test_a_worker_that_dies_in_mid_call_is_another_try(self):
        waiting, out = self.service.submit([task("one", "say(text=chat([user('slow')])['content'])\nchat([user('slow again')])")], "again", wait=False)
        self.wait_for_call()
        self.service.kill("sluice-worker", "run")
        t, = self.service.finish(waiting, out, timeout=200)
        self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), t["detail"])

    def test_a_pause_in_mid_call_is_waited_out_and_its_time_given_back(self):
        for calls in ("abort", "finish"):
            with self.subTest(calls):
                slow = task("one", "say(text=[chat([user(f'slow {k}')])['content'] for k in range(3)])", limits={"run_s": 12})
                waiting, out = self.service.submit([slow], f"paused-{calls}", wait=False)
                self.wait_for_call()
                self.service.run("policy", "pause", "--calls", calls)
                time.sleep(10)
                self.service.run("policy", "resume")
                t, = self.service.finish(waiting, out, timeout=100)
                self.assertEqual(t["outcome"], "ok", t["detail"])
                self.assertEqual(said(t), {"text": ["at last"] * 3})

    def test_a_broker_that_dies_in_mid_call_costs_a_try_at_most(self):
        waiting, out = self.service.submit([task("one", "say(text=[chat([user(f'slow {k}')])['content'] for k in range(3)])")], "down", wait=False)
        self.wait_for_call()
        self.service.kill("sluice-broker")
        t, = self.service.finish(waiting, out, timeout=200)
        self.assertEqual((t["outcome"], said(t)), ("ok", {"text": ["at last"] * 3}), t["detail"])

    def test_each_step_starts_the_harness_anew(self):
        loop = "say(text=chat([user(open(os.environ['SLUICE_PROMPT']).read())])['content'])"
        of = task("steps", loop, steps=[{"name": "a", "prompt": "slow a"}, {"name": "b", "prompt": "b"}])
        del of["prompt"]
        t, = self.service.submit([of], "steps")
        self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), t["detail"])
        self.assertEqual(sum(m["role"] == "note" for m in t["messages"]), 2)
        test_service.WithEngine.check_tokens(self, [t], self.engine)


if __name__ == "__main__":
    unittest.main()
