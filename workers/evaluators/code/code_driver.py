"""The process that runs a program on its tests, one fork of a warm interpreter each; but for asserts it never learns what is expected.

    python3 /run/sluice/code_driver.py CHANNEL

CHANNEL is a connected socket that nobody else can reach. Frames are a little-endian u32 length and JSON. We say once who we
are; then each {"mode", "cpu_s", "wall_s", "bytes", ...} is answered by {"status", "cpu_s", "wall_s", "end", "error"} when all that
it started has been killed. `end` is ok, exception, exit, signal, cpu, wall or output; `error` the last line of what it wrote to
standard error. The program is /run/sluice/code.py and the input /run/sluice/input; what a test gives is in descriptor 1, a file
that is opened for appending:

    stdin    what the program prints
    call     what NAME(*arguments) returns, as JSON; arguments are those of the input
    assert   nothing: the input is Python that is run after the program, and check(ENTRY_POINT) where it defines that
"""
import ctypes
import gc
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time

import bisect, builtins, collections, copy, datetime, decimal, fractions, functools, heapq  # noqa: E401, F401 - warm for what programs use
import io, itertools, math, operator, random, re, statistics, string, typing  # noqa: E401, F401

FOLDER = os.path.dirname(os.path.abspath(__file__))
ERROR_MAX = 2048
HIGH = 220  # our own descriptors lie from here on
# What programs that are called take for granted; behind the built-in names, so that it is not the program's own.
TAKEN_FOR_GRANTED = {}
for module in ("bisect", "collections", "copy", "datetime", "functools", "heapq", "itertools", "math", "operator", "random", "re",
               "statistics", "string", "sys", "typing"):
    TAKEN_FOR_GRANTED[module] = sys.modules[module]
for module in ("operator", "random", "statistics", "string", "copy", "datetime", "math", "itertools", "functools", "collections",
               "heapq", "bisect", "typing"):
    for name in getattr(sys.modules[module], "__all__", [name for name in dir(sys.modules[module]) if name[0] != "_"]):
        TAKEN_FOR_GRANTED[name] = getattr(sys.modules[module], name, None)
TAKEN_FOR_GRANTED.update(vars(builtins))


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def set_dumpable(on):
    """Others of our user may look into our memory and descriptors, or not."""
    ctypes.CDLL(None).prctl(4, int(on), 0, 0, 0)


# ---- in the fork: the program's own process --------------------------------------------------------------


def arguments_of(text):
    """A list is all of them; else one JSON value a line."""
    try:
        whole = json.loads(text)
        if isinstance(whole, list):
            return whole
    except ValueError:
        pass
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def find(name, space):
    """A function of the program, or a method of its class Solution."""
    if name in space:
        return space[name]
    return getattr(space["Solution"](), name)


