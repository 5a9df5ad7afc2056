"""Wrong calls of the Python client are refused at once, in the command line's words, and nothing of them is sent."""
import asyncio
import contextlib
import io
import json
import os
import random
import re
import subprocess
import tempfile
import unittest

from python_world import SOURCE, Case  # before all that it finds

import numpy as np
from sluice import AsyncClient, BadArgument, BadTask, Client, SluiceError, checking
from sluice.task.task_rules import TaskError, check_task, parse_json

TASK = {"task": "t", "prompt": "p"}
CORPUS = os.path.join(SOURCE, "tests", "corpus", "fuzz_task")
FULL = {
    "task": "fix-add", "kind": "sandbox", "policy": "default",
    "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "Fix it."}],
    "image": "/images/one.sif", "files": [{"path": "a.py", "text": "x", "mode": "0755"}, {"path": "b", "base64": "QQ=="}],
    "setup": ["git init -q .", "true"], "network": ["pypi", "hf"],
    "agent": {"kind": "tools", "tools": ["bash", "edit", "submit"], "form": "hermes", "tool_role": "tool",
              "max_format_errors": 3, "max_repeats": 2, "on_repeat": "warn", "max_turns": 9, "max_traces": 2},
    "sampling": {"temperature": 0.5, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "max_tokens": 100, "seed": 4},
    "eval": {"kind": "command", "command": "true", "verdict_statuses": [0, 1], "files": {"/eval/t.py": "x"},
             "trust": "image", "network": ["pypi"]},
    "limits": {"init_s": 5, "run_s": 50, "memory_mib": 64, "versions_behind": 2, "on_stale": "mark"},
    "samples": 8, "metadata": {"source": "docs", "n": [1, 2]},
}
REPLAY = {
    "task": "again", "agent": {"kind": "replay", "recorded": [
        {"role": "assistant", "content": "x"}, {"role": "tool", "content": "y", "tool": "bash: ls -l", "exit_status": 1},
        {"role": "tool", "content": "y", "tool": 'edit: {"path": "a"}'}]},
}
SCRIPT = {"task": "script", "agent": {"script": [{"tool": "bash", "arguments": {"command": "ls"}, "result": "x", "status": 0}],
                                      "tools": ["bash", "think"]}, "eval": {"kind": "math", "answer": "4"}}
STEPS = {"task": "steps", "eval": {"kind": "verifier", "sandbox": "agent", "files": [{"path": "/tests/a", "text": ""}]},
         "steps": [{"name": "a", "prompt": "p", "files": {"f": "x"}, "setup": ["true"], "solution": {"commands": ["true"], "answer": "y"},
                    "eval": {"command": "c", "files": {"/tests/b": ""}, "env": {"A": "1"}}, "min_reward": {"x": 0.5},
                    "limits": {"run_s": 5, "eval_s": 6}}, {"name": "b", "prompt": "q", "min_reward": 1}], "steps_reward": "final"}
STRANGE = [None, True, False, 0, 1, -1, 1.5, 1e20, 10**12, 2**62, "", "x", "a b", "a/b", "../x", "host", "docker://a/b:1", "debian:12",
           "ghcr.io/o/n@sha256:1", "oci:x", "library://a", "./a:b", "\x7f", "é" * 40, "x" * 200, [], [[]], ["x"], ["bash"],
           ["bash", "bash"], [0], [0, 0], [1], {}, {"x": 1}, {"path": "x"}, {"path": "a", "text": "b", "base64": ""}, "auto",
           "tools", "chat", "replay", "none", "bash", "command", "math", "image", "sandbox", "noop", "0999", "0755", "QQ==", "QR==",
           "QQ=", [{"path": "a", "text": "b"}], [{"role": "user", "content": "x"}], [{"role": "assistant", "content": ""}],
           [{"tool": "bash", "arguments": {}}], [{"tool": "edit", "arguments": []}], [{"role": "tool", "content": "", "tool": "think: {}"}],
           [{"role": "tool", "content": "", "tool": "think: x"}], ["a", "a"], ["A"], ["a" * 33], [126], [0, "1"]]
KEYS = ["promt", "prompts", "Prompt", "max-turns", "run_s", "temperature", "answer", "comand", "toolz", "x", "image ", "\x01é", "k" * 90,
        "kind", "tools", "eval.kind", "agent", "reward_file", "mode", "sample", "form", "script", "messages", "path", ""]


def places(value, path=()):
    """Every place in it, from the outside in."""
    yield path
    for key in (value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()):
        yield from places(value[key], (*path, key))


def changed(value, path, to):
    if not path:
        return to
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


def without(value, path):
    copy = value.copy()
    if len(path) > 1:
        copy[path[0]] = without(value[path[0]], path[1:])
    else:
        del copy[path[0]]
    return copy


