"""A service of one's own: `sluice up` in a private directory, for as long as its client is open."""

from __future__ import annotations

import fcntl
import glob
import importlib.metadata
import os
import re
import shutil
import signal
import stat
import subprocess
import sysconfig
import tempfile
import time
import weakref
from typing import Any, List, Optional, Sequence, Union

from .arguments import Path, optional_number, path, refuse, seconds
from .client import Client
from .errors import ServiceError, warn

NAME = "sluice-local-"
SOCKETS_MAX = 64   # bytes of the path of a directory of Unix sockets
STOP = 30.0        # seconds for jobs to be given back and for the ledger to be closed
ABANDONED = 60.0   # seconds after the last line of a service whose Python is gone


def find_program(name: str = "sluice") -> str:
    """This installation's program, else the one on PATH."""
    places: List[str] = []
    try:
        for file in importlib.metadata.files("sluice-rollouts") or ():
            if file.name == name and "bin" in file.parts:
                places.append(str(file.locate()))
    except importlib.metadata.PackageNotFoundError:
        pass
    package = os.path.dirname(os.path.abspath(__file__))
    places += [os.path.join(os.path.dirname(package), "bin", name), os.path.join(sysconfig.get_path("scripts"), name),
               shutil.which(name) or ""]
    for place in places:
        if os.path.isfile(place):
            return os.path.normpath(place)
    raise ServiceError(f"there is no program {name!r}: this is the client alone. Install the wheel that carries the programs, "
                       "or put the folder of the programs on PATH (docs/install.md)")


def remove(folder: str) -> None:
    """Whatever the modes of its directories are."""
    def again(function: Any, name: str, _: Any) -> None:
        try:
            os.chmod(os.path.dirname(name), stat.S_IRWXU)
            os.chmod(name, stat.S_IRWXU)
            function(name)
        except OSError:
            pass
    shutil.rmtree(folder, onerror=again)


def lock(folder: str) -> Optional[int]:
    """A descriptor, or None: it is another's, who lives."""
    held = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


def sweep(place: str) -> None:
    """Removes what services left whose Python was killed; theirs stopped by themselves."""
    for folder in glob.glob(os.path.join(glob.escape(place), NAME + "*")):
        try:
            if os.lstat(folder).st_uid != os.getuid() or os.path.islink(folder):
                continue
            if time.time() - os.stat(os.path.join(folder, "log")).st_mtime < ABANDONED:
                continue
            held = lock(folder)
        except OSError:
            continue
        if held is not None:
            remove(folder)
            os.close(held)


def make_directory() -> str:
    """Below TMPDIR, or /tmp where that is too long for the path of a socket."""
    for place in (tempfile.gettempdir(), "/tmp"):
        if len(os.fsencode(place)) + len(NAME) + len("/12345678/sockets") <= SOCKETS_MAX:
            break
    try:
        sweep(place)
        return tempfile.mkdtemp(prefix=NAME, dir=place)
    except OSError as error:
        raise ServiceError(f"no directory for a service can be made in {place}: {error.strerror}; TMPDIR=DIR names "
                           "another place") from error


