"""Processes that are measured: their CPU, their ports, and their certain end."""
import contextlib
import os
import resource
import signal
import socket
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def free_ports(count):
    """The first of `count` neighbouring ports that can be bound now, below those that the system hands out."""
    start = 10000 + os.getpid() * 37 % 15000
    for first in range(start, start + 5000, count):
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
                return first
            except OSError:
                continue
    raise SystemExit("no free ports")


def _stat(pid):
    """(parent, CPU seconds with those of its children that it has waited for) of a process; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as text:
            fields = text.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return int(fields[1]), sum(map(int, fields[11:15])) / TICKS


def tree(pids):
    """{pid: CPU seconds} of these processes and of all that they have started."""
    stats = {int(name): _stat(name) for name in os.listdir("/proc") if name.isdigit()}
    found = {pid: stats[pid][1] for pid in pids if stats.get(pid)}
    grew = True
    while grew:
        more = {pid: stat[1] for pid, stat in stats.items() if stat and stat[0] in found and pid not in found}
        found.update(more)
        grew = bool(more)
    return found


def cpu_s(*processes):
    return sum(tree([process.pid for process in processes]).values())


def children_cpu_s():
    """Of all that this process has started and that has ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def await_port(process, port, seconds=60):
    """Until something listens there; SystemExit when the process ends first, or nothing does."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"{process.args[0]} does not listen on port {port}")


def await_that(holds, seconds, what):
    """Until holds(); SystemExit when that takes longer."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise SystemExit(f"not within {seconds} s: {what}")
        time.sleep(0.005)


def freeze(process):
    """SIGSTOP, and until it is stopped."""
    def is_stopped():
        with open(f"/proc/{process.pid}/stat", encoding="utf-8", errors="replace") as text:
            return text.read().rsplit(")", 1)[1].split()[0] == "T"
    process.send_signal(signal.SIGSTOP)
    await_that(is_stopped, 60, "a process that is stopped")


def stop(process, seconds=20):
    """Ends a process and all that it started: politely first."""
    pids = tree([process.pid])
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pid in tree(pids):
        if pid != process.pid:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
