"""Trajectories and live events of a pretended service (worlds.py): an agent that repairs a parser with bash."""
import json
import random

SYSTEM = "You repair programs. Call tools with <bash>...</bash>, and end with DONE."
PROMPT = "The tests of this parser fail for dates with one digit. Find out why and repair it.\n\nThe code is in /workspace."
SAYS = ["I will look at the code first.\n\n<bash>ls -l src && cat src/dates.c</bash>",
        "The format wants two digits: `%2d` would take one as well, but the length is compared with 10 before that. Let me run the tests to be sure.\n\n<bash>pytest -q tests/</bash>",
        "As I thought. I take the comparison out and let the parser decide.\n\n<bash>sed -i 's/if (len != 10) return -1;//' src/dates.c && make -j4</bash>",
        "<bash>pytest -q tests/</bash>", "All tests pass now. DONE"]
TOOLS = [("bash: ls -l src && cat src/dates.c", 0, "total 8\n-rw-r--r-- 1 root root 412 dates.c\n\nint parse_date(const char *s, size_t len)\n{\n    if (len != 10) return -1;\n    ...\n}\n"),
         ("bash: pytest -q tests/", 1, "..F.F\nFAILED tests/test_dates.py::test_one_digit - assert -1 == 0\nFAILED tests/test_dates.py::test_single_month - assert -1 == 0\n2 failed, 3 passed in 1.92s\n"),
         ("bash: sed -i 's/if (len != 10) return -1;//' src/dates.c && make -j4", 0, "cc -O2 -c src/dates.c\ncc -o parser src/dates.o\n"),
         ("bash: pytest -q tests/", 0, ".....\n5 passed in 1.88s\n")]


