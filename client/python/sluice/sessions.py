"""Rollouts whose loop runs here (docs/sessions.md): an endpoint to speak to, and the reward that is posted at its end.

A session's steps are Client's and AsyncClient's alike; what is posted goes straight to the run worker, over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Type, TypeVar

from . import arguments
from .calls import Submit, cancel, get, sleep
from .errors import BadArgument, Refused, SessionLost
from .protocol.session import Fields, Session as Talk, Steps
from .trajectory import Trajectory

if TYPE_CHECKING:
    from .aio import AsyncClient
    from .client import Client

WAIT = 2.0       # seconds that the broker is asked to wait at a time
LOOK = 0.2       # between two looks at whether it has ended
REACH = 20.0     # seconds for an answer over HTTP
T = TypeVar("T")


def _task(task: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """With what it does not say: a session's agent, and its evaluator."""
    if task is not None and not isinstance(task, Mapping):
        raise arguments.refuse("task", "a dict (docs/tasks.md)", task)
    whole = {"task": "session", **(task or {})}
    agent, evaluator = whole.get("agent", {}), whole.get("eval", {})
    if isinstance(agent, Mapping):
        whole["agent"] = {"kind": "session", **agent}
        if whole["agent"]["kind"] != "session":
            raise BadArgument(f"a session's task has agent.kind session, and this one's is {whole['agent']['kind']}", "task")
    if isinstance(evaluator, Mapping):
        whole["eval"] = {"kind": "posted", **evaluator}
    return whole


def _number(field: str, value: Any) -> float:
    try:
        return arguments.real(field, value, -sys.float_info.max, sys.float_info.max)
    except BadArgument:
        raise arguments.refuse(field, "a finite number", value) from None


