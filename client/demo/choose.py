"""Prints the rollout most worth reading, of all or of one task: sampled by the model, rewarded, with a tool used, and short."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as lines:
    trajectories = [json.loads(line) for line in lines]
if len(sys.argv) > 2:
    trajectories = [t for t in trajectories if t["task"] == sys.argv[2]]


def interest(trajectory):
    tokens = sum(len(trace["token_ids"]) for trace in trajectory.get("traces", []))
    used_a_tool = any(message["role"] == "tool" for message in trajectory.get("messages", []))
    return (tokens > 0, bool(trajectory.get("reward")), used_a_tool, -tokens)


print(max(trajectories, key=interest)["rollout"])
