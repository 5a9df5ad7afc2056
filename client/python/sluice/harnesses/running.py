"""Programs of others that install: run, and what they say when they fail in words of ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Dict, Optional, Sequence, Tuple

from .recipes import HarnessError

# What npm and pip say, and what it means. The first that is found.
_MEANS: Tuple[Tuple[str, str], ...] = (
    (r"ENOSPC|No space left on device|EDQUOT|Disk quota exceeded", "no room is left on the disk of {place}"),
    (r"EINTEGRITY|DO NOT MATCH THE HASHES", "a digest is not the one that is recorded"),
    (r"Requires-Python|requires a different Python", "it needs another Python: name one with --python"),
    (r"ENOTFOUND|ECONNREFUSED|ETIMEDOUT|ECONNRESET|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET|NewConnectionError|"
     r"ConnectTimeout|ReadTimeout|NameResolutionError|ProtocolError|Max retries exceeded", "the registry of {source} cannot be reached"),
    (r"E404|ETARGET|No matching distribution found|Could not find a version", "the registry of {source} has no such version"),
    (r"E401|E403|\b40[13]\b", "the registry of {source} refuses it"),
)
_TAIL_LINES, _TAIL_LENGTH = 4, 600


def _tail(said: str, about: str = "") -> str:
    """Its last words; those that are about something, where there are such, and what follows the last of them."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and "complete log of this run" not in line]
    at = [i for i, line in enumerate(lines) if re.search(about, line)]
    first = at[0] if about and at else max(0, len(lines) - _TAIL_LINES)
    return "; ".join(lines[first:first + _TAIL_LINES])[:_TAIL_LENGTH]


def explain(said: str, source: str, place: str) -> str:
    """A sentence, and the program's own last words."""
    for pattern, words in _MEANS:
        if re.search(pattern, said):
            return f"{words.format(source=source, place=place)} ({_tail(said, pattern)})"
    return _tail(said) or "it said nothing"


def need(program: str, harness: str) -> str:
    found = shutil.which(program)
    if not found:
        raise HarnessError(f"{harness} is installed by {program}, which is not on the PATH")
    return found


def run(command: Sequence[str], harness: str, source: str, place: str, env: Optional[Dict[str, str]] = None, cwd: Optional[str] = None) -> str:
    """Its standard output. What it fetched and did is not said; why it failed is."""
    try:
        done = subprocess.run(list(command), env=dict(os.environ, **(env or {})), cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", check=False)
    except OSError as why:
        raise HarnessError(f"{harness}: cannot start {command[0]}: {why.strerror}") from None
    if done.returncode != 0:
        raise HarnessError(f"{harness} cannot be installed: {explain(done.stderr + done.stdout, source, place)}")
    return done.stdout


def probe(path: str, arguments: Sequence[str], home: str) -> Optional[str]:
    """None: it starts. Else why not. What it writes goes into `home`."""
    env = dict(os.environ, HOME=home, XDG_CACHE_HOME=home, XDG_CONFIG_HOME=home, XDG_DATA_HOME=home, MSWEA_SILENT_STARTUP="true",
               MSWEA_CONFIGURED="true", LITELLM_LOCAL_MODEL_COST_MAP="True",
               PATH=os.path.dirname(path) + os.pathsep + os.environ.get("PATH", os.defpath))
    try:
        done = subprocess.run([path, *arguments], env=env, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=120, check=False)
    except OSError as why:
        return f"{path} does not start: {why.strerror}"
    except subprocess.TimeoutExpired:
        return f"{path} {' '.join(arguments)} did not end within 120 s"
    return None if done.returncode == 0 else f"{path} {' '.join(arguments)} ended with {done.returncode}: {_tail(done.stderr + done.stdout)}"


def compile_all(command: Sequence[str], harness: str) -> None:
    """What cannot be compiled is compiled when it is needed, or never; that it ran at all shows that the interpreter does."""
    done = subprocess.run(list(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode not in (0, 1):
        raise HarnessError(f"{harness}: its copy of Python does not start: {_tail(done.stderr + done.stdout)}")
