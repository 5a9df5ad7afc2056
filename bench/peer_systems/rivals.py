#!/usr/bin/env python3
"""rivals.py COUNT: what a command of a shell and a cell of Python take by other ways, on the host itself.

Prints "VALUE WHAT" lines as bench_tools does: tmux that is asked again and again, pexpect, a Jupyter kernel over
tcp, and one behind jupyter_server's REST and websocket. What is not installed is skipped by name. A few samples of
each at a time, in turn; COUNT are of the quickest.
"""
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid

TURNS = 10 # at most
START_S = 60


def now_ms():
    return time.perf_counter() * 1000


class Rival:
    """One way, open until close(). sample() does its thing once and checks what came of it; tidy() is not measured."""

    def __init__(self, directory):
        self.directory = directory

    def tidy(self):
        pass

    def close(self):
        pass


# ---- shells ------------------------------------------------------------------------------------------------------


class Tmux(Rival):
    """Keys are sent to a pane, which is read until the command's end stands in it."""

    def __init__(self, directory, poll_s):
        super().__init__(directory)
        if not shutil.which("tmux"):
            raise ImportError("tmux is not installed")
        self.poll_s, self.serial = poll_s, 0
        self.socket = f"{directory}/tmux-{uuid.uuid4().hex}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50", "bash --norc --noprofile")
        self.sample()

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", self.socket, *arguments], check=True, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "TERM": "xterm"}).stdout

    def sample(self):
        self.serial += 1
        self.tmux("send-keys", f"clear; echo hi; echo end''{self.serial}:$?:", "Enter")
        while f"end{self.serial}:0:" not in (shown := self.tmux("capture-pane", "-p", "-J", "-S", "-")):
            time.sleep(self.poll_s)
        assert "hi\n" in shown

    def close(self):
        self.tmux("kill-server")


class Pexpect(Rival):
    """bash on a terminal, its prompt awaited."""
    PROMPT = "sluice-bench-prompt>"

    def __init__(self, directory, delay_s):
        super().__init__(directory)
        import pexpect
        self.shell = pexpect.spawn("/bin/bash", ["--norc", "--noprofile"], encoding="utf-8", echo=False)
        if delay_s is None:
            self.shell.delaybeforesend = None
        self.shell.sendline(f"bind 'set enable-bracketed-paste off'; PS2= PS1='{self.PROMPT[:6]}''{self.PROMPT[6:]}'")
        self.shell.expect_exact(self.PROMPT)

    def sample(self):
        self.shell.sendline("echo hi")
        self.shell.expect_exact(self.PROMPT)
        assert "hi" in self.shell.before

    def close(self):
        self.shell.close(force=True)


# ---- kernels -----------------------------------------------------------------------------------------------------


class Kernel(Rival):
    """ipykernel and jupyter_client's blocking client, over tcp."""

    def __init__(self, directory):
        super().__init__(directory)
        from jupyter_client.manager import start_new_kernel
        import ipykernel  # noqa: F401 (what is started)
        self.manager, self.client = start_new_kernel(startup_timeout=START_S, stdout=subprocess.DEVNULL,
                                                     stderr=subprocess.DEVNULL)

    def sample(self):
        said = []

        def hear(message):
            if message["msg_type"] == "execute_result":
                said.append(message["content"]["data"]["text/plain"])
        self.client.execute_interactive("1+1", timeout=START_S, output_hook=hear)
        assert said == ["2"]

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


