"""python -m sluice.importers FORM FILE...: tasks out of rows; DIRECTORY... or harbor DIRECTORY...: out of folders."""

from __future__ import annotations

import argparse
import collections
import os
import sys
from typing import Any, Callable, Counter, Dict, List, Optional, TextIO, Tuple

from .forms import FORMS
from .harbor.command import main as harbor, parser as harbor_parser
from .importing import Choices, import_rows
from .options import count, field, pair, write_to

ABOUT = """\
Makes tasks of the rows of a data set (docs/tasks/importers.md): JSON lines, a JSON list, either with .gz, or parquet.
With a DIRECTORY in place of FORM and FILE: of Harbor's folders (docs/tasks/harbor.md); harbor --help has its options."""
STATUS = """\
exit status
  0   every row is a task
  1   rows were refused, each named on standard error; the others are written (0 with --skip-bad, if any is)
  2   the command line is wrong"""


def _several(parser: argparse.ArgumentParser, option: str, metavar: str, kind: Callable[[str], Any], words: str) -> None:
    parser.add_argument(option, action="append", default=[], metavar=metavar, type=kind, help=words)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m sluice.importers", description=ABOUT, epilog=STATUS,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("form", nargs="?", metavar="FORM", help=f"what the rows are: {', '.join(FORMS)}")
    found.add_argument("files", nargs="*", metavar="FILE", help="the rows; for reasoning-gym also a generator's name")
    found.add_argument("-o", "--out", metavar="FILE", help="the tasks; if absent, standard output")
    found.add_argument("--limit", type=count, metavar="N", help="take N rows at most")
    _several(found, "--map", "COLUMN=FIELD", pair, "what the form calls FIELD is in COLUMN, which may be a.b; repeatable")
    _several(found, "--set", "FIELD=VALUE", field, "put into each task, such as sampling.max_tokens=4096; repeatable")
    found.add_argument("--eval", default="math", metavar="KIND[:EXTRACT]",
                       help="question: math, choice, exact or a handler's evaluator (math)")
    _several(found, "--route", "SOURCE=KIND", pair, "verl: how a data_source is judged: math, math:box, code, a handler's; repeatable")
    found.add_argument("--image-template", default="", metavar="PATH",
                       help="swe: where prepared images lie, of {image}, {sif} and {instance}, such as /images/{sif}")
    found.add_argument("--seed", type=int, default=0, metavar="N", help="reasoning-gym: the generator's (0)")
    found.add_argument("--skip-bad", action="store_true", help="rows that are refused do not make the exit status 1")
    found.add_argument("--list", action="store_true", help="print the forms, with what each reads, and end")
    return found


def _list() -> str:
    return "\n".join(f"{name}\n  rows    {form.columns()}\n  judged  {form.judged}\n  sets    {form.of}" for name, form in FORMS.items())


def _write(given: argparse.Namespace, out: TextIO) -> int:
    choices = Choices(dict(given.map), dict(given.route), given.eval, dict(given.set), given.limit, given.seed,
                      given.image_template)
    written, refused = 0, collections.Counter()  # type: Tuple[int, Counter[str]]
    for row in import_rows(given.form, given.files, choices):
        if row.text is None:
            print(f"{row.place}: {row.why}", file=sys.stderr)
            refused[str(row.why).partition(":")[0]] += 1
        else:
            out.write(row.text + "\n")
            written += 1
    print(f"tasks written: {written}; rows refused: {sum(refused.values())}", file=sys.stderr)
    if len(refused) > 1:
        for why, times in refused.most_common():
            print(f"  {times:6} {why}", file=sys.stderr)
    return 1 if refused and not (given.skip_bad and written) else 0


def _first(words: List[str]) -> int:
    """The place of the first that is neither an option of either importer nor the value of one; past the end: none is."""
    known = {**harbor_parser()._option_string_actions, **parser()._option_string_actions}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in known and known[words[at]].nargs != 0 else 1
    return at


def _of_harbor(words: List[str]) -> Optional[List[str]]:
    """What Harbor's importer is told: by its name, or because a folder or a list of folders is among them. Or None."""
    at = _first(words)
    if words[at:at + 1] == ["harbor"]:
        return words[:at] + words[at + 1:]
    is_folder = any(os.path.isdir(word) or os.path.basename(word) == "dataset.toml" for word in words)
    return words if is_folder and not (at < len(words) and words[at] in FORMS) else None


def main(arguments: Optional[List[str]] = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    for_harbor = _of_harbor(words)
    if for_harbor is not None:
        return harbor(for_harbor)
    given = parser().parse_args(words)
    if given.list:
        print(_list())
        return 0
    if given.form not in FORMS:
        known = f"{given.form} is neither a directory nor a form of rows; known are {', '.join(FORMS)}"
        parser().error(known if given.form else "DIRECTORY or FORM is missing (--list)")
    if not given.files:
        parser().error("FILE is missing")
    return write_to(given.out, lambda out: _write(given, out))


if __name__ == "__main__":
    sys.exit(main())
