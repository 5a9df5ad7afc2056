"""python -m sluice.importers harbor DIRECTORY...: tasks out of folders."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Dict, List, Optional, TextIO, Tuple

from ..options import count, field, write_to
from .choices import HarborChoices, Notes
from .environment import image_at
from .folders import import_folders

ABOUT = "Makes tasks of Harbor's task folders, data sets of them, and the older terminal-bench's (docs/tasks/harbor.md)."
STATUS = """\
exit status
  0   every folder is a task
  1   folders were refused, each named on standard error; the others are written (0 with --skip-bad, if any is)
  2   the command line is wrong"""


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m sluice.importers harbor", description=ABOUT, epilog=STATUS,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("folders", nargs="+", metavar="DIRECTORY", help="a task's folder, a directory of them, or a dataset.toml")
    found.add_argument("-o", "--out", metavar="FILE", help="the tasks; if absent, standard output")
    add_choices(found)
    found.add_argument("--skip-bad", action="store_true", help="folders that are refused do not make the exit status 1")
    return found


def add_choices(found: argparse.ArgumentParser) -> None:
    """The options that say how folders are read."""
    found.add_argument("--image", action="append", default=[], metavar="[NAME=]PATH",
                       help="the image that docker_image calls NAME; without NAME that of every task, in which {task} is the folder's name; repeatable")
    found.add_argument("--prebuilt", action="store_true", help="the images are made already: Dockerfiles are not executed")
    found.add_argument("--network-grant", action="append", default=[], metavar="[HOST=]NAME",
                       help="the grant that stands for network_mode public, or for HOST of allowed_hosts; repeatable")
    found.add_argument("--files", choices=("auto", "inline", "source"), default="auto",
                       help="how files go along: in the task, from where they lie, or as their size has it (auto)")
    found.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", type=field,
                       help="put into each task, such as agent.max_turns=50; repeatable")
    found.add_argument("--limit", type=count, metavar="N", help="take N tasks at most")


def _pairs(made: argparse.ArgumentParser, said: List[str], option: str) -> Tuple[Optional[str], Dict[str, str]]:
    whole: Optional[str] = None
    pairs: Dict[str, str] = {}
    for text in said:
        name, mark, value = text.rpartition("=")
        if not value or (mark and not name):
            made.error(f"{option} wants NAME=VALUE or VALUE, not '{text}'")
        if mark:
            pairs[name] = value
        else:
            whole = value
    return whole, pairs


def read_choices(made: argparse.ArgumentParser, given: argparse.Namespace) -> HarborChoices:
    image, images = _pairs(made, given.image, "--image")
    grant, grants = _pairs(made, given.network_grant, "--network-grant")
    images = {name: image_at(path) for name, path in images.items()}
    return HarborChoices(image=image, images=images, prebuilt=given.prebuilt, network_grant=grant, host_grants=grants,
                         files=given.files, fields=dict(given.set), variables=dict(os.environ), limit=given.limit)


def _write(given: argparse.Namespace, choices: HarborChoices, out: TextIO) -> int:
    notes, written, refused = Notes(), 0, 0
    for task in import_folders(given.folders, choices, notes):
        if task.text is None:
            print(f"{task.place}: {task.why}", file=sys.stderr)
            refused += 1
        else:
            out.write(task.text + "\n")
            written += 1
    for line in notes.lines():
        print(line, file=sys.stderr)
    print(f"tasks written: {written}; folders refused: {refused}", file=sys.stderr)
    return 1 if refused and not (given.skip_bad and written) else 0


def main(arguments: List[str]) -> int:
    made = parser()
    given = made.parse_args(arguments)
    return write_to(given.out, lambda out: _write(given, read_choices(made, given), out))
