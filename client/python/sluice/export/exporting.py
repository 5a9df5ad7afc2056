"""Goes through a stream by its numbers and writes a file for every so many of them."""

from __future__ import annotations

import dataclasses
import os
import shutil
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from .. import arguments
from ..client import Client
from ..errors import BadArgument, Forgotten, OtherLedger
from ..protocol.messages import MessageError
from ..protocol.session import FAR
from ..trajectory import Trajectory
from . import files
from .card import card_of
from .folder import ExportError, Folder, whole_file
from .forms import FORMS, Form, make_form

Item = Tuple[int, Optional[Trajectory]]  # None: it cannot be read


@dataclasses.dataclass
class Counts:
    """What an export came to, earlier runs of it included."""

    rows: int        # in all files
    files: int       # how many
    from_seq: int    # the first number read
    to_seq: int      # the last
    left_out: int    # trajectories, or of DPO groups, that make no row
    unreadable: int  # records that cannot be read, which are passed over


class _Source:
    """A stream's trajectories from a number on, each with its number, also those that cannot be read."""

    def __init__(self, client: Client, stream: str) -> None:
        self.client, self.stream = client, stream
        head = client._run(client._session.head(stream))
        if head is None or not head["head"] and not head["pending"]:
            raise ExportError(f"nothing has been submitted to the stream {stream}")
        self.first, self.head = int(head["first"]), int(head["head"])

    def read(self, first: int, last: int) -> Iterator[Item]:
        at = first
        while at <= last:
            try:
                for t in self.client.trajectories(self.stream, from_seq=at):
                    at = t.seq + 1
                    yield t.seq, t
                    if at > last:
                        return
            except MessageError as why:
                if why.seq is None:
                    raise
                at = why.seq + 1
                yield why.seq, None


