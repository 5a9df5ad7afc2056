"""The client for asyncio: the same calls, awaited; many tasks may use one client at a time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import (Any, AsyncIterator, Callable, Dict, Generic, Iterable, List, Mapping, Optional, Set, TypeVar,
                    Union)

import zmq

from . import calls as _calls
from . import sampler as _sampler
from . import sessions as _sessions
from .arguments import Path
from .client import Base
from .errors import SluiceError
from .groups import Group
from .protocol.session import Pause, Steps
from .sampler import Batch
from .streams.reading import GroupReading, Readable, Reading
from .streams.watching import Watching
from .task.tasks import Tasks
from .trajectory import Trajectory

T = TypeVar("T")


class Waiter:
    """One that waits: its steps paused for `pause`."""

    def __init__(self, pause: Pause, woken: asyncio.Future[None]) -> None:
        self.pause, self.woken = pause, woken

    def wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


class AsyncIteration(Generic[T]):
    """What `async for` goes through. A cancelled `anext` loses nothing: the next one goes on where it was."""

    def __init__(self, client: AsyncClient, reading: Readable[T]) -> None:
        self._client, self._reading, self._is_read, self._is_over = client, reading, False, False

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        if self._is_read:
            raise SluiceError("another task waits for the next one of this iterator")
        if self._is_over:
            raise StopAsyncIteration
        self._is_read = True
        try:
            one = await self._client._run(self._reading.next())
        except Exception:
            await self.aclose()
            raise
        finally:
            self._is_read = False
        if one is None:
            await self.aclose()
            raise StopAsyncIteration
        return one

    async def aclose(self) -> None:
        """Ends reading; leaving the loop early does not."""
        self._is_over = True
        self._reading.close()


class AsyncClient(Base):
    """A Client for asyncio: the same arguments, calls and errors; calls are awaited, iterators are for `async for`.

    Belongs to the event loop that first awaits it; any number of its tasks may use it at a time. Use it with
    `async with`, or await close(). A cancelled call leaves the client as it was; the broker may have carried the
    call out, so repeat it: all but backup are idempotent. No thread is used.
    """

    def __init__(self, url: Optional[str] = None, timeout: float = 10.0, patience: Optional[float] = 600.0,
                 key: Optional[Path] = None, allow_plaintext: bool = False) -> None:
        super().__init__(url, timeout, patience, key, allow_plaintext)
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._waiters: Set[Waiter] = set()
        self._watched: Dict[int, zmq.Socket[bytes]] = {}

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection, and with SluiceError what waits for it. Idempotent."""
        self._session.leave(self._session.reader)
        if self._session.sockets.is_ours:
            for descriptor in list(self._watched):
                self._unwatch(descriptor)
        self._end()
        for waiter in list(self._waiters):
            waiter.wake()

    async def submit(self, tasks: Tasks, stream: str, *, samples: Optional[int] = None,
                     group: Optional[Callable[[Dict[str, Any]], str]] = None, priority: Optional[int] = None,
                     lease: Optional[float] = None, versions_behind: Optional[int] = None,
                     on_stale: Optional[str] = None) -> List[str]:
        """As Client.submit()."""
        submit = _calls.Submit(self._session, tasks, stream, samples, group, priority, lease, versions_behind, on_stale)
        return await self._run(submit.steps())

    def trajectories(self, stream: str, from_seq: int = 0, timeout: Optional[float] = None, until_idle: bool = False,
                     cursor: Optional[Path] = None, expect_template: Optional[str] = None,
                     expect_tokenizer: Optional[str] = None) -> AsyncIteration[Trajectory]:
        """As Client.trajectories()."""
        return AsyncIteration(self, Reading(self._session, stream, from_seq, timeout, until_idle, cursor,
                                            expect_template, expect_tokenizer))

    def groups(self, stream: str, resume: Optional[Dict[str, Any]] = None, timeout: Optional[float] = None,
               until_idle: bool = False, expect_template: Optional[str] = None,
               expect_tokenizer: Optional[str] = None) -> AsyncIteration[Group]:
        """As Client.groups()."""
        return AsyncIteration(self, GroupReading(self._session, stream, resume, timeout, until_idle, expect_template,
                                                 expect_tokenizer))

    def sampler(self, stream: str, tasks: Iterable[Mapping[str, Any]], *, groups: int, samples: Optional[int] = None,
                filter: str = "mixed", staleness: Optional[int] = None, window: Optional[int] = None,
                ahead: Optional[int] = None, over_sample: Optional[float] = None, early: int = 0,
                surplus: str = "carry", replace_max: Optional[int] = None, after: Optional[int] = None,
                trainer: Optional[str] = None, prefix: Optional[str] = None, pool: Optional[int] = None,
                priority: Optional[int] = None, lease: Optional[float] = None,
                timeout: Optional[float] = None) -> AsyncIteration[Batch]:
        """As Client.sampler()."""
        fields = _sampler.open_fields(stream, trainer, groups, filter, staleness, window, ahead, over_sample, early,
                                       surplus, replace_max)
        return AsyncIteration(self, _sampler.BatchReading(self._session, fields, tasks, samples, after, prefix, pool,
                                                           priority, lease, timeout))

    async def sampler_state(self, stream: str) -> Dict[str, Any]:
        """As Client.sampler_state()."""
        return await self._run(_sampler.state(self._session, stream))

    async def sampler_close(self, stream: str, cancel: bool = False) -> int:
        """As Client.sampler_close()."""
        return await self._run(_sampler.close(self._session, stream, cancel))

    def session(self, task: Optional[Mapping[str, Any]] = None, *, stream: str = "sessions", group: Optional[str] = None,
                wait: float = 600.0) -> _sessions.AsyncSession:
        """As Client.session(), with `async with`; the calls of the session are awaited."""
        return _sessions.AsyncSession(self, task, stream, group, wait)

    def save_cursor(self) -> None:
        """As Client.save_cursor()."""
        if self._session.reader:
            self._session.reader.save()

    async def renew(self, stream: str) -> int:
        """As Client.renew()."""
        return await self._run(_calls.renew(self._session, stream))

    async def ack(self, stream: str, seq: int) -> int:
        """As Client.ack()."""
        return await self._run(_calls.ack(self._session, stream, seq))

    async def get(self, rollout: str) -> Union[Trajectory, Dict[str, Any]]:
        """As Client.get()."""
        return await self._run(_calls.get(self._session, rollout))

    def watch(self, rollout: str, timeout: Optional[float] = None) -> AsyncIteration[Dict[str, Any]]:
        """As Client.watch()."""
        return AsyncIteration(self, Watching(self._session, rollout, timeout))

    async def cancel(self, rollout: Optional[str] = None, *, group: Optional[str] = None,
                     stream: Optional[str] = None) -> int:
        """As Client.cancel()."""
        return await self._run(_calls.cancel(self._session, rollout, group, stream))

    async def rollouts(self, stream: Optional[str] = None, *, group: Optional[str] = None, ended: bool = False,
                       stage: Optional[str] = None, state: Optional[str] = None, outcome: Optional[str] = None,
                       image: Optional[str] = None, engine: Optional[str] = None, older: float = 0.0,
                       limit: int = 100) -> List[Dict[str, Any]]:
        """As Client.rollouts()."""
        return await self._run(_calls.rollouts(self._session, stream, group, ended, stage, state, outcome, image, engine,
                                               older, limit))

    async def status(self) -> Dict[str, Any]:
        """As Client.status()."""
        return await self._run(_calls.status(self._session))

    async def metrics(self, openmetrics: bool = False) -> str:
        """As Client.metrics()."""
        return await self._run(_calls.metrics(self._session, openmetrics))

    async def engines(self) -> List[Dict[str, Any]]:
        """As Client.engines()."""
        return await self._run(_calls.engines(self._session))

    async def engine_add(self, url: str, runs_max: Optional[int] = None, policy: Optional[str] = None) -> Optional[str]:
        """As Client.engine_add()."""
        return await self._run(_calls.engine_add(self._session, url, runs_max, policy))

    async def engine_drain(self, url: str) -> int:
        """As Client.engine_drain()."""
        return await self._run(_calls.engine_drain(self._session, url))

    async def engine_remove(self, url: str) -> None:
        """As Client.engine_remove()."""
        await self._run(_calls.engine_remove(self._session, url))

    async def policy_set(self, version: str, engine: Optional[str] = None) -> None:
        """As Client.policy_set()."""
        await self._run(_calls.policy_set(self._session, version, engine))

    async def policy_pause(self, calls: str = "finish", engine: Optional[str] = None, bound: float = 600.0,
                           wait: float = 300.0) -> None:
        """As Client.policy_pause()."""
        await self._run(_calls.policy_pause(self._session, calls, engine, bound, wait))

    async def policy_resume(self, engine: Optional[str] = None) -> int:
        """As Client.policy_resume()."""
        return await self._run(_calls.policy_resume(self._session, engine))

    @contextlib.asynccontextmanager
    async def updating(self, version: str, calls: str = "finish", engine: Optional[str] = None, bound: float = 600.0,
                       wait: float = 300.0) -> AsyncIterator[None]:
        """As Client.updating(), with `async with`."""
        await self.policy_pause(calls, engine, bound, wait)
        try:
            yield
            await self.policy_set(version, engine)
        finally:
            await self.policy_resume(engine)

    async def drain(self, worker: Optional[str] = None, host: Optional[str] = None, grace: Optional[int] = None) -> int:
        """As Client.drain()."""
        return await self._run(_calls.drain(self._session, worker, host, grace))

    async def backup(self, name: str, timeout: float = 600.0) -> int:
        """As Client.backup()."""
        return await self._run(_calls.backup(self._session, name, timeout))

    # ---- waiting ------------------------------------------------------------------------------------

    async def _run(self, steps: Steps[T]) -> T:
        """Goes through the steps, awaiting where they pause."""
        try:
            self._check()
            pause = next(steps)
            while True:
                await self._sleep(pause)
                self._check()
                pause = steps.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            steps.close()

    def _check(self) -> None:
        self._session.check()
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            self._session.sockets.before_close = Forgetter(loop, self._watched)
        elif self._loop is not loop:
            raise SluiceError("this client belongs to another event loop: make one in each")

    async def _sleep(self, pause: Pause) -> None:
        assert self._loop is not None
        waiter = Waiter(pause, self._loop.create_future())
        self._waiters.add(waiter)
        timer = self._loop.call_later(max(0.0, pause.until - time.monotonic()), waiter.wake)
        try:
            self._watch()
            self._hear()
            await waiter.woken
        finally:
            timer.cancel()
            self._waiters.discard(waiter)
            if not self._waiters:
                for descriptor in list(self._watched):
                    self._unwatch(descriptor)

    def _watch(self) -> None:
        """libzmq's descriptors say that something changed; what, _hear asks."""
        assert self._loop is not None
        wanted = [self._session.front] + [w.pause.feed for w in self._waiters if w.pause.feed]
        descriptors = {int(socket.getsockopt(zmq.FD)): socket for socket in wanted if not socket.closed}
        for descriptor in set(self._watched) - set(descriptors):
            self._unwatch(descriptor)
        for descriptor in set(descriptors) - set(self._watched):
            self._loop.add_reader(descriptor, self._hear)
            self._watched[descriptor] = descriptors[descriptor]

    def _unwatch(self, descriptor: int) -> None:
        self._watched.pop(descriptor, None)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(descriptor)

    def _hear(self) -> None:
        """Takes in what is there and wakes those that it is for."""
        front = self._session.front
        self._session.read()
        if self._session.front is not front:
            self._watch()
        is_back = bool(int(self._session.front.getsockopt(zmq.EVENTS)) & zmq.POLLOUT)
        for waiter in list(self._waiters):
            pause = waiter.pause
            if ((pause.ear and pause.ear.heard) or (pause.away and is_back) or
                    (pause.feed and not pause.feed.closed and int(pause.feed.getsockopt(zmq.EVENTS)) & zmq.POLLIN)):
                waiter.wake()


class Forgetter:
    """Before a socket is closed its descriptor is forgotten: another file may have its number next. Knows no client."""

    def __init__(self, loop: asyncio.AbstractEventLoop, watched: Dict[int, zmq.Socket[bytes]]) -> None:
        self.loop, self.watched = loop, watched

    def __call__(self, socket: zmq.Socket[bytes]) -> None:
        for descriptor in [fd for fd, watched in self.watched.items() if watched is socket]:
            del self.watched[descriptor]
            if not self.loop.is_closed():
                self.loop.remove_reader(descriptor)
