"""What a function is given of its job: the task, and requests to the worker that it works for.

Each class has two forms with the same methods: for async functions, which await them, and (Blocking...) for plain functions,
which run in a thread of their own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import json
from typing import Any, Coroutine, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

from .connection import Connection
from .results import number

T = TypeVar("T")
Messages = Union[str, Mapping[str, Any], Sequence[Union[str, Mapping[str, Any]]]]


class Refused(Exception):
    """The worker did not do what was asked for, in words; the job goes on."""


class Over(Exception):
    """A budget of the task is used up: an agent that lets it pass ends by it, and is scored.

    which: turns, tokens, length or context.
    """

    def __init__(self, which: str) -> None:
        super().__init__(which)
        self.which = which


class Cancelled(BaseException):
    """The job has ended without this function: its time is up, or somebody cancelled it. Clean up and let it pass."""


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """A call of a tool that the model wrote."""

    name: str
    arguments: Dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Reply:
    """A turn of the model.

    finish: stop or length; tokens: how many were sampled; problem: why its calls cannot be read, or None.
    """

    text: str
    finish: str
    tokens: int
    calls: List[ToolCall]
    problem: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Output:
    """What a command or a tool gave. status: 0 to 255, or 256 + signal; answer: of a tool that ends the rollout, or None."""

    text: str
    status: int
    is_error: bool
    timed_out: bool
    seconds: float
    answer: Optional[str] = None


def message_list(messages: Messages) -> List[Dict[str, Any]]:
    """Strings are the user's turns."""
    if isinstance(messages, (str, Mapping)):
        messages = [messages]
    return [{"role": "user", "content": one} if isinstance(one, str) else dict(one) for one in messages]


def _output(told: Mapping[str, Any]) -> Output:
    status, timed_out = int(told.get("status", 0)), bool(told.get("timed_out", False))
    text = told.get("output", told.get("text", ""))
    is_error = bool(told.get("is_error", status != 0 or timed_out))
    return Output(text, status, is_error, timed_out, float(told.get("seconds", 0.0)), told.get("answer"))


class Job:
    """What a job of any role has.

    rollout: its name; sample_number: which of its group it is, from 0; task: as it was submitted; metadata: the task's;
    config: of agent or eval.
    """

    def __init__(self, connection: Connection, begin: Dict[str, Any]) -> None:
        self._connection, self._id = connection, int(begin["id"])
        self._turn = asyncio.Lock()  # one request of a job is open at a time
        self.role: str = begin["role"]
        self.name: str = begin["name"]
        self.rollout: str = begin["rollout"]
        self.sample_number: int = begin["sample"]
        self.task: Dict[str, Any] = json.loads(begin["task"])
        self.metadata: Dict[str, Any] = self.task.get("metadata", {})
        part = {"agent": "agent", "evaluator": "eval"}.get(self.role, "")
        self.config: Dict[str, Any] = self.task.get(part, {}).get("config", {})
        self.answer: str = begin.get("answer", "")
        self.messages: List[Dict[str, Any]] = json.loads(begin.get("messages", "[]"))
        self.reply: Optional[Dict[str, Any]] = json.loads(begin["reply"]) if "reply" in begin else None

    @property
    def prompt(self) -> str:
        """The task's prompt, or the last of its messages."""
        if "prompt" in self.task:
            return str(self.task["prompt"])
        return str(self.task["messages"][-1]["content"]) if self.task.get("messages") else ""

    async def _ask(self, wire: str, **fields: Any) -> Dict[str, Any]:
        """The reply to a request: its JSON, with its bytes as `data`."""
        async with self._turn:
            reply = await self._connection.ask(self._id, wire, fields)
        if "over" in reply:
            raise Over(reply["over"])
        if "refusal" in reply:
            raise Refused(reply["refusal"])
        told: Dict[str, Any] = json.loads(reply.get("json", "{}"))
        return {**told, "data": reply["data"]} if "data" in reply else told

    async def exec(self, command: str, timeout: Optional[float] = None, output_bytes: Optional[int] = None) -> Output:
        """Runs a command by bash in the rollout's sandbox. timeout: seconds, limits.command_s if not given."""
        timeout_ms = None if timeout is None else max(1, round(timeout * 1000))
        return _output(await self._ask("handler.exec", command=command, timeout_ms=timeout_ms, output_bytes=output_bytes))

    async def read_file(self, path: str, offset: int = 0, length: Optional[int] = None) -> bytes:
        """Bytes of a file of the sandbox, 1 MiB if length is not given. Refused: it cannot be read."""
        return bytes((await self._ask("handler.read", path=path, offset=offset or None, length=length)).get("data", b""))

    async def write_file(self, path: str, content: Union[str, bytes], mode: int = 0o644) -> None:
        """Writes a whole file of the sandbox. Refused: it cannot be written."""
        data = content.encode() if isinstance(content, str) else bytes(content)
        await self._ask("handler.write", path=path, data=data, mode=mode)

    async def note(self, text: Optional[str] = None, **metrics: float) -> None:
        """Keeps a message (an agent's) in the record, or numbers by name, or both."""
        numbers = {name: number(f"metric {name}", value) for name, value in metrics.items()}
        await self._ask("handler.note", text=text, metrics=json.dumps(numbers) if numbers else None)

    async def time_left(self) -> float:
        """Seconds until the job ends without this function."""
        return float((await self._ask("handler.clock"))["left_ms"]) / 1000


