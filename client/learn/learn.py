"""python learn.py --model FILE --server PROGRAM --out DIR [--steps N] [--seed N]

A language model learns through Sluice: the service at $SLUICE_BROKER makes batches of groups whose rewards differ (a sampler,
docs/sampler.md), one step of DAPO is made of each, and the engine, llama.cpp's server, is given the new weights while the
service holds its calls.

Killed at any moment and started again on the same --out, it goes on where it was: a step counts once its checkpoint is written,
and the sampler tells the batch after that of the checkpoint, the same one as before.
"""
import itertools
import os
import time

import curve
import weights
from held_out import evaluate, scored
from learn_options import arguments
from learn_tasks import Tasks
from llama_server import LlamaServer
from policy import Policy
from sluice import Client
from sluice.advantages import grpo

TRAIN = "learn"  # the stream


def with_advantages(group):
    """(trace, advantage): how many standard deviations above the group's mean its reward is."""
    pairs = scored(group.trajectories)
    return [(trace, a) for (trace, _), a in zip(pairs, grpo([reward for _, reward in pairs], ddof=0).values)]


def reward_of_all(batch):
    """The mean reward of all rollouts since the batch before, those of groups that were not kept among them, and their number."""
    told = [(group.mean, group.scored) for group in batch.groups] + [(row["mean"], row["scored"]) for row in batch.dropped
                                                                    if row["scored"]]
    count = sum(scored for _, scored in told)
    return sum(mean * scored for mean, scored in told) / count, count


def main():
    options = arguments()
    os.makedirs(options.out, exist_ok=True)
    place = lambda name: os.path.join(options.out, name)
    tasks = Tasks(options.seed)
    policy = Policy(options.model, options.layers, options.rate, options.seed)
    progress = policy.restore(place("checkpoint.pt")) or {"step": 0, "held_out": []}  # of held_out: [step, mean reward]
    weights.write(policy.model, options.model, place("weights.gguf"))
    patch = weights.Patch(place("weights.gguf"))
    engine = LlamaServer(options.server, options.port, place("llama-server.log"))
    metrics = curve.Metrics(options.out, progress["step"])
    engine.start(place("weights.gguf"))
    try:
        with Client() as client:
            client.engine_add(engine.url)
            if any(known["state"] == "paused" for known in client.engines()):  # by a run that was killed
                client.policy_resume()
            client.policy_set(f"step-{progress['step']}")
            if not progress["held_out"]:
                progress["held_out"].append(evaluate(client, tasks, options, progress["step"]))
                policy.save(place("checkpoint.pt"), progress)
            batches = client.sampler(TRAIN, tasks, groups=options.groups, samples=options.samples, ahead=options.ahead,
                                     staleness=options.ahead, surplus="carry" if options.ahead else "cancel",
                                     after=progress["step"], trainer="learn", prefix=f"s{options.seed}")
            began = time.monotonic()
            for batch in itertools.islice(batches, options.steps - progress["step"]):
                sampled = time.monotonic()
                reward, rollouts = reward_of_all(batch)
                told = policy.step([with_advantages(group) for group in batch.groups])
                trained = time.monotonic()
                with client.updating(f"step-{batch.number}"):
                    engine.stop()
                    patch(policy.model)
                    engine.start(place("weights.gguf"))
                metrics.add({"step": batch.number, "reward": reward, "rollouts": rollouts, **told,
                             "sample_s": sampled - began, "train_s": trained - sampled,
                             "update_s": time.monotonic() - trained})
                progress["step"] = batch.number
                policy.save(place("checkpoint.pt"), progress)
                began = time.monotonic()
            batches.close()
            if progress["held_out"][-1][0] < progress["step"]:
                progress["held_out"].append(evaluate(client, tasks, options, progress["step"]))
                policy.save(place("checkpoint.pt"), progress)
            client.engine_remove(engine.url)
    finally:
        engine.stop()
    curve.draw(place("learn.svg"), metrics.rows, progress["held_out"])
    before, after = progress["held_out"][0][1], progress["held_out"][-1][1]
    print(f"held out {before:.3f} -> {after:.3f} ({after - before:+.3f}); {place('metrics.jsonl')}, {place('learn.svg')}")


if __name__ == "__main__":
    main()
