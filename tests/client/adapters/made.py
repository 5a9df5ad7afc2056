"""Traces and trajectories by hand."""
import numpy as np

from sluice import Group, Trace, Trajectory


def trace(mask, first_id=1, columns=(), logprob=-0.5, label=""):
    """Ids count up from first_id; its arrays are read-only, as those of a record. mask: "0011"."""
    sampled = np.array([int(one) for one in mask], np.uint8)
    ids = np.arange(first_id, first_id + len(mask), dtype=np.uint32)
    logprobs = (sampled * np.float32(logprob)).astype(np.float32)
    for array in (ids, sampled, logprobs):
        array.flags.writeable = False
    return Trace(ids, sampled, logprobs, [], "", columns={column.name: column for column in columns}, label=label)


def rollout(reward, traces=(), sample=0, trainable=True, raw=None):
    one = Trajectory("s", 1, f"g/{sample}", "g", "t", sample, 1, "ok", trainable, 0, 0, 0, 0, 0, reward=reward,
                     raw_reward=reward if raw is None else raw)
    one.traces = list(traces)
    return one


def group(*trajectories):
    return Group("g", "s", "t", len(trajectories), True, list(trajectories), 0, {})
