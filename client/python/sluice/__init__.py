"""Client of Sluice, a rollout service: tasks in, token-exact trajectories with rewards out.

    from sluice import Client

    client = Client()                                  # $SLUICE_BROKER, else tcp://127.0.0.1:5750
    client.submit(tasks, stream="train", samples=8)    # dicts, or the path of a JSONL file
    for t in client.trajectories("train"):
        for trace in t.traces if t.trainable else ():  # numpy: token_ids, mask, logprobs
            ...
        client.ack("train", t.seq)                     # once it is in a checkpoint
"""

from .aio import AsyncClient
from .client import Client
from .errors import (AuthRefused, BadArgument, BadTask, BrokerSilent, Forgotten, Full, NotAllowed, OtherLedger,
                     OtherTokens, Refused, ServiceError, SessionLost, SluiceError)
from .groups import Group
from .protocol.messages import MessageError
from .sampler import Batch, SampledGroup
from .service import local
from .sessions import AsyncSession, Session
from .tokenizer import tokenizer_digest
from .trajectory import (Column, Message, Sampling, Sandbox, Tamper, Test, Tests, Trace, Trajectory, Turn,
                         VersionSpan)

__version__ = "0.1.0"
__all__ = ["Client", "AsyncClient", "Trajectory", "Group", "Batch", "SampledGroup", "Trace", "Turn", "Sampling", "VersionSpan", "Column",
           "Tests", "Test", "Message", "Sandbox", "Tamper", "SluiceError",
           "BadArgument", "Refused", "BadTask", "BrokerSilent", "AuthRefused", "NotAllowed", "Full", "Forgotten",
           "OtherLedger", "OtherTokens", "MessageError", "ServiceError", "SessionLost", "Session", "AsyncSession", "local", "tokenizer_digest"]
