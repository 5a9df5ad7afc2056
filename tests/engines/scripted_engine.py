#!/usr/bin/env python3
"""An inference server for tests: llama.cpp's HTTP interface over a script, or a recording proxy.

    scripted_engine.py [--script FILE] [--log FILE] [--port N] [--proxy URL]

Prints "ready port=N". Every request and its answer is one JSON line of the log:
{"path", "request", "status", "answer"}.

The model is a script. Its tokenizer is bytes (ids 0..255) and a few special tokens; the
log-probability of a token is a function of its position and id, so that it can be asked for again.

    {"context": 4096, "template": "chatml", "bos": false, "rules": [RULE, ...]}

RULE: {"path": "/completion", "if": "text in the last user's turn", "call": 3, "times": 1,
       "reply": "text" or "replies": ["first turn", "second", ...], "end": "<|im_end|>",
       "delay_ms": 0, "fault": "500"}
The first rule whose conditions all hold decides. `call` counts requests to that path from 1;
`times` is how often the rule may be used. A fault is one of
    STATUSES  an error status; "503_later" with Retry-After: 1
    FAULTS    an answer whose parts contradict each other
    garbage, truncated         200 with what is no JSON, or only its first half
    cut, close                 the connection ends within the answer, or before it
    hang, stall, trickle, endless   nothing at all, half an answer and then nothing, a byte a second,
                               an answer without end: each until the client goes, which is logged
                               as answer "gone"
    all_twice, logprob_twice   keys given twice
    latin                      a byte that is no UTF-8 in each text
    down                       the engine dies
A script's "breaks" names rules that it breaks in all it does: "specials" (reads them in plain text), "specials_inside"
(only among other text), "ids" (text comes back in capitals), "scores" (a prompt's log-probabilities are others),
"too_long" (cuts a prompt that is), "cancel" (a call whose client has gone counts on).
A rule's "tokens" is how many were asked for; its "ids" are a reply's own. A script's "reply" is that of rules without one.
A script's "model" is the model_path it says it serves. "{version}" in a
reply stands for what the file "version_path" of the script holds, when the request came and when it is answered: two,
joined by a '+', if that differs; "{verdict}" for the last label of a verdict that a judge was asked for. With "cleans" /detokenize drops blanks before full stops and commas.
A script beside --proxy may have a "grammar": the real server samples by it, "{label}" in it is the last label of a verdict in the
prompt, and the log has the prompt's "words". With a "dialect" it speaks as another server does (scripted_dialects.py), and streams where it is asked to (scripted_streams.py); a rule without
a "path" is then of whichever route samples.
With "credentials", "user:password", whoever does not give them (Basic) gets 401, and the log a line with path "denied".
While the file "hold_path" is there, answers stop in mid-sequence. With "other_tokenizer", a and b are each other's ids; with
"swapped": [ID, ID], these two. Each start gives another media_marker (llama) or process_start_time_seconds (vllm) or random_seed
(sglang) unless "start" says which one, or, with "start": null, none. "green" is another script, and "green_after" how many requests are answered before one by it:
from then on it is all that is there, behind the same connections (the log says "green"). With "green_path" it is there while that file is. With "cache_path" /metrics tells how full its cache is: the number, of 1,
that this file holds.
"""
import argparse
import base64
import json
import os
import re
import secrets
import select
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import scripted_dialects
import scripted_streams

SPECIALS = {"<|im_start|>": 256, "<|im_end|>": 257, "<|endoftext|>": 258, "<s>": 259}
NAMES = {id: name for name, id in SPECIALS.items()}
ENDS = (257, 258)
VOCABULARY = 260
LOG_LOCK = threading.Lock()


# ---- tokenizer and templates ---------------------------------------------------------------


def encode(text, specials):
    if not specials:
        return list(text.encode())
    ids = []
    for piece in re.split("(" + "|".join(map(re.escape, SPECIALS)) + ")", text):
        ids += [SPECIALS[piece]] if piece in SPECIALS else list(piece.encode())
    return ids


def token_bytes(id):
    return b"" if id > 255 else bytes([id])


