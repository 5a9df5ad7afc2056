"""The fork server of kernels: IPython imported and a shell made, once for all sandboxes of an image.

    python3 /run/sluice/ipython_zygote.py SOCKET

Each message on SOCKET brings a channel, an output, the namespaces of a sandbox and, where its number says so, the
door to its cgroup: a fork of us enters that sandbox, gives up what any process there has given up, and becomes its driver (ipython_driver.py). Where the sandbox
has other files than those imported here, it says so instead, and the worker starts a Python of the sandbox's own.
"""
import ctypes
import gc
import importlib.machinery
import io
import json
import os
import resource
import signal
import site
import socket
import struct
import sys
import time

import ipython_driver as driver

HEAD, NUMBER = 32, 8  # of wire.h: a head, and where in it the first number is
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_PDEATHSIG, SECCOMP_FILTER = 4, 22, 24, 1, 2
LARGE, MADV_COLLAPSE = 2 << 20, 25
WARM = ("1/0", "print(1)", "x = [1]\nx", "def f(:", "None")

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


# ---- what was imported ---------------------------------------------------------------------


def stamp(path):
    """A line about what is at `path`, given in bytes."""
    try:
        it = os.stat(path)
        return b"%d %d %s\n" % (it.st_mtime_ns, it.st_size, path)
    except OSError:
        return b"- - %s\n" % path


def site_dirs():
    dirs = site.getsitepackages() + [site.getusersitepackages()]
    return dirs + [path for path in sys.path if path not in dirs]


def startup_files():
    """What a new Python would read when it starts: .pth files, and the modules site looks for."""
    found = []
    for path in site_dirs():
        try:
            found += [path + "/" + name for name in sorted(os.listdir(path)) if name.endswith(".pth")
                      or name in ("sitecustomize.py", "usercustomize.py")]
        except OSError:
            pass
    return found


def stamps():
    """Of all files that we imported or read, in one piece: what a fork looks at lies on few pages then, each of
    which it must copy because looking at an object counts it."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    files |= {sys.executable, os.path.realpath(sys.executable), *startup_files()}
    return b"".join(stamp(os.fsencode(path)) for path in files if path and not path.startswith("/run/sluice/"))


def homes():
    """Where each module that we imported was found, by its name."""
    files = {name: module.__file__ for name, module in sys.modules.items()
             if "." not in name and getattr(module, "__file__", None)}
    return {name: sys.intern(os.path.dirname(file.partition("/__init__.")[0])) for name, file in files.items()}


def search_path():
    """Where a new Python of the sandbox would look, in its order: what site adds is there or not."""
    sites = [site.getusersitepackages()] * bool(site.ENABLE_USER_SITE) + site.getsitepackages()
    first = next((i for i, path in enumerate(sys.path) if path in sites), len(sys.path))
    return (sys.path[:first] + [path for path in sites if os.path.isdir(path)]
            + [path for path in sys.path[first:] if path not in sites])


def names_in(path):
    try:
        return {name.partition(".")[0] for name in os.listdir(path)}
    except OSError:
        return ()


def elsewhere(imported):
    """(name, path) of what we imported and a new Python of the sandbox would see before it comes to where we found it."""
    found = set()
    for path in search_path():
        for name in names_in(path):
            if name not in imported or name in found:
                continue
            if imported[name] == path:
                found.add(name)
            else:
                yield name, path


def first_hidden(imported):
    """A name that we imported and that a new Python of the sandbox would find elsewhere, or None."""
    for name, path in elsewhere(imported):
        spec = importlib.machinery.PathFinder.find_spec(name, [path])
        if spec and spec.origin:  # else a directory of that name, which no import takes before a module
            return spec.origin
    return None


def listing(path):
    """The names in a directory, in one piece; None where there is none."""
    try:
        return b"\0".join(os.listdir(os.fsencode(path)))
    except OSError:
        return None


def listings(imported):
    """Of all directories where a new Python looks when it starts or imports: where all are the same, so is what it
    finds. None where that is not so: a name is in more than one of them, and what is behind it may be another thing."""
    if next(elsewhere(imported), None):
        return None
    return {path: listing(path) for path in dict.fromkeys([*search_path(), *site_dirs()])}


def first_change(then, started_with, imported, listed):
    """A file of the sandbox that is not what we imported, or None."""
    for line in io.BytesIO(then):
        path = line.split(b" ", 2)[2][:-1]
        if stamp(path) != line:
            return os.fsdecode(path)
    if listed and all(listing(path) == names for path, names in listed.items()):
        return None
    return next((path for path in startup_files() if path not in started_with), None) or first_hidden(imported)


# ---- the way in ----------------------------------------------------------------------------


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def enter(namespaces):
    """Leaves us in the sandbox, a child of its pid 1. A pid namespace holds for children only, and an orphan goes to
    the pid 1 of its parent's."""
    for namespace in namespaces:  # the user namespace first: it gives the right to enter the others
        check(libc.setns(namespace, 0), "setns")
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    for fork in libc.fork, os.fork:  # what Python does in a new process is done in the last one
        if check(fork(), "fork"):
            os._exit(0)
    os.setsid()
    os.chdir("/workspace")


