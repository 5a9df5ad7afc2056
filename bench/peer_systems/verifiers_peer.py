#!/usr/bin/env python3
"""verifiers_peer.py WORKERS DIRECTORY: the env server of `verifiers`, its pool of 3 x WORKERS processes started before,
and its client. One worker does a rollout from its beginning to its end; the environment, which is in this file, too,
does nothing."""
import asyncio
import atexit
import multiprocessing
import os
import signal
import sys
import time

import lines
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.configs.client import EvalClientConfig
from verifiers.v1.configs.taskset import TasksetConfig
from verifiers.v1.env import EnvInfo, Episode, TraceTask
from verifiers.v1.envs.single_agent import SingleAgentEnv, SingleAgentEnvConfig
from verifiers.v1.runtimes import SubprocessConfig
from verifiers.v1.serve import EnvClient, serve_env
from verifiers.v1.serve.pool import env_config_data
from verifiers.v1.task import Task, TaskData
from verifiers.v1.taskset import Taskset
from verifiers.v1.types import SamplingConfig

__all__ = ["NoopTaskset", "NoopEnv"]


class NoopTask(Task[TaskData]):
    pass


class NoopTaskset(Taskset[NoopTask, TasksetConfig]):
    def load(self):
        return [NoopTask(TaskData(prompt=lines.TASK.decode()), self.config.task)]


class NoopEnv(SingleAgentEnv):
    async def run_episode(self, task, ctx, *, on_trace=None, on_discard=None):
        directory = os.environ["SLUICE_BENCH_DIRECTORY"]
        if lines.holds(directory):
            while os.path.exists(f"{directory}/hold"):
                await asyncio.sleep(0.01)
        return Episode(env=EnvInfo(id=self.config.env_id), ok=True,
                       task=TraceTask(type="NoopTask", data=task.data, key=task.key, hash=task.hash))


class EnvServerPeer:
    def __init__(self, workers):
        context = multiprocessing.get_context("spawn")
        addresses = context.Queue()
        config = SingleAgentEnvConfig(taskset=TasksetConfig(id="verifiers_peer"),
                                      agent=AgentConfig(runtime=SubprocessConfig()))
        self.server = context.Process(target=serve_env, kwargs={
            "max_workers": 3 * workers, "elastic": False, "address": "tcp://127.0.0.1:0", "address_queue": addresses,
            "config_data": env_config_data(config)})
        self.server.start()
        atexit.register(self.server.terminate)
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self.open(addresses.get(timeout=120), workers))

    async def open(self, address, workers):
        self.client = EnvClient(address)
        await self.client.wait_for_server_startup()
        await asyncio.gather(*(self.do(lambda _: None) for _ in range(6 * workers)))  # each worker is up

    async def do(self, ended):
        began = time.perf_counter()
        await self.client.run(EvalClientConfig(), "none", SamplingConfig(),
                              TaskData(prompt=lines.TASK.decode()).model_dump())
        ended(began)

    async def do_all(self, count, window, ended):
        room = asyncio.Semaphore(window)

        async def one():
            async with room:
                await self.do(ended)
        await asyncio.gather(*(one() for _ in range(count)))

    def do_many(self, count, window, ended):
        self.loop.run_until_complete(self.do_all(count, window, ended))


if __name__ == "__main__":
    os.environ["SLUICE_BENCH_DIRECTORY"] = sys.argv[2]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # which ends the pool, a child of ours
    lines.serve(EnvServerPeer, int(sys.argv[1]))
