"""The SDKs of OpenAI, Anthropic and Google, for JavaScript and for Python, as harnesses in a sandbox without network: answers in one
piece and as streams, tools, counts and refusals are what each SDK's own classes take, and the record is id for id. Of those
named in SLUICE_SDKS; tests/sdks.sh installs them."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEM = os.path.join(os.path.dirname(HERE), "system")
sys.path += [SYSTEM, os.path.join(SYSTEM, "service"), os.path.join(SYSTEM, "harnesses")]
import test_service  # noqa: E402
from harness import Engine, Service  # noqa: E402
from loops import said  # noqa: E402

NAMES = os.environ.get("SLUICE_SDKS", "").split()
WHERE = os.environ.get("SLUICE_SDKS_DIR", "/opt/sluice-sdks")
CALL = 'I look.\n<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
SCRIPT = {"template": "qwen", "context": 1 << 16, "rules": [
    {"if": "tool_response", "reply": "It is there."}, {"if": "do call", "reply": CALL}, {"reply": "fine"}]}
LINEAR = ("", ["prompt", "assistant", "tool", "assistant", "user", "assistant"])


def traces(trajectory):
    return [(trace["reason"].split(":")[0], [turn["role"] for turn in trace["turns"]]) for trace in trajectory["traces"]]


class Sdks(unittest.TestCase):
    def run_sdk(self, name, command):
        if name not in NAMES:
            self.skipTest(f"{name} is not in SLUICE_SDKS")
        program = f"{name}.mjs" if "node" in command else name.replace("-", "_") + ".py"
        with open(os.path.join(HERE, "sdks", program), encoding="utf-8") as file:
            text = file.read()
        task = {"task": "one", "prompt": "do it", "agent": {"kind": "harness", "form": "hermes", "max_turns": 20, "command":
                command.format(at=os.path.join(WHERE, f"sdk-{name}"), program=program)},
                "files": [{"path": f"/workspace/{program}", "text": text}], "limits": {"run_s": 120}, "eval": {"kind": "command", "command": "true"}}
        with Engine(SCRIPT) as engine, Service(engines=[engine.url], options=["--tries", "1"]) as service:
            t, = service.submit([task], "train")
            self.assertEqual(t["outcome"], "ok", t["detail"])
            self.assertEqual(t["messages"][-1]["exit_status"], 0, t["messages"][-1]["content"])
            test_service.WithEngine.check_tokens(self, [t], engine)
        return t

    def javascript(self, name):
        return self.run_sdk(name, "ln -s {at}/node_modules node_modules && exec {at}/bin/node {program}")

    def python(self, name):
        return self.run_sdk(name, "exec {at}/bin/python3 {program}")

    def check_openai(self, t):
        self.assertEqual(said(t), {
            "first": ["I look.", "tool_calls", "bash", "ls"], "second": ["It is there.", "stop", True], "third": ["I look.", "tool_calls", "ls"],
            "response": ["completed", "I look.", "ls"], "usage": True, "events": ["response.created", "response.completed", "It is there."],
            "models": 1, "refused": ["BadRequestError", 400, True], "unknown": ["NotFoundError", 404]})
        self.assertEqual(traces(t), [LINEAR, ("branch", ["prompt", "assistant", "tool", "assistant"])])

    def check_anthropic(self, t):
        self.assertEqual(said(t), {
            "first": ["text tool_use", "tool_use", "I look.", "ls"], "second": ["text", "end_turn", "It is there.", None, True],
            "third": ["text tool_use", "tool_use", "I look.", "ls"], "events": ["message_start", "message_stop"], "count": True, "models": 1,
            "refused": ["BadRequestError", 400, True], "unknown": ["NotFoundError", 404]})
        self.assertEqual(traces(t), [("", LINEAR[1] + ["tool", "assistant"])])

    def check_google(self, t, error):
        self.assertEqual(said(t), {
            "first": ["STOP", "I look.", "bash", "ls"], "second": ["STOP", "It is there.", True], "third": ["ls"], "count": True,
            "refused": [error, 400, True], "unknown": [error, 404]})
        self.assertEqual(traces(t), [LINEAR])

    def test_openai(self):
        self.check_openai(self.javascript("openai"))

    def test_openai_python(self):
        self.check_openai(self.python("openai-python"))

    def test_anthropic(self):
        self.check_anthropic(self.javascript("anthropic"))

    def test_anthropic_python(self):
        self.check_anthropic(self.python("anthropic-python"))

    def test_google(self):
        self.check_google(self.javascript("google"), "ApiError")

    def test_google_python(self):
        self.check_google(self.python("google-python"), "ClientError")


if __name__ == "__main__":
    unittest.main()
