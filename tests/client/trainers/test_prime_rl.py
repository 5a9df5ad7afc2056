"""sluice.adapters.prime_rl with prime-rl's own packer, transports, data loader, loss and weight update, a real service
and a real model. Run by tests/trainers.sh.

A thread of the test's stands in for the training: it reads batches with prime-rl's receivers and says that it has
written weights. A small server answers as prime-rl's inference servers do when weights change.
"""
# Packages: git+https://github.com/PrimeIntellect-ai/prime-rl@559b4477 prime-pydantic-config msgspec beartype loguru
# Packages: git+https://github.com/PrimeIntellect-ai/prime-rl@559b4477#subdirectory=packages/prime-rl-configs
# Packages: verifiers>=0.4.1.dev86 renderers>=0.1.13.dev17 prime-runs prime-sandboxes prime-traces prime-tunnel
# Packages: openai<3 openai-harmony anthropic mcp==2.2.0 mcp-types gepa math-verify latex2sympy2-extended
# Packages: antlr4-python3-runtime==4.13.2 jaxtyping wadler-lindig httpx httpcore tenacity tomli tomli-w tiktoken
# Packages: uvicorn starlette sse-starlette python-multipart aiofiles aiohttp aiohappyeyeballs aiosignal frozenlist
# Packages: multidict propcache yarl attrs jsonschema jsonschema-specifications referencing rpds-py pyjwt
# Packages: cryptography cffi pycparser distro docstring-parser jiter sniffio pillow pyqwest connectrpc protobuf
# Packages: protobuf-py protobuf-py-ext opentelemetry-api
# Options: --no-deps --ignore-requires-python
# Python: 3.11
# Torch: yes
from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import http.server
import itertools
import json
import pathlib
import socket
import threading
import unittest

import numpy as np
from absent import pretend

pretend("wandb")

import torch  # noqa: E402
from prime_rl.configs.shared import FileSystemTransportConfig, ZMQTransportConfig  # noqa: E402
from prime_rl.configs.trainer import DefaultLossConfig  # noqa: E402
from prime_rl.trainer.rl.data import DataLoader  # noqa: E402
from prime_rl.trainer.rl.loss import compute_loss, setup_rl_loss_fn  # noqa: E402
from prime_rl.transports.rollouts import MicroBatch, TrainingSample, setup_micro_batch_receiver  # noqa: E402
from service import Service, copy_task, free_port  # noqa: E402

from sluice.adapters.prime_rl import Orchestrator, Servers  # noqa: E402
from sluice.errors import BadArgument, SluiceError  # noqa: E402
from sluice.sampler import Batch, SampledGroup  # noqa: E402

WORDS = ("river", "stone", "cloud", "moon", "glass", "sun")


async def nothing(folder, step):
    """Loads no weights."""


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service().__enter__()
        cls.addClassCleanup(cls.service.__exit__)

    def folder(self) -> pathlib.Path:
        told = pathlib.Path(self.service.folder, self.id().rpartition(".")[2])
        told.mkdir(exist_ok=True)
        return told

    def orchestrator(self, load=nothing, tasks=None, **more):
        endless = ({**copy_task(word), "task": f"copy-{number}"} for number, word in enumerate(itertools.cycle(WORDS)))
        return Orchestrator(self.folder(), endless if tasks is None else tasks, load,
                            **{"groups": 2, "samples": 2, "seq_len": 256, "filter": "none", "broker": self.service.url,
                               "stream": self.id().rpartition(".")[2][:40], **more})


def free_pair() -> int:
    """A port that is free together with the next one."""
    while True:
        port = free_port()
        with socket.socket() as next_one, contextlib.suppress(OSError, OverflowError):
            next_one.bind(("127.0.0.1", port + 1))
            return port


def batch_of(*trajectories):
    group = SampledGroup("g", 1, "t", len(trajectories), 0, 0.0, 0, 0, list(trajectories))
    return Batch(1, "s", 1, [group], {}, 1.0, [])


