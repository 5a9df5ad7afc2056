"""`sluice up` with real processes: what dies is started again, and stopping stops everything."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE, BINARY = os.environ["SLUICE_SOURCE_DIR"], os.environ["SLUICE_BINARY_DIR"]
SLUICE = os.path.join(BINARY, "client", "sluice")
sys.path[:0] = [os.path.join(SOURCE, "client", "python"), os.path.join(SOURCE, "tests", "system")]

for program in ("broker/sluice-broker", "workers/sluice-worker"):
    if not os.path.exists(os.path.join(BINARY, program)):
        print(f"skipped: there is no {program}")
        sys.exit(77)
try:
    from sluice import Client, AuthRefused, Refused
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)
from harness import free_ports  # noqa: E402


class Up:
    """One `sluice up`; its output is read as it comes."""

    def __init__(self, folder, *options, program=SLUICE):
        self.port = free_ports(3)
        self.url = f"tcp://127.0.0.1:{self.port}"
        self.data = os.path.join(folder, "data")
        self.lines, self.news = [], threading.Condition()
        self.process = subprocess.Popen([program, "up", "--front", str(self.port), "--data", self.data, *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.rstrip())
                self.news.notify_all()
        with self.news:
            self.lines.append("(end)")
            self.news.notify_all()

    def await_line(self, words, seconds=60):
        with self.news:
            if not self.news.wait_for(lambda: any(words in line for line in self.lines), seconds):
                raise AssertionError(f"nobody said '{words}':\n" + "\n".join(self.lines))

    def children(self, *words):
        """Pids whose command line holds all the words and this one's address or data."""
        listed = subprocess.run(["ps", "--ppid", str(self.process.pid), "-o", "pid=,args="], capture_output=True,
                                text=True, check=False).stdout
        return [int(line.split()[0]) for line in listed.splitlines() if all(word in line for word in words)]

    def finish(self, seconds=30):
        status = self.process.wait(seconds)
        self.reader.join(seconds)
        self.process.stdout.close()
        return status


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class Case(unittest.TestCase):
    def start(self, *options):
        folder = tempfile.TemporaryDirectory(prefix="sluice-up-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        up = Up(folder.name, *options)
        self.addCleanup(self.end, up)
        return up

    def end(self, up):
        if up.process.poll() is None:
            up.process.send_signal(signal.SIGTERM)
            try:
                up.finish()
            except subprocess.TimeoutExpired:
                up.process.kill()
                raise

    def expect_gone(self, pids):
        end = time.monotonic() + 20
        while not all(gone(pid) for pid in pids) and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual([pid for pid in pids if not gone(pid)], [])

    def workers(self, client, count):
        """As the broker lists them, once there are so many."""
        end = time.monotonic() + 30
        while len(listed := client.status()["workers"]) != count:
            self.assertLess(time.monotonic(), end, listed)
            time.sleep(0.02)
        return listed

    def test_killed_workers_and_brokers_come_back_and_nothing_is_lost(self):
        up = self.start("--run", "2")
        up.await_line("up front=" + up.url)
        tasks = [{"task": f"t{k}", "kind": "noop"} for k in range(300)]
        with Client(up.url, timeout=60) as client:
            client.submit(tasks, stream="train", samples=2)
            seen = []
            for trajectory in client.trajectories("train", timeout=60):
                seen.append(trajectory)
                if len(seen) == 100:
                    os.kill(up.children("sluice-broker")[0], signal.SIGKILL)
                    up.await_line("the broker was killed by signal 9")
                    client.submit(tasks[:100], stream="train2", samples=2)
                if len(seen) == 200:
                    os.kill(up.children("sluice-worker run")[0], signal.SIGKILL)
                    up.await_line("was killed by signal 9")
                if len(seen) == 600:
                    break
            self.assertEqual([t.seq for t in seen], list(range(1, 601)))
            self.assertEqual(len({t.rollout for t in seen}), 600)
            self.assertEqual({(t.outcome, t.trainable) for t in seen}, {("ok", True)})
            self.assertEqual(len(list(client.trajectories("train2", timeout=60, until_idle=True))), 200)
            client.ack("train", 600)
        up.await_line("started the broker again")
        up.await_line("started the run worker")

    def test_ctrl_c_stops_everything_and_a_second_one_at_once(self):
        ready = tempfile.NamedTemporaryFile(mode="r", encoding="utf-8")
        self.addCleanup(ready.close)
        up = self.start("--ready-file", ready.name, "--grace", "120s")
        up.await_line("up front=")
        self.assertEqual(ready.read(), up.url + "\n")
        children = up.children()
        self.assertEqual(len(children), 4)
        stuck = up.children("sluice-worker eval")[0]
        os.kill(stuck, signal.SIGSTOP)
        up.process.send_signal(signal.SIGINT)
        up.await_line("stopping")
        up.process.send_signal(signal.SIGINT)
        self.assertEqual(up.finish(60), 0)  # half of the grace
        self.expect_gone(children)

    def with_broker(self, program, *options):
        """`sluice up` of a folder in which sluice-broker is this shell script."""
        folder = tempfile.TemporaryDirectory(prefix="sluice-up-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        shutil.copy(SLUICE, folder.name)  # programs beside it are the ones it starts
        for name, text in (("sluice-broker", program.replace("@", folder.name)),
                           ("sluice-worker", "trap 'exit 0' TERM; echo sluice-worker ready\n"
                            "while :; do sleep 0.05; done")):
            with open(os.path.join(folder.name, name), "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + text + "\n")
            os.chmod(file.name, 0o755)
        up = Up(folder.name, *options, program=os.path.join(folder.name, "sluice"))
        self.addCleanup(self.end, up)
        return up, folder.name

    def test_ctrl_c_while_engines_are_registered_stops_at_once(self):
        up, folder = self.with_broker("trap 'exit 0' TERM; until [ -e @/go ]; do sleep 0.02; done\n"
                                 "echo sluice-broker ready; while :; do sleep 0.05; done",
                                 "--engine", "http://127.0.0.1:9")
        with socket.socket() as front:  # takes connections and says nothing
            front.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            front.bind(("127.0.0.1", up.port))
            front.listen()
            front.settimeout(60)
            with open(os.path.join(folder, "go"), "w", encoding="utf-8"):
                pass
            asking = front.accept()[0]
            with asking:
                children = up.children()
                up.process.send_signal(signal.SIGINT)
                self.assertEqual(up.finish(20), 0)
        self.expect_gone(children)
        self.assertFalse(any("cannot register" in line for line in up.lines), "it waited for the silent broker")

    def test_stopping_does_not_wait_for_ever_for_a_stuck_worker(self):
        up = self.start()
        up.await_line("up front=")
        children = up.children()
        os.kill(up.children("sluice-worker init")[0], signal.SIGSTOP)
        up.process.send_signal(signal.SIGTERM)
        self.assertEqual(up.finish(30), 0)
        self.expect_gone(children)

    def test_a_worker_that_cannot_start_stops_everything(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-up-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        store = os.path.join(folder.name, "data", "store")
        os.mkdir(os.path.dirname(store))
        with open(store, "w", encoding="utf-8") as file:
            file.write("a file, not a directory")
        up = Up(folder.name)
        self.assertEqual(up.finish(60), 1)
        self.assertTrue(any(store in line for line in up.lines), up.lines)
        self.assertTrue(any("could not start everything" in line for line in up.lines), up.lines)

    def test_a_port_in_use_is_said_and_is_exit_one(self):
        up = self.start("--bind", "127.0.0.1", "--run", "0")
        up.await_line("up front=")
        other = subprocess.run([SLUICE, "up", "--front", str(up.port), "--data", up.data + "2"],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(other.returncode, 1)
        self.assertIn("in use", other.stderr)
        self.assertNotIn("up front=", other.stdout)

    def test_a_drained_worker_is_not_started_again(self):
        up = self.start("--run", "2")
        up.await_line("up front=")
        with Client(up.url, timeout=60) as client:
            drained = self.workers(client, 4)[0]["worker"]
            said = subprocess.run([SLUICE, "drain", drained, "--grace", "5s", "--wait", "--broker", up.url],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual((said.returncode, said.stdout), (0, "workers told to end: 1\ngone\n"), said.stderr)
            up.await_line("was drained; it is not started again")
            self.assertNotIn(drained, [worker["worker"] for worker in self.workers(client, 3)])
            with self.assertRaises(Refused) as caught:
                client.drain(worker=drained)
            self.assertEqual(caught.exception.reason, "unknown-worker")
        self.assertEqual(len(up.children()), 4)

    def test_each_stage_has_its_slots(self):
        up = self.start("--slots", "3", "--eval-slots", "7", "--grace", "1s")
        up.await_line("up front=")
        with Client(up.url, timeout=60) as client:
            slots = {worker["stage"]: worker["slots"] for worker in self.workers(client, 3)}
        self.assertEqual(slots, {"init": 3, "run": 3, "eval": 7})

    def test_a_key_for_another_broker_is_not_taken_for_its_own(self):
        os.environ["SLUICE_KEY"] = "/nowhere/alice.key"
        self.addCleanup(os.environ.pop, "SLUICE_KEY", None)
        up = self.start("--engine", "http://127.0.0.1:9", "--run", "0", "--eval", "0")
        del os.environ["SLUICE_KEY"]
        up.await_line("up front=" + up.url)

    def test_what_it_keeps_is_for_no_other_user(self):
        up = self.start()
        up.await_line("up front=")
        for name in (".", "store", "cache"):
            self.assertEqual(os.stat(os.path.join(up.data, name)).st_mode & 0o7, 0, name)

    def test_with_keys_it_makes_its_own_and_asks_everybody_for_one(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-up-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        keys = os.path.join(folder.name, "keys")
        for words in (("init", keys), ("add", "trainer", "alice", "--dir", keys)):
            subprocess.run([SLUICE, "keys", *words], check=True, capture_output=True, timeout=60)
        for _ in range(2):  # the second time its keys are there
            up = self.start("--keys", keys, "--engine", "http://127.0.0.1:9")
            up.await_line("up front=" + up.url)
            with Client(up.url, timeout=60, key=os.path.join(keys, "up-admin.key")) as admin:
                self.assertEqual([engine["url"] for engine in admin.status()["engines"]], ["http://127.0.0.1:9"])
                self.workers(admin, 3)
            with Client(up.url, timeout=60, key=os.path.join(keys, "alice.key")) as alice:
                alice.submit([{"task": "t", "kind": "noop"}], stream="train", samples=4)
                seen = list(alice.trajectories("train", timeout=60, until_idle=True))
                self.assertEqual([(t.seq, t.outcome) for t in seen], [(k, "ok") for k in range(1, 5)])
            with Client(up.url, timeout=1) as nobody, self.assertRaisesRegex(AuthRefused, "key"):
                nobody.status()
            up.process.send_signal(signal.SIGTERM)
            self.assertEqual(up.finish(), 0)
        for name in ("up-admin.key", "up-worker.key"):
            self.assertEqual(os.stat(os.path.join(keys, name)).st_mode & 0o777, 0o600)

    def test_plaintext_that_is_allowed_is_allowed_for_registering_engines_too(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing: asks which address would be used
                address = probe.getsockname()[0]
            except OSError:
                self.skipTest("this machine has no address but its own")
        if address.startswith("127."):
            self.skipTest("this machine has no address but its own")
        up = self.start("--bind", address, "--allow-plaintext", "--engine", "http://127.0.0.1:9", "--run", "0",
                        "--eval", "0")
        up.await_line(f"up front=tcp://{address}:{up.port}")

    def test_a_broker_that_cannot_go_on_is_not_started_again_and_its_exit_status_is_ours(self):
        for code, words in ((75, "its disk is full"), (76, "its ledger is damaged")):
            up, folder = self.with_broker("echo sluice-broker ready; echo $$ >>@/starts\n"
                                          f"until [ -e @/up ]; do sleep 0.05; done; exit {code}")
            up.await_line("up front=")
            with open(os.path.join(folder, "up"), "w", encoding="utf-8"):
                pass
            self.assertEqual(up.finish(30), code)
            self.assertTrue(any(words in line and "not started again" in line for line in up.lines), up.lines)
            with open(os.path.join(folder, "starts"), encoding="utf-8") as starts:
                self.assertEqual(len(starts.readlines()), 1)

    def test_a_damaged_ledger_is_said_and_ends_it(self):
        up = self.start()
        up.await_line("up front=")
        up.process.send_signal(signal.SIGTERM)
        self.assertEqual(up.finish(), 0)
        ledger, = [name for name in os.listdir(up.data) if name.endswith(".db")]
        with open(os.path.join(up.data, ledger), "r+b") as file:
            file.write(b"no database" * 400)
        again = subprocess.run([SLUICE, "up", "--front", str(up.port), "--data", up.data], capture_output=True,
                               text=True, timeout=60)
        self.assertEqual(again.returncode, 76, again.stderr)
        self.assertIn("its ledger is damaged; it is not started again", again.stderr)

    def test_hello_runs_against_it(self):
        up = self.start()
        up.await_line("up front=")
        said = subprocess.run([os.path.join(BINARY, "client", "hello"), '{"task": "hello", "kind": "noop"}'],
                              env=dict(os.environ, SLUICE_BROKER=up.url), capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(len(said.stdout.splitlines()), 2)
        self.assertIn("hello/0: ok, ", said.stdout)


class Sockets(Case):
    def refused(self, *options):
        done = subprocess.run([SLUICE, "up", *options], capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_a_directory_of_sockets_is_a_whole_path_and_a_short_one(self):
        self.assertIn("--ipc wants a whole path, not 'sockets'", self.refused("--ipc", "sockets"))
        self.assertIn("--ipc: a socket's path must be shorter: at most 64 characters, not 81", self.refused("--ipc", "/" + "x" * 80))


if __name__ == "__main__":
    unittest.main()
