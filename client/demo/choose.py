"""Prints the rollout most worth reading: one that used a tool and was rewarded, else any rewarded, else the first."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as lines:
    trajectories = [json.loads(line) for line in lines]


def interest(trajectory):
    used_a_tool = any(message["role"] == "tool" for message in trajectory.get("messages", []))
    return (bool(trajectory.get("reward")) and used_a_tool, bool(trajectory.get("reward")), used_a_tool)


print(max(trajectories, key=interest)["rollout"])