class Samples(Case):
    """Trajectories of each kind, in prime-rl's hands."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.made = cls.service.make()

    def test_a_rollout_becomes_a_sample_of_all_its_tokens(self) -> None:
        samples = self.orchestrator().samples(batch_of(*self.made.group))
        mean = sum(t.reward for t in self.made.group) / 4
        for sample, t in zip(samples, self.made.group):
            trace, = t.traces
            self.assertIsInstance(sample, TrainingSample)
            self.assertEqual((sample.token_ids, sample.mask), (trace.token_ids.tolist(), (trace.mask == 1).tolist()))
            self.assertEqual((sample.logprobs, set(sample.temperatures)), (trace.logprobs.tolist(), {1.0}))
            self.assertEqual(sample.env_name, "sluice")
            for advantage, is_sampled in zip(sample.advantages, sample.mask):
                self.assertAlmostEqual(advantage, (t.reward - mean) * is_sampled)

    def test_what_is_not_learned_from_is_in_no_sample_and_in_no_mean(self) -> None:
        alone = self.orchestrator().samples(batch_of(*self.made.group))
        told = self.orchestrator().samples(batch_of(*self.made.group, self.made.unscored, self.made.cancelled))
        self.assertEqual([sample.advantages for sample in told], [sample.advantages for sample in alone])
        with self.assertRaisesRegex(SluiceError, "no rollout with a reward and tokens"):
            self.orchestrator().samples(batch_of(self.made.unscored, self.made.cancelled))

    def test_each_trace_is_a_sample(self) -> None:
        if self.made.several is None or not self.made.several.trainable:
            self.skipTest("this machine makes no sandboxes")
        told = self.orchestrator(seq_len=4096).samples(batch_of(self.made.several, self.made.group[0]))
        self.assertEqual([len(sample.token_ids) for sample in told[:-1]],
                         [len(trace.token_ids) for trace in self.made.several.traces])

    def test_what_would_be_learned_wrong_is_refused_by_name(self) -> None:
        with self.assertRaisesRegex(BadArgument, "seq_len is 16, and a trace of batch 1 has .* tokens"):
            self.orchestrator(seq_len=16).samples(batch_of(*self.made.group))
        t = copy.deepcopy(self.made.group[0])
        trace = t.traces[0]
        t.traces = [dataclasses.replace(trace, logprobs=np.where(trace.mask == 1, np.nan, 0).astype("f4"))]
        with self.assertRaisesRegex(SluiceError, f"{t.rollout} has log-probabilities that are not finite"):
            self.orchestrator().samples(batch_of(t, self.made.group[1]))
        turns = [dataclasses.replace(turn, sampling=None) for turn in trace.turns]
        t.traces = [dataclasses.replace(trace, turns=turns)]
        with self.assertRaisesRegex(SluiceError, f"{t.rollout} does not say at which temperature"):
            self.orchestrator().samples(batch_of(t, self.made.group[1]))

    def test_the_trainers_loss_is_that_of_the_rollouts_advantages(self) -> None:
        orchestrator = self.orchestrator(seq_len=4096)
        batch = batch_of(*self.made.group)
        (micro,), = orchestrator.micro_batches(batch)
        tensors = DataLoader._micro_batch_to_tensor(None, micro)
        self.assertEqual({tensors[name].shape for name in ("input_ids", "advantages", "loss_mask")},
                         {(1, sum(len(t.traces[0].mask) for t in self.made.group))})
        lengths = tensors["sequence_lengths"]
        logprobs, advantages, mask = ([part.requires_grad_(part.dtype == torch.float) for part in
                                       tensors[name].squeeze(0).split(lengths)]
                                      for name in ("inference_logprobs", "advantages", "loss_mask"))
        loss, _ = compute_loss(logprobs, [part.detach() for part in logprobs], None, advantages, mask, None, None, None,
                               setup_rl_loss_fn(DefaultLossConfig()), 1, 1, 1)
        sampled = [(sum(sample.mask), max(sample.advantages, key=abs)) for sample in orchestrator.samples(batch)]
        self.assertAlmostEqual(loss.item(), -sum(count * advantage for count, advantage in sampled), 3)


class Admin:
    """Answers as prime-rl's inference servers do when weights change, and notes it."""

    def __init__(self, fails="", status=400) -> None:
        self.calls = calls = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                calls.append((self.path, pathlib.Path(json.loads(body)["weight_dir"]).name if body else None))
                self.send_response(status if self.path.partition("?")[0] == fails else 200)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


class Trainer(threading.Thread):
    """Reads as many steps as it is told, and writes weights as the trainer does: an empty directory with STABLE.

    Its ranks beyond the first listen once `is_ready` is set.
    """

    def __init__(self, folder, transport, ranks, steps, first=1) -> None:
        super().__init__(daemon=True)
        self.folder, self.steps, self.ranks = folder, range(first, steps + 1), ranks
        self.transport = transport
        self.is_ready = threading.Event()
        self.got = []  # of each step, of each rank

    def write(self, step) -> None:
        path = self.folder / "broadcasts" / f"step_{step}"
        path.mkdir(parents=True)
        (path / "STABLE").touch()

    def run(self) -> None:
        self.write(self.steps[0] - 1)
        receivers = []
        for rank in range(self.ranks):
            receivers.append(setup_micro_batch_receiver(self.folder, rank, self.steps[0], self.transport))
            self.is_ready.wait(100)
        for step in self.steps:
            for receiver in receivers:
                receiver.wait()
            self.got.append([receiver.receive() for receiver in receivers])
            self.write(step)
        for receiver in receivers:
            receiver.close()