class Gateway(Rival):
    """jupyter_server: a kernel made by REST, its cells and their results over one websocket."""

    def __init__(self, directory):
        super().__init__(directory)
        import ipykernel  # noqa: F401
        import jupyter_server  # noqa: F401
        import tornado.websocket  # noqa: F401
        self.loop = asyncio.new_event_loop()
        self.socket_path = None
        self.server, self.port = self.serve()
        self.kernel = self.wait(self.open())

    def wait(self, what):
        return self.loop.run_until_complete(what)

    def serve(self):
        """Its process and port, once it answers."""
        runtime = f"{self.directory}/jupyter"
        os.makedirs(runtime, exist_ok=True)
        environment = {**os.environ, "JUPYTER_RUNTIME_DIR": runtime, "JUPYTER_CONFIG_DIR": runtime,
                       "JUPYTER_DATA_DIR": runtime}
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", "--ip=127.0.0.1", "--port=0", "--no-browser", "--allow-root",
             "--ServerApp.token=bench", "--ServerApp.disable_check_xsrf=True",
             f"--ServerApp.root_dir={self.directory}"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + START_S
        while time.monotonic() < until and server.poll() is None:
            try:
                with open(f"{runtime}/jpserver-{server.pid}.json", encoding="utf-8") as file:
                    return server, json.load(file)["port"]
            except (OSError, ValueError):
                time.sleep(0.05)
        server.kill()
        raise ImportError("jupyter_server does not start")

    async def ask(self, method, path="", body=None):
        from tornado.httpclient import AsyncHTTPClient
        return await AsyncHTTPClient().fetch(f"http://127.0.0.1:{self.port}/api/kernels{path}?token=bench",
                                             method=method, body=body, request_timeout=START_S)

    async def open(self):
        """A new kernel's websocket."""
        from tornado.websocket import websocket_connect
        self.id = json.loads((await self.ask("POST", body="{}")).body)["id"]
        return await websocket_connect(f"ws://127.0.0.1:{self.port}/api/kernels/{self.id}/channels?token=bench")

    async def execute(self, kernel):
        """Until its reply and the kernel's rest are both there."""
        ours, awaited, said = uuid.uuid4().hex, {"execute_reply", "idle"}, None
        await kernel.write_message(json.dumps({
            "header": {"msg_id": ours, "msg_type": "execute_request", "username": "", "session": "bench",
                       "date": "", "version": "5.3"},
            "parent_header": {}, "metadata": {}, "channel": "shell", "buffers": [],
            "content": {"code": "1+1", "silent": False, "store_history": False, "user_expressions": {},
                        "allow_stdin": False}}))
        while awaited:
            text = await kernel.read_message()
            assert text is not None, "the websocket is closed"
            message = json.loads(text)
            if message["parent_header"].get("msg_id") != ours:
                continue
            awaited -= {message["msg_type"], message["content"].get("execution_state")}
            if message["msg_type"] == "execute_result":
                said = message["content"]["data"]["text/plain"]
        assert said == "2"

    def sample(self):
        self.wait(self.execute(self.kernel))

    def close(self):
        self.kernel.close()
        self.server.terminate()
        self.server.wait(START_S)
        self.loop.close()


class FreshKernel(Rival):
    """A Kernel from its start to its first answer, each time."""

    def __init__(self, directory):
        super().__init__(directory)
        import ipykernel  # noqa: F401
        import jupyter_client  # noqa: F401

    def sample(self):
        self.kernel = Kernel(self.directory)
        self.kernel.sample()

    def tidy(self):
        self.kernel.close()


class FreshGateway(Gateway):
    """A kernel of a Gateway from its request to its first answer, each time."""

    def sample(self):
        self.kernel.close()
        self.kernel = self.wait(self.open())
        super().sample()

    def tidy(self):
        self.wait(self.ask("DELETE", f"/{self.id}"))


# ---- rows --------------------------------------------------------------------------------------------------------

ROWS = (  # what, a sample for so many of COUNT, how
    ("tmux, asked every 10 ms: echo hi", 10, lambda directory: Tmux(directory, 0.01)),
    ("tmux, asked every 500 ms: echo hi", 20, lambda directory: Tmux(directory, 0.5)),
    ("pexpect: echo hi", 20, lambda directory: Pexpect(directory, 0.05)),
    ("pexpect, delaybeforesend=None: echo hi", 1, lambda directory: Pexpect(directory, None)),
    ("Jupyter kernel over tcp: 1+1", 2, Kernel),
    ("Jupyter kernel over tcp: a fresh kernel and its first 1+1", 100, FreshKernel),
    ("jupyter_server, REST and websocket: 1+1", 20, Gateway),
    ("jupyter_server, REST and websocket: a fresh kernel and its first 1+1", 100, FreshGateway),
)


def open_all(directory):
    rivals = {}
    for what, _, create in ROWS:
        try:
            rivals[what] = create(directory)
        except ImportError as why:
            print(f"rivals.py: skipped: {what}: {why}", file=sys.stderr)
    return rivals


def measure(rival):
    began = now_ms()
    rival.sample()
    took = now_ms() - began
    rival.tidy()
    return took


def main():
    count = int(sys.argv[1])
    turns = min(TURNS, max(1, count // 20))
    with tempfile.TemporaryDirectory(prefix="sluice-rivals-") as directory:
        rivals = open_all(directory)
        samples = {what: [] for what in rivals}
        try:
            for _ in range(turns):
                for what, share, _ in ROWS:
                    if what in rivals:
                        samples[what] += [measure(rivals[what]) for _ in range(max(1, count // share // turns))]
        finally:
            for rival in rivals.values():
                rival.close()
    for what, values in samples.items():
        values.sort()
        for name, at in (("p50", len(values) // 2), ("p99", len(values) * 99 // 100)):
            print(f"{values[at]:.3f} {what}, {name} ms")


if __name__ == "__main__":
    main()
