"""The process between the worker and a Jupyter kernel, of whatever language: it starts the kernel and speaks to it.

    python3 /run/sluice/jupyter_driver.py NAME [PYTHON...] CHANNEL

NAME is a kernelspec's. CHANNEL, and what is said on it and written: ipython_driver.py. Of the image we need pyzmq, which
whatever runs a Jupyter kernel of Python has: a PYTHON was tried and lacks it, and the first other one that has it runs us.
Not jupyter_client: its import takes more than all of our start, and its version 7 imports all of ipykernel as well.
The messages: https://jupyter-client.readthedocs.io/en/stable/messaging.html
"""
import hashlib
import hmac
import json
import os
import re
import shutil
import signal
import string
import subprocess
import sys
import tempfile
import time
import uuid

import ipython_driver as driver

LOOK_MS = 200  # without a word, then we look whether the kernel lives
LATE_LOOKS = 10  # after its answer: what it has not published by then is lost
MESSAGES_MAX = 10000  # that wait to be read: beyond these, and what it keeps itself, a kernel drops some
PYTHONS = ("python3", "/usr/local/bin/python3", "/opt/conda/bin/python3", "/usr/bin/python3")
DATA = (os.path.expanduser("~/.local/share/jupyter"), sys.prefix + "/share/jupyter", "/usr/local/share/jupyter",
        "/usr/share/jupyter", "/opt/conda/share/jupyter")
COLOURS = re.compile(r"\x1b\[[0-9;?]*.|\x1b", re.S)
DELIMITER = b"<IDS|MSG>"
REQUEST = {"silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
           "stop_on_error": False}  # or the next one may be aborted, too


class Ended(Exception):
    """The kernel, with this status."""


def say(note):
    try:
        sys.stdout.write(note)
    except OSError:  # no room for it
        pass


def words(kind, content):
    """What a message says to a reader."""
    if kind == "stream":
        return content["text"]
    if kind == "error":
        return "".join(line + "\n" for line in content["traceback"])
    if kind in ("execute_result", "display_data"):
        shown = driver.pictures.describe(content["data"])
        return shown + "\n" if shown else ""
    return ""


# ---- its process -------------------------------------------------------------------------------------------------


def find_spec(name):
    """(directory, kernel.json as an object) or None."""
    for data in (*filter(None, os.environ.get("JUPYTER_PATH", "").split(":")), *DATA):
        directory = "%s/kernels/%s" % (data, name)
        if re.fullmatch(r"[\w.-]+", name) and os.path.exists(directory + "/kernel.json"):
            with open(directory + "/kernel.json", encoding="utf-8") as file:
                return directory, json.load(file)
    return None