def mutants(seed, count):
    chance = random.Random(seed)
    for base in (TASK, FULL, REPLAY, SCRIPT, STEPS):
        yield base
        for path in places(base):
            if path:
                yield without(base, path)
    while count:
        count -= 1
        task = chance.choice((TASK, FULL, FULL, REPLAY, SCRIPT, STEPS))
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            path = chance.choice([path for path in places(task) if path])
            kind = chance.randrange(5)
            if kind == 0:
                task = without(task, path)
            elif kind == 1:
                objects = [p for p in places(task) if isinstance(at(task, p), dict)]
                inside = chance.choice(objects)
                task = changed(task, inside, {**at(task, inside), chance.choice(KEYS): chance.choice(STRANGE)})
            else:
                task = changed(task, path, chance.choice(STRANGE))
            if not isinstance(task, dict) or not any(path for path in places(task)):
                break
        if isinstance(task, dict):
            yield task


def at(value, path):
    for key in path:
        value = value[key]
    return value


def refused(line):
    """FIELD: REASON as Python has it; None: it is a task."""
    try:
        value = parse_json(line)
        check_task(line, value)
    except TaskError as why:
        text = why.text
        if not why.field:
            return text
        says_field = text.startswith((why.field + " ", why.field + ":"))
        return f"{why.field}: {text[len(why.field):].lstrip(': ') if says_field else text}"
    return None