def _post(url: str, body: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """POSTs it, or GETs what is there. Raises Refused for an answer that is none of 200, OSError where nobody answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    host = urllib.parse.urlsplit(url).hostname or ""
    direct = [urllib.request.ProxyHandler({})] if host in ("127.0.0.1", "::1", "localhost") else []
    try:
        with urllib.request.build_opener(*direct).open(request, timeout=REACH) as answer:
            said: Dict[str, Any] = json.loads(answer.read())
            return said
    except urllib.error.HTTPError as error:
        try:
            words = json.loads(error.read())["error"]["message"]
        except (ValueError, KeyError, TypeError):
            words = f"HTTP {error.code}"
        raise Refused(words, {403: "ended", 404: "no-session"}.get(error.code, "posted")) from None


class _Shared:
    """What a session is, whoever waits for it."""

    def __init__(self, talk: Talk, task: Optional[Mapping[str, Any]], stream: str, group: Optional[str],
                 wait: float) -> None:
        self._talk = talk
        self._wait = arguments.seconds("wait", wait, 0)
        name = f"session-{secrets.token_hex(8)}" if group is None else arguments.name("group", group, arguments.GROUP_BYTES)
        self._submit = Submit(talk, [_task(task)], stream, 1, lambda _: name, None, None, None, None)
        self.rollout = f"{name}/0"
        self.url = ""          # of the attempt at hand; "": it is not open
        self.attempt = 0
        self.is_ended = False  # by end(), or by leaving the block

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rollout}, attempt {self.attempt}{', ended' if self.is_ended else ''})"

    def _ask(self, after: int, wait: float) -> Steps[Fields]:
        """session.state; raises SessionLost where there is none any more."""
        try:
            return (yield from self._talk.call("session.get", rollout=self.rollout, after=after, wait_ms=round(wait * 1000)))
        except Refused as why:
            if why.reason != "no-session":
                raise
            raise SessionLost(str(why), self.rollout) from None

    def _await_url(self, after: int, wait: float) -> Steps[None]:
        deadline = time.monotonic() + wait
        while True:
            left = max(0.0, deadline - time.monotonic())
            state = yield from self._ask(after, min(WAIT, left, self._talk.timeout / 2))
            if "url" in state:
                self.url, self.attempt = state["url"], state["attempt"]
                return
            if left == 0:
                raise TimeoutError(f"the session of {self.rollout} was not open within {wait:g} s: "
                                   f"{state.get('why', 'its worker opens it')}")

    def _open(self) -> Steps[None]:
        yield from self._submit.steps()
        try:
            yield from self._await_url(0, self._wait)
        except TimeoutError:
            yield from self._cancel()
            raise

    def _reopen(self, wait: float) -> Steps[None]:
        self.url = ""
        yield from self._await_url(self.attempt, wait)

    def _cancel(self) -> Steps[None]:
        self.is_ended = True
        yield from cancel(self._talk, self.rollout, None, None)

    def _trajectory(self, timeout: float) -> Steps[Trajectory]:
        arguments.seconds("timeout", timeout, 0)
        deadline = time.monotonic() + timeout
        while True:
            got = yield from get(self._talk, self.rollout)
            if isinstance(got, Trajectory):
                return got
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{self.rollout} has not ended within {timeout:g} s: it is {got['state']} in {got['stage']}")
            yield from sleep(LOOK)

    @staticmethod
    def _body(reward: Optional[float], parts: Optional[Mapping[str, float]], metrics: Optional[Mapping[str, float]],
              detail: Optional[str]) -> Dict[str, Any]:
        body: Dict[str, Any] = {}
        if reward is not None:
            body["reward"] = _number("reward", reward)
        for field, numbers in (("parts", parts), ("metrics", metrics)):
            if numbers is not None:
                if not isinstance(numbers, Mapping):
                    raise arguments.refuse(field, "a dict of numbers", numbers)
                body[field] = {str(name): _number(f"{field}[{name!r}]", value)
                               for name, value in numbers.items()}
        if detail is not None:
            body["detail"] = arguments.text("detail", detail, 0, 2000)
        return body

    def _check_open(self) -> None:
        if not self.url:
            raise BadArgument(f"the session of {self.rollout} is not open: use it with `with`, or call open()", "session")

    def _is_there(self) -> bool:
        try:
            _post(self.url + "/", None)
        except (OSError, Refused, ValueError):
            return False
        return True

    def _end(self, body: Dict[str, Any]) -> None:
        try:
            said = _post(self.url + "/end", body)
        except Refused as why:
            if why.reason == "posted":
                raise BadArgument(str(why), "reward") from None
            raise self._lost(str(why)) from None
        except (OSError, ValueError) as error:
            raise self._lost(str(error)) from error
        self.is_ended = True
        if body.get("reward") is not None and said.get("reward") != body["reward"]:
            raise BadArgument(f"{self.rollout} had ended before, with the reward {said.get('reward')}, which counts", "reward")

    def _lost(self, why: str) -> SessionLost:
        return SessionLost(f"the session of {self.rollout} is gone, and with it what was said in attempt {self.attempt}: {why}",
                           self.rollout)


class Session(_Shared):
    """One rollout whose loop is the block of a `with`. Client.session() makes it.

    url: where the loop speaks to its model, in any of four forms: url + "/v1" for OpenAI's clients, url for Anthropic's
    and Google's. It is a secret. rollout: its name. attempt: how often it was begun. is_ended: by end(), or the block's end.
    """

    def __init__(self, client: Client, task: Optional[Mapping[str, Any]], stream: str, group: Optional[str],
                 wait: float) -> None:
        super().__init__(client._session, task, stream, group, wait)
        self._client = client

    def open(self) -> Session:
        """Submits it and waits until a worker has opened it; `with` does so. Raises TimeoutError after `wait` seconds."""
        self._client._run(self._open())
        return self

    def reopen(self, wait: float = 60.0) -> Session:
        """After SessionLost: waits for the rollout's next attempt, in which the loop has to begin again.

        Raises SessionLost if the rollout has ended, and TimeoutError after `wait` seconds.
        """
        self._client._run(self._reopen(arguments.seconds("wait", wait, 0)))
        return self

    def end(self, reward: Optional[float] = None, *, parts: Optional[Mapping[str, float]] = None,
            metrics: Optional[Mapping[str, float]] = None, detail: Optional[str] = None) -> None:
        """Ends it, with a reward where the task's eval.kind is "posted". Ending it again is no mistake; the first counts.

        parts: named parts of the reward, whose sum it is where `reward` is None. metrics: other numbers. detail: why.

        Raises BadArgument for what is refused, and SessionLost where the session is gone.
        """
        self._check_open()
        self._end(self._body(reward, parts, metrics, detail))

    def cancel(self) -> None:
        """Ends it as cancelled: nothing of it is learned from."""
        self._client._run(self._cancel())

    def is_lost(self) -> bool:
        """Whether nothing answers at its url any more, such as when its worker was killed."""
        self._check_open()
        return not self._is_there()

    def trajectory(self, timeout: float = 60.0) -> Trajectory:
        """What was recorded, once it has ended and was evaluated. Raises TimeoutError."""
        return self._client._run(self._trajectory(timeout))

    def __enter__(self) -> Session:
        return self.open()

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self.is_ended:
            return
        if error is None:
            self.end()
            return
        lost = isinstance(error, Exception) and not isinstance(error, SessionLost) and not self._is_there()
        self.cancel()
        if lost:
            raise self._lost(f"{type(error).__name__}: {error}") from error


class AsyncSession(_Shared):
    """As Session, of an AsyncClient: with `async with`, and its calls are awaited. HTTP is a thread's of the loop's."""

    def __init__(self, client: AsyncClient, task: Optional[Mapping[str, Any]], stream: str, group: Optional[str],
                 wait: float) -> None:
        super().__init__(client._session, task, stream, group, wait)
        self._client = client

    async def _apart(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(None, function)

    async def open(self) -> AsyncSession:
        """As Session.open()."""
        await self._client._run(self._open())
        return self

    async def reopen(self, wait: float = 60.0) -> AsyncSession:
        """As Session.reopen()."""
        await self._client._run(self._reopen(arguments.seconds("wait", wait, 0)))
        return self

    async def end(self, reward: Optional[float] = None, *, parts: Optional[Mapping[str, float]] = None,
                  metrics: Optional[Mapping[str, float]] = None, detail: Optional[str] = None) -> None:
        """As Session.end()."""
        self._check_open()
        body = self._body(reward, parts, metrics, detail)
        await self._apart(lambda: self._end(body))

    async def cancel(self) -> None:
        """As Session.cancel()."""
        await self._client._run(self._cancel())

    async def is_lost(self) -> bool:
        """As Session.is_lost()."""
        self._check_open()
        return not await self._apart(self._is_there)

    async def trajectory(self, timeout: float = 60.0) -> Trajectory:
        """As Session.trajectory()."""
        return await self._client._run(self._trajectory(timeout))

    async def __aenter__(self) -> AsyncSession:
        return await self.open()

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        if self.is_ended:
            return
        if error is None:
            await self.end()
            return
        lost = isinstance(error, Exception) and not isinstance(error, SessionLost) and not await self._apart(self._is_there)
        await self.cancel()
        if lost:
            raise self._lost(f"{type(error).__name__}: {error}") from error
