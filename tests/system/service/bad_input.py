"""Reads and runs the table bad_input.txt: wrong things that people type, and what they are told.

    $ ack train x                               a command line of `sluice`
    2 SEQ wants a number from 1 on, not 'x'     its exit status, and the sentence on stderr; "..." stands for anything
    > client.ack("train", "x")                  the same wrong thing in Python, where it can be said there
    = seq wants a number from 1 on, not 'x'     what the exception says; "=" alone: the same sentence, field for option

    @ {"task": "t", "promt": "p"}               a line of a task file
    promt: a task has no field 'promt'; ...     what is said of it behind FILE:LINE, and in Python, too

Words in $CAPITALS are filled in by the test. Nothing else may be said than what the table has, unless "..." stands for it.
"""
import json
import re


class Row:
    def __init__(self, number, kind, typed):
        self.number, self.is_task, self.typed = number, kind == "@", typed
        self.status = self.says = self.python = self.python_says = None


def read_table(path):
    rows = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            if line.startswith("> "):
                rows[-1].python = line[2:]
            elif line[0] == "=":
                rows[-1].python_says = line[2:] or None
            elif line[:2] in ("$ ", "@ "):
                rows.append(Row(number, line[0], line[2:]))
            elif rows[-1].is_task:
                rows[-1].says = line
            else:
                status, _, rows[-1].says = line.partition(" ")
                rows[-1].status = int(status)
    return rows


def in_python(sentence):
    """A sentence of the command line as Python says it: --on-stale is on_stale, and nobody is sent to --help."""
    sentence = re.sub(r" \(see sluice [a-z]* ?--help\)", "", sentence)
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda found: found.group(1).replace("-", "_"), sentence)


def is_said(pattern, text):
    """Whether these are the words: a number that was typed may stand in quotes, and one of Python's without."""
    pattern, text = (re.sub(r"not '(-?[\d.]+)'", r"not \1", words) for words in (pattern, text))
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("...")), text, re.S) is not None


def filled(text, words):
    for name, value in words.items():
        text = text.replace("$" + name, value)
    return text


def task_of(line):
    """The dict that a line is, or None where it is not a JSON object that Python's json gives back as it was."""
    def once(pairs):
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a name that is there twice")
        return dict(pairs)
    try:
        value = json.loads(line, object_pairs_hook=once)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