class Service:
    """The process, and the directory that it has. Stopped by its client's end, by this process's, or by stop()."""

    def __init__(self, arguments: Sequence[str], data: Optional[str], wait: float) -> None:
        program = find_program()
        self.pid = os.getpid()
        self.directory = make_directory()
        self.log = os.path.join(self.directory, "log")
        self.url = f"ipc://{self.directory}/sockets/front"
        self._lock = lock(self.directory)
        self._ready = os.path.join(self.directory, "ready")
        self.process: Optional[subprocess.Popen[bytes]] = None
        try:
            self._start([program, "up", "--ipc", os.path.join(self.directory, "sockets"), "--data",
                         data or os.path.join(self.directory, "data"), "--with-parent", "--ready-file", self._ready, *arguments])
            self._await_ready(wait)
        except BaseException:
            self.stop()
            raise

    def _start(self, command: Sequence[str]) -> None:
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("SLUICE_KEY", "SLUICE_BROKER", "SLUICE_STORE")}
        try:
            with open(self.log, "wb") as log:
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                                start_new_session=True)
        except OSError as error:
            raise ServiceError(f"{command[0]} cannot be started: {error.strerror}. Is it a program for this machine, and may "
                               "programs be executed where it is (chmod +x, a file system mounted noexec)?") from error

    def _await_ready(self, wait: float) -> None:
        assert self.process
        end = time.monotonic() + wait
        while not os.path.exists(self._ready) or not os.path.getsize(self._ready):
            if self.process.poll() is not None:
                raise ServiceError(f"the service did not start: {self._sentence()}")
            if time.monotonic() >= end:
                raise ServiceError(f"the service was not ready within {wait:g} s: {self._sentence()}")
            time.sleep(0.01)

    def _sentence(self) -> str:
        """What its programs said, without what only says that others stop then."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            lines = log.read().splitlines()[-200:]
        said = [re.sub(r" \(see sluice up --help\)$", "", line) for line in lines if re.match(r"sluice[-a-z]*: ", line)]
        said = [line for line in dict.fromkeys(said) if not line.endswith("stopping")]
        return "; ".join(said[:4] or lines[-3:]) or "it said nothing"

    def stop(self) -> None:
        """Idempotent; in a forked child, whose it is not, nothing."""
        if os.getpid() != self.pid:
            return
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        remove(self.directory)
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None


class LocalClient(Client):
    """A Client whose close() stops the service, too; so do its end and this process's, however they come."""

    def __init__(self, service: Service) -> None:
        self._stop = weakref.finalize(self, service.stop)
        self._service = service
        super().__init__(service.url)

    @property
    def log(self) -> str:
        """The path of a file with what the service says."""
        return self._service.log

    def close(self) -> None:
        super().close()
        self._stop()


def warn_of_sandboxes(client: Client) -> None:
    for worker in client.status()["workers"]:
        if worker.get("sandbox", "none") == "none":
            warn(f"this machine makes no sandboxes, and tasks that need one will end as infra: "
                 f"{worker.get('sandbox_why', '')}; `sluice doctor` names the cure")
            return


def local(engine: Union[str, Sequence[str], None] = None, data: Optional[Path] = None, slots: Optional[int] = None,
          images: Sequence[Path] = (), options: Sequence[str] = (), wait: float = 60.0,
          task_dirs: Sequence[Path] = ()) -> LocalClient:
    """Starts a service of your own on this machine and returns its Client, whose end stops it: `with sluice.local() as client:`.

    engine: an engine's base URL, or several. data: a directory that keeps ledger and layers, so that what was accepted
    goes on when the service is next started with it; None: a private one, removed at the end. slots: how many jobs each
    worker does at once. images: directories whose images tasks may name. task_dirs: directories that
    tasks may take files from (files[].source). options: of `sluice up`, such as
    ["--run", "2"]. wait: seconds for all to be ready.

    Nobody else can reach it: its sockets are in a directory that only you can enter. client.url is for other clients in
    other processes, of yours; client.log is a file with what it says. It ends with close(), with the client that is
    dropped, and with this process, even by kill -9; a forked child's end does not stop it.

    Raises ServiceError with the programs' own sentence if it cannot start. Warns if this machine allows no sandboxes.
    """
    arguments: List[str] = []
    for url in [engine] if isinstance(engine, str) else engine or ():
        if not isinstance(url, str) or not url:
            raise refuse("engine", "an engine's base URL, or a list of them", url)
        arguments += ["--engine", url]
    if isinstance(images, (str, os.PathLike)):
        images = [images]
    for image in images:
        arguments += ["--images", os.path.abspath(path("images", image))]
    if isinstance(task_dirs, (str, os.PathLike)):
        task_dirs = [task_dirs]
    for directory in task_dirs:
        arguments += ["--task-dir", os.path.abspath(path("task_dirs", directory))]
    if optional_number("slots", slots, 1, 32768) is not None:
        arguments += ["--slots", str(slots)]
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise refuse("options", 'a list of words, such as ["--run", "2"]', options)
    folder = None if data is None else os.path.abspath(path("data", data))
    client = LocalClient(Service([*arguments, *options], folder, seconds("wait", wait, 0)))
    try:
        warn_of_sandboxes(client)
    except BaseException:
        client.close()
        raise
    return client
