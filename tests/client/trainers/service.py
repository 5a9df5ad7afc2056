"""A real service with a real small model, and trajectories of it, for the tests of the trainers (tests/trainers.sh).

    with Service() as service:
        made = service.make()           # one of each kind that a trainer may meet
        service.client.submit(...)      # or others; service.url is for further clients

Nothing is left of it: the service and the engine end with this process, however it ends.
"""
from __future__ import annotations

import dataclasses
import os
import socket
import sys
import tempfile
from typing import Any, Dict, List, Optional

SOURCE = os.environ.get("SLUICE_SOURCE_DIR") or os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3))
sys.path[:0] = [os.path.join(SOURCE, "client", "python"), os.path.join(SOURCE, "client", "learn")]
BINARY = os.environ.get("SLUICE_BINARY_DIR") or os.path.join(SOURCE, "build", "release")
os.environ["PATH"] = os.path.join(BINARY, "client") + ":" + os.environ["PATH"]

import sluice  # noqa: E402
from llama_server import LlamaServer  # noqa: E402
from sluice import Trajectory  # noqa: E402

SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": 8}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def copy_task(word: str, **more: Any) -> Dict[str, Any]:
    """To say a word again, shown by three examples; the model is right about three times of four."""
    messages = []
    for shown in ("sun", "glass", "moon"):
        messages += [{"role": "user", "content": shown}, {"role": "assistant", "content": f"\\boxed{{{shown}}}"}]
    return {"task": f"copy-{word}", "messages": [*messages, {"role": "user", "content": word}], "agent": {"kind": "chat"},
            "sampling": dict(SAMPLING, max_tokens=12),
            "eval": {"kind": "exact", "answer": word, "extract": "box"}, **more}


@dataclasses.dataclass
class Made:
    """Trajectories of each kind that a trainer may meet."""

    group: List[Trajectory]    # four rollouts of one task, of one trace each, with rewards
    unscored: Trajectory       # trainable, without a reward: its task has no evaluator
    cancelled: Trajectory      # not trainable, without a reward and without traces
    several: Optional[Trajectory]  # of several traces; None: this machine makes no sandboxes


class Service:
    """broker, workers and llama-server with the model of client/engine.sh; weights: another file for the latter."""

    def __init__(self, weights: Optional[str] = None, slots: int = 8) -> None:
        self.model = os.environ["SLUICE_MODEL"]
        self.weights, self.slots = weights or self.model, slots

    def __enter__(self) -> Service:
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-trainers-", ignore_cleanup_errors=True)
        self.folder = self._folder.name  # for the test's own files; removed at the end
        self.engine = LlamaServer(os.environ["SLUICE_LLAMA_SERVER"], free_port(), os.path.join(self.folder, "engine.log"),
                                  slots=self.slots)
        self.engine.command.append("--no-repack")  # the same arithmetic on every processor
        try:
            self.engine.start(self.weights)
            self.client = sluice.local(engine=self.engine.url, slots=self.slots)
        except BaseException:
            self.engine.stop()
            self._folder.cleanup()
            raise
        self.url = self.client.url
        self._streams = 0
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.engine.stop()
        self._folder.cleanup()

    def run(self, task: Dict[str, Any], samples: int = 1) -> List[Trajectory]:
        """A group's trajectories, by sample, in a stream of its own."""
        self._streams += 1
        stream = f"made-{self._streams}"
        self.client.submit([task], stream=stream, samples=samples)
        return sorted(self.client.trajectories(stream, until_idle=True), key=lambda t: t.sample)

    def make(self) -> Made:
        group = self.run(copy_task("river"), samples=4)
        unscored, = self.run(copy_task("stone", eval={"kind": "none"}))
        self.client.cancel(group="cancelled-group")  # before its submit: remembered, and wins
        self.client.submit([copy_task("cloud")], stream="cancelled", group=lambda task: "cancelled-group")
        cancelled, = self.client.trajectories("cancelled", until_idle=True)
        several = None
        if any(worker.get("sandbox", "none") != "none" for worker in self.client.status()["workers"]):
            # A reply that is cut off, as nearly all are, cannot be continued: the next turn is in another trace.
            told = self.run({"task": "several", "prompt": "Tell a long story of a river.",
                             "agent": {"kind": "bash", "max_turns": 2}, "sampling": SAMPLING,
                             "eval": {"kind": "command", "command": "true"}}, samples=3)
            several = max(told, key=lambda t: len(t.traces))
        return Made(group, unscored, cancelled, several)
