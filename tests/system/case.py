"""What the tests in these folders share: tasks whose length a test decides, and a stream read to its end."""
import os
import sys
import unittest

from fleet import Fleet
from harness import SOURCE

sys.path += [os.path.join(SOURCE, "client", "python"), os.path.join(SOURCE, "tests", "chaos")]

try:
    import load
    from nodes import Nodes, why_not
    from sluice import Client
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)

__all__ = ["Case", "Client", "Fleet", "Nodes", "why_not", "chat", "load", "noop", "sandbox", "script"]


def noop(number, **more):
    return dict({"task": f"noop-{number}", "kind": "noop", "metadata": {"number": number}}, **more)


def sandbox(number, command="true", **more):
    """No agent: what its set-up and its evaluator do is all there is."""
    return dict({"task": f"sandbox-{number}", "agent": {"kind": "none"}, "metadata": {"number": number},
                 "eval": {"kind": "command", "command": command}}, **more)


def chat(number, **more):
    return dict(load.chat("What is 1+1?"), task=f"chat-{number}", metadata={"number": number}, **more)


def script(delay_ms=0, *rules):
    """An engine that is right about 1+1 after so long."""
    return {"rules": [*rules, {"path": "/completion", "delay_ms": delay_ms, "reply": "It is \\boxed{2}."}]}


class Case(unittest.TestCase):
    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def client(self, fleet, **options):
        return self.enter(Client(fleet.url, allow_plaintext=True, **options))

    def read(self, client, stream, count, seconds=60, from_seq=1):
        """`count` trajectories, each once and in order, and the broker knows of no more."""
        seen = []
        for t in client.trajectories(stream, from_seq=from_seq, timeout=seconds, until_idle=True):
            seen.append(t)
        self.assertEqual([t.seq for t in seen], list(range(from_seq, from_seq + count)))
        self.assertEqual(len({t.rollout for t in seen}), count)
        return seen

    def assert_all(self, trajectories, outcome="ok", reward=1.0):
        for t in trajectories:
            self.assertEqual((t.outcome, t.reward, t.trainable), (outcome, reward, outcome in ("ok", "agent")), t)

    def wait_leased(self, fleet, stage, count, seconds=30):
        fleet.wait_for(lambda status: status["stages"][stage]["leased"] == count, seconds, f"{count} {stage} jobs leased")
