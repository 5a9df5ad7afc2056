#!/usr/bin/env python3
"""ray_peer.py WORKERS DIRECTORY: a pipeline of Ray actors, WORKERS of each stage, a call handed from one to the next by
reference. An actor that dies is started again and its calls are made again."""
import os
import sys
import time

import ray

import lines


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Worker:
    def __init__(self, stage, directory):
        self.directory = directory if stage == "run" else None

    def do(self, job):
        if self.directory and lines.holds(self.directory):
            while os.path.exists(f"{self.directory}/hold"):
                time.sleep(0.01)
        return job


class Actors:
    def __init__(self, workers, directory):
        ray.init(include_dashboard=False, log_to_driver=False, _temp_dir=f"{directory}/ray")
        self.stages = [[Worker.remote(stage, directory) for _ in range(workers)] for stage in ("init", "run", "eval")]
        ray.get([worker.do.remote(b"") for stage in self.stages for worker in stage])

    def submit(self, number):
        job = lines.TASK
        for stage in self.stages:
            job = stage[number % len(stage)].do.remote(job)
        return job

    def do_many(self, count, window, ended):
        sent, waiting = 0, {}
        while sent < count or waiting:
            while sent < count and len(waiting) < window:
                waiting[self.submit(sent)] = time.perf_counter()
                sent += 1
            ready, _ = ray.wait(list(waiting), num_returns=1)
            more, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
            for job in {*ready, *more}:
                ended(waiting.pop(job))


if __name__ == "__main__":
    lines.serve(Actors, int(sys.argv[1]), sys.argv[2])
    ray.shutdown()
