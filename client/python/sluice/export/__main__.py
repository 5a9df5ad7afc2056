"""python -m sluice.export STREAM: what `sluice export` runs."""

from __future__ import annotations

import argparse
import sys
from typing import List, Optional

from ..client import Client
from ..errors import SluiceError
from .exporting import export
from .forms import FORMS


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="sluice export", description="Writes a stream's trajectories to files (docs/export.md).")
    found.add_argument("stream", metavar="STREAM")
    found.add_argument("--output", metavar="PATH", required=True, help="a directory; or a file, .parquet or .jsonl")
    found.add_argument("--format", choices=list(FORMS), default="parquet")
    found.add_argument("--from", metavar="N", type=int, default=0, dest="from_seq", help="the first number")
    found.add_argument("--to", metavar="N", type=int, default=0, dest="to_seq", help="the last number")
    found.add_argument("--columns", metavar="NAME,NAME", help="of parquet and jsonl")
    found.add_argument("--filter", metavar="TEST", action="append", default=[], help="such as reward>=0.5; repeatable")
    found.add_argument("--min-reward", metavar="X", type=float, default=1.0, help="of sft")
    found.add_argument("--margin", metavar="X", type=float, default=0.0, help="of dpo")
    found.add_argument("--shard", metavar="N", type=int, default=1000, help="numbers of the stream in a file")
    found.add_argument("--broker", metavar="URL")
    found.add_argument("--key", metavar="FILE")
    found.add_argument("--allow-plaintext", action="store_true")
    return found


def main(arguments: Optional[List[str]] = None) -> int:
    given = parser().parse_args(arguments)
    columns = None if given.columns is None else given.columns.split(",")
    try:
        with Client(given.broker, key=given.key, allow_plaintext=given.allow_plaintext) as client:
            counts = export(client, given.stream, given.output, format=given.format, from_seq=given.from_seq, to_seq=given.to_seq,
                            columns=columns, filter=given.filter, min_reward=given.min_reward, margin=given.margin, shard=given.shard)
    except (SluiceError, OSError) as why:
        print(f"sluice export: {why}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("sluice export: interrupted; the same command goes on", file=sys.stderr)
        return 1
    unreadable = f"; {counts.unreadable} records cannot be read" if counts.unreadable else ""
    print(f"{counts.rows} rows in {given.output}, of numbers {counts.from_seq} to {counts.to_seq}; {counts.left_out} left out{unreadable}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