class Training(Case):
    def train(self, transport, ranks, steps, first=1, **more):
        """Batches that were sent, and what the trainer got."""
        sent, server = [], Admin()
        trainer = Trainer(self.folder(), transport, ranks, steps, first)

        def note(step, batch):
            sent.append((step, batch))
            trainer.is_ready.set()
        orchestrator = self.orchestrator(Servers([server.url]), data_ranks=ranks, transport=transport, step=first,
                                         max_steps=steps, on_batch=note, **more)

        async def main():
            running = asyncio.ensure_future(orchestrator.run())
            await asyncio.sleep(0)  # it has removed what former runs left
            trainer.start()
            await running
        asyncio.run(asyncio.wait_for(main(), 200))
        trainer.join(10)
        self.assertEqual([step for step, _ in sent], list(range(first, steps + 1)))
        self.assertEqual([len(got) for got in trainer.got], [ranks] * len(sent))
        for (_, batch), got in zip(sent, trainer.got):
            self.assert_same(orchestrator.samples(batch), got)
        return orchestrator, sent, server.calls

    def assert_same(self, samples, got) -> None:
        """All ranks have as many micro batches; together they have each sample once, the rest is padding."""
        self.assertEqual({type(micro) for rank in got for micro in rank}, {MicroBatch})
        self.assertEqual(len({len(rank) for rank in got}), 1)
        found = []
        for micro in (micro for rank in got for micro in rank):
            at = 0
            for length in micro.seq_lens:
                part = slice(at, at + length)
                if any(micro.loss_mask[part]):
                    found.append((micro.input_ids[part], micro.loss_mask[part], micro.inference_logprobs[part],
                                  micro.temperatures[part], micro.advantages[part]))
                at += length
        self.assertEqual(sorted(found), sorted((one.token_ids, one.mask, one.logprobs, one.temperatures, one.advantages)
                                               for one in samples))

    def test_over_zmq_each_rank_gets_its_part_of_each_step_once_all_are_there(self) -> None:
        transport = ZMQTransportConfig(host="127.0.0.1", port=free_pair())
        orchestrator, sent, calls = self.train(transport, 2, 3)
        self.assertEqual(orchestrator.version, 3)
        updates = [calls[k:k + 4] for k in range(0, len(calls), 4)]
        for update in updates:
            self.assertEqual([path for path, _ in update], [
                "/pause?mode=keep&clear_cache=false", "/update_weights", "/resume",
                "/reset_prefix_cache?reset_running_requests=true"])
        self.assertEqual((updates[0][1][1], updates[-1][1][1]), ("step_0", "step_3"))
        versions = {turn.version for _, batch in sent for t in batch.trajectories for turn in t.traces[0].turns
                    if turn.role == "assistant"}
        self.assertIn("step-0", versions)
        self.assertNotIn("", versions)

    def test_over_files_a_run_goes_on_at_its_step_without_what_a_former_one_left(self) -> None:
        left = self.folder() / "rollouts" / "step_6"
        left.mkdir(parents=True)
        (left / "rank_0.bin").write_bytes(b"of a former run")
        _, sent, calls = self.train(FileSystemTransportConfig(), 1, 6, first=5, lag=0)
        self.assertEqual(len(sent), 2)
        loaded = [folder for path, folder in calls if path == "/update_weights"]
        self.assertEqual(loaded, ["step_4", "step_5", "step_6"])

    def test_after_a_kill_the_same_batch_is_sent_again(self) -> None:
        Trainer(self.folder(), None, 0, 1).write(0)

        def begin(number):
            """Its batch, and that it is ended then."""
            made = asyncio.run(asyncio.wait_for(self.first_batch(), 100))
            self.assertTrue((self.folder() / "rollouts" / "step_1" / "rank_0.bin").exists(), number)
            return made.number, sorted(t.rollout for t in made.trajectories)
        self.assertEqual(begin(1), begin(2))

    async def first_batch(self):
        made = asyncio.get_running_loop().create_future()
        orchestrator = self.orchestrator(lag=0, on_batch=lambda step, batch: made.set_result(batch))
        running = asyncio.ensure_future(orchestrator.run())
        await asyncio.wait({made, running}, return_when=asyncio.FIRST_COMPLETED)
        while orchestrator.step == 1:  # until it is sent
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return made.result()

    def test_weights_that_cannot_be_loaded_end_it(self) -> None:
        Trainer(self.folder(), None, 0, 1).write(0)
        for fails, status, said in (("/update_weights", 400, "400 Bad Request"),
                                    ("/reset_prefix_cache", 404, "start it with VLLM_SERVER_DEV_MODE=1")):
            orchestrator = self.orchestrator(Servers([Admin(fails, status).url]), max_steps=1)
            with self.assertRaisesRegex(Exception, said):
                asyncio.run(asyncio.wait_for(orchestrator.run(), 60))

    def test_tasks_that_come_to_their_end_are_an_error(self) -> None:
        orchestrator = self.orchestrator(tasks=[copy_task("river")], groups=1, max_steps=2, lag=2)
        Trainer(self.folder(), None, 0, 1).write(0)
        with self.assertRaisesRegex(SluiceError, "tasks have come to their end before batch 2"):
            asyncio.run(asyncio.wait_for(orchestrator.run(), 100))


if __name__ == "__main__":
    unittest.main()