def decode(ids, specials=False):
    text = b"".join(NAMES.get(id, "").encode() if specials and id > 255 else token_bytes(id) for id in ids)
    return text.decode(errors="replace")


def is_cut(text):
    """llama.cpp's validate_utf8: whether a lead byte among the last four lacks followers."""
    for back, byte in enumerate(reversed(text[-4:]), 1):
        needed = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 0
        if needed > back:
            return True
    return False


def chatml(messages, form="<|im_start|>{role}\n{content}<|im_end|>\n"):
    turns = "".join(form.format(**m) for m in messages)
    return turns + "<|im_start|>assistant\n"


def qwen(messages):
    """Results of calls within <tool_response>, those in a row in one turn of the user's."""
    out = ""
    for i, m in enumerate(messages):
        if m["role"] != "tool":
            out += "<|im_start|>{role}\n{content}<|im_end|>\n".format(**m)
            continue
        neighbours = [n["role"] for n in (messages[i - 1 : i] + messages[i + 1 : i + 2])]
        out += "" if neighbours[0] == "tool" else "<|im_start|>user"
        out += f"\n<tool_response>\n{m['content']}\n</tool_response>"
        out += "" if neighbours[1:] == ["tool"] else "<|im_end|>\n"
    return out + "<|im_start|>assistant\n"


def qwen3(messages):
    """What replies before the user's last words thought is left out."""
    last = max(i for i, m in enumerate(messages) if m["role"] == "user")
    return qwen([without_thinking(m) if i < last else m for i, m in enumerate(messages)])


def without_tools(messages, most=0):
    """Refuses more of a tool's turns in a row."""
    row = 0
    for m in messages:
        row = row + 1 if m["role"] == "tool" else 0
        if row > most:
            return None
    return chatml(messages)


def without_thinking(message):
    """As templates do: what a reply says behind </think>, where it says that."""
    if message["role"] != "assistant":
        return message
    return dict(message, content=message["content"].split("</think>")[-1].lstrip("\n"))


TEMPLATES = {
    "chatml": chatml,
    "qwen": qwen,
    "qwen3": qwen3,
    "ipython": lambda messages: chatml([dict(m, role=m["role"].replace("tool", "ipython")) for m in messages]),
    "no_tools": without_tools,
    "one_tool": lambda messages: without_tools(messages, 1),
    "trim": lambda messages: chatml([dict(m, content=m["content"].strip(" \t\n\v\f\r")) for m in messages]),
    "squeeze": lambda messages: chatml([dict(m, content=re.sub(r"\s+", " ", m["content"])) for m in messages]),
    "upper": lambda messages: chatml([dict(m, content=m["content"].upper()) for m in messages]),
    "plain": lambda messages: chatml(messages, "{role}: {content}\n"),
    "history": lambda messages: chatml(
        [dict(m, content=m["content"] + ("" if i < 3 else " (again)")) for i, m in enumerate(messages)]),
    # as models that think: history is without it, and a prompt begins it ("primed")
    "thinking": lambda messages: chatml([without_thinking(m) for m in messages]),
    "primed": lambda messages: chatml([without_thinking(m) for m in messages]) + "<think>\n",
    # doubles a digit: unchanged on sentinels, so that only the proof on contents finds it
    "subtle": lambda messages: chatml([dict(m, content=m["content"].replace("4", "44")) for m in messages]),
}


# ---- the model -----------------------------------------------------------------------------


def logprob(position, id):
    return -((position * 7919 + id * 104729) % 9973 + 1) / 1000


def entry(position, id, top, text, word=token_bytes):
    """An entry's own bytes are all since the entry before, the rest of a character's first tokens among them."""
    def one(id):
        return {"id": id, "token": "", "bytes": list(word(id)), "logprob": logprob(position, id)}

    best = sorted(range(VOCABULARY), key=lambda id: -logprob(position, id))[:top]
    return dict(one(id), bytes=list(text), top_logprobs=[one(id) for id in best])


