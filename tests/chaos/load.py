"""What the trainers of the chaos submit, and how each rollout of it must end.

A group's name tells its kind: "<stream>-<number>-<kind>". The number and the seed decide everything else, so a trainer
that was killed says the same again.
"""
import random

SAMPLES_MAX = 4
WITHOUT_REWARD = {("task", None)}


def sandbox(number, command, setup=(), **more):
    return dict({"agent": {"kind": "none"}, "files": [{"path": "number", "text": str(number)}],
                 "setup": ["echo ready >state", *setup], "eval": {"kind": "command", "command": command}}, **more)


def chat(prompt):
    return {"prompt": prompt, "agent": {"kind": "chat"}, "eval": {"kind": "math", "answer": "2"},
            "limits": {"run_s": 120}}


KINDS = {
    # name: (weight, needs an engine, the task of a number, the (outcome, reward)s it may end with)
    "noop": (40, False, lambda n: {"kind": "noop"}, {("ok", 1.0)}),
    "right": (10, False, lambda n: sandbox(n, f"grep -qx {n} number && grep -qx ready state"), {("ok", 1.0)}),
    "wrong": (5, False, lambda n: sandbox(n, "grep -qx nothing number"), {("ok", 0.0)}),
    "big": (2, False, lambda n: sandbox(
        n, "sha256sum -c sum", setup=["head -c 150000 /dev/urandom >bytes; sha256sum bytes >sum"]), {("ok", 1.0)}),
    # evaluators that break on purpose: a signal, a status that is no verdict, a reward that is none
    "killed": (2, False, lambda n: sandbox(n, "kill -9 $$"), WITHOUT_REWARD),
    "vague": (2, False, lambda n: sandbox(n, "exit 127"), WITHOUT_REWARD),
    "empty": (2, False, lambda n: sandbox(n, "true", eval={
        "kind": "command", "command": "echo perhaps >/tmp/reward", "reward_file": "/tmp/reward"}), WITHOUT_REWARD),
    "setup": (2, False, lambda n: sandbox(n, "true", setup=["exit 3"]), WITHOUT_REWARD),
    "image": (1, False, lambda n: sandbox(n, "true", image=f"/no/such/image-{n}"), WITHOUT_REWARD),
    "slow": (3, False, lambda n: sandbox(n, f"sleep 0.3; grep -qx {n} number", setup=["sleep 0.3"]), {("ok", 1.0)}),
    "cancel": (3, False, lambda n: sandbox(n, "sleep 3600", limits={"eval_s": 7200, "command_s": 3600}),
               {("cancelled", None)}),
    "early-cancel": (2, False, lambda n: sandbox(n, "true"), {("cancelled", None)}),  # cancelled before it is submitted
    "add": (8, True, lambda n: chat("What is 1+1?"), {("ok", 1.0)}),
    "miss": (4, True, lambda n: chat("Be wrong."), {("ok", 0.0)}),
    "shell": (4, True, lambda n: {
        "prompt": "Please write hello.", "agent": {"kind": "bash", "max_turns": 4}, "setup": ["echo seed >seed.txt"],
        "eval": {"kind": "command", "command": "grep -qx hello answer.txt && grep -qx seed seed.txt"}}, {("ok", 1.0)}),
}
CANCELLED_BEFORE, CANCELLED_AFTER = ("early-cancel",), ("cancel",)

SCRIPT = {"rules": [
    {"path": "/completion", "if": "write hello", "delay_ms": 20,
     "replies": ["I write it.\n```bash\necho hello >answer.txt\n```\n", "TASK_DONE"]},
    {"path": "/completion", "if": "<returncode>", "reply": "TASK_DONE"},
    {"path": "/completion", "if": "1+1", "delay_ms": 20, "reply": "It is \\boxed{2}."},
    {"path": "/completion", "if": "wrong", "delay_ms": 20, "reply": "It is \\boxed{3}."},
]}


def group(seed, stream, number, with_engine):
    """(name, kind, samples, task) of a stream's group of this number."""
    dice = random.Random(f"{seed}/{stream}/{number}")
    names = [name for name, row in KINDS.items() if with_engine or not row[1]]
    kind = dice.choices(names, [KINDS[name][0] for name in names])[0]
    samples = dice.randint(1, SAMPLES_MAX)
    task = dict(KINDS[kind][2](number), task=f"{kind}-{number}", samples=samples, metadata={"number": number})
    return f"{stream}-{number}-{kind}", kind, samples, task


def kind_of(rollout):
    return rollout.rsplit("/", 1)[0].rsplit("-", 1)[1]


def may_end(kind, outcome, reward, trainable, damaged=False):
    """None, or what is wrong about this end. damaged: layers in the store were, so what needs one may fail."""
    allowed = set(KINDS[kind][3])
    if damaged and kind == "big":
        allowed |= {("infra", None), ("task", None)}
    if (outcome, reward) not in allowed:
        return f"ended {outcome} with reward {reward}, not {sorted(map(str, allowed))}"
    if trainable != (outcome in ("ok", "agent")):
        return f"ended {outcome} and trainable is {trainable}"
    return None
