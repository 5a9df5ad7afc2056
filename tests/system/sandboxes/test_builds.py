"""Dockerfiles across processes: built once, whoever waits; failed, killed or without end; and on images of other kinds."""
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, sandbox  # noqa: E402
from harness import command_of, wait_until  # noqa: E402
from test_images import make_layer, make_layout, make_root, make_sif, make_squashfs  # noqa: E402

DEBIAN = [f"/usr/bin/{name}" for name in "apt-get apt-config dpkg dpkg-deb dpkg-split dpkg-query tar rm chown chmod stat grep cmp diff install touch mv cp".split()]
DEBIAN += [f"/usr/sbin/{name}" for name in ("groupadd", "useradd", "ldconfig", "start-stop-daemon")]
PROGRAMS = [f"/bin/{name}" for name in "bash cat ls head od tr sleep setsid id mkdir".split()]


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


class Counter:
    """What says a line to it, by the grant "count", is counted, and waits for its answer where it is held."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.held, self.lines, self.waiting = False, [], []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
                line = peer.makefile("r").readline().strip()
            except OSError:
                return
            self.waiting.append(peer)
            self.lines.append(line)
            if not self.held:
                self.release()

    def release(self):
        self.held = False
        while self.waiting:
            peer = self.waiting.pop()
            try:
                peer.sendall(b"go\n")
            except OSError:
                pass  # killed meanwhile
            peer.close()

    def tell(self, words):
        """For bash; fails where it gets no answer."""
        return f'exec 3<>/dev/tcp/127.0.0.1/{self.port} && echo "{words}" >&3 && read -r answer <&3 && exec 3<&-'

    def said(self, start):
        return [line for line in self.lines if line.startswith(start)]

    def wait_said(self, start, count):
        wait_until(lambda: len(self.said(start)) >= count, 60, f"{count} of {start}: {self.lines}")


class Builds(Case):
    def setUp(self):
        self.there = tempfile.mkdtemp(prefix="sluice-builds-")
        self.addCleanup(shutil.rmtree, self.there)
        self.root = make_root(os.path.join(self.there, "plain"), "packed", PROGRAMS)
        os.symlink("bash", os.path.join(self.root, "bin", "sh"))
        self.counter = Counter()
        self.addCleanup(self.counter.listener.close)

    def make_fleet(self, init=1):
        options = ("--images", self.there, "--task-dir", self.there, "--grant", f"count=tcp:127.0.0.1:{self.counter.port}")
        return self.enter(Fleet(workers={"init": init, "run": 1, "eval": 1}, slots=1, worker_options=options))

    def task(self, number, dockerfile, command="true", samples=1, **build):
        build = {"dockerfile": dockerfile, "network": ["count"], **build}
        return sandbox(number, command, build=build, samples=samples)

    def run_all(self, fleet, tasks, count):
        client = self.client(fleet)
        client.submit(tasks, stream="s")
        return self.read(client, "s", count, seconds=120)

    def assert_gone(self, fleet, mark):
        """No process of it, nothing mounted, and nothing in the store of builds but locks."""
        wait_until(lambda: not any(mark in word for pid in os.listdir("/proc") if pid.isdigit() for word in command_of(pid)),
                   30, "its processes are gone")
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            self.assertEqual([line for line in mounts if fleet.root in line], [])
        made = [name for _, _, names in os.walk(os.path.join(fleet.store, "builds")) for name in names]
        self.assertEqual([name for name in made if not name.endswith(".lock")], [])

    # ---- once

    def test_two_workers_of_one_store_build_once_what_two_tasks_begin_with(self):
        stamp = 'RUN head -c16 /dev/urandom | od -An -tx1 | tr -d " " > /stamp && ' + self.counter.tell("built $(cat /stamp)")
        tasks = [dict(self.task(k, f"FROM plain\n{stamp}\nRUN echo {k} > /own\n"), eval={
            "kind": "command", "network": ["count"], "command": self.counter.tell("judged $(cat /stamp)") + f" && [ $(cat /own) = {k} ]"})
            for k in (1, 2)]
        self.counter.held = True
        fleet = self.make_fleet(init=2)
        client = self.client(fleet)
        client.submit(tasks, stream="s")
        self.counter.wait_said("built", 1)
        self.wait_leased(fleet, "init", 2)
        self.counter.release()
        self.assert_all(self.read(client, "s", 2, seconds=120))
        built, = self.counter.said("built")
        self.assertEqual([line.split()[1] for line in self.counter.said("judged")], [built.split()[1]] * 2)
        self.assertEqual(len(built.split()[1]), 32)

    def test_a_run_that_fails_is_carried_out_once_for_a_group(self):
        failing = f"FROM plain\n\nRUN {self.counter.tell('tried')} && echo why >&2 && exit 3\n"
        for t in self.run_all(self.make_fleet(init=2), [self.task(1, failing, samples=8)], 8):
            self.assertEqual((t.outcome, t.reward, t.trainable), ("task", None, False), t)
            self.assertIn("the Dockerfile, line 3: RUN exited with 3: why", t.detail)
        self.assertEqual(self.counter.lines, ["tried"])

    # ---- what ends it

    def test_a_worker_killed_in_a_run_leaves_nothing_and_the_next_builds_it(self):
        mark = f"9{self.counter.port}"
        self.counter.held = True
        fleet = self.make_fleet()
        cache = os.path.join(fleet.root, "cache-init-1")
        client = self.client(fleet)
        context = os.path.join(self.there, "context")
        os.makedirs(context)
        shutil.copy("/bin/cat", context)
        client.submit([self.task(1, f"FROM plain\nRUN echo half > /half; setsid sleep {mark} & {self.counter.tell('built')}\nCOPY cat /\n",
                                 'test "$(/cat /half)" = half', context=context)], stream="s")
        self.counter.wait_said("built", 1)
        fleet["init-1"].kill()
        self.assert_gone(fleet, mark)
        self.assertEqual(self.counter.waiting[0].recv(1), b"")  # its network is gone with it
        copied, = (os.path.join(cache, name) for name in os.listdir(cache) if ".tmp." in name)
        os.utime(copied, (1e9, 1e9))  # what it had copied of the context goes once it has been idle for long
        fleet["init-1"].start()
        self.counter.wait_said("built", 2)
        self.counter.release()
        self.assert_all(self.read(client, "s", 1, seconds=120))
        self.assertEqual(len(self.counter.lines), 2)
        fleet["init-1"].end()
        left = {name for name in os.listdir(cache) if len(name) != 64}  # but for layers, unpacked
        self.assertLessEqual(left, {".mount", ".trim", ".usage"})

    def test_a_run_that_never_ends_is_ended_with_all_it_started(self):
        mark = f"8{self.counter.port}"
        fleet = self.make_fleet()
        endless = f"FROM plain\nRUN setsid sleep {mark} & trap '' TERM INT HUP; {self.counter.tell('built')}; while :; do sleep {mark}; done\n"
        t, = self.run_all(fleet, [self.task(1, endless, timeout_s=2)], 1)
        self.assertEqual((t.outcome, t.reward), ("task", None), t)
        self.assertIn("line 2: RUN was stopped after", t.detail)
        self.assertIn("(build.timeout_s)", t.detail)
        self.assertEqual(self.counter.lines, ["built"])
        self.assert_gone(fleet, mark)

    # ---- images of other kinds

    def test_what_a_sif_and_an_oci_layout_say_of_themselves_holds_in_run_and_for_the_agent(self):
        config = {"Env": ["KIND=oci", "PATH=/tools:/bin"], "WorkingDir": "/app", "User": "me"}
        users = b"root:x:0:0::/root:/bin/sh\nme:x:1001:1002::/home/me:/bin/sh\n"
        os.makedirs(os.path.join(self.root, "app"))
        with open(os.path.join(self.root, "etc", "passwd"), "wb") as file:
            file.write(users)
        make_layout(os.path.join(self.there, "oci"), [make_layer(lambda tar: tar.add(self.root, "."))], said=config)
        os.makedirs(os.path.join(self.root, ".singularity.d", "env"))
        with open(os.path.join(self.root, ".singularity.d", "env", "10-docker2singularity.sh"), "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexport KIND="${KIND:-"sif"}"\nexport PATH="/tools:/bin"\n')
        make_sif(make_squashfs(self.root, os.path.join(self.there, "it.squashfs")), os.path.join(self.there, "sif.sif"))
        said = 'echo "$KIND $PATH $PWD $(id -u):$(id -g)"'
        wanted = {"oci": "oci /tools:/bin /app 1001:1002", "sif": "sif /tools:/bin / 0:0"}
        tasks = []
        for number, (kind, words) in enumerate(wanted.items()):
            build = f"FROM {kind}\nRUN {said} > /tmp/run && echo kept > /tmp/kept\nENV MORE=$KIND\n"
            tasks.append(dict(self.task(number, build, f'test "$(cat /tmp/run /tmp/agent)" = "$(printf \'{words}\\n{words} {kind}\')"'),
                              agent={"kind": "replay", "script": [{"tool": "bash", "arguments": {
                                  "command": f'echo "$({said}) $MORE" > /tmp/agent'}}]}))
        self.assert_all(self.run_all(self.make_fleet(), tasks, 2))

    # ---- users and packages

    def make_debian(self):
        """The tools of Debian, of this machine, where nothing is installed yet."""
        methods = [f"/usr/lib/apt/methods/{name}" for name in ("file", "copy", "store")]
        programs = PROGRAMS + DEBIAN + methods
        missing = [program for program in programs if not os.path.exists(program)]
        if missing:
            self.skipTest(f"no Debian to copy: {', '.join(missing)}")
        root = make_root(os.path.join(self.there, "debian"), "debian", programs)
        os.symlink("bash", os.path.join(root, "bin", "sh"))
        shutil.copytree("/usr/share/dpkg", os.path.join(root, "usr/share/dpkg"))
        for name in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log",
                     "etc/apt/apt.conf.d", "etc/apt/preferences.d", "home", "root", "tmp"):
            os.makedirs(os.path.join(root, name), exist_ok=True)
        for name, text in {"passwd": "root:x:0:0::/root:/bin/bash\n", "group": "root:x:0:\n", "shadow": "root:*:1::::::\n", "gshadow": "root:*::\n",
                           "apt/sources.list": "deb [trusted=yes] file:/repo ./\n"}.items():
            write(os.path.join(root, "etc", name), text)
        write(os.path.join(root, "var/lib/dpkg/status"), "")

    def make_repository(self, into):
        """Of one package, which adds a user and gives it a file, as services do."""
        package = os.path.join(self.there, "package")
        control = "Package: tiny\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: a test\n"
        write(os.path.join(package, "DEBIAN/control"), control)
        write(os.path.join(package, "DEBIAN/conffiles"), "/etc/tiny.conf\n")
        write(os.path.join(package, "DEBIAN/postinst"), "#!/bin/sh\nset -e\ngroupadd -r tiny\nuseradd -r -g tiny -d /var/lib/tiny -m tiny\n"
              "chown -R tiny:tiny /var/lib/tiny\nchmod 2750 /var/lib/tiny\n", 0o755)
        write(os.path.join(package, "etc/tiny.conf"), "configured\n")
        write(os.path.join(package, "usr/bin/tiny"), "#!/bin/sh\nread -r text < /etc/tiny.conf; echo $text\n", 0o755)
        os.makedirs(into)
        deb = os.path.join(into, "tiny.deb")
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", package, deb], check=True, stdout=subprocess.DEVNULL)
        with open(deb, "rb") as file:
            data = file.read()
        write(os.path.join(into, "Packages"), f"{control}Filename: ./tiny.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n")

    def test_users_owners_and_packages_are_as_a_dockerfile_has_them(self):
        self.make_debian()
        context = os.path.join(self.there, "context")
        self.make_repository(os.path.join(context, "repo"))
        dockerfile = ("FROM debian\nRUN groupadd -g 2000 crew && useradd -m -u 2001 -g crew -s /bin/bash me\n"
                      "RUN chown -R me:crew /home/me && install -o me -g crew -m 0755 /bin/cat /usr/bin/mine && chmod 4755 /usr/bin/mine\n"
                      "COPY --chown=me:crew repo /repo\nRUN apt-get update && apt-get install -y --no-install-recommends tiny && dpkg -s tiny > /installed\n"
                      "USER me\nWORKDIR /home/me\nRUN id > who && tiny > said\n")
        command = ("set -ex; grep 'uid=2001(me) gid=2000(crew)' who; grep configured said; grep 'Status: install ok installed' /installed; "
                   "grep ^tiny: /etc/passwd; test $(stat -c %a /usr/bin/mine) = 755; test -d /var/lib/tiny; tiny > again; cmp said again; "
                   "test $(id -un):$(id -gn):$HOME:$PWD = me:crew:/home/me:/home/me")
        t, = self.run_all(self.make_fleet(), [self.task(1, dockerfile, command, context=context)], 1)
        self.assertEqual((t.outcome, t.reward), ("ok", 1.0), t.detail)


if __name__ == "__main__":
    unittest.main(verbosity=2)