def completion(request, reply_ids, off=0, word=token_bytes):
    """The answer when the model would say reply_ids, were there no limit; forced ids scored as `off` places on, ids named by `word`."""
    prompt, limit = request["prompt"], request["n_predict"]
    forced = [id for id, bias in request.get("logit_bias", []) if bias > 100]
    ids = (forced or reply_ids)[:limit]
    entries, text, sent = [], b"", 0
    place = len(prompt) + (off if forced else 0)
    for i, id in enumerate(ids):
        text += word(id)
        if not is_cut(text):
            entries.append(entry(place + i, id, request["n_probs"], text[sent:], word))
            sent = len(text)
    answer = {
        "content": text.decode(errors="replace"),
        "tokens": ids,
        "stop_type": "eos" if ids and ids[-1] in ENDS else "limit",
        "tokens_evaluated": len(prompt),
        "timings/cache_n": len(prompt) - 1,
        "timings/prompt_ms": 2.5,
        "timings/predicted_ms": 1.25 * len(ids),
    }
    return dict(answer, completion_probabilities=entries) if entries else answer


def last_turns(prompt):
    """The last user's text and how many assistant turns came before, out of prompt ids."""
    turns = decode(prompt, specials=True).split("<|im_start|>")
    users = [t[5:].split("<|im_end|>")[0] for t in turns if t.startswith("user\n")]
    return users[-1] if users else "", sum(t.startswith("assistant\n") for t in turns) - 1


# ---- faults: answers that a worker must not believe ----------------------------------------


def break_answer(answer, **changes):
    answer.update(changes)
    return answer


def break_entry(answer, **changes):
    answer["completion_probabilities"][0].update(changes)
    return answer


