"""The process that runs cells: IPython's InteractiveShell, or plain Python where there is none.

    python3 /run/sluice/ipython_driver.py CHANNEL

CHANNEL is a connected socket that nobody else can reach. Frames are a little-endian u32 length and JSON.
We say once who we are; then each {"id", "code"} is answered, when the cell has ended, by {"id", "status":
"ok" | "error" | "interrupted", "count", "images"}. What the cell wrote is in descriptors 1 and 2: one file, opened
for appending, so that prints, C code and child processes come in their true order.

Imported by ipython_zygote.py, which calls serve() in a fork instead of main(), and by jupyter_driver.py, for cells of another kind.
"""
import base64
import builtins
import gc
import importlib.machinery
import io
import json
import os
import signal
import socket
import struct
import sys
import traceback

PICTURES_DIR = os.environ.get("SLUICE_WORKSPACE", "/workspace") + "/.sluice"
PICTURES_MAX = 64  # files of one kernel
PICTURE_BYTES_MAX = 4 << 20
PICTURES_BYTES_MAX = 16 << 20
CODE_MAX = 1 << 20
REPR_MAX = 1 << 20  # characters of one result
HIGH = 220  # our own descriptors lie from here on
EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/svg+xml": "svg", "image/gif": "gif",
              "image/webp": "webp", "application/pdf": "pdf", "text/html": "html"}
PICTURES = [kind for kind in EXTENSIONS if kind != "text/html"]
PLAIN = {bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple}  # have no form but text


