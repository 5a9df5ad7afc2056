"""Harnesses of others, unmodified, in a sandbox without network: each solves a small task with the tool it brings, against a
scripted model, and the record is one trace, id for id. Of those named in SLUICE_HARNESSES; tests/harnesses.sh installs them."""
import json
import os
import sys
import unittest

SYSTEM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system")
sys.path += [SYSTEM, os.path.join(SYSTEM, "service")]
import test_service  # noqa: E402
from harness import Engine, Service  # noqa: E402

NAMES = os.environ.get("SLUICE_HARNESSES", "").split()
PROMPT = "Please count the lines of words.txt into count.txt."
COUNT = "cd /workspace && wc -l <words.txt >count.txt && cat count.txt"

STREAMED = ("claude-code", "codex", "opencode", "qwen-code")  # these ask for streams


def call(tool, **arguments):
    return "I do it.\n<tool_call>\n" + json.dumps({"name": tool, "arguments": arguments}) + "\n</tool_call>"


def typed(*keys):
    """What Terminus' model says: no call, but JSON; without keys, that it is done."""
    return json.dumps({"analysis": "I do it.", "plan": "Count.", "commands": [{"keystrokes": one, "duration": 1.0} for one in keys], "task_complete": not keys})


# Of each harness what its model says, turn by turn. Claude Code gives back a command without its cd, an edit with replace_all and
# without blanks at the ends of lines.
REPLIES = {
    "mini-swe-agent": [call("bash", command=COUNT), call("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")],
    "claude-code": [call("Bash", command=COUNT, description="Count"), call("Read", file_path="/workspace/count.txt"),
                    call("Edit", file_path="/workspace/note.txt", old_string="nothing", new_string="\u00fcber 1000.0 \\ \"x\"  \n"),
                    "There are 3."],
    "codex": [call("exec_command", cmd=COUNT, yield_time_ms=1000), call("exec_command", cmd="echo more >>note.txt"), "There are 3."],
    "opencode": [call("bash", command=COUNT, description="Count"), call("read", filePath="/workspace/count.txt"), "There are 3."],
    "qwen-code": [call("run_shell_command", command=COUNT, is_background=False, description="Count"),
                  call("read_file", file_path="/workspace/count.txt"), "There are 3."],
    "openhands": [call("terminal", command=COUNT), call("file_editor", command="view", path="/workspace/count.txt"), call("finish", message="There are 3.")],
    "terminus-2": [typed(COUNT + "\n"), typed(), typed()],
    "pi": [call("bash", command=COUNT), call("read", path="/workspace/count.txt"), "There are 3."],
}


def script(replies, **more):
    return dict({"template": "qwen", "context": 1 << 18, "rules": [{"replies": replies, "token_ms": 1}]}, **more)  # bytes: Qwen Code's first prompt is 77 kB


def task(name, **more):
    return dict({"task": name, "prompt": PROMPT, "agent": {"kind": "harness", "harness": name, "form": "hermes", "max_turns": 20},
                 "sampling": {"max_tokens": 2000}, "limits": {"run_s": 120},
                 "files": [{"path": "/workspace/words.txt", "text": "one\ntwo\nthree\n"}, {"path": "/workspace/note.txt", "text": "nothing\n"}],
                 "eval": {"kind": "command", "command": "test \"$(tr -d ' ' <count.txt)\" = 3"}}, **more)


def traces(trajectory):
    return [(trace["reason"], [turn["role"] for turn in trace["turns"]]) for trace in trajectory["traces"]]


class Programs(unittest.TestCase):
    def solve(self, name):
        if name not in NAMES:
            self.skipTest(f"{name} is not in SLUICE_HARNESSES")
        self.solve_streamed(name)
        with Engine(script(REPLIES[name])) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            t, = service.submit([task(name)], "train")
            self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), (t["detail"], t["messages"][-1]))
            test_service.WithEngine.check_tokens(self, [t], engine)
            checked = service.run("verify", os.path.join(service.root, "train.out.jsonl"), "--engine", engine.url, check=False)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        return t

    def solve_streamed(self, name):
        """By an engine that is streamed, where the harness asks for a stream."""
        with Engine(script(REPLIES[name], dialect="openai")) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            t, = service.submit([task(name)], "train")
            self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), (t["detail"], t["messages"][-1]))
            test_service.WithEngine.check_tokens(self, [t], engine)
            streams = {line["request"].get("stream") for line in engine.log() if line["path"] == "/v1/completions" and len(line["request"]["prompt"]) > 9}
            if name in STREAMED:
                self.assertEqual(streams, {True})

    def check_linear(self, name, result="tool"):
        t = self.solve(name)
        more = len(REPLIES[name]) - 1
        self.assertEqual(traces(t), [("", ["prompt", "assistant"] + [result, "assistant"] * more)])
        self.assertEqual(t["messages"][-1]["exit_status"], 0)

    def test_mini_swe_agent(self):
        self.check_linear("mini-swe-agent")

    def test_claude_code(self):
        self.check_linear("claude-code")

    def test_codex(self):
        self.check_linear("codex")

    def test_opencode(self):
        self.check_linear("opencode")

    def test_qwen_code(self):
        self.check_linear("qwen-code")

    def test_openhands(self):
        self.check_linear("openhands")

    def test_terminus_2(self):
        self.check_linear("terminus-2", result="user")

    def test_pi(self):
        self.check_linear("pi")


if __name__ == "__main__":
    unittest.main()
