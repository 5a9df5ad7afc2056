"""What recording_proxy.py wrote down, as HTTP; and whether trajectories say the same, id for id and bit for bit."""
import collections
import dataclasses
import glob
import json
import os
import struct


@dataclasses.dataclass
class Exchange:
    """A request and its answer as they crossed the wire; `answer` is None where the connection ended before."""

    connection: str
    path: str
    request: bytes
    status: int = 0
    answer: bytes = None


def frames(path):
    """[(way, bytes)] of one connection, in order; a frame that a killed proxy did not finish is left out."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = 0, []
    while at < len(data):
        end = data.find(b"\n", at)
        if end < 0:
            break
        way, length, _ = data[at:end].split(b" ")
        body = data[end + 1 : end + 1 + int(length)]
        if len(body) < int(length):
            break
        found.append((way, body))
        at = end + 1 + int(length)
    return found


def read_chunked(data, at):
    """(body, where it ends), or None when it is not all there."""
    body = b""
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        size = int(data[at:end].split(b";")[0], 16)
        part = data[end + 2 : end + 2 + size]
        at = end + 2 + size + 2
        if at > len(data):
            return None
        if size == 0:
            return body, at
        body += part


def read_messages(data):
    """[(first line, body)] of one direction of a connection; 1xx answers are left out."""
    at, found = 0, []
    while True:
        end = data.find(b"\r\n\r\n", at)
        if end < 0:
            return found
        lines = data[at:end].split(b"\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
        if b"chunked" in fields.get(b"transfer-encoding", b"").lower():
            read = read_chunked(data, end + 4)
            if read is None:
                return found
            body, at = read
        else:
            at = end + 4 + int(fields.get(b"content-length", 0))
            if at > len(data):
                return found
            body = data[end + 4 : at]
        if not lines[0].startswith(b"HTTP/1.1 1"):
            found.append((lines[0], body))


def read_connection(path):
    sides = {b">": b"", b"<": b""}
    parts = frames(path)
    for way in sides:
        sides[way] = b"".join(body for side, body in parts if side == way)
    asked, told = read_messages(sides[b">"]), read_messages(sides[b"<"])
    assert len(told) <= len(asked), f"{path}: an answer to nothing"
    found = []
    for place, (line, body) in enumerate(asked):
        exchange = Exchange(os.path.basename(path), line.split(b" ")[1].decode(), body)
        if place < len(told):
            exchange.status, exchange.answer = int(told[place][0].split(b" ")[1]), told[place][1]
        found.append(exchange)
    return found


def read_exchanges(directory):
    return [exchange for path in sorted(glob.glob(os.path.join(directory, "*.wire"))) for exchange in read_connection(path)]


# ---- trajectories against it -----------------------------------------------------------------


def single(number):
    """The bits of a number as a 32-bit float; a log-probability above 0 is one that was rounded."""
    return struct.pack("<f", min(0.0, number))


class Wire:
    """The calls of llama.cpp's /completion: those that sampled turns, and those that asked for one token's
    log-probability, which forces it or another by logit_bias."""

    def __init__(self, directory):
        self.turns = collections.defaultdict(list)   # (prompt, sampled) -> [[(id, bits)]]
        self.asked = collections.defaultdict(dict)   # prompt -> {id: {bits}}
        self.unanswered = 0
        for exchange in read_exchanges(directory):
            if exchange.path == "/completion":
                self.add(exchange)

    def add(self, exchange):
        if exchange.status != 200 or exchange.answer is None:
            self.unanswered += 1
            return
        request, answer = json.loads(exchange.request), json.loads(exchange.answer)
        prompt = tuple(request["prompt"])
        entries = answer.get("completion_probabilities", answer.get("probs", []))
        if request.get("logit_bias"):
            for entry in entries:
                for one in [entry, *entry.get("top_logprobs", [])]:
                    self.asked[prompt].setdefault(one["id"], set()).add(single(one["logprob"]))
            return
        assert answer["tokens_evaluated"] == len(prompt), "the engine read another prompt than was sent"
        self.turns[prompt, tuple(answer["tokens"])].append([(one["id"], single(one["logprob"])) for one in entries])

    def says(self, prompt, ids, logprobs, stated):
        """Whether each log-probability is the one stated, in order, or one that was asked for apart."""
        stated = collections.deque(stated)
        for place, (id, logprob) in enumerate(zip(ids, logprobs)):
            if stated and stated[0] == (id, single(logprob)):
                stated.popleft()
            elif single(logprob) not in self.asked.get(prompt + tuple(ids[:place]), {}).get(id, ()):
                return False
        return not stated


@dataclasses.dataclass
class Verdict:
    trajectories: int = 0
    traces: int = 0
    turns: int = 0       # sampled
    sampled: int = 0     # tokens
    tools: int = 0       # turns with a tool's output
    errors: list = dataclasses.field(default_factory=list)
    unclaimed: int = 0   # sampled turns on the wire that no trajectory has


def check_turn(trace, turn, fail):
    """Counts and mask of one turn."""
    start, end = turn["offset"], turn["offset"] + turn["length"]
    said = turn["role"] == "assistant"
    if set(trace["mask"][start:end]) - {int(said)}:
        fail(f"turn at {start}: mask")
    if said and turn["prompt_tokens"] != start:
        fail(f"turn at {start}: a prompt of {turn['prompt_tokens']} tokens")
    if said and not 0 <= turn["cached_tokens"] <= start:
        fail(f"turn at {start}: {turn['cached_tokens']} cached")
    if not said and any(trace["logprobs"][start:end]):
        fail(f"turn at {start}: log-probabilities of what was not sampled")


def check_trace(wire, trace, verdict, fail):
    ids, at = trace["token_ids"], 0
    if not len(ids) == len(trace["mask"]) == len(trace["logprobs"]):
        return fail("arrays of different lengths")
    for turn in trace["turns"]:
        start, end = turn["offset"], turn["offset"] + turn["length"]
        if start != at:
            fail(f"turn at {start}, not {at}")
        at = end
        check_turn(trace, turn, fail)
        verdict.tools += turn["role"] in ("user", "tool")
        if turn["role"] != "assistant":
            continue
        verdict.turns += 1
        verdict.sampled += end - start
        prompt, sampled = tuple(ids[:start]), tuple(ids[start:end])
        calls = wire.turns.get((prompt, sampled), [])
        fitting = [call for call in calls if wire.says(prompt, sampled, trace["logprobs"][start:end], call)]
        if not calls:
            fail(f"turn at {start}: this prompt with these ids never crossed the wire")
        elif not fitting:
            fail(f"turn at {start}: other log-probabilities crossed the wire")
        else:
            calls.remove(fitting[0])  # each call is one turn's
    if at != len(ids):
        fail("turns do not cover the trace")


def check(wire, trajectories):
    """Every sampled id, log-probability and prompt of the trajectories is what crossed the wire. Uses `wire` up."""
    verdict = Verdict()
    for t in trajectories:
        verdict.trajectories += 1
        for place, trace in enumerate(t["traces"]):
            verdict.traces += 1
            check_trace(wire, trace, verdict, lambda what: verdict.errors.append(f"{t['rollout']} trace {place}: {what}"))
            if place > 0 and not trace["reason"]:
                verdict.errors.append(f"{t['rollout']} trace {place}: starts for no reason")
    verdict.unclaimed = sum(len(calls) for calls in wire.turns.values())
    return verdict