def cut(text, limit=REPR_MAX):
    """Head and tail of what is too long, with the number of characters left out."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return "%s\n[%d characters left out]\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


class Pictures:
    """Rich results: saved as files, named in the text, counted; bounded in number and bytes."""

    def __init__(self):
        self.saved = self.bytes = self.seen = 0

    def save(self, kind, data):
        """A line of text that says where `data` is, or why it is nowhere."""
        self.seen += kind != "text/html"
        if isinstance(data, str):
            is_text = kind in ("text/html", "image/svg+xml")
            data = data.encode("utf-8", "replace") if is_text else base64.b64decode(data)
        what = "%s, %d bytes" % (kind, len(data))
        if self.saved >= PICTURES_MAX or self.bytes + len(data) > PICTURES_BYTES_MAX:
            return "[%s: not saved, this kernel has saved its %d files or %d MiB]" % (
                what, PICTURES_MAX, PICTURES_BYTES_MAX >> 20)
        if len(data) > PICTURE_BYTES_MAX:
            return "[%s: not saved, more than %d MiB]" % (what, PICTURE_BYTES_MAX >> 20)
        path = "%s/%d.%s" % (PICTURES_DIR, self.free_number(), EXTENSIONS[kind])
        with open(path, "xb") as file:
            file.write(data)
        self.saved += 1
        self.bytes += len(data)
        return "[%s: %s]" % (what, path)

    def free_number(self):
        """The next number after those of earlier kernels."""
        os.makedirs(PICTURES_DIR, exist_ok=True)
        taken = [int(name.split(".")[0]) for name in os.listdir(PICTURES_DIR)
                 if name.split(".")[0].isdigit()]
        return max(taken, default=0) + 1

    def describe(self, data):
        """The text of one MIME bundle."""
        lines = []
        for kind in PICTURES:
            if data.get(kind):
                try:
                    lines.append(self.save(kind, data[kind]))
                except (OSError, ValueError) as error:
                    lines.append("[%s: not saved: %s]" % (kind, error))
                break
        text = data.get("text/plain") or data.get("text/markdown") or data.get("text/latex")
        is_empty = not text or text.startswith("<IPython.core.display.")
        if is_empty and not lines and data.get("text/html"):
            lines.append(self.save("text/html", data["text/html"]))
        if is_empty and not lines:
            lines += ["[%s: not shown]" % kind for kind in data if kind != "text/plain"]
        if text and not (is_empty and lines):
            lines.insert(0, cut(text))
        return "\n".join(lines)


pictures = Pictures()
MAIN = {"__doc__": None, "__loader__": importlib.machinery.BuiltinImporter, "__package__": None,
        "__spec__": None}  # what the __main__ of an interactive Python has; multiprocessing asks for it
modules = sys.modules
dumps, loads = json.dumps, json.loads  # whatever a cell makes of the module
ourselves = sys.modules[__name__]  # which a shell's own __main__ takes the place of

# ---- IPython -------------------------------------------------------------------------------


def ipython_dir():
    """In memory; in a container whose /dev/shm cannot be written, among its temporary files."""
    try:
        os.makedirs("/dev/shm/.ipython/profile_default", exist_ok=True)
        return "/dev/shm/.ipython"
    except OSError:
        return os.path.join(os.environ.get("TMPDIR", "/tmp"), ".ipython")


def make_ipython():
    """An InteractiveShell without terminal, history or colours; ImportError where there is none."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    def is_told(formatter):
        """Of any type or object."""
        return any(getattr(formatter, told, True) for told in ("type_printers", "deferred_printers", "singleton_printers"))

    class Hook(DisplayHook):
        def compute_format_data(self, result):
            """What has no form but text is asked for that alone, as long as no cell has said that something has another."""
            formatter = self.shell.display_formatter
            text = formatter.formatters["text/plain"]
            others = (formatter.ipython_display_formatter, formatter.mimebundle_formatter, *formatter.formatters.values())
            if type(result) not in PLAIN or any(is_told(each) for each in others if each is not text):
                return formatter.format(result)
            shown = text(result)
            return {} if shown is None else {"text/plain": shown}, {}

        def write_format_data(self, format_dict, md_dict=None):
            text = pictures.describe(format_dict)
            sys.stdout.write(("\n" if "\n" in text else "") + text + "\n")

        def finish_displayhook(self):
            sys.stdout.flush()

    class Publisher(DisplayPublisher):
        def publish(self, data, *args, **more):
            sys.stdout.write(pictures.describe(data) + "\n")

        def clear_output(self, wait=False):
            pass

    class Inputs(HistoryManager):
        """Whose last inputs are plain attributes: eight times a cell, nobody is looked for who observes them."""
        _i00 = _i = _ii = _iii = ""

    class Shell(InteractiveShell):
        displayhook_class = Hook
        display_pub_class = Publisher
        system = InteractiveShell.system_raw  # the file needs no pipe, and no terminal

        def ask_exit(self):
            print("exit() does nothing here: the kernel stays. The argument restart starts a new one.")

        def init_history(self):
            super().init_history()
            self.history_manager.__class__ = Inputs

        def init_virtualenv(self):
            pass

        def enable_gui(self, gui=None):
            pass

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.ipython_dir = ipython_dir()
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.separate_in = ""
    Shell.displayhook_class.default_value = Hook
    Shell.display_pub_class.default_value = Publisher
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    with open(os.devnull, "w") as nowhere:
        said, sys.stderr = sys.stderr, nowhere
        try:
            return Shell.instance(config=config)
        finally:
            sys.stderr = said


class Cells:
    def end(self):
        """Before our own; all that they are ends with us."""


class IPythonCells(Cells):
    def __init__(self, shell):
        import IPython
        self.shell = shell
        self.module = shell.user_module
        self.name = "IPython " + IPython.__version__

    @property
    def count(self):
        return self.shell.execution_count - 1

    def run(self, code):
        result = self.shell.run_cell(code, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        if isinstance(error, KeyboardInterrupt):
            return "interrupted"
        return "error" if error else "ok"


# ---- plain Python --------------------------------------------------------------------------


class PlainCells(Cells):
    """A cell as a module's body whose last expression is shown; no magics, no await."""

    name = None

    def __init__(self):
        import ast
        import types
        self.ast = ast
        self.count = 0
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module

    def show(self, value):
        if value is not None:
            self.module._ = value
            sys.stdout.write("Out[%d]: %s\n" % (self.count, cut(repr(value))))

    def run(self, code):
        self.count += 1
        name = "<cell %d>" % self.count
        try:
            tree = self.ast.parse(code, name)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], self.ast.Expr) else None
            exec(compile(tree, name, "exec"), self.module.__dict__)
            if last:
                last = compile(self.ast.Expression(last.value), name, "eval")
                self.show(eval(last, self.module.__dict__))
        except KeyboardInterrupt:
            traceback.print_exc()
            return "interrupted"
        except SystemExit:
            print("exit() does nothing here: the kernel stays. The argument restart starts a new one.")
            return "error"
        except BaseException:
            self.print_error()
            return "error"
        return "ok"

    @staticmethod
    def print_error():
        """The traceback from the cell's own frame on."""
        kind, error, trace = sys.exc_info()
        while trace and not trace.tb_frame.f_code.co_filename.startswith("<cell "):
            trace = trace.tb_next
        sys.stderr.write("".join(traceback.format_exception(kind, error, trace)))