def start(directory, spec, connection):
    """As a child that leads a session of its own and ends soon after us, if it is as ipykernel."""
    fill = {"{connection_file}": connection, "{resource_dir}": directory, "{prefix}": sys.prefix}
    argv = [re.sub(r"\{\w+\}", lambda it: fill.get(it[0], it[0]), argument) for argument in spec["argv"]]
    if re.fullmatch(r"python[23]?", argv[0]):
        argv[0] = sys.executable
    more = {key: string.Template(value).safe_substitute(os.environ) for key, value in spec.get("env", {}).items()}
    return subprocess.Popen(argv, env={**os.environ, **more, "JPY_PARENT_PID": str(os.getpid())}, start_new_session=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# ---- cells -------------------------------------------------------------------------------------------------------


class JupyterCells(driver.Cells):
    """One kernel, on Unix sockets of a directory of ours."""

    def __init__(self, directory, spec):
        where = tempfile.mkdtemp(prefix="jupyter-")
        self.key, self.module, self.count = uuid.uuid4().hex, sys.modules["__main__"], 0
        ports = {name + "_port": number for number, name in enumerate(("shell", "iopub", "stdin", "control", "hb"), 1)}
        with open(where + "/kernel.json", "w", encoding="utf-8") as file:
            json.dump({"transport": "ipc", "ip": where + "/socket", "signature_scheme": "hmac-sha256", "key": self.key,
                       **ports}, file)
        self.by_message = spec.get("interrupt_mode") == "message"
        if self.by_message:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # in the kernel, too, which is sent one as our descendant
        self.kernel = start(directory, spec, where + "/kernel.json")
        self.connect(where + "/socket-%d", ports)
        self.is_idle = False
        while not self.is_idle:  # what it publishes before iopub is live is lost
            info = self.ask("kernel_info_request", {}, 50, 1)
        self.name = "%s %s" % (info.get("implementation"), info.get("implementation_version"))

    def connect(self, path, ports):
        import zmq  # while the kernel starts
        context = zmq.Context()
        self.shell, self.iopub, self.control = map(context.socket, (zmq.DEALER, zmq.SUB, zmq.DEALER))
        self.iopub.setsockopt(zmq.SUBSCRIBE, b"")
        for socket, name in ((self.shell, "shell"), (self.iopub, "iopub"), (self.control, "control")):
            socket.setsockopt(zmq.LINGER, 0)  # our end waits for nothing
            socket.setsockopt(zmq.RECONNECT_IVL, 10)  # until the kernel listens
            socket.setsockopt(zmq.RCVHWM, MESSAGES_MAX)
            socket.connect("ipc://" + path % ports[name + "_port"])
        self.poller = zmq.Poller()
        for socket in (self.shell, self.iopub):
            self.poller.register(socket, zmq.POLLIN)

    def end(self):
        os.killpg(self.kernel.pid, signal.SIGKILL)

    def send(self, socket, kind, content):
        """Its id."""
        header = {"msg_id": uuid.uuid4().hex, "session": self.key[:8], "username": "sluice", "msg_type": kind,
                  "version": "5.3", "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
        signature = hmac.new(self.key.encode(), b"".join(parts), hashlib.sha256).hexdigest().encode()
        socket.send_multipart([DELIMITER, signature, *parts])
        return header["msg_id"]

    def hear(self, socket):
        """The next message, if it is about what was asked. Nobody but the kernel can have bound the socket: its
        signature is not looked at."""
        parts = socket.recv_multipart()
        at = parts.index(DELIMITER) + 2
        if json.loads(parts[at + 1]).get("msg_id") != self.asked:
            return
        kind, content = json.loads(parts[at])["msg_type"], json.loads(parts[at + 3])
        if socket is self.shell:
            self.answer = content
        elif kind == "status":
            self.is_idle = content["execution_state"] == "idle"
        else:
            sys.stdout.write(COLOURS.sub("", words(kind, content)))

    def ask(self, kind, content, look_ms, looks):
        """The answer, when the kernel is idle after it or has said nothing for so many looks; what is published is written."""
        self.asked = self.send(self.shell, kind, content)
        self.answer, self.is_idle, silent, broken = None, False, 0, 0
        while self.answer is None or not self.is_idle and silent < looks:
            ready = self.poller.poll(look_ms)
            silent = 0 if ready else silent + 1
            if silent and self.kernel.poll() is not None:
                raise Ended(self.kernel.returncode)
            for socket, _ in ready:
                try:
                    self.hear(socket)
                except OSError:
                    pass
                except Exception:
                    broken += 1
        if broken:
            say("[left out, as broken: %d of the kernel's messages]\n" % broken)
        return self.answer

    def interrupt(self, *_):
        """A kernel that takes no message has had the signal itself."""
        if self.by_message:
            self.send(self.control, "interrupt_request", {})

    def run(self, code):
        signal.signal(signal.SIGINT, self.interrupt)
        try:
            answer = self.ask("execute_request", dict(REQUEST, code=code), LOOK_MS, LATE_LOOKS)
        except Ended as end:
            os._exit(end.args[0] if end.args[0] >= 0 else 128 - end.args[0])
        if not self.is_idle:
            say("[the kernel did not say that this is all: there may have been more]\n")
        count = answer.get("execution_count")
        self.count = count if type(count) is int else 0
        return "ok" if answer.get("status") == "ok" else "error"


# ---- start -------------------------------------------------------------------------------------------------------


def have_zmq(name, tried, channel):
    """Does not return where another Python is tried."""
    import importlib.util
    if importlib.util.find_spec("zmq"):
        return
    tried.append(sys.executable)
    for python in map(shutil.which, PYTHONS):
        if python and python not in tried:
            os.execv(python, [python, __file__, name, *tried, channel])
    sys.exit("no Python of the image has pyzmq, which Jupyter kernels need here; tried: " + ", ".join(tried))


def make_cells(name):
    try:
        found = find_spec(name)
        if found:
            return JupyterCells(*found)
        why = "there is no Jupyter kernel \"%.64s\" in the image" % name
    except Ended as end:
        why = "the Jupyter kernel %s does not start: it ended with %d" % (name, end.args[0])
    except Exception as error:
        why = "the Jupyter kernel %s does not start: %s" % (name, driver.cut(repr(error), 400))
    sys.exit(why)


def main():
    sys.path.pop(0)  # our own directory
    name, *tried, channel = sys.argv[1:]
    have_zmq(name, tried, channel)
    driver.serve(int(channel), make_cells(name))


if __name__ == "__main__":
    main()
