"""Sluice: submit tasks, read token-exact trajectories.

    from sluice import Client
    client = Client("tcp://127.0.0.1:5750")
    client.submit(tasks, stream="train", samples=8)
    for t in client.trajectories("train"):
        print(t.rollout, t.reward, t.traces[0].token_ids)
"""
from .client import BrokerSilent, Client, Refused
from .trajectory import Message, Trace, Trajectory, Turn

__all__ = ["BrokerSilent", "Client", "Message", "Refused", "Trace", "Trajectory", "Turn"]
__version__ = "0.1.0"