def make_cells():
    try:
        return IPythonCells(make_ipython())
    except ImportError:
        return PlainCells()


# ---- the channel ---------------------------------------------------------------------------


def no_input(prompt=""):
    raise EOFError("input() has nobody to ask: standard input is empty")


def text_stream(fd):
    """Unbuffered: what other writers of the file do comes before or after, never in between."""
    return io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), encoding="utf-8",
                            errors="backslashreplace", write_through=True)


class Driver:
    def __init__(self, channel, output, cells):
        self.channel, self.output, self.cells = channel, output, cells
        self.pid = os.getpid()
        os.register_at_fork(after_in_child=self.forget)

    def forget(self):
        """In whatever a cell forks: it has no channel."""
        if self.channel:
            self.channel.close()
        self.channel = None

    def send(self, message):
        data = dumps(message).encode()
        self.channel.sendall(struct.pack("<I", len(data)) + data)

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.channel.recv(size - len(data))
            if not more:
                self.cells.end()
                os._exit(0)
            data += more
        return data

    def restore(self):
        """Undoes what a cell may have done to what the next one needs."""
        for fd in (1, 2):
            os.dup2(self.output, fd)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        sys.stdout = sys.__stdout__ = text_stream(1)
        sys.stderr = sys.__stderr__ = text_stream(2)
        builtins.input = no_input
        modules["__main__"] = self.cells.module
        for name, value in MAIN.items():  # a reset of IPython's leaves none of them
            self.cells.module.__dict__.setdefault(name, value)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def run(self, code):
        """A SIGINT ends the cell and reaches nothing else."""
        status = "interrupted"
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            status = self.cells.run(code)
        except KeyboardInterrupt:
            pass
        except BaseException:
            status = "error"
            self.say_error()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return status

    @staticmethod
    def say_error():
        """Not even the traceback could be shown the usual way."""
        try:
            os.write(2, traceback.format_exc(limit=8)[-8000:].encode("utf-8", "replace"))
        except BaseException:
            pass

    def serve(self):
        while True:
            request = loads(self.read(struct.unpack("<I", self.read(4))[0]).decode())
            self.restore()
            pictures.seen = 0
            status = self.run(request["code"])
            if os.getpid() != self.pid:
                os._exit(0)
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except BaseException:
                    pass
            self.send({"id": request["id"], "status": status, "count": self.cells.count,
                       "images": pictures.seen})


def high(fd):
    """A close-on-exec duplicate out of the way of whoever counts descriptors."""
    import fcntl
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH)


def serve(channel_fd, cells, note=None):
    """Never returns. Descriptor 1 is the output."""
    channel = socket.socket(fileno=high(channel_fd))
    os.close(channel_fd)
    channel.setblocking(True)
    sys.path.insert(0, "")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    driver = Driver(channel, high(1), cells)
    driver.restore()
    ipython_dir()
    driver.send({"ready": True, "pid": driver.pid, "ipython": cells.name,
                 "python": sys.version.split()[0], "note": note})
    try:
        driver.serve()
    finally:
        os._exit(1)


def main():
    sys.path.pop(0)  # our own directory
    fd = int(sys.argv.pop())
    sys.argv[0] = ""
    cells = make_cells()
    gc.collect()
    gc.freeze()  # what is imported stays: no cell waits for a look at all of it
    serve(fd, cells)


if __name__ == "__main__":
    main()
