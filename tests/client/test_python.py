"""The Python client against the fake broker, which speaks by the C codec."""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = os.environ["SLUICE_SOURCE_DIR"]
FAKE_BROKER = os.environ["SLUICE_FAKE_BROKER"]
sys.path.insert(0, os.path.join(SOURCE, "client", "python"))

try:
    import lz4.block
    import msgpack
    import numpy as np
    import zmq  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)

from sluice import BrokerSilent, Client, MessageError, OtherLedger, Refused, messages  # noqa: E402
from sluice.trajectory import read_trajectory  # noqa: E402

NOOP = {"task": "add", "kind": "noop"}


class FakeBroker:
    def __enter__(self):
        self.process = subprocess.Popen([FAKE_BROKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait(10) != 0:
            raise AssertionError("the fake broker failed")

    def __call__(self, order, number=0):
        self.process.stdin.write(f"{order} {number}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


class Case(unittest.TestCase):
    def setUp(self):
        self.broker = self.enter(FakeBroker())
        self.client = self.enter(Client(self.broker.url))

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def expect(self, trajectories, first, last):
        for seq in range(first, last + 1):
            self.assertEqual(next(trajectories).seq, seq)


class Streams(Case):
    def test_trajectories_come_once_and_in_order_with_numpy_arrays(self):
        self.broker("add-lost", 2)
        trajectories = self.client.trajectories("train", from_seq=1)
        first = next(trajectories)
        self.assertEqual((first.rollout, first.outcome, first.reward, first.trainable), ("g/0", "ok", 0.0, True))
        trace, = first.traces
        for array, kind, values in ((trace.token_ids, np.uint32, [101, 102, 103]), (trace.mask, np.uint8, [0, 1, 1]),
                                    (trace.logprobs, np.float32, [0, -0.5, -0.25])):
            self.assertEqual(array.dtype, kind)
            self.assertEqual(array.tolist(), values)
        self.assertEqual([(t.role, t.offset, t.length, t.finish) for t in trace.turns],
                         [("prompt", 0, 1, ""), ("assistant", 1, 2, "stop")])
        self.assertEqual([m.content for m in first.messages], ["1+1?", "2"])
        self.assertEqual((first.agent, first.logprobs_mode), ("chat", "raw"))
        self.expect(trajectories, 2, 2)
        self.broker("await")
        self.broker("add", 3)
        self.expect(trajectories, 3, 5)

    def test_gaps_are_fetched_and_duplicates_dropped(self):
        trajectories = self.client.trajectories("train")
        self.broker("add", 1)
        self.expect(trajectories, 1, 1)
        self.broker("again", 1)
        self.broker("add-lost", 1)
        self.broker("add", 1)
        self.broker("again", 2)
        self.expect(trajectories, 2, 3)
        self.broker("add-lost", 1)
        self.broker("head")
        self.expect(trajectories, 4, 4)

    def test_with_a_third_lost_and_restarts_all_come(self):
        trajectories = self.client.trajectories("train")
        for at in range(0, 1200, 300):
            self.broker("add-some-lost", 300)
            self.expect(trajectories, at + 1, at + 150)
            self.assertEqual(self.client.ack("train", at + 150), 3)
            self.broker("restart")
            self.expect(trajectories, at + 151, at + 300)

    def test_a_broker_that_is_away_is_waited_for(self):
        trajectories = self.client.trajectories("train", timeout=20)
        self.broker("add", 1)
        self.expect(trajectories, 1, 1)
        self.broker("leave")
        self.broker("add-lost", 1)
        self.broker("return")
        self.expect(trajectories, 2, 2)

    def test_reading_ends_after_its_timeout(self):
        self.broker("add-lost", 2)
        started = time.monotonic()
        self.assertEqual([t.seq for t in self.client.trajectories("train", timeout=0.3)], [1, 2])
        self.assertLess(time.monotonic() - started, 10)

    def test_zero_begins_at_the_oldest_kept_and_an_older_number_is_refused(self):
        self.broker("add-lost", 5)
        self.broker("forget", 3)
        self.expect(self.client.trajectories("train"), 4, 5)
        with self.assertRaises(Refused) as caught:
            next(self.client.trajectories("train", from_seq=2))
        self.assertEqual(caught.exception.reason, "forgotten")
        self.assertIn("the oldest is 4", str(caught.exception))

    def test_reading_until_idle_needs_everything_to_have_ended(self):
        self.broker("add-lost", 2)  # the fake broker says that seven more are pending
        self.assertEqual([t.seq for t in self.client.trajectories("train", timeout=0.3, until_idle=True)], [1, 2])
        self.assertEqual(list(self.client.trajectories("none", until_idle=True)), [])

    def test_a_shorter_ledger_is_told(self):
        self.broker("add-lost", 3)
        trajectories = self.client.trajectories("train")
        self.expect(trajectories, 1, 3)
        self.broker("restart", 1)
        with self.assertRaises(OtherLedger):
            next(trajectories)

    def test_a_broken_record_is_an_error_and_the_next_reader_begins_after_it(self):
        self.broker("add-broken")
        self.broker("add-lost", 1)
        with self.assertRaises(MessageError) as caught:
            next(self.client.trajectories("train", from_seq=1))
        self.expect(self.client.trajectories("train", from_seq=caught.exception.seq + 1), 2, 2)

    def test_garbage_is_passed_over(self):
        trajectories = self.client.trajectories("train")
        self.broker("add", 1)
        self.expect(trajectories, 1, 1)
        self.broker("garbage")
        self.assertEqual(self.client.status(), {"epoch": 3})
        self.broker("add", 1)
        self.expect(trajectories, 2, 2)


class Requests(Case):
    def test_submitting_again_is_the_same_groups(self):
        tasks = [dict(NOOP, metadata={"k": k}) for k in range(150)] + [dict(NOOP, metadata={"k": 0})]
        names = self.client.submit(iter(tasks), stream="train", samples=2)
        self.assertEqual(len(set(names)), 151)
        self.assertEqual(self.client.submit(tasks, stream="train", samples=2), names)
        self.assertEqual(self.broker("groups"), "151")

    def test_a_full_broker_is_waited_for(self):
        self.broker("full", 2)
        self.client.submit([dict(NOOP, metadata=k) for k in range(4)], stream="train")
        self.assertEqual(self.broker("groups"), "4")

    def test_a_file_has_the_same_groups_as_the_command_gives_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "some.tasks.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"task": "a",  "kind": "noop"}\n\n{"task": "b", "kind": "noop", "samples": 3}\n')
            names = self.client.submit(path, stream="train")
            said = subprocess.run([os.environ["SLUICE_PROGRAM"], "submit", path, "--stream", "train", "--json"],
                                  env=dict(os.environ, SLUICE_BROKER=self.broker.url), check=True,
                                  capture_output=True, text=True).stdout
        self.assertEqual([json.loads(line)["group"] for line in said.splitlines()], names)
        self.assertEqual(self.broker("groups"), "2")

    def test_refusals_have_their_reason(self):
        self.client.submit([NOOP], stream="train", group=lambda task: "mine")
        with self.assertRaises(Refused) as caught:
            self.client.submit([dict(NOOP, samples=2)], stream="train", group=lambda task: "mine")
        self.assertEqual((caught.exception.reason, str(caught.exception)), ("group-exists", "the name is taken"))
        with self.assertRaises(Refused):
            self.client.get("none/0")

    def test_the_small_requests(self):
        self.broker("add-lost", 1)
        self.assertEqual(self.client.get("g/0").seq, 1)
        self.assertEqual(self.client.get("waiting/0")["state"], "leased")
        self.assertEqual(self.client.cancel(group="g"), 3)
        self.client.engine_add("http://127.0.0.1:9")
        self.client.engine_remove("http://127.0.0.1:9")
        self.assertEqual(self.client.engines(), [])
        self.client.ack("train", 1)
        self.assertEqual(self.broker("acked"), "1")

    def test_no_broker_is_an_error_that_says_where(self):
        with Client("tcp://127.0.0.1:9", timeout=0.1) as nobody, self.assertRaises(BrokerSilent) as caught:
            nobody.status()
        self.assertEqual(str(caught.exception), "no broker answers at tcp://127.0.0.1:9")


class Table(unittest.TestCase):
    def test_what_breaks_the_table_is_refused_when_sent_and_when_read(self):
        good = dict(tag=1, stream="train", seq=1)
        for field, value, words in (("seq", 0, "at least 1"), ("seq", "1", "str, not uint"), ("seq", True, "bool"),
                                    ("stream", "", "at least 1"), ("stream", "x" * 65, "at most 64"),
                                    ("stream", "a\0b", "NUL"), ("frob", 1, "no field 'frob'"), ("seq", None, "missing")):
            fields = {k: v for k, v in {**good, field: value}.items() if v is not None}
            with self.assertRaisesRegex(MessageError, words):
                messages.encode("stream.ack", **fields)
            with self.assertRaisesRegex(MessageError, words):
                messages.decode(msgpack.packb("stream.ack") + msgpack.packb(fields))
        self.assertEqual(messages.decode(messages.encode("stream.ack", **good)), ("stream.ack", good))

    def test_bytes_that_are_no_message_are_refused(self):
        good = messages.encode("status.get", tag=1)
        for data in (b"", b"\xc1", good[:-1], good + b"\0", msgpack.packb("frob") + msgpack.packb({}),
                     msgpack.packb("status.get") + msgpack.packb([1]), msgpack.packb(1) + msgpack.packb({}),
                     msgpack.packb("status.get") + b"\x82\xa3tag\x01\xa3tag\x02", b"\xdb\xff\xff\xff\xff", b"\x91" * 4000):
            with self.assertRaises(MessageError):
                messages.decode(data)

    def test_the_examples_are_read_and_written_byte_for_byte_as_in_c(self):
        with open(os.path.join(SOURCE, "schemas", "messages.json"), encoding="utf-8") as file:
            table = json.load(file)["messages"]
        seen = 0
        for message in table:
            if message["sender"] == "worker" and any(field["type"] == "jobs" for field in message["fields"]):
                continue  # only brokers read it
            golden = bytes.fromhex(message["golden"])
            wire, fields = messages.decode(golden)
            self.assertEqual(wire, message["wire"])
            self.assertEqual(messages.encode(wire, **fields), golden, wire)
            seen += 1
        self.assertGreater(seen, 15)

    def test_every_message_of_the_table_passes_its_own_check(self):
        values = {"uint": lambda f: f["min"], "str": lambda f: "x" * f["min"], "bin": lambda f: b"x" * f["min"],
                  "real": lambda f: 0.5, "bool": lambda f: True}
        for wire, table in messages.MESSAGES.items():
            if all(field["type"] in values for field in table.values()):
                fields = {name: values[field["type"]](field) for name, field in table.items()}
                self.assertEqual(messages.decode(messages.encode(wire, **fields)), (wire, fields))

    def test_compressed_columns_and_lying_ones(self):
        def column(array, codec="lz4", length=None):
            raw = array.tobytes()
            data = lz4.block.compress(raw, store_size=False) if codec == "lz4" else raw
            return {"codec": codec, "length": len(raw) if length is None else length, "data": data}

        def trajectory(**columns):
            ids = np.arange(1000, dtype="<u4")
            trace = {"token_ids": column(ids), "mask": column(np.ones(1000, "u1")),
                     "logprobs": column(np.full(1000, -1, "<f4"), "raw"), "turns": [], "reason": "", **columns}
            record = {"version": 1, "agent": "chat", "template_digest": "", "traces": [trace], "messages": []}
            return read_trajectory(dict(stream="s", seq=1, rollout="g/0", group="g", task="t", sample=0, attempt=1,
                                        outcome="ok", trainable=True, wait_ms=0, init_ms=0, run_ms=0, eval_ms=0,
                                        ended_ms=0, record=msgpack.packb(record)))

        self.assertEqual(trajectory().traces[0].token_ids.tolist(), list(range(1000)))
        for lie in ({"mask": column(np.ones(999, "u1"))}, {"mask": column(np.ones(1000, "u1"), length=1 << 40)},
                    {"mask": column(np.ones(1000, "u1"), length=999)}, {"mask": {"codec": "zip", "length": 0, "data": b""}},
                    {"token_ids": column(np.ones(999, "u1"))}, {"turns": None}):
            with self.assertRaises(MessageError):
                trajectory(**lie)


if __name__ == "__main__":
    unittest.main()
