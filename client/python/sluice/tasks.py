"""Tasks and the names of their groups, as the `sluice` command makes them."""

import hashlib
import json
import os
import pathlib

HASH_DIGITS, PREFIX_BYTES, ID_BYTES = 10, 24, 56


def _clean(text, size):
    cut = text.encode()[:size].decode(errors="ignore")
    return "".join("_" if c <= " " or c in "/\x7f" else c for c in cut)


def read_tasks(tasks):
    """(prefix, [(JSON text, task)]) of an iterable of dicts, or of a JSONL file's path."""
    if isinstance(tasks, (str, os.PathLike)):
        path = pathlib.Path(tasks)
        # Not splitlines: it also ends a line at U+2028 and its like, which stand inside of JSON strings.
        lines = [line.rstrip(" \t\r") for line in path.read_bytes().decode("utf-8").split("\n")]
        return path.name.split(".")[0], [(line, json.loads(line)) for line in lines if line]
    texts = [json.dumps(task, ensure_ascii=False, separators=(",", ":")) for task in tasks]
    return "py", [(text, json.loads(text)) for text in texts]


def limited(text, task, limits):
    """The same with these limits, whatever it says of them."""
    task = dict(task, limits=dict(task.get("limits", {}), **limits))
    return json.dumps(task, ensure_ascii=False, separators=(",", ":")), task


def name_groups(prefix, texts, stream, samples):
    """A name for each text: the same for the same stream, samples and content."""
    seen, names = {}, []
    for (text, task), count in zip(texts, samples):
        repeat = seen.get(text, 0)
        seen[text] = repeat + 1
        digest = hashlib.sha256(f"{stream} {count} {repeat} {text}".encode()).hexdigest()
        names.append(f"{_clean(prefix, PREFIX_BYTES)}-{_clean(str(task.get('task', '')), ID_BYTES)}-"
                     f"{digest[:HASH_DIGITS]}")
    return names