def pieces(text, r):
    return max(3, len(text) // 4 + r.randint(0, 4))


def trajectory(one):
    """The whole of what a summary is of."""
    r = random.Random(one["rollout"])
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    traces, trace = [], {"token_ids": [], "mask": [], "logprobs": [], "turns": [], "columns": [], "reason": "", "template_digest": "sha256:" + "5d" * 32, "tokenizer_digest": "sha256:" + "7a" * 32}
    seconds = one["run_ms"] / 1000
    shares = [r.uniform(0.5, 2) for _ in range(9)]
    shares = [share / sum(shares) * 0.93 * seconds for share in shares]

    def turn(role, length, **more):
        trace["turns"].append({"role": role, "offset": len(trace["token_ids"]), "length": length, "finish": "", "engine": "", "version": "", "prompt_tokens": 0, "cached_tokens": 0, "seconds": 0, **more})
        for _ in range(length):
            trace["token_ids"].append(r.randint(10, 151_000))
            sampled = role == "assistant"
            trace["mask"].append(int(sampled))
            trace["logprobs"].append(round(-min(8, r.expovariate(2.2) ** 2), 5) if sampled else 0)

    turn("prompt", 164)
    count = 5 if one["outcome"] in ("ok", "agent") else 2
    for k in range(count):
        messages.append({"role": "assistant", "content": SAYS[k], "sampled": True})
        turn("assistant", pieces(SAYS[k], r), finish="length" if one["truncated"] and k == count - 1 else "stop", engine=one["engine"], version="v41" if k else "v40+v41", prompt_tokens=len(trace["token_ids"]),
             cached_tokens=len(trace["token_ids"]) // 2, seconds=shares[2 * k], queue_seconds=shares[2 * k] * 0.2, prefill_seconds=shares[2 * k] * 0.1, decode_seconds=shares[2 * k] * 0.7,
             sampling={"temperature": 1.0, "top_p": 1.0, "min_p": 0, "top_k": 0, "max_tokens": 2048}, **({} if k else {"versions": [{"offset": 0, "length": 10, "version": "v40"}, {"offset": 10, "length": 500, "version": "v41"}]}))
        if k < count - 1 and k < 4:
            tool, status, said = TOOLS[k]
            messages.append({"role": "tool", "tool": tool, "content": said, "exit_status": status})
            if k == 1 and one["traces"] > 1:
                traces.append(trace)
                trace = {**trace, "token_ids": [], "mask": [], "logprobs": [], "turns": [], "reason": one["reasons"][0]}
                turn("prompt", 420, seconds=shares[2 * k + 1])
            else:
                turn("tool", len(said) // 4, seconds=shares[2 * k + 1])
    traces.append(trace)
    tests = [{"name": f"tests/test_dates.py::test_{name}", "status": "passed" if one["reward"] == 1 or k % 3 else "failed", "seconds": 0.2 + k / 10, **({} if one["reward"] == 1 or k % 3 else {"message": "assert -1 == 0"})}
             for k, name in enumerate(["one_digit", "single_month", "long_year", "empty", "garbage"])]
    passed = sum(test["status"] == "passed" for test in tests)
    whole = {key: value for key, value in one.items() if key not in ("turns", "traces", "sampled_tokens", "prompt_tokens", "reasons")}
    return {**whole, "raw_reward": one["reward"], "parts": [{"name": "tests", "value": passed / 5, "weight": 0.8}, {"name": "style", "value": 0.7, "weight": 0.2}] if one["reward"] is not None else [],
            "metrics": [{"name": "lines_changed", "value": 3}], **({"tests": {"passed": passed, "failed": 5 - passed, "skipped": 0, "error": 0, "pass_fraction": passed / 5, "list": tests}} if one["reward"] is not None else {}),
            "group_size": 8, "group_ended": one["sample"] + 1, "metadata": {"source": "dates", "difficulty": 2}, "run_attempt": 1, "init_layer": "", "agent": "bash", "template_digest": "sha256:" + "5d" * 32,
            "tokenizer_digest": "sha256:" + "7a" * 32, "logprobs_mode": "raw", "traces": traces, "messages": messages,
            "sandbox": {"cpu_seconds": 4.2, "peak_memory_kib": 188_000, "peak_processes": 11, "peak_disk_bytes": 5_200_000, "peak_inodes": 300, "commands": 4, "timed_out": 0, "output_bytes": 9000, "cut_bytes": 0, "breaches": []}}


def live_batches(name, from_turn=0):
    """What a rollout says while it works, in batches as docs/live.md has them, and how long after each the next one comes."""
    part = {"rollout": name, "stage": "run", "attempt": 1}
    number, ms = 1, 0

    def batch(*events, pause=0.15):
        nonlocal number
        made = ({**part, "number": number, "events": list(events)}, pause)
        number += len(events)
        return made

    yield {"rollout": name, "events": [{"event": "state", "stage": "run", "state": "leased", "attempt": 1, "worker": "node2-4702-run", "turn": 1}]}, 0
    yield batch({"event": "phase", "ms": 0, "phase": "sandbox"}, {"event": "phase", "ms": 640, "phase": "agent"}, {"event": "message", "index": 0, "role": "system", "content": SYSTEM},
                {"event": "message", "index": 1, "role": "user", "content": PROMPT}, {"event": "trace", "trace": 0, "reason": ""}, {"event": "turn", "turn": 0, "trace": 0, "after": None, "role": "prompt", "tokens": 164},
                {"event": "tokens", "turn": 0, "offset": 0, "mask": 0, "ids": list(range(100, 264))})
    r, index, turn, ms = random.Random(name), 2, 1, 700
    for k, text in enumerate(SAYS):
        yield batch({"event": "phase", "ms": ms, "phase": "sampling", "turn": k + 1})
        for start in range(0, len(text), 12):
            yield batch({"event": "delta", "sampling": k + 1, "text": text[start:start + 12]}, pause=0.05)
        ms += 1900
        length = pieces(text, r)
        ids = [r.randint(10, 151_000) for _ in range(length)]
        yield batch({"event": "sampled", "sampling": k + 1}, {"event": "message", "index": index, "role": "assistant", "content": text, "sampled": True},
                    {"event": "turn", "turn": turn, "trace": 0, "after": turn - 1, "role": "assistant", "tokens": length, "finish": "stop", "engine": "http://gpu1:8000", "version": "v41", "prompt_tokens": 164, "cached_tokens": 60, "seconds": 1.9, "queue_seconds": 0.3},
                    {"event": "tokens", "turn": turn, "offset": 0, "mask": 1, "ids": ids, "logprobs": [round(-min(8, r.expovariate(2.2) ** 2), 4) for _ in ids]}, {"event": "phase", "ms": ms, "phase": "tool", "of": "bash", "turn": k + 1})
        index, turn = index + 1, turn + 1
        if k < 4:
            tool, status, said = TOOLS[k]
            ms += 1400
            yield batch({"event": "message", "index": index, "role": "tool", "tool": tool, "content": said, "exit_status": status},
                        {"event": "turn", "turn": turn, "trace": 0, "after": turn - 1, "role": "tool", "tokens": len(said) // 4}, {"event": "phase", "ms": ms, "phase": "agent"}, pause=0.3)
            index, turn = index + 1, turn + 1
    yield batch({"event": "end", "ms": ms, "outcome": "ok", "detail": ""})


if __name__ == "__main__":
    print(json.dumps([one for one, _ in live_batches("fix-parser-1/0")])[:2000])
