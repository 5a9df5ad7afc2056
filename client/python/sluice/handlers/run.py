"""Runs offered functions for a worker: each job a task of asyncio, plain functions in threads."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import traceback
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional

from . import results
from .connection import Connection
from .jobs import BLOCKING, JOBS, Cancelled, Over
from .offers import GIVEN, Offer
from .threads import Threads

PROTOCOL, TRACE_MAX, ERROR_MAX = 1, 65536, 1000


def _cut(text: str, most: int) -> str:
    """The end of a text, of at most so many bytes; no NUL is sent."""
    return text.replace("\0", "\\0").encode(errors="replace")[-most:].decode(errors="ignore")


def _is_ours(frame: TracebackType) -> bool:
    name: str = frame.tb_frame.f_globals.get("__name__", "")
    return name.startswith("sluice.handlers")


def _trace_of(error: BaseException) -> str:
    """Its traceback, from the user's first frame on."""
    frames = error.__traceback__
    while frames and frames.tb_next and _is_ours(frames):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def _arguments(offer: Offer, job: Any) -> Dict[str, Any]:
    """What the function named as parameters; a tool's are the call's."""
    wanted = inspect.signature(offer.function).parameters
    given = {name: job if name == "job" else getattr(job, name) for name in GIVEN[offer.role] if name in wanted}
    return {**job.arguments, **given} if offer.role == "tool" else given


def _ending(role: str, result: Any, asked: Optional[Dict[str, Any]]) -> Any:
    """(wire name, fields) of what a function returned. asked: the reply that a hook was asked of."""
    if role == "hook":
        return "handler.decision", results.decision_fields(result, asked)
    if role == "evaluator":
        return "handler.score", results.score_fields(results.score_of(result))
    return ("handler.output", results.output_fields(result)) if role == "tool" else ("handler.end", results.end_fields(result))


class Runner:
    """The jobs of one process."""

    def __init__(self, connection: Connection, offers: Dict[str, Offer], threads: int,
                 reloaded: Optional[Callable[[], Optional[Dict[str, Offer]]]] = None) -> None:
        self._connection, self._offers, self._reloaded = connection, offers, reloaded
        self._threads = Threads(threads)
        self._tasks: Dict[int, asyncio.Task[None]] = {}

    async def _call(self, offer: Offer, job: Any) -> Any:
        loop = asyncio.get_running_loop()
        if inspect.iscoroutinefunction(offer.function):
            return await offer.function(**_arguments(offer, job))
        blocking = BLOCKING[offer.role](job, loop)
        return await self._threads.call(lambda: offer.function(**_arguments(offer, blocking)))

    async def _work(self, offer: Offer, job: Any, id: int) -> None:
        try:
            wire, fields = _ending(offer.role, await self._call(offer, job), job.reply)
        except Over as over:
            if offer.role != "agent":
                raise
            wire, fields = "handler.end", {"outcome": "agent", "detail": over.which}
        await self._connection.send(wire, id=id, **fields)

    async def _run(self, begin: Dict[str, Any]) -> None:
        id = begin["id"]
        self._connection.begin(id)
        try:
            offer = self._offers[f"{begin['role']}:{begin['name']}"]
            await self._work(offer, JOBS[offer.role](self._connection, begin), id)
        except (asyncio.CancelledError, Cancelled):
            pass
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            name = f"{type(error).__name__}: {error}".splitlines()[0] if str(error) else type(error).__name__
            trace = _cut(_trace_of(error), TRACE_MAX)
            await self._connection.send("handler.failed", id=id, error=_cut(name, ERROR_MAX), trace=trace)
        finally:
            self._connection.end(id)
            self._tasks.pop(id, None)

    def _take(self, wire: str, fields: Dict[str, Any]) -> None:
        if wire == "handler.begin":
            self._tasks[fields["id"]] = asyncio.ensure_future(self._run(fields))
        elif wire == "handler.reply":
            self._connection.take_reply(fields)
        elif wire == "handler.cancel" and fields["id"] in self._tasks:
            self._tasks[fields["id"]].cancel()

    async def _watch(self) -> None:
        """Takes what is reloaded; returns when that is offered otherwise than the worker was told."""
        while self._reloaded:
            await asyncio.sleep(0.3)
            offers = self._reloaded()
            if offers is None:
                continue
            if _told(offers) != _told(self._offers):
                print("what is offered has changed: beginning anew once no job runs", file=sys.stderr)
                while self._tasks:
                    await asyncio.sleep(0.05)
                return
            self._offers = offers

    async def _watch_threads(self) -> None:
        """Returns when the worker had better start another process."""
        await self._threads.are_full.wait()
        print("too many functions go on after their jobs' time was up: the process ends, and is started again", file=sys.stderr)

    async def _read(self) -> None:
        while (message := await self._connection.read()) is not None:
            self._take(*message)

    async def run(self) -> None:
        """Until the worker closes the connection."""
        await self._connection.send("handler.hello", protocol=PROTOCOL, offers=json.dumps(_told(self._offers)))
        watches = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._watch_threads())]
        if self._reloaded:
            watches.append(asyncio.ensure_future(self._watch()))
        done, _ = await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
        for task in [*watches, *self._tasks.values()]:
            task.cancel()
        for task in done:
            task.result()


def _told(offers: Dict[str, Offer]) -> List[Dict[str, Any]]:
    return [offer.told() for offer in offers.values()]