STATUSES = {
    "400": {"error": {"code": 400, "message": "no such thing", "type": "invalid_request_error"}},
    "429": {"error": {"code": 429, "message": "slow down", "type": "rate_limit_error"}},
    "500": {"error": {"code": 500, "message": "it broke", "type": "server_error"}},
    "503": {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
    "503_later": {"error": {"code": 503, "message": "come back later", "type": "unavailable_error"}},
    "unknown_id": {"error": {"code": 400, "message": "Prompt contains invalid tokens", "type": "invalid_request_error"}},
    "long": {"error": {"code": 400, "message": "request (9 tokens) exceeds the available context size (8 tokens), "
                       "try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 8}},
}
FAULTS = {
    "one_entry_less": lambda a: a["completion_probabilities"].pop() and a,
    "one_entry_more": lambda a: a["completion_probabilities"].append(a["completion_probabilities"][0]) or a,
    "no_entries": lambda a: a.pop("completion_probabilities") and a,
    "other_id": lambda a: break_entry(a, id=255),
    "positive": lambda a: break_entry(a, logprob=0.5),
    "null": lambda a: break_entry(a, logprob=None),
    "tops_less": lambda a: break_entry(a, top_logprobs=a["completion_probabilities"][0]["top_logprobs"][:-1]),
    "tops_beyond": lambda a: a["completion_probabilities"][0]["top_logprobs"][0].update(id=99999) or a,
    "no_chance": lambda a: break_entry(a, logprob=-3.4028234663852886e38),
    "huge": lambda a: break_entry(a, logprob=-1e300),
    "text_for_ids": lambda a: break_answer(a, tokens=["x"] * len(a["tokens"])),
    "negative_ids": lambda a: break_answer(a, tokens=[-1] * len(a["tokens"])),
    "no_tokens": lambda a: break_answer(a, tokens=[]),
    "no_end": lambda a: break_answer(a, tokens=a["tokens"][:-1],
                                     completion_probabilities=a["completion_probabilities"][:-1]),
    "end_at_limit": lambda a: break_answer(a, stop_type="limit"),
    "stop_word": lambda a: break_answer(a, stop_type="word"),
    "prompt_length": lambda a: break_answer(a, tokens_evaluated=a["tokens_evaluated"] + 1),
    "too_many": lambda a: break_answer(a, tokens=a["tokens"] * 10000),
    "not_an_object": lambda a: [1, 2],
    "other_text": lambda a: break_answer(a, content="EVIL"),
    "more_text": lambda a: break_answer(a, content=a["content"] + " EVIL"),
    "other_bytes": lambda a: break_entry(a, bytes=list(b"EVIL")),
}


OF_BYTES = {
    "all_twice": lambda body: body[:-1] + b", " + body[1:],
    "logprob_twice": lambda body: re.sub(rb'"logprob": ', b'"logprob": -9.5, "logprob": ', body, count=1),
    "latin": lambda body: body.replace(b': "', b': "\xe9'),
}

METRICS = {"llama": "llamacpp:kv_cache_usage_ratio", "vllm": "vllm:kv_cache_usage_perc",
           "sglang": "sglang:token_usage"}

# ---- the server ----------------------------------------------------------------------------


class Engine:
    def __init__(self, script, log, proxy):
        self.script, self.log, self.proxy = script, log, proxy
        self.lock = threading.Lock()
        self.calls, self.used = {}, {}
        self.context = script.get("context", 4096)
        self.model = sys.modules[__name__]
        self.lingering = 0
        self.mark = {}
        self.began_s, self.marker, self.seed = time.time(), secrets.token_hex(16), secrets.randbelow(1 << 30)
        self.swap = {}
        if script.get("other_tokenizer") or "swapped" in script:
            one, other = script.get("swapped", [97, 98])
            self.swap = {one: other, other: one}
        self.green = Engine(script["green"], log, None) if "green" in script else None
        if self.green:
            self.green.mark = {"green": True}
        self.requests = 0

    def now(self):
        """Who is there for the next request."""
        if not self.green:
            return self
        with self.lock:
            self.requests += 1
            is_green = self.requests > self.script.get("green_after", 1 << 60)
        return self.green if is_green or os.path.exists(self.script.get("green_path", "/nowhere")) else self

    def start(self, drawn):
        """What is another with each start."""
        return self.script.get("start", drawn)

    def encode(self, text, specials):
        return [self.swap.get(id, id) for id in encode(text, specials)]

    def decode(self, ids, specials=False):
        return decode([self.swap.get(id, id) for id in ids], specials)

    def word(self, id):
        return token_bytes(self.swap.get(id, id))

    def note(self, **line):
        if self.log:
            with LOG_LOCK:
                self.log.write(json.dumps(dict(line, **self.mark)) + "\n")
                self.log.flush()

    def admits(self, header):
        wanted = self.script.get("credentials")
        return not wanted or header == "Basic " + base64.b64encode(wanted.encode()).decode()

    def breaks(self, rule):
        return rule in self.script.get("breaks", [])

    def rule(self, path, request):
        """The rule for this request and the assistant turns before it."""
        prompt, asked = scripted_dialects.prompt_of(request), scripted_dialects.tokens_of(request)
        with self.lock:
            call = self.calls[path] = self.calls.get(path, 0) + 1
            user, turn = last_turns([self.swap.get(id, id) for id in prompt]) if prompt is not None else ("", 0)
            for i, rule in enumerate(self.script.get("rules", [])):
                if ((rule["path"] == path if "path" in rule else prompt is not None) and rule.get("call", call) == call
                        and rule.get("tokens", asked) == asked and rule.get("if", "") in user and self.used.get(i, 0) < rule.get("times", 1 << 60)):
                    self.used[i] = self.used.get(i, 0) + 1
                    return dict(rule, labels=re.findall("VERDICT-[0-9a-f]+", user)), turn
        return {}, turn

    def prefix(self):
        return [SPECIALS["<s>"]] if self.script.get("bos") else []

    def render(self, messages):
        if any(m["content"] == "template raises" for m in messages):
            return None
        text = TEMPLATES[self.script.get("template", "chatml")](messages)
        return text and ("<s>" if self.script.get("bos") else "") + text

    def reply(self, rule, turn):
        if "ids" in rule:
            return rule["ids"]
        replies = rule.get("replies") or [rule.get("reply", self.script.get("reply", "ok"))]
        text = replies[max(0, min(turn, len(replies) - 1))]
        text = text.replace("{verdict}", (rule.get("labels") or [""])[-1])
        if "{version}" in text:
            before, now = rule["version"], rule["now"]
            text = text.replace("{version}", now if before == now else before + "+" + now)
        return self.encode(text, False) + [SPECIALS[rule.get("end", "<|im_end|>")]]

    def version(self):
        with open(self.script["version_path"], encoding="utf-8") as file:
            return file.read()

    def version_unheld(self):
        """What it serves at a moment when nothing holds it."""
        hold = self.script.get("hold_path", "/nowhere")
        while True:
            while os.path.exists(hold):
                time.sleep(0.02)
            version = self.version()
            if not os.path.exists(hold):
                return version

    def answer(self, path, request, rule, turn):
        """(status, body) when nothing is to break."""
        context = self.context
        if self.script.get("dialect"):
            prompt = scripted_dialects.prompt_of(request)
            reply = self.reply(rule, turn)
            return scripted_dialects.answer(self, path, request, scripted_streams.rest_of(self, prompt, reply) if prompt else reply)
        if path == "/health":
            return 200, {"status": "ok"}
        if path == "/props" and not self.script.get("other_server"):
            return 200, {"default_generation_settings": {"n_ctx": context}, "total_slots": 1, "eos_token": "<|im_end|>",
                         "model_path": self.script.get("model", "model.gguf"),
                         "media_marker": self.start(f"<__media_{self.marker}__>"),
                         "chat_template": self.script.get("template", "chatml")}
        if path == "/v1/models" and not self.script.get("other_server") and path not in self.script.get("lacks", []):
            return 200, {"data": [{"id": "scripted", "meta": {"n_vocab": VOCABULARY}}]}
        if path == "/tokenize":
            inside = self.breaks("specials_inside") and request["content"] not in SPECIALS
            ids = self.encode(request["content"], request.get("parse_special", True) or self.breaks("specials") or inside)
            return 200, {"tokens": (self.prefix() if request.get("add_special") else []) + ids}
        if path == "/detokenize":
            text = self.decode(request["tokens"], specials=True)
            return 200, {"content": text.upper() if self.breaks("ids") else text}
        if path == "/slots":
            return 200, [{"id": i, "is_processing": i < self.lingering} for i in range(4)]
        if path == "/apply-template":
            prompt = self.render(request["messages"])
            return (200, {"prompt": prompt}) if prompt is not None else (400, STATUSES["400"])
        if path == "/completion":
            if len(request["prompt"]) >= context and not self.breaks("too_long"):
                return 400, STATUSES["long"]
            if max(request["prompt"]) >= VOCABULARY:
                return 400, STATUSES["unknown_id"]
            return 200, completion(request, self.reply(rule, turn), 5 if self.breaks("scores") else 0, self.word)
        return 404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}

    def constrain(self, request):
        """A request to sample a judge's reply, with the "grammar" put in, and the words of its prompt; others as they are."""
        ids = json.dumps({"tokens": request["prompt"]}).encode()
        words = json.loads(self.forward("/detokenize", ids)[1])["content"]
        labels = re.findall(r"VERDICT-([0-9a-f]{8})", words)
        more = {"grammar": self.script["grammar"].replace("{label}", labels[-1])} if labels else {}
        return json.dumps(dict(request, **more)).encode(), words

    def forward(self, path, body):
        """(status, body) of the real server; bytes."""
        headers = {"Content-Type": "application/json"}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.proxy + path, body, headers)) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return 502, b'{"error": {"code": 502, "message": "no server behind the proxy"}}'


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def send(self, status, body, **headers):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def cut(self, body=b""):
        """Promises more than it sends."""
        self.close_connection = True
        if body:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) * 2))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def wait(self, seconds):
        """Whether the client has gone within this time."""
        return bool(select.select([self.connection], [], [], seconds)[0])

    def hang(self, body):
        self.wait(600)

    def stall(self, body):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body[: len(body) // 2])
        self.wait(600)

    def trickle(self, body):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        for i in range(len(body)):
            self.wfile.write(body[i : i + 1])
            if self.wait(1):
                return

    def endless(self, body):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
        try:
            while not self.wait(0):
                self.wfile.write(b" " * 65536)
        except ConnectionError:
            pass

    LINGERING = {"hang": hang, "stall": stall, "trickle": trickle, "endless": endless}

    def linger(self, engine, fault, request, body):
        """An answer that does not come to its end while the client is there."""
        engine.note(path=self.path, request=request, status=0, answer=fault)
        self.close_connection = True
        engine.lingering += 1
        self.LINGERING[fault](self, body)
        engine.lingering -= 0 if engine.breaks("cancel") else 1
        engine.note(path=self.path, request=request, status=0, answer="gone")

    def tell_metrics(self, engine):
        dialect, lines = engine.script.get("dialect", "llama"), ""
        if dialect == "vllm" and engine.start(engine.began_s) is not None:
            lines = f"process_start_time_seconds {engine.start(engine.began_s)}\n"
        if "cache_path" in engine.script:
            with open(engine.script["cache_path"], encoding="utf-8") as file:
                part = file.read().strip()
            lines += f'# TYPE {METRICS[dialect]} gauge\n{METRICS[dialect]}{{engine="0"}} {part}\n'
        return self.send(200, lines.encode()) if lines else False

    def handle_script(self, engine, request):
        if self.path == "/metrics" and self.tell_metrics(engine) is not False:
            return None
        rule, turn = engine.rule(self.path, request)
        if "version_path" in engine.script:
            rule = dict(rule, version=engine.version())
        fault = rule.get("fault")
        time.sleep(rule.get("delay_ms", 0) / 1000)
        if "version_path" in engine.script:
            rule["now"] = engine.version_unheld()
        status, answer = engine.answer(self.path, request, rule, turn)
        is_stream = scripted_streams.wants_stream(request) and engine.script.get("streams", True) != "whole"
        if is_stream and scripted_streams.refuses(engine, request):
            status, answer = scripted_streams.REFUSAL
        if fault in self.LINGERING:
            return self.linger(engine, fault, request, json.dumps(answer).encode())
        if fault in STATUSES:
            status, answer = STATUSES[fault]["error"]["code"], STATUSES[fault]
        elif fault and engine.script.get("dialect") and fault in scripted_dialects.FAULTS:
            answer = scripted_dialects.break_answer(fault, answer)
        elif fault in FAULTS:
            answer = FAULTS[fault](answer)
        body = json.dumps(answer).encode()
        if fault in OF_BYTES:
            body = OF_BYTES[fault](body)
        engine.note(path=self.path, request=request, status=status, answer=answer)
        if is_stream and status == 200 and (not fault or fault in scripted_dialects.FAULTS):
            return scripted_streams.send(self, engine, rule, request, answer)
        if fault == "down":
            os._exit(1)
        if fault == "cut":
            return self.cut(body)
        if fault == "close":
            return self.cut()
        if fault == "503_later":
            return self.send(status, body, Retry_After="1")
        if fault == "truncated":
            body = body[: len(body) // 2]
        return self.send(status, b"<html>not JSON" if fault == "garbage" else body)

    def handle_any(self):
        engine = self.server.engine.now()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        if not engine.admits(self.headers.get("Authorization")):
            engine.note(path="denied", request=self.path, status=401, answer=None)
            return self.send(401, b'{"error": "who is it?"}')
        request = json.loads(body) if body else None
        try:
            if not engine.proxy:
                return self.handle_script(engine, request)
            noted = {}
            if self.path == "/completion" and "grammar" in engine.script:
                body, noted["words"] = engine.constrain(request)
            status, answer = engine.forward(self.path, body)
            engine.note(path=self.path, request=request, status=status, answer=json.loads(answer), **noted)
            return self.send(status, answer)
        except ConnectionError:
            self.close_connection = True  # the client went away: a cancelled call

    do_GET = do_POST = handle_any


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--script", help="JSON file; default: always say ok")
    arguments.add_argument("--log", help="JSON lines are appended here")
    arguments.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    arguments.add_argument("--port", type=int, default=0, help="default: a free one")
    arguments.add_argument("--proxy", help="record what this server says, instead of a script")
    options = arguments.parse_args()
    script = {}
    if options.script:
        with open(options.script, encoding="utf-8") as file:
            script = json.load(file)
    server = Server((options.host, options.port), Handler)
    log = open(options.log, "a", encoding="utf-8") if options.log else None
    server.engine = Engine(script, log, options.proxy and options.proxy.rstrip("/"))
    print(f"ready port={server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