def await_adoption():
    """The end of whom we are an orphan takes a while."""
    while os.getppid() != 1:
        time.sleep(0.0001)


def confine(limits, filter_code):
    """As launch.c and confine.c do to every process inside."""
    os.sched_setaffinity(0, os.sched_getaffinity(1))
    for what, most in limits:
        most = min(most, resource.getrlimit(what)[1] % (1 << 64))
        resource.setrlimit(what, (most, most))
    right = 0
    while libc.prctl(PR_CAPBSET_DROP, right, 0, 0, 0) == 0:
        right += 1
    check(libc.capset(struct.pack("<II", 0x20080522, 0), bytes(24)), "capset")
    program = Program(len(filter_code) // 8, filter_code)
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_FILTER, ctypes.byref(program), 0, 0), "seccomp")
    check(libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "dumpable")


def forget_paths():
    """What imports remember of directories: those of a sandbox hold other files."""
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()


def renew():
    """The module random seeds itself in every fork."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    sys.path_importer_cache.clear()
    sys.path[:] = search_path()


def take_grants():
    """The variables of the sandbox's network grants (listener.h), which its other processes are started with."""
    try:
        with open("/run/sluice/environ") as file:
            os.environ.update(line.split("=", 1) for line in file.read().split("\0") if line)
    except FileNotFoundError:
        pass


def become_kernel(server, message, fds):
    if struct.unpack_from("q", message, NUMBER)[0]:
        os.write(fds[-1], b"0")
        os.close(fds.pop())
    channel, output, *namespaces = fds
    enter(namespaces)
    server.close()
    os.dup2(output, 1)
    os.dup2(output, 2)
    for fd in (output, *namespaces):
        os.close(fd)
    confine(json.loads(message[HEAD:].decode()), FILTER)
    changed = first_change(*IMPORTED)
    if changed:
        raise OSError("%s is not what was imported" % changed)
    take_grants()
    renew()
    await_adoption()
    driver.serve(channel, CELLS)


# ---- its life ------------------------------------------------------------------------------


def warm(cells):
    """What the first cells would do once is done now."""
    streams = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = io.StringIO()
    try:
        if cells.name:
            for code in WARM:
                cells.shell.run_cell(code, store_history=False)
            cells.shell.reset(new_session=True)
    finally:
        sys.stdout, sys.stderr = streams
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)


def complain(channel, error):
    data = json.dumps({"error": str(error)[:500]}).encode()
    socket.socket(fileno=channel).sendall(struct.pack("<I", len(data)) + data)


def serve(server):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, extra, _, _ = server.recvmsg(65536, socket.CMSG_SPACE(16 * 4))
        if not message:
            return
        fds = [fd for _, _, data in extra for fd in struct.unpack("%di" % (len(data) // 4), data)]
        if len(fds) > 2 and libc.fork() == 0:
            try:
                become_kernel(server, message, fds)
            except BaseException as error:
                complain(fds[0], error)
            finally:
                os._exit(1)
        for fd in fds:
            os.close(fd)


def gather():
    """Moves what is there into large pages: a fork takes as long as there are pages, and each kernel takes three."""
    libc.madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    with open("/proc/self/maps") as maps:
        ranges = [line.split() for line in maps]
    for place, rights, _, _, _, *name in ranges:
        begin, end = (int(number, 16) for number in place.split("-"))
        if rights == "rw-p" and name in ([], ["[heap]"]) and end - begin >= LARGE:
            libc.madvise(begin, end - begin, MADV_COLLAPSE)  # Linux 6.1; where it cannot, nothing is different


if __name__ == "__main__":
    sys.path.pop(0)
    number = int(sys.argv.pop())
    sys.argv[0] = ""
    with open("/run/sluice/filter", "rb") as file:
        FILTER = file.read()
    CELLS = driver.make_cells()
    warm(CELLS)
    IMPORTED = stamps(), startup_files(), homes(), listings(homes())
    forget_paths()
    gc.collect()
    gc.freeze()
    gather()
    requests = socket.socket(fileno=driver.high(number))
    os.close(number)
    serve(requests)
