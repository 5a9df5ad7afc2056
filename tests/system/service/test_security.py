"""A whole service under CURVE, from the outside: who gets in, who may do what, and hostile connections."""
import json
import os
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import BROKER, SLUICE, SOURCE, WORKER, free_ports, memory_bound, wait_until  # noqa: E402

sys.path[:0] = [os.path.join(SOURCE, "client", "python"), os.path.join(SOURCE, "tests", "chaos")]
try:
    import hostile
    import msgpack
    import sluice
    import zmq
except ImportError:
    print("no pyzmq")
    sys.exit(77)

NOOP = '{"task":"add","kind":"noop"}\n'


class Place:
    """A certificate directory, a broker and what else a test starts; all ends with it."""

    def __init__(self, keys=True, options=()):
        self.root = tempfile.mkdtemp(prefix="sluice-security-")
        self.keys = os.path.join(self.root, "keys")
        self.data = os.path.join(self.root, "data")
        self.port = free_ports(3)
        self.url = f"tcp://127.0.0.1:{self.port}"
        self.processes, self.logs = [], {}
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
        if keys:
            self.sluice("keys", "init", self.keys)
        self.broker = self.start("broker", [BROKER, "--data", self.data, "--front", str(self.port), "--sink",
                                            str(self.port + 1), "--feed", str(self.port + 2),
                                            *(["--keys", self.keys] if keys else []), *options])
        wait_until(lambda: "broker ready" in self.log("broker"), 30, "broker ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(20)
            finally:
                process.kill()
        shutil.rmtree(self.root, ignore_errors=True)

    def start(self, name, arguments):
        self.logs[name] = os.path.join(self.root, f"{name}.log")
        with open(self.logs[name], "wb") as log:
            process = subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                       env=self.environment)
        self.processes.append(process)
        return process

    def log(self, name):
        with open(self.logs[name], encoding="utf-8", errors="replace") as text:
            return text.read()

    def sluice(self, *arguments, check=True):
        done = subprocess.run([SLUICE, *arguments], env=self.environment, capture_output=True, text=True,
                              timeout=60, check=False)
        if check and done.returncode:
            raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def add(self, role, name):
        self.sluice("keys", "add", role, name, "--dir", self.keys)
        return os.path.join(self.keys, f"{name}.key")

    def ask(self, key, *arguments):
        key_words = ["--key", key] if key else []
        return self.sluice(*arguments, "--broker", self.url, *key_words, check=False)

    def start_workers(self, key):
        for stage in ("init", "run", "eval"):
            self.start(stage, [WORKER, stage, "--broker", self.url, "--data", self.data, "--key", key])

    def tasks(self):
        path = os.path.join(self.root, "tasks.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(NOOP)
        return path


def rewrite(source, target, **lines):
    """A key file with other lines."""
    with open(source, encoding="ascii") as file:
        words = dict(line.split(" ", 1) for line in file.read().splitlines())
    words.update(lines)
    with open(target, "w", encoding="ascii") as file:
        file.write("".join(f"{word} {value}\n" for word, value in words.items()))
    os.chmod(target, 0o600)
    return target


def line_of(path, word):
    with open(path, encoding="ascii") as file:
        return next(line.split(" ", 1)[1] for line in file.read().splitlines() if line.startswith(word + " "))


class Keys(unittest.TestCase):
    def test_a_rollout_under_curve_and_each_role_keeps_to_its_own(self):
        with Place() as place:
            alice, bob = place.add("trainer", "alice"), place.add("trainer", "bob")
            root, node = place.add("admin", "root"), place.add("worker", "node7")
            place.start_workers(node)
            done = place.ask(alice, "submit", place.tasks(), "--stream", "ali", "--samples", "4", "--wait")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("4 of 4", done.stdout + done.stderr)
            with sluice.Client(place.url, key=alice) as client:
                heard = list(client.trajectories("ali", from_seq=1, until_idle=True))
            self.assertEqual([t.seq for t in heard], [1, 2, 3, 4])
            self.assertIn("only an admin", place.ask(alice, "engine", "add", "http://127.0.0.1:1").stderr)
            self.assertEqual(place.ask(root, "engine", "add", "http://127.0.0.1:1").returncode, 0)
            with sluice.Client(place.url, key=bob, timeout=5) as client:
                for attempt in (lambda: client.ack("ali", 4), lambda: client.cancel(stream="ali"),
                                lambda: next(client.trajectories("ali")), lambda: client.get(heard[0].rollout)):
                    with self.assertRaises(sluice.Refused) as refused:
                        attempt()
                    self.assertEqual(refused.exception.reason, "not-allowed")
            with sluice.Client(place.url, key=root) as client:
                self.assertEqual(client.get(heard[0].rollout).seq, heard[0].seq)
            self.assertIn("name a trainer's or an admin's key", place.ask(node, "status").stderr)

    def test_a_stream_made_before_keys_is_handed_over_as_the_page_says(self):
        with open(os.path.join(SOURCE, "docs", "operations.md"), encoding="utf-8") as page:
            words = next(line.split('"')[1] for line in page if "UPDATE streams SET owner" in line)
        with Place(keys=False) as place:
            def again():
                place.broker.terminate()
                place.broker.wait(20)
                place.broker = place.start("broker", [BROKER, "--data", place.data, "--front", str(place.port), "--sink",
                                                      str(place.port + 1), "--feed", str(place.port + 2), "--keys", place.keys])
                wait_until(lambda: "broker ready" in place.log("broker"), 30, "broker ready")

            with sluice.Client(place.url) as client:
                client.submit([json.loads(NOOP)], stream="train")
            place.sluice("keys", "init", place.keys)
            alice = place.add("trainer", "alice")
            again()
            with sluice.Client(place.url, key=alice) as client, self.assertRaises(sluice.NotAllowed):
                client.cancel(stream="train")
            place.broker.terminate()
            place.broker.wait(20)
            ledger = sqlite3.connect(os.path.join(place.data, "ledger.db"))
            ledger.execute(words)
            ledger.commit()
            ledger.close()
            again()
            with sluice.Client(place.url, key=alice) as client:
                self.assertEqual(client.cancel(stream="train"), 1)

    def test_who_is_not_let_in_hears_why_within_its_timeout_and_is_logged(self):
        with Place() as place:
            alice = place.add("trainer", "alice")
            other = os.path.join(place.root, "other")
            place.sluice("keys", "init", other)
            place.sluice("keys", "add", "trainer", "mallory", "--dir", other)
            mallory = os.path.join(other, "mallory.key")
            stranger = rewrite(mallory, os.path.join(place.root, "stranger"), broker=line_of(alice, "broker"))
            cases = ((None, " a key"), (stranger, "refuses the key of mallory"),
                     (mallory, "broke off the handshake"))
            for key, words in cases:
                start = time.monotonic()
                done = place.ask(key, "status")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(words, done.stderr)
                self.assertLess(time.monotonic() - start, 8)
                with self.assertRaises(sluice.AuthRefused) as why:
                    with sluice.Client(place.url, key=key, timeout=2) as client:
                        client.status()
                self.assertIn(words, str(why.exception))
            self.assertIn(f'key="{line_of(stranger, "public")}"', place.log("broker"))
            os.chmod(alice, 0o644)
            self.assertIn("chmod 600", place.ask(alice, "status").stderr)

    def test_a_key_for_a_broker_without_keys_is_told_so(self):
        with Place(keys=False) as place:
            place.sluice("keys", "init", place.keys)
            alice, node = place.add("trainer", "alice"), place.add("worker", "node7")
            self.assertIn("speaks plaintext", place.ask(alice, "status").stderr)
            place.start_workers(node)
            wait_until(lambda: "speaks plaintext" in place.log("run"), 20, "the worker says so")

    def test_a_removed_key_is_refused_on_an_open_connection_and_a_new_one_comes_in(self):
        with Place() as place:
            alice = place.add("trainer", "alice")
            with sluice.Client(place.url, key=alice, timeout=3) as client:
                client.status()
                os.rename(alice, alice + ".kept")
                place.sluice("keys", "remove", "alice", "--dir", place.keys)

                def refused():
                    try:
                        client.status()
                    except sluice.Refused as why:
                        return why.reason == "not-allowed"
                    return False
                wait_until(refused, 5, "the open connection is refused")
            self.assertIn("refuses the key", place.ask(alice + ".kept", "status").stderr)
            again = place.add("trainer", "alice")
            self.assertEqual(place.ask(again, "status").returncode in (0, 4, 5), True)

    def test_a_worker_that_was_refused_comes_in_once_its_key_is_known(self):
        with Place() as place:
            root, node = place.add("admin", "root"), place.add("worker", "node7")
            cert = os.path.join(place.keys, "trusted", "worker", "node7.pub")
            os.rename(cert, cert + ".not-yet")
            place.start_workers(node)
            wait_until(lambda: "does not know this key" in place.log("run"), 20, "the worker is refused")
            os.rename(cert + ".not-yet", cert)

            def is_there():
                done = place.ask(root, "status", "--json")
                return '"stage":"run"' in done.stdout.replace(" ", "")
            wait_until(is_there, 20, "the worker is let in")


class Lanes(unittest.TestCase):
    """A worker's key makes the broker connect to that worker, and to nowhere else."""

    def listen(self, host):
        one = socket.socket()
        self.addCleanup(one.close)
        one.bind((host, 0))
        one.listen(8)
        return one, one.getsockname()[1]

    def beat(self, place, name, lane):
        sink = zmq.Context.instance().socket(zmq.PUSH)
        self.addCleanup(sink.close, 0)
        sink.connect(f"tcp://127.0.0.1:{place.port + 1}")
        sink.send(msgpack.packb("worker.beat") + msgpack.packb(
            {"worker": name, "stage": "run", "slots": 1, "lane": lane, "host": "here", "progress": 1, "draining": False,
             "epoch": 0, "jobs": []}))

    def assert_heard(self, listener):
        listener.settimeout(20)
        listener.accept()[0].close()

    def assert_not_heard(self, listener):
        listener.setblocking(False)
        self.assertRaises(BlockingIOError, listener.accept)

    def test_a_lane_leads_nowhere_but_to_its_worker(self):
        with Place(keys=False) as place:
            elsewhere, port = self.listen("127.0.0.2")
            path = os.path.join(place.root, "secret.sock")
            unix = socket.socket(socket.AF_UNIX)
            self.addCleanup(unix.close)
            unix.bind(path)
            unix.listen(8)
            lanes = (f"tcp://127.0.0.2:{port}", f"tcp://127.0.0.1;127.0.0.2:{port}", f"tcp://lo;127.0.0.2:{port}",
                     f"ipc://{path}", f"tcp://127.0.0.1:0{port}0000000")
            for number, lane in enumerate(lanes):
                self.beat(place, f"w{number}", lane)
                wait_until(lambda n=number: f"lane of worker w{n} cannot be opened" in place.log("broker"), 20, lane)
            self.assertIn("give the broker --lanes 127.0.0.2, or the worker --advertise 127.0.0.1", place.log("broker"))
            own, own_port = self.listen("127.0.0.1")
            self.beat(place, "good", f"tcp://127.0.0.1:{own_port}")
            self.assert_heard(own)
            self.beat(place, "named", f"tcp://nobody.invalid:{own_port}")  # itself, by whatever name
            self.assert_heard(own)
            self.assert_not_heard(elsewhere)
            self.assert_not_heard(unix)

    def test_a_lane_may_lead_where_the_operator_says(self):
        with Place(keys=False, options=("--lanes", "192.0.2.0/24,127.0.0.2")) as place:
            elsewhere, port = self.listen("127.0.0.2")
            self.beat(place, "w", f"tcp://127.0.0.2:{port}")
            self.assert_heard(elsewhere)

    def test_a_list_of_lanes_that_cannot_be_read_is_refused(self):
        done = subprocess.run([BROKER, "--lanes", "10.0.0.0/8,10.0.0.0/99"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--lanes: '10.0.0.0/99' is neither an address, a range of addresses", done.stderr)


class Plaintext(unittest.TestCase):
    def test_nothing_goes_beyond_this_machine_without_a_key_unless_somebody_says_so(self):
        root = tempfile.mkdtemp(prefix="sluice-security-")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
        cases = (
            ([BROKER, "--data", root, "--bind", "tcp://0.0.0.0"], 2, "--allow-plaintext"),
            ([BROKER, "--data", root, "--bind", "tcp://192.0.2.1"], 2, "sluice keys init"),
            ([WORKER, "run", "--data", root, "--broker", "tcp://192.0.2.1:5750"], 5, "sluice keys add worker"),
            ([WORKER, "run", "--data", root, "--advertise", "node7"], 5, "there is no key"),
            ([SLUICE, "status", "--broker", "tcp://192.0.2.1:5750"], 1, "SLUICE_ALLOW_PLAINTEXT"),
        )
        try:
            for arguments, status, words in cases:
                done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=60,
                                      check=False)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.returncode, status, arguments)
            with self.assertRaises(sluice.AuthRefused):
                sluice.Client("tcp://192.0.2.1:5750")
            sluice.Client("tcp://192.0.2.1:5750", allow_plaintext=True).close()
        finally:
            shutil.rmtree(root)


# ---- hostile connections: ZMTP by hand ---------------------------------------------------------------

GREETING = b"\xff" + b"\0" * 8 + b"\x7f\x03\x00"


def greet(mechanism):
    return GREETING + mechanism.ljust(20, b"\0") + b"\0" * 32


def connect_null(port, kind):
    """A connection that is through its handshake, without keys."""
    peer = socket.create_connection(("127.0.0.1", port), 10)
    peer.sendall(greet(b"NULL"))
    got = b""
    while len(got) < 64:
        got += peer.recv(64 - len(got))
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    peer.sendall(bytes([4, len(ready)]) + ready)
    peer.recv(256)
    return peer


def frame(body, more=False):
    if len(body) < 256:
        return bytes([int(more), len(body)]) + body
    return bytes([2 | int(more)]) + struct.pack(">Q", len(body)) + body


def memory_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as text:
        return next(int(line.split()[1]) for line in text if line.startswith("VmRSS")) // 1024


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as text:
        fields = text.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_closed(peer, seconds=15):
    peer.settimeout(seconds)
    try:
        while peer.recv(65536):
            pass
        return True
    except socket.timeout:
        return False
    except OSError:
        return True


class Hostile(unittest.TestCase):
    def serve(self, place, key=None):
        with sluice.Client(place.url, key=key, timeout=20) as client:
            return client.status()

    def send_until_cut(self, peer, data, most_mb):
        sent = 0
        peer.settimeout(20)
        try:
            while sent < most_mb << 20:
                peer.sendall(data)
                sent += len(data)
        except OSError:
            return sent
        self.fail(f"{most_mb} MiB were taken and the connection stands")

    def test_connections_that_do_not_end_their_handshake_end_in_time(self):
        with Place() as place:
            alice = place.add("trainer", "alice")
            openings = (b"", b"\xff", os.urandom(64), b"GET / HTTP/1.1\r\n\r\n", greet(b"CURVE"), greet(b"NULL"),
                        greet(b"PLAIN"), greet(b"CURVE") + b"\x02" + b"\xff" * 8,
                        greet(b"CURVE") + b"\x06" + struct.pack(">Q", 1 << 62), greet(b"CURVE") + b"\x04\xc8\x05HELLO" + b"\0" * 194)
            peers = []
            for port in range(place.port, place.port + 3):
                for opening in openings:
                    peer = socket.create_connection(("127.0.0.1", port), 10)
                    try:
                        peer.sendall(opening)
                    except OSError:
                        pass
                    peers.append(peer)
            self.serve(place, alice)
            for peer in peers:
                self.assertTrue(is_closed(peer))
                peer.close()
            self.serve(place, alice)

    def test_a_crowd_of_idle_connections_neither_takes_all_descriptors_nor_keeps_others_out(self):
        with Place(options=("--connections-max", "200")) as place:
            alice = place.add("trainer", "alice")
            before, crowd, most = cpu_s(place.broker.pid), [], 0

            def descriptors():
                nonlocal most
                now = len(os.listdir(f"/proc/{place.broker.pid}/fd"))
                most = max(most, now)
                return now

            def come(count):
                for _ in range(count):
                    peer = socket.socket()
                    peer.setblocking(False)
                    peer.connect_ex(("127.0.0.1", place.port))
                    crowd.append(peer)
            while "conn.full" not in place.log("broker"):
                self.assertLess(len(crowd), 600)
                come(25)
                wait_until(lambda: descriptors() >= len(crowd) or "conn.full" in place.log("broker"), 10, "accepted")
            come(1000)
            self.serve(place, alice)
            wait_until(lambda: descriptors() and "conn.open-again" in place.log("broker"), 20, "it opens again")
            self.assertLess(most, 500)  # 200, what was at the door meanwhile (at most 200), and the broker's own
            self.assertLess(cpu_s(place.broker.pid) - before, 5)
            for peer in crowd:
                peer.close()
            self.serve(place, alice)

    def test_a_message_that_does_not_end_is_cut_off_and_memory_stays_bounded(self):
        with Place(keys=False) as place:
            before = memory_mb(place.broker.pid)
            for port, kind, most_mb in ((place.port, b"DEALER", 200), (place.port + 1, b"PUSH", 200)):
                for size in (60000, 3 << 20):
                    peer = connect_null(port, kind)
                    self.send_until_cut(peer, frame(b"x" * size, more=True), most_mb)
                    peer.close()
                    self.serve(place)
            self.assertLess(memory_mb(place.broker.pid) - before, memory_bound(100, 600, 1000))
            wait_until(lambda: "conn.frames" in place.log("broker"), 10, "it is logged")

    def test_empty_frames_without_end_are_cut_off_before_they_cost_memory(self):
        with Place(keys=False) as place:
            before = memory_mb(place.broker.pid)
            kinds = ((place.port, b"DEALER"), (place.port + 1, b"PUSH"), (place.port + 2, b"SUB"))
            for number, (port, kind) in enumerate(kinds * 2):
                peer = connect_null(port, kind)
                if number >= len(kinds):  # after a message that ends
                    peer.sendall(frame(b"\x00"))
                self.send_until_cut(peer, frame(b"", more=True) * 50000, 128)
                peer.close()
                self.serve(place)
            self.assertLess(memory_mb(place.broker.pid) - before, memory_bound(32, 200, 1000))
            wait_until(lambda: "conn.frames" in place.log("broker"), 10, "it is logged")

    def test_commands_that_say_there_is_more_are_cut_off_before_they_cost_memory(self):
        command = bytes([5, 10, 9]) + b"SUBSCRIBE"  # COMMAND and MORE, which no peer has reason to send
        with Place(keys=False) as place:
            before = memory_mb(place.broker.pid)
            for port, kind in ((place.port, b"DEALER"), (place.port + 1, b"PUSH"), (place.port + 2, b"SUB")):
                peer = connect_null(port, kind)
                self.send_until_cut(peer, command * 20000, 128)
                peer.close()
                self.serve(place)
            self.assertLess(memory_mb(place.broker.pid) - before, memory_bound(32, 200, 1000))

    def test_a_worker_that_sends_by_its_lane_fills_nothing(self):
        with Place(keys=False) as place:
            before = memory_mb(place.broker.pid)
            for data in (frame(b"", more=True) * 50000, frame(b"x" * 60000), frame(b"x" * (1 << 20))):
                door = socket.create_server(("127.0.0.1", 0))
                door.settimeout(20)
                with zmq.Context() as context, context.socket(zmq.PUSH) as sink:
                    sink.connect(f"tcp://127.0.0.1:{place.port + 1}")
                    sink.send(hostile.message("worker.beat", {
                        "worker": f"w{len(data)}", "stage": "run", "slots": 1, "host": "h", "progress": 1, "draining": False,
                        "epoch": 0, "jobs": [], "lane": f"tcp://127.0.0.1:{door.getsockname()[1]}"}))
                    peer, _ = door.accept()
                peer.sendall(greet(b"NULL"))
                ready = b"\x05READY\x0bSocket-Type\0\0\0\x04PULL"
                peer.sendall(bytes([4, len(ready)]) + ready)
                peer.settimeout(3)
                try:
                    for _ in range((300 << 20) // len(data)):
                        peer.sendall(data)
                except OSError:
                    pass  # cut off, or not read any more
                peer.close()
                door.close()
                self.serve(place)
            self.assertLess(memory_mb(place.broker.pid) - before, memory_bound(32, 200, 1000))

    def test_a_worker_that_is_sent_much_and_does_not_read_its_lane_fills_nothing(self):
        held = [[f"run:{'g' * 80}{k}/0", k + 1] for k in range(1000)]
        with Place(keys=False) as place, zmq.Context() as context:
            with context.socket(zmq.PULL) as unread, context.socket(zmq.PUSH) as sink:
                unread.rcvhwm = 1
                unread.bind("tcp://127.0.0.1:*")
                lane = unread.getsockopt_string(zmq.LAST_ENDPOINT)
                sink.sndhwm = 4
                sink.sndtimeo = 20000
                sink.linger = 0
                sink.connect(f"tcp://127.0.0.1:{place.port + 1}")
                self.serve(place)
                before = most = memory_mb(place.broker.pid)
                for worker, lane in (("unread", lane), ("closed", f"tcp://127.0.0.1:{free_ports(1)}")):
                    for k in range(1, 1501):
                        sink.send(hostile.message("worker.beat", {
                            "worker": worker, "stage": "run", "slots": 1, "lane": lane, "host": "h", "progress": k,
                            "draining": False, "epoch": 1, "jobs": held}))
                        if k % 50 == 0:
                            most = max(most, memory_mb(place.broker.pid))
                    wait_until(lambda w=worker: f'worker={w} why="so much waits in it that nobody can be reading it"' in place.log("broker"), 20,
                               "its lane is full")
                    self.serve(place)
                self.assertLess(most - before, memory_bound(64, 500, 1000))

    def test_messages_of_few_frames_are_refused_and_not_cut_off(self):
        with Place(keys=False) as place:
            peer = connect_null(place.port, b"DEALER")
            for count in (2, 3, 16):
                peer.sendall(frame(b"x", more=True) * (count - 1) + frame(b"y"))
                self.assertIn(b"a message is one frame", peer.recv(4096))
            peer.close()

    def test_a_peer_of_an_older_protocol_is_cut_off_at_its_greeting(self):
        with Place(keys=False) as place:
            for port in (place.port, place.port + 1):
                for greeting in (b"\x01\x00", b"\xff" + b"\0" * 8 + b"\x7f\x01\x05\x00\x00", b"\x03abc" * 20000):
                    peer = socket.create_connection(("127.0.0.1", port), 10)
                    peer.sendall(greeting)
                    self.assertTrue(is_closed(peer))
                    peer.close()
            self.serve(place)

    def test_a_frame_that_is_too_long_ends_its_connection(self):
        with Place(keys=False) as place:
            for port, kind in ((place.port, b"DEALER"), (place.port + 1, b"PUSH"), (place.port + 2, b"SUB")):
                peer = connect_null(port, kind)
                peer.sendall(b"\x02" + struct.pack(">Q", 1 << 40))
                self.assertTrue(is_closed(peer))
                peer.close()
            self.serve(place)

    def test_a_flood_of_subscriptions_is_cut_off(self):
        with Place(keys=False) as place:
            before = memory_mb(place.broker.pid)
            peer, number = connect_null(place.port + 2, b"SUB"), 0
            peer.settimeout(60)
            with self.assertRaises(OSError):
                while number < 2_000_000:
                    peer.sendall(b"".join(frame(b"\x01t/%d-%s/" % (number + i, b"y" * 40)) for i in range(1000)))
                    number += 1000
            peer.close()
            self.assertIn("feed.dropped", place.log("broker"))
            self.serve(place)
            self.assertLess(memory_mb(place.broker.pid) - before, memory_bound(600, 3000, 6000))

    def test_a_subscriber_that_sends_something_else_is_shut_out(self):
        with Place(keys=False) as place:
            peer = connect_null(place.port + 2, b"SUB")
            peer.sendall(frame(b"\x07hello") * 100)
            self.assertTrue(is_closed(peer))
            peer.close()
            self.serve(place)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[1:], verbosity=2)
