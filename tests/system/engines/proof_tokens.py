#!/usr/bin/env python3
"""The proof that tokens are exact: multi-turn rollouts with tools on a real llama.cpp server.

    eval "$(bash client/engine.sh | sed 's/^/export /')"
    tests/system/engines/proof_tokens.py --rollouts 1000 --into DIRECTORY

Between service and engine stands a proxy that writes down every byte. Afterwards each trajectory is held against
that: every prompt, sampled id and log-probability is what crossed the wire, and nothing crossed it that is in no
trajectory; turns extend one another and their counts are right. Then `sluice verify` scores every sampled token anew,
twice. DIRECTORY holds trajectories.jsonl, wire/, verify.json and verify.svg then. test_proof_tokens.py is the
same with a few rollouts. Exit status 0: all of it holds.
"""
import argparse
import json
import os
import subprocess
import sys
import time

sys.path += [__file__.rsplit("/", 2)[0], __file__.rsplit("/", 3)[0] + "/engines"]  # tests/system, tests/engines
import wire  # noqa: E402
from harness import PYTHON, SLUICE, SOURCE, Service  # noqa: E402
from test_real_model import Llama  # noqa: E402

SAMPLES, SLOTS = 10, 8
ALONE = ("-ub", "1")  # the engine computes each token alone: what else is in the batch changes nothing (docs/verify.md)
BATCHED = ()  # as it computes unless told otherwise
WORDS = ["apple", "river", "stone", "green", "seven", "paper", "cloud", "piano", "lemon", "tiger", "\u00fcber", "\U0001f600", "\u6587\u5b57",
         "caf\u00e9", "\U0001f680 go", "\u043c\u0438\u0440", "e = mc\u00b2", "\u2713 done", "\u3053\u3093", "\U0001f468\u200d\U0001f469\u200d\U0001f467"]
SYSTEM = ("You work in a Linux shell. Reply with one bash block; it is run and you see what it printed. When the task is "
          "finished, reply TASK_DONE.")


class Proxy:
    """recording_proxy.py before an engine."""

    def __init__(self, engine_url, into):
        self.arguments = [PYTHON, os.path.join(SOURCE, "tests", "engines", "recording_proxy.py"), "--to",
                          engine_url.removeprefix("http://"), "--into", into]

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        assert "ready" in line, f"the proxy said: {line}"
        self.url = "http://127.0.0.1:" + line.rsplit("port=", 1)[1].split()[0]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()


def shell_task(number, word):
    """A command, its output, a second turn; for a model as small as this, with two examples."""
    def asked(word):
        return {"role": "user", "content": f"Print the word {word}"}

    def done(word):
        return [{"role": "assistant", "content": f"```bash\necho {word}\n```"},
                {"role": "user", "content": f"exit status: 0\noutput:\n{word}\n"},
                {"role": "assistant", "content": "TASK_DONE"}]

    messages = [{"role": "system", "content": SYSTEM}, asked("yes"), *done("yes"), asked("blue"), *done("blue"), asked(word)]
    return {"task": f"shell-{number}", "messages": messages, "agent": {"kind": "bash", "max_turns": 3}}


def call_task(number, word):
    """The same as a function call in the form of Hermes."""
    def call(word):
        arguments = json.dumps({"command": f"echo '{word}'"}, ensure_ascii=False)
        return {"role": "assistant", "content": f'<tool_call>\n{{"name": "bash", "arguments": {arguments}}}\n</tool_call>'}

    messages = [{"role": "user", "content": "Print the word yes"}, call("yes"),
                {"role": "user", "content": "<tool_response>\nyes\n</tool_response>"},
                {"role": "assistant", "content": "It is printed."}, {"role": "user", "content": f"Print the word {word}"}]
    return {"task": f"call-{number}", "messages": messages, "agent": {"kind": "tools", "tools": ["bash"], "max_turns": 3}}


def make_tasks(first, count):
    """Four in five with a shell, one with function calls; no two ask for the same."""
    tasks = [(call_task if number * 5 >= count * 4 else shell_task)(first + number, f"{WORDS[(first + number) % len(WORDS)]}{first + number}")
             for number in range(count)]
    return [dict(task, sampling={"temperature": 1.0, "max_tokens": 28}, limits={"command_s": 10, "run_s": 3600})
            for task in tasks]


def roll_out(first, rollouts, into, computes=ALONE):
    """trajectories.jsonl and wire/ of `into`."""
    tasks = make_tasks(first // SAMPLES, rollouts // SAMPLES)
    began, path = time.monotonic(), os.path.join(into, "trajectories.jsonl")
    with Llama(SLOTS, computes) as llama, Proxy(llama.url, os.path.join(into, "wire")) as proxy, \
            Service(engines=[proxy.url], options=("--slots", str(SLOTS))) as service:
        waiting, out = service.submit(tasks, "proof", samples=SAMPLES, wait=False)
        trajectories = service.finish(waiting, out, timeout=7200)
        os.replace(out, path)
    print(f"{len(trajectories)} rollouts in {time.monotonic() - began:.0f} s", flush=True)
    return trajectories


def verify(into, *options, computes=ALONE):
    """`sluice verify` against an engine of its own; its totals."""
    with Llama(SLOTS, computes) as llama:
        done = subprocess.run([SLUICE, "verify", os.path.join(into, "trajectories.jsonl"), "--engine", llama.url, "--parallel", str(SLOTS), "--json",
                               "--plot", os.path.join(into, "verify.svg"), *options], stdout=subprocess.PIPE, text=True, check=False)
    with open(os.path.join(into, "verify.json"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def compare(into, trajectories):
    """Against the wire; prints and returns the verdict."""
    verdict = wire.check(wire.Wire(os.path.join(into, "wire")), trajectories)
    multi = sum(sum(turn["role"] == "assistant" for trace in t["traces"] for turn in trace["turns"]) > 1 for t in trajectories)
    print(f"{verdict.trajectories} trajectories, {multi} of several turns; {verdict.traces} traces, {verdict.turns} sampled turns, "
          f"{verdict.tools} turns of tools, {verdict.sampled} sampled tokens")
    print(f"against the wire: {len(verdict.errors)} errors, {verdict.unclaimed} sampled turns in no trajectory", flush=True)
    for error in verdict.errors[:20]:
        print("  " + error)
    return verdict, multi


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rollouts", type=int, default=1000, help=f"a multiple of {SAMPLES} (default: 1000)")
    arguments.add_argument("--into", required=True, help="a directory; what is there already is not made again")
    arguments.add_argument("--batched", action="store_true", help="let the engine compute tokens together, as it does by default")
    options = arguments.parse_args()
    computes = BATCHED if options.batched else ALONE
    os.makedirs(options.into, exist_ok=True)
    path = os.path.join(options.into, "trajectories.jsonl")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            trajectories = [json.loads(line) for line in lines]
    else:
        trajectories = roll_out(0, options.rollouts, options.into, computes)
    verdict, multi = compare(options.into, trajectories)
    status, totals = verify(options.into, computes=computes)
    print(json.dumps(totals, indent=1))
    print(f"sluice verify: exit status {status}")
    return int(bool(verdict.errors or verdict.unclaimed or status or multi < len(trajectories) // 2))


if __name__ == "__main__":
    sys.exit(main())
