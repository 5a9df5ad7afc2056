"""python -m sluice.handlers FILE.py|MODULE ...: what a worker's --handler runs."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from typing import BinaryIO, Dict, List, Optional

from .connection import Connection
from .modules import Reloading, load
from .offers import Offer
from .run import Runner
from .wire import Frames, Lines, streams_of_pipes, streams_of_socket

THREADS_MAX = 4096
ABOUT = """\
Offers the evaluators, agents and tools of Python files to a worker (docs/handlers.md). A worker starts it:

    sluice up --engine URL --handler mine='python3 -m sluice.handlers mine.py'
    sluice-worker eval --handler mine='python3 -m sluice.handlers mine.py'

By hand, --list loads the files and shows what they offer."""


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= THREADS_MAX:
        raise argparse.ArgumentTypeError(f"must be 1 to {THREADS_MAX}, not {text}")
    return int(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sluice.handlers", description=ABOUT,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", metavar="FILE.py|MODULE", help="what offers something, by its decorators")
    parser.add_argument("--dev", action="store_true", help="load the files again whenever they are saved")
    parser.add_argument("--threads", type=_count, default=64, metavar="N",
                        help="jobs of plain functions at one time (64); async functions have no such limit")
    parser.add_argument("--list", action="store_true", help="print what is offered, as JSON, and end")
    return parser.parse_args()


def _own_output() -> BinaryIO:
    """Standard output for lines of JSON alone: what is printed goes to standard error."""
    sink = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)
    return sink


async def _serve(offers: Dict[str, Offer], sink: Optional[BinaryIO], given: argparse.Namespace) -> None:
    if sink:
        connection = Connection(Lines(), *await streams_of_pipes(sys.stdin, sink))
    else:
        connection = Connection(Frames(), *await streams_of_socket(int(os.environ["SLUICE_HANDLER_FD"])))
    await Runner(connection, offers, given.threads, Reloading(given.modules) if given.dev else None).run()


def main() -> int:
    given = _arguments()
    is_lines = "SLUICE_HANDLER_FD" not in os.environ and not given.list
    if is_lines and sys.stdin.isatty():
        print("this is started by a worker: sluice up --handler NAME='python3 -m sluice.handlers ...'; --list shows what is "
              "offered", file=sys.stderr)
        return 2
    sink = _own_output() if is_lines else None
    offers = load(given.modules)
    if not offers:
        print(f"{', '.join(given.modules)}: nothing there is an @evaluator, @agent or @tool", file=sys.stderr)
        return 2
    if given.list:
        rows: List[object] = [offer.told() for offer in offers.values()]
        print(json.dumps(rows, indent=2))
        return 0
    try:
        asyncio.run(_serve(offers, sink, given))
    except KeyboardInterrupt:
        return 130
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a thread of a job that has ended may still be at work


if __name__ == "__main__":
    sys.exit(main())
