"""The gateway: what HTTP adds to a submit, how many it carries, what connections that wait cost, and how long a call of /run_code takes."""
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.request

import page
import parts
import processes

# What ProRL's clients wait for in /process: without a worker it never ends.
NEVER = {"instance": {"data_source": "math", "instance_id": "one", "trajectory_id": 0, "prompt": "1+1?", "reward_model": {"ground_truth": "2"}},
         "sampling_params": {}}
WAIT_S = 120
IDLE_S = 2


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

    def cpu_share(self, seconds):
        """Of one core, while nobody asks it for anything."""
        before = self.cpu_us()
        time.sleep(seconds)
        return (self.cpu_us() - before) / (seconds * 1e6)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=60)
        connection.request(method, path, json.dumps(body) if body is not None else None)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, f"{path}: {answer.status} {text}"
        return text

    def start_prorl(self):
        """/process is refused without an engine. Nobody will call this one: there is no worker."""
        self.ask("POST", "/add_llm_server", {"address": f"http://127.0.0.1:{processes.free_port()}/v1"})
        self.ask("POST", "/start", {})

    def streams(self):
        return int(re.search(r"^sluice_sse_clients (\d+)", self.ask("GET", "/metrics"), re.M).group(1))


class Named:
    """Notes the one of a program's values whose name has this end, by another name."""

    def __init__(self, values, end, name):
        self.values, self.end, self.name = values, end, name

    def note(self, what, value):
        if what.endswith(self.end):
            self.values.note(self.name, value)


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


def measure_waiting(values, gateway, broker, calls, streams):
    """Calls and streams at once, by the memory that each of them adds, and what a gateway with all of them is like."""
    pid, program = gateway.process.pid, f"{gateway.build}/bench/bench_gateway"
    gateway.start_prorl()
    at_first = memory_kib(pid)
    with Held(gateway, streams, "/api/v1/streams/none/events"):
        processes.await_that(lambda: gateway.streams() >= streams, WAIT_S, f"{streams} event streams")
        with_streams = memory_kib(pid)
        values.note(f"memory of the gateway for each of {streams:,} event streams, KiB", (with_streams - at_first) / streams)
        with Held(gateway, calls, "/process", NEVER):
            processes.await_that(lambda: broker.status()["rollouts"]["live"] >= calls, WAIT_S, f"{calls} calls of /process that wait")
            values.note(f"memory of the gateway for each of {calls:,} calls of /process that wait, KiB", (memory_kib(pid) - with_streams) / calls)
            values.note("... CPU of the gateway with all of these, of one core", gateway.cpu_share(IDLE_S))
            page.note_lines(Named(values, "p50 ms", "... submits over HTTP with all of these, 1 at a time, p50 ms"),
                            [program, "submits", gateway.port, "1", "100"])


def run_code(gateway):
    """One call: the seconds until its answer, and those that its program took."""
    asked = urllib.request.Request(f"http://127.0.0.1:{gateway.port}/run_code", b'{"code": "print(1)", "language": "python"}', method="POST")
    began = time.monotonic()
    with urllib.request.urlopen(asked, timeout=60) as answer:
        told = json.load(answer)
    assert told["run_result"]["stdout"] == "1\n", told
    return time.monotonic() - began, told["run_result"]["execution_time"]


def note_calls(values, gateway, count):
    whole, inside = zip(*(run_code(gateway) for _ in range(count)))
    values.note("a call of /run_code, one at a time, ms", 1000 * statistics.median(whole))
    values.note("... of which its program took, ms", 1000 * statistics.median(inside))


def measure(build, quick):
    """The part's text."""
    values, rounds = page.Values(), 1 if quick else 5
    count, one_at_a_time, streams, calls, pages = (500, 100, 100, 50, 20) if quick else (20000, 500, 3000, 2000, 500)
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
                measure_waiting(values, gateway, broker, calls, streams)
            with parts.Broker(build, f"{root}/{number}-pages") as broker, Gateway(build, f"{root}/{number}-pages") as gateway:
                for open_pages in (0, pages):
                    with Held(gateway, open_pages, "/api/v1/live"):
                        before = sum(broker.cpu_us().values()), gateway.cpu_us()
                        page.note_lines(Named(values, "a second", f"direct submits with {open_pages} pages open, a second"), [program, "direct", parts.url(parts.FRONT), str(4 * one_at_a_time)])
                        values.note(f"... CPU of the broker with {open_pages} pages open for each, us", (sum(broker.cpu_us().values()) - before[0]) / (4 * one_at_a_time))
            with parts.Broker(build, f"{root}/{number}-code", workers=1), Gateway(build, f"{root}/{number}-code") as gateway:
                note_calls(values, gateway, 5 if quick else 50)
            shutil.rmtree(root, ignore_errors=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return f"""## The gateway

{values.circumstances()}

Submits of groups of one, 1 KiB, everything durable; no workers, so that nothing but submits is at work. The gateway, the broker and who asks share the
machine. Connections that wait are held by one process that reads whatever comes.

{values.rows()}
"""