def plain(value):
    """As JSON has it: what is no list, but goes one by one, is a list; a number that JSON cannot hold is a text."""
    if isinstance(value, (list, tuple, set, frozenset, collections.deque, range)):
        return [plain(one) for one in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def run_stdin(test):
    space = {"__name__": "__main__", "__file__": "solution.py"}
    exec(compile(read("code.py"), "solution.py", "exec"), space)


def run_call(test):
    space = {"__name__": "solution", "__file__": "solution.py", "__builtins__": TAKEN_FOR_GRANTED}
    result = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    exec(compile(read("code.py"), "solution.py", "exec"), space)
    given = json.dumps(plain(find(test["name"], space)(*arguments_of(read("input")))))
    os.write(result, given.encode())


def run_assert(test):
    """The tests are in the program's hands: they run where it runs, and it can know them, redefine what they call, and say that
    they passed. What leaves early is told from what passed, and no more."""
    space = {"__name__": "solution", "__file__": "solution.py"}
    exec(compile(read("code.py"), "solution.py", "exec"), space)
    tests = dict(space)
    exec(compile(read("input"), "tests.py", "exec"), tests)
    if test.get("name") and callable(tests.get("check")):
        tests["check"](find(test["name"], tests))
    os.write(test["proof"], os.read(test["secret"], 64))


MODES = {"stdin": run_stdin, "call": run_call, "assert": run_assert}


def limit(test):
    # So that a group of its own, which it may leave, and what it starts are found: all but us are killed at its end.
    os.setsid()
    seconds = int(test["cpu_s"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    size = os.fstat(1).st_size + test["bytes"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (test["memory"], test["memory"]))
    set_dumpable(True)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, test["cpu_s"])


def in_child(test, channel, errors):
    code = 1
    try:
        limit(test)
        os.close(channel)
        source = os.open(os.path.join(FOLDER, "input") if test["mode"] == "stdin" else os.devnull, os.O_RDONLY)
        os.dup2(source, 0)
        os.dup2(errors, 2)
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        gc.enable()
        MODES[test["mode"]](test)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
    except BaseException:
        import traceback
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            code = code or 1
        os._exit(code & 255)


# ---- outside it --------------------------------------------------------------------------------------------


def kill_all():
    """Everything but the first process and us."""
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass


def await_end(child, errors, seconds):
    """(status or None when it lasted longer, its usage, the end of what it said)."""
    said, until, watched = b"", time.monotonic() + seconds, [errors]
    pidfd = os.pidfd_open(child) if hasattr(os, "pidfd_open") else -1
    try:
        while True:
            ended, status, usage = os.wait4(child, os.WNOHANG)
            if ended:
                break
            left = until - time.monotonic()
            if left <= 0:
                kill_all()
                _, _, usage = os.wait4(child, 0)
                return None, usage, said
            ready = select.select(watched + ([pidfd] if pidfd >= 0 else []), [], [], left if pidfd >= 0 else min(left, 0.002))[0]
            if errors in ready:
                more = os.read(errors, 65536)
                watched = [errors] if more else []
                said = (said + more)[-ERROR_MAX:]
        while select.select([errors], [], [], 0)[0]:
            more = os.read(errors, 65536)
            if not more:
                break
            said = (said + more)[-ERROR_MAX:]
        return status, usage, said
    finally:
        if pidfd >= 0:
            os.close(pidfd)


def how(status, usage, test, has_proof):
    if status is None:
        return "wall"
    if os.WIFSIGNALED(status):
        spent = usage.ru_utime + usage.ru_stime
        if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGPROF) or (spent >= test["cpu_s"] and os.WTERMSIG(status) == signal.SIGKILL):
            return "cpu"
        return "output" if os.WTERMSIG(status) == signal.SIGXFSZ else "signal"
    if os.WEXITSTATUS(status):
        return "exception" if os.WEXITSTATUS(status) == 1 else "exit"
    return "ok" if test["mode"] != "assert" or has_proof else "exit"


def run(test, channel):
    errors, errors_in = os.pipe()
    secret, secret_in = os.pipe()
    proof, proof_in = os.pipe()
    word = os.urandom(16)
    os.write(secret_in, word)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        for fd in (errors, secret_in, proof):
            os.close(fd)
        in_child(dict(test, secret=secret, proof=proof_in), channel, errors_in)
    for fd in (errors_in, secret, secret_in, proof_in):
        os.close(fd)
    status, usage, said = await_end(child, errors, test["wall_s"])
    kill_all()
    has_proof = bool(select.select([proof], [], [], 0)[0]) and os.read(proof, 64) == word
    os.close(errors)
    os.close(proof)
    lines = said.decode(errors="backslashreplace").strip().splitlines()
    return {"status": status if status is None or os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
            "cpu_s": usage.ru_utime + usage.ru_stime, "wall_s": time.monotonic() - began,
            "end": how(status, usage, test, has_proof), "error": lines[-1][:300] if lines else ""}


def receive(channel):
    head = channel.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        sys.exit(0)
    return json.loads(channel.recv(struct.unpack("<I", head)[0], socket.MSG_WAITALL))


def send(channel, message):
    text = json.dumps(message).encode()
    channel.sendall(struct.pack("<I", len(text)) + text)


def main():
    import fcntl
    fd = fcntl.fcntl(int(sys.argv[1]), fcntl.F_DUPFD_CLOEXEC, HIGH)
    os.close(int(sys.argv[1]))
    channel = socket.socket(fileno=fd)
    set_dumpable(False)
    gc.collect()
    gc.freeze()
    gc.disable()
    send(channel, {"python": sys.version.split()[0]})
    while True:
        send(channel, run(receive(channel), fd))


if __name__ == "__main__":
    main()