def refused_by_command(lines):
    """Of each line, what `sluice submit` says of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, "{"]))  # the last one is bad: nothing is ever submitted
        said = subprocess.run([os.environ["SLUICE_PROGRAM"], "submit", path, "--stream", "s", "--broker", "tcp://127.0.0.1:9"],
                              capture_output=True, text=True, errors="replace", check=False).stderr
    told = {}
    for found in re.finditer(rf"^{re.escape(path)}:(\d+): (.*)$", said, re.M):
        told[int(found.group(1))] = found.group(2)
    return [told.get(number) for number in range(1, len(lines) + 1)]


class Tasks(unittest.TestCase):
    def test_thousands_of_tasks_are_read_as_the_command_line_reads_them(self):
        lines = []
        for task in mutants(16, 4000):
            try:
                lines.append(json.dumps(task, ensure_ascii=False))
                lines[-1].encode()
            except UnicodeEncodeError:
                lines.pop()
        bad = 0
        for line, wanted in zip(lines, refused_by_command(lines)):
            found = refused(line)
            bad += found is not None
            self.assertEqual(found, wanted, line)
        self.assertGreater(bad, 2000)
        self.assertGreater(len(lines) - bad, 100)

    def test_what_fuzzing_found_is_a_task_here_where_it_is_one_there(self):
        lines = []
        for name in sorted(os.listdir(CORPUS)):
            with open(os.path.join(CORPUS, name), "rb") as file:
                raw = file.read()
            if raw.strip(b" \t\r\n") == raw and raw and b"\n" not in raw and b"\0" not in raw:
                lines.append(raw.decode(errors="surrogateescape"))
        lines = [line for line in lines if line.isprintable() or line.isascii()]
        lines = [line for line in lines if not any("\ud800" <= c <= "\udfff" for c in line)]
        for line, wanted in zip(lines, refused_by_command(lines)):
            found = refused(line)
            self.assertEqual(found is None, wanted is None, (line[:300], found, wanted))
            if found and "JSON cannot be read" not in found and "values and names" not in found:
                self.assertEqual(found, wanted, line[:300])


NOT_NAMES = ("", "a b", "a/b", "a\tb", "\x7f", "a\n", None, 7, b"x", ["x"], "\ud800", "x" * 65)
NOT_NUMBERS = ("8", 1.5, True, [], "x", float("nan"), 10**30, -10**30)
NOT_SECONDS = ("10", "1h", float("nan"), float("inf"), -1, True, [], b"1")
NOT_URLS = ("", "tcp://", "tcp://h", "tcp://h:", "tcp://h:x", "tcp://h:0", "tcp://h:65535", "tcp://:5750", "http://h:5750", "h:5750", "5750",
            "ipc:///d/back", 7, b"tcp://h:5750", "tcp://h:-5", "tcp://h:٣")
ENGINES = (None, 7, "", "http://", b"http://127.0.0.1:1", "x" * 300, "http://h\0:80")
NAME_WORDS = r"^{} wants a name(, without a '/', a blank or a control character| of at most \d+ bytes), not "
NUMBER_WORDS = r"^{} wants a number from \d+( to \d+| on), not "
SECONDS_WORDS = r"^{} wants seconds, from \d+(\.\d+)?( to \d+| on), not "


class Calls(Case):
    def calls(self):
        """(words, function from a client) of more than 200 wrong calls."""
        def names(what, call):
            yield from ((NAME_WORDS.format(what), lambda c, v=value: call(c, v)) for value in NOT_NAMES)

        def numbers(what, call, *more):
            yield from ((NUMBER_WORDS.format(what), lambda c, v=value: call(c, v)) for value in (*NOT_NUMBERS, *more))

        def seconds(what, call, *more):
            yield from ((SECONDS_WORDS.format(what), lambda c, v=value: call(c, v)) for value in (*NOT_SECONDS, *more))

        for field, call in (("stream", lambda c, v: c.submit([TASK], v)), ("stream", lambda c, v: c.trajectories(v)),
                            ("stream", lambda c, v: c.groups(v)), ("stream", lambda c, v: c.ack(v, 1)),
                            ("stream", lambda c, v: c.renew(v)), ("version", lambda c, v: c.policy_set(v)),
                            ("group", lambda c, v: c.submit([TASK], "s", group=lambda task: v if v != "x" * 65 else v * 2))):
            yield from names(field, call)
        yield from ((NAME_WORDS.format("name"), lambda c, v=value: c.backup(v)) for value in NOT_NAMES[:-1])
        yield from numbers("samples", lambda c, v: c.submit([TASK], "s", samples=v), 0, 1025)
        yield from numbers("priority", lambda c, v: c.submit([TASK], "s", priority=v), -1, 10)
        yield from numbers("versions_behind", lambda c, v: c.submit([TASK], "s", versions_behind=v), -1, 1000001)
        yield from numbers("from_seq", lambda c, v: c.trajectories("s", v), -1)
        yield from numbers("seq", lambda c, v: c.ack("s", v), 0)
        yield from numbers("runs_max", lambda c, v: c.engine_add("http://h:1", v), -1)
        yield from numbers("grace", lambda c, v: c.drain(worker="w", grace=v), -1, 86401)
        yield from seconds("lease", lambda c, v: c.submit([TASK], "s", lease=v), 0, 0.5, 604801)
        yield from seconds("timeout", lambda c, v: c.trajectories("s", timeout=v))
        yield from seconds("timeout", lambda c, v: c.backup("b", v))
        yield from seconds("timeout", lambda c, v: type(c)(self.broker.url, timeout=v))
        yield from seconds("patience", lambda c, v: type(c)(self.broker.url, patience=v))
        yield from seconds("bound", lambda c, v: c.policy_pause(bound=v), 0, 3601)
        yield from seconds("wait", lambda c, v: c.policy_pause(wait=v))
        for value in ("x", "g/", "/0", "g/x", "g 1/0", "g/-1", "", None, 7, "g/1.5", "g/٣", "a/b/0", "g/0 "):
            yield r"^rollout wants a rollout's name, GROUP/NUMBER, not ", lambda c, v=value: c.get(v)
            if value == 7 or value and "/" in value:
                yield r"^rollout wants a rollout's name, GROUP/NUMBER, not ", lambda c, v=value: c.cancel(v)
        yield NAME_WORDS.format("group"), lambda c: c.cancel("")
        for value in NOT_URLS:
            yield r" is not a broker's URL: say tcp://HOST:PORT or ipc:///DIRECTORY/front$", lambda c, v=value: type(c)(v or "x")
        for value in ENGINES:
            yield r"^(url|engine) wants a base URL such as http://gpu1:8000, of 8 to 256 bytes", lambda c, v=value: c.engine_add(v)
            yield r"^(url|engine) wants a base URL such as http://gpu1:8000, of 8 to 256 bytes", lambda c, v=value: c.engine_drain(v)
            if value is not None:
                yield r"^engine wants an engine's URL, of 8 to 256 bytes", lambda c, v=value: c.policy_set("1", engine=v)
        for value in ("stopp", "", 7, b"stop", ["stop"]):
            yield r"^on_stale wants stop\|refresh\|mark, not ", lambda c, v=value: c.submit([TASK], "s", versions_behind=1, on_stale=v)
            yield r"^calls wants finish\|abort\|hold, not ", lambda c, v=value: c.policy_pause(calls=v)
        for value in (1, "yes", None):
            yield r"^until_idle wants True or False, not ", lambda c, v=value: c.trajectories("s", until_idle=v)
        for value in ("", 7, []):
            yield r"^cursor wants the path of a file, not ", lambda c, v=value: c.trajectories("s", cursor=v)
            yield r"^key wants the path of a file, not ", lambda c, v=value: type(c)(self.broker.url, key=v)
        for value in (7, "abc", b"sha256:x"):
            yield r'^expect_template wants a digest, "sha256:...", not ', lambda c, v=value: c.trajectories("s", expect_template=v)
        for value in (7, "x", {}, {"seq": 0, "done": {}}, {"seq": "1", "done": {}}, {"seq": 1, "done": []}, {"seq": 1, "done": {"g": "x"}}):
            yield r"^resume wants the `resume` of a group, not ", lambda c, v=value: c.groups("s", resume=v)
        for given in ({}, {"group": "g", "stream": "s"}, {"rollout": "g/0", "group": "g"}):
            yield r"^say either rollout, group or stream, and only one of them$", lambda c, v=given: c.cancel(**v)
        for field, words in (("stage", r"init\|run\|eval"), ("state", r"queued\|leased\|delayed"),
                             ("outcome", r"ok\|agent\|task\|infra\|cancelled")):
            for value in ("x", "", 7, ["run"]):
                yield f"^{field} wants {words}, not ", lambda c, f=field, v=value: c.rollouts(stream="s", **{f: v})
        yield from numbers("limit", lambda c, v: c.rollouts(limit=v), 0, 1001)
        yield from seconds("older", lambda c, v: c.rollouts(older=v), -1, 31536001)
        for given in ({"ended": True}, {"outcome": "ok"}):
            yield r"^ended rollouts are listed by stream or group: say stream=NAME$", lambda c, v=given: c.rollouts(**v)
        yield (r"^what has ended is in no stage and no state: leave state out$",
               lambda c: c.rollouts(ended=True, stream="s", state="leased"))
        for given in ({}, {"worker": "w", "host": "h"}):
            yield r"^say either worker or host, and only one of them$", lambda c, v=given: c.drain(**v)
        for value in (7, None, b"x", 1.5):
            yield r"^tasks wants a dict, dicts or the path of a JSONL file, not a ", lambda c, v=value: c.submit(v, "s")
        for value in ([7], ["x"], [None], [[]], [TASK, ()], "x"):
            if value != "x":
                yield r"a task must be a dict, not ", lambda c, v=value: c.submit(v, "s")
        for value in ([{}], [{"task": "t"}], [TASK, {**TASK, "x": 1}], [{**TASK, "metadata": {"x": float("nan")}}], [{**TASK, "metadata": {"x": {1}}}],
                      [{**TASK, "prompt": "\ud800"}], [{**TASK, "prompt": "a\0b"}], [{**TASK, "prompt": "x" * (1 << 20)}], {"task": "t"}):
            yield r"^tasks\[\d\]: .*\n1 of \d tasks is not a task; nothing was submitted$", lambda c, v=value: c.submit(v, "s")

    def test_a_check_of_tasks_that_cannot_be_made_is_no_wrong_command_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            file.write(json.dumps(TASK) + "\n")
            file.flush()
            with contextlib.redirect_stderr(io.StringIO()) as told:
                self.assertEqual(checking.main([file.name, "--broker", "nowhere"]), 3)
                self.assertRaises(SystemExit, checking.main, [file.name, "--no-such"])  # this one is, with 2
        self.assertIn("sluice: 'nowhere' is not a broker's URL", told.getvalue())

    def test_more_than_200_wrong_calls_are_refused_at_once_by_name(self):
        count = 0
        for words, call in self.calls():
            with self.assertRaisesRegex((BadArgument, BadTask), words, msg=words) as caught:
                call(self.client)
            self.assertLess(len(str(caught.exception)), 500)
            self.assertIsInstance(caught.exception, SluiceError)
            count += 1
        self.assertGreater(count, 300)
        self.assertEqual((self.broker("asked"), self.broker("groups")), ("0", "0"))

    def test_the_same_calls_are_refused_by_the_client_for_asyncio(self):
        async def tried(client, call):
            answer = call(client)
            return await answer if hasattr(answer, "__await__") else answer

        async def work():
            count = 0
            async with AsyncClient(self.broker.url) as client:
                for words, call in self.calls():
                    with self.assertRaisesRegex((BadArgument, BadTask), words, msg=words):
                        await tried(client, call)
                    count += 1
            return count
        self.assertGreater(asyncio.run(work()), 300)

    def test_a_key_file_that_is_none_is_named(self):
        for make, words in ((lambda path: None, "cannot read"), (lambda path: os.mkdir(path), "cannot read"),
                            (lambda path: open(path, "w", encoding="ascii").close(), "chmod 600|the line `\w+` is missing")):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "key")
                make(path)
                with self.assertRaisesRegex(SluiceError, words):
                    Client(self.broker.url, key=path)

    def test_numbers_of_numpy_are_numbers(self):
        self.client.submit({"task": "t", "kind": "noop"}, "s", samples=np.int64(2), lease=np.float32(60), priority=np.uint8(3))
        self.assertEqual(self.broker("options"), "priority=3 lease_ms=60000")


if __name__ == "__main__":
    unittest.main()
