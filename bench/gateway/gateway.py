"""The gateway: what HTTP adds to a submit, how many it carries, and what connections that wait cost."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import page
import parts



def memory_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


class Gateway:
    """One beside a broker. With `with`; leaving ends it."""

    def __init__(self, build, data):
        self.build = build
        self.process = subprocess.Popen(
            [f"{build}/client/sluice-gateway", "--broker", parts.url(parts.FRONT), "--listen", "0", "--state", f"{data}/ids"],
            stdout=subprocess.PIPE, text=True)
        self.port = self.process.stdout.readline().rsplit(":", 1)[1].strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def cpu_us(self):
        return sum(parts.thread_cpu_us(self.process.pid))


class Held:
    """Connections of a process of its own that have asked, and read what comes."""

    def __init__(self, gateway, count, path, body=None):
        arguments = [f"{gateway.build}/bench/bench_gateway", "hold", gateway.port, str(count), path] + ([json.dumps(body)] if body else [])
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert "ready" in self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)


def connections(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def await_connections(pid, count):
    while connections(pid) < count:
        time.sleep(0.01)


def measure(build, quick):
    """The part's text."""
    values, rounds = page.Values(), 1 if quick else 5
    count, one_at_a_time, streams, pages = (500, 100, 100, 20) if quick else (20000, 500, 3000, 500)
    program, root = f"{build}/bench/bench_gateway", tempfile.mkdtemp(prefix="sluice-bench-gateway-")
    try:
        for number in range(1, rounds + 1):
            values.begin(number, rounds)
            with parts.Broker(build, f"{root}/{number}") as broker, Gateway(build, f"{root}/{number}") as gateway:
                page.note_lines(values, [program, "direct", parts.url(parts.FRONT), str(one_at_a_time)])
                page.note_lines(values, [program, "submits", gateway.port, "1", str(one_at_a_time)])
                before, broker_before = gateway.cpu_us(), sum(broker.cpu_us().values())
                page.note_lines(values, [program, "submits", gateway.port, "64", str(count)])
                values.note("... CPU of the gateway for each, us", (gateway.cpu_us() - before) / count)
                values.note("... CPU of the broker for each, us", (sum(broker.cpu_us().values()) - broker_before) / count)
            with parts.Broker(build, f"{root}/{number}-held") as broker, Gateway(build, f"{root}/{number}-held") as gateway:
                pid = gateway.process.pid
                before = memory_kib(pid), connections(pid)
                with Held(gateway, streams, "/api/v1/streams/none/events"):
                    await_connections(pid, before[1] + streams)
                    values.note(f"memory of the gateway for each of {streams:,} event streams, KiB", (memory_kib(pid) - before[0]) / streams)
            with parts.Broker(build, f"{root}/{number}-pages") as broker, Gateway(build, f"{root}/{number}-pages") as gateway:
                for open_pages in (0, pages):
                    with Held(gateway, open_pages, "/api/v1/live"):
                        before = sum(broker.cpu_us().values()), gateway.cpu_us()
                        page.note_lines(Quiet(values, f"direct submits with {open_pages} pages open"), [program, "direct", parts.url(parts.FRONT), str(4 * one_at_a_time)])
                        values.note(f"... CPU of the broker with {open_pages} pages open for each, us", (sum(broker.cpu_us().values()) - before[0]) / (4 * one_at_a_time))
            shutil.rmtree(root, ignore_errors=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return f"""## The gateway

{values.circumstances()}

Submits of groups of one, 1 KiB, everything durable; no workers, so that nothing but submits is at work. The gateway, the broker and who asks share the
machine. Connections that wait are held by one process that reads whatever comes.

{values.rows()}
"""


class Quiet:
    """Notes one of a program's values by another name."""

    def __init__(self, values, name):
        self.values, self.name = values, name

    def note(self, what, value):
        if what.endswith("a second"):
            self.values.note(self.name + ", a second", value)