class _Run:
    def __init__(self, source: _Source, folder: Folder, form: Form, ending: str, shard: int) -> None:
        self.source, self.folder, self.form, self.ending, self.shard = source, folder, form, ending, shard
        self.unreadable = 0
        state = folder.read_state()
        if state is not None:
            self.unreadable = state.pop("unreadable")
            form.restore(state)

    def state(self) -> Dict[str, Any]:
        return {**self.form.state(), "unreadable": self.unreadable}

    def items(self, first: int, last: int) -> Iterator[Item]:
        """After what is written, where that is what the broker still has under that number."""
        written = self.folder.progress["last"]
        if not written or written["seq"] != first - 1 or written["seq"] < self.source.first:
            yield from self.source.read(first, last)
            return
        for seq, t in self.source.read(first - 1, last):
            if seq >= first:
                yield seq, t
            elif t is not None and (t.rollout, t.ended_ms) != (written["rollout"], written["ended_ms"]):
                raise ExportError(f"number {seq} of stream {self.source.stream} was {written['rollout']}, and is {t.rollout}: the broker "
                                  "has another ledger; name another directory")

    def write(self, begin: int, first: int, last: int) -> None:
        """Files end at begin + shard, begin + 2 * shard ... and at last: by the numbers alone."""
        items = self.items(first, last)
        while first <= last:
            end = min(last, begin + ((first - begin) // self.shard + 1) * self.shard - 1)
            self._write_file(items, first, end)
            first = end + 1

    def _write_file(self, items: Iterator[Item], first: int, last: int) -> None:
        told: Dict[str, Any] = {}

        def write(file: BinaryIO) -> int:
            writer, rows = files.open_writer(self.ending, file, self.form.kinds), 0
            for seq, t in items:
                if t is None:
                    self.unreadable += 1
                else:
                    told.update(seq=seq, rollout=t.rollout, ended_ms=t.ended_ms)
                    for row in self.form.take(t):
                        writer.write(row)
                        rows += 1
                if seq >= last:
                    break
            writer.close()
            return rows

        self.folder.add((first, last), self.ending, write, told, self.state)


def _range(source: _Source, folder: Folder, from_seq: int, to_seq: int) -> Tuple[int, int, int]:
    """Where the export begins, where this run of it does, and its last number."""
    begin = folder.progress.setdefault("begin", from_seq or source.first)
    first = folder.progress["next"] or begin
    if to_seq > source.head:
        raise ExportError(f"stream {source.stream} has come to number {source.head}, and not to {to_seq} yet")
    if first < source.first and first <= (to_seq or source.head):
        raise ExportError(f"number {first} of stream {source.stream} is no longer kept: the oldest is {source.first}")
    return begin, first, to_seq or source.head


def _settings(stream: str, format: str, from_seq: int, columns: Optional[Sequence[str]], filters: Sequence[str], min_reward: float,
              margin: float, shard: int) -> Dict[str, Any]:
    settings: Dict[str, Any] = {"stream": stream, "format": format, "from": from_seq, "filter": list(filters), "shard": shard}
    if columns is not None:
        settings["columns"] = list(columns)
    if format == "sft":
        settings["min_reward"] = min_reward
    if format == "dpo":
        settings["margin"] = margin
    return settings


def export(client: Client, stream: str, output: arguments.Path, *, format: str = "parquet", from_seq: int = 0, to_seq: int = 0,
           columns: Optional[Sequence[str]] = None, filter: Union[str, Sequence[str]] = (), min_reward: float = 1.0,
           margin: float = 0.0, shard: int = 1000) -> Counts:
    """Writes a stream's trajectories, or what is made of them, to a directory or a file; returns what it came to.

    output: a directory, of one file for every `shard` numbers of the stream and a README.md, which datasets.load_dataset
    reads; or one file, where its name ends with .parquet or .jsonl. format: "parquet" or "jsonl", a row for each
    trajectory; "sft", conversations of rollouts that ended ok; "dpo", the best and the worst of each group. from_seq,
    to_seq: the first and the last number; 0: the oldest that is kept, the last that there is. columns: names of columns;
    None: all. filter: only trajectories for which this holds, or all of these: "outcome=ok", "reward>=0.5",
    "metadata.split!=test". min_reward: of sft. margin: of dpo, how far rewards must differ at least.

    Killed and called again it goes on, and the files come out the same; called again later it goes on after the last
    number. The same stream and arguments give the same bytes. One file's rows at a time are read, and nothing is acknowledged.

    Raises ExportError if the directory holds another export, if pyarrow is missing, or a number is not kept or not there.
    """
    stream = arguments.name("stream", stream)
    from_seq = arguments.number("from_seq", from_seq, 0, FAR)
    to_seq = arguments.number("to_seq", to_seq, 0, FAR)
    shard = arguments.number("shard", shard, 1, 1_000_000)
    arguments.real("min_reward", min_reward, -arguments.FOREVER)
    arguments.real("margin", margin, 0)
    filters = [filter] if isinstance(filter, str) else list(filter)
    if from_seq and to_seq and to_seq < from_seq:
        raise BadArgument(f"to_seq wants a number from {from_seq}, not {to_seq}", "to_seq")
    form = make_form(format, filters, columns, min_reward, margin)
    path = os.fspath(arguments.path("output", output))
    single = os.path.splitext(path)[1] in (".parquet", ".jsonl")
    ending = os.path.splitext(path)[1][1:] if single else FORMS[format]
    if single and ending != FORMS[format] and format in ("parquet", "jsonl"):
        raise BadArgument(f"output {path} is no file of {format}", "output")
    files.check(ending)
    settings = _settings(stream, format, from_seq, columns, filters, min_reward, margin, shard)
    source = _Source(client, stream)
    with Folder(path + ".parts" if single else path, settings) as folder:
        counts = _write(source, folder, form, ending, shard, from_seq, to_seq)
        if single:
            with whole_file(path) as file:
                files.join(ending, folder.paths(), file, form.kinds)
        else:
            folder.write_text("README.md", card_of(settings, counts, ending, form.kinds))
    if single:
        shutil.rmtree(path + ".parts")
    return counts


def _write(source: _Source, folder: Folder, form: Form, ending: str, shard: int, from_seq: int, to_seq: int) -> Counts:
    begin, first, last = _range(source, folder, from_seq, to_seq)
    run = _Run(source, folder, form, ending, shard)
    try:
        run.write(begin, first, last)
    except (Forgotten, OtherLedger) as why:
        raise ExportError(str(why)) from None
    except OSError as why:
        raise ExportError(f"{why.filename or folder.path}: {why.strerror}") from None
    written: List[Dict[str, Any]] = folder.progress["files"]
    return Counts(sum(file["rows"] for file in written), len(written), begin, max(last, folder.progress["next"] - 1), form.left_out,
                  run.unreadable)