class EvaluatorJob(Job):
    """An evaluation.

    answer: the agent's last words; messages: the conversation, dicts of role, content and, of a call, tool and exit_status.
    """


class ToolJob(Job):
    """A call of a tool."""

    def __init__(self, connection: Connection, begin: Dict[str, Any]) -> None:
        super().__init__(connection, begin)
        self.arguments: Dict[str, Any] = json.loads(begin.get("arguments", "{}"))


class HookJob(Job):
    """What passes between a harness and its model.

    turn: which of the rollout's turns, from 1 on; messages, tools: of a request; reply: of a turn, else None.
    """

    def __init__(self, connection: Connection, begin: Dict[str, Any]) -> None:
        super().__init__(connection, begin)
        self.turn: int = begin.get("turn", 1)
        self.tools: List[Dict[str, Any]] = json.loads(begin.get("tools", "[]"))


class AgentJob(Job):
    """A rollout."""

    async def sample(self, messages: Optional[Messages] = None, tools: bool = False, max_tokens: Optional[int] = None) -> Reply:
        """Adds messages (a string is the user's turn) and samples the model's turn; at first the task's own if none are given.

        tools: the prompt describes agent.tools, and the reply is read for calls of them. Raises Over when a budget is used up.
        """
        given = None if messages is None else json.dumps(message_list(messages))
        told = await self._ask("handler.sample", messages=given, tools=tools or None, max_tokens=max_tokens)
        calls = [ToolCall(one["name"], one.get("arguments", {})) for one in told.get("calls", ())]
        return Reply(told["text"], told.get("finish", "stop"), int(told.get("tokens", 0)), calls, told.get("problem"))

    async def fork(self, messages: Messages, reason: str) -> None:
        """Goes on with another conversation: the next turn begins a new trace, for this reason (a word)."""
        await self._ask("handler.fork", messages=json.dumps(message_list(messages)), reason=reason)

    async def tool(self, name: str, **arguments: Any) -> Output:
        """Calls one of agent.tools, a built-in one or another handler's."""
        return _output(await self._ask("handler.tool", name=name, arguments=json.dumps(arguments)))


class BlockingJob:
    """As Job, for plain functions."""

    _job: Job

    def __init__(self, job: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._job, self._loop = job, loop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._job, name)

    def _wait(self, request: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(request, self._loop).result()
        except concurrent.futures.CancelledError:
            raise Cancelled from None

    def exec(self, command: str, timeout: Optional[float] = None, output_bytes: Optional[int] = None) -> Output:
        """As Job.exec."""
        return self._wait(self._job.exec(command, timeout, output_bytes))

    def read_file(self, path: str, offset: int = 0, length: Optional[int] = None) -> bytes:
        """As Job.read_file."""
        return self._wait(self._job.read_file(path, offset, length))

    def write_file(self, path: str, content: Union[str, bytes], mode: int = 0o644) -> None:
        """As Job.write_file."""
        self._wait(self._job.write_file(path, content, mode))

    def note(self, text: Optional[str] = None, **metrics: float) -> None:
        """As Job.note."""
        self._wait(self._job.note(text, **metrics))

    def time_left(self) -> float:
        """As Job.time_left."""
        return self._wait(self._job.time_left())


class BlockingEvaluatorJob(BlockingJob):
    """As EvaluatorJob, for plain functions."""


class BlockingToolJob(BlockingJob):
    """As ToolJob, for plain functions."""


class BlockingHookJob(BlockingJob):
    """As HookJob, for plain functions."""


class BlockingAgentJob(BlockingJob):
    """As AgentJob, for plain functions."""

    _job: AgentJob

    def sample(self, messages: Optional[Messages] = None, tools: bool = False, max_tokens: Optional[int] = None) -> Reply:
        """As AgentJob.sample."""
        return self._wait(self._job.sample(messages, tools, max_tokens))

    def fork(self, messages: Messages, reason: str) -> None:
        """As AgentJob.fork."""
        self._wait(self._job.fork(messages, reason))

    def tool(self, name: str, **arguments: Any) -> Output:
        """As AgentJob.tool."""
        return self._wait(self._job.tool(name, **arguments))


JOBS = {"agent": AgentJob, "tool": ToolJob, "evaluator": EvaluatorJob, "hook": HookJob}
BLOCKING = {"agent": BlockingAgentJob, "tool": BlockingToolJob, "evaluator": BlockingEvaluatorJob,
            "hook": BlockingHookJob}
