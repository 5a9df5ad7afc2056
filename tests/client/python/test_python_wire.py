"""Messages and records as the Python client reads and writes them: bytes, without a broker."""
import json
import os
import unittest

from python_world import SOURCE  # before all that it finds

import lz4.block
import msgpack
import numpy as np
from sluice import MessageError, OtherTokens
from sluice.protocol import messages
from sluice.trajectory import read_trajectory


class Table(unittest.TestCase):
    def test_what_breaks_the_table_is_refused_when_sent_and_when_read(self):
        good = dict(tag=1, stream="train", seq=1)
        for field, value, words in (("seq", 0, "the minimum is 1"), ("seq", "1", "str, not uint"), ("seq", True, "bool"),
                                    ("stream", "", "the minimum is 1"), ("stream", "x" * 65, "the maximum is 64"),
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

        def trajectory(version=1, **columns):
            ids = np.arange(1000, dtype="<u4")
            trace = {"token_ids": column(ids), "mask": column(np.ones(1000, "u1")),
                     "logprobs": column(np.full(1000, -1, "<f4"), "raw"), "turns": [], "reason": "", **columns}
            record = {"version": version, "agent": "chat", "template_digest": "sha256:t", "traces": [trace], "messages": [],
                      "sandbox": {"commands": 3, "cpu_seconds": 0.5, "of_a_later_version": 1,
                                  "breaches": [{"limit": "disk", "count": 2}]},
                      "tamper": {"count": 9, "files": [{"what": "shell", "path": "usr/bin/bash"}]}}
            return read_trajectory(dict(stream="s", seq=1, rollout="g/0", group="g", task="t", sample=0, attempt=1,
                                        outcome="ok", trainable=True, wait_ms=0, init_ms=0, run_ms=0, eval_ms=0,
                                        ended_ms=0, record=msgpack.packb(record)))

        self.assertEqual(trajectory().traces[0].token_ids.tolist(), list(range(1000)))
        trace = trajectory().traces[0]
        self.assertEqual((trace.template_digest, trace.tokenizer_digest), ("sha256:t", ""))  # of version 1
        trajectory().expect(template="sha256:t")
        with self.assertRaisesRegex(OtherTokens, "tokenizer of an engine that did not tell it, where sha256:k"):
            trajectory().expect(template="sha256:t", tokenizer="sha256:k")
        turns = [{"offset": 0, "length": 1000, "role": "prompt", "decode_seconds": 0.5}]
        new = trajectory(2, template_digest="sha256:u", tokenizer_digest="sha256:k", turns=turns)
        new.expect(template="sha256:u", tokenizer="sha256:k")
        self.assertEqual((new.traces[0].turns[0].decode_seconds, new.traces[0].turns[0].queue_seconds), (0.5, None))
        for version in (0, 5):
            with self.assertRaisesRegex(MessageError, f"version {version}, not 1 to 4"):
                trajectory(version, template_digest="", tokenizer_digest="")
        self.assertEqual((trajectory().sandbox.commands, trajectory().sandbox.breaches), (3, {"disk": 2}))
        self.assertEqual((trajectory().tamper.count, trajectory().tamper.files), (9, [("shell", "usr/bin/bash")]))
        for lie in ({"mask": column(np.ones(999, "u1"))}, {"mask": column(np.ones(1000, "u1"), length=1 << 40)},
                    {"mask": column(np.ones(1000, "u1"), length=999)}, {"mask": {"codec": "zip", "length": 0, "data": b""}},
                    {"token_ids": column(np.ones(999, "u1"))}, {"turns": None}):
            with self.assertRaises(MessageError):
                trajectory(**lie)

    def test_a_record_of_this_version_and_a_verdict(self):
        """Whole first, then each with one lie."""
        def column(name, values, **more):
            data = values.tobytes()
            packed = {"codec": "raw", "length": len(data), "data": data}
            kind = {"uint32": "u32", "float32": "f32", "int16": "i16"}[values.dtype.name]
            return {"name": name, "type": kind, "offset": 0, "rows": len(values), "shape": list(values.shape[1:]),
                    "values": packed, **more}

        def raw(values):
            return {"codec": "raw", "length": values.nbytes, "data": values.tobytes()}

        experts = np.arange(5 * 2 * 3, dtype="<i2").reshape(5, 2, 3)
        kept = column("kept_ids", np.arange(3, dtype="<u4"), offset=4, rows=2, counts=raw(np.array([1, 2], "<u4")))

        def trajectory(columns=(column("routed_experts", experts), kept), verdict=None, metadata="{\"k\": 1}", **more):
            turns = [{"offset": 0, "length": 2, "role": "prompt", "versions": []},
                     {"offset": 2, "length": 4, "role": "assistant", "finish": "stop", "version": "v7+v8",
                      "versions": [{"offset": 0, "length": 1, "version": "v7"},
                                   {"offset": 1, "length": 3, "version": "v8"}],
                      "sampling": {"temperature": 0.5, "top_p": 1.0, "min_p": 0.0, "top_k": 0, "max_tokens": 9}}]
            trace = {"token_ids": raw(np.arange(6, dtype="<u4")), "mask": raw(np.array([0, 0, 1, 1, 1, 1], "u1")),
                     "logprobs": raw(np.zeros(6, "<f4")), "reason": "", "template_digest": "", "tokenizer_digest": "",
                     "turns": turns, "columns": list(columns)}
            record = {"version": 4, "agent": "chat", "end": "length", "truncated": True, "attempt": 2,
                      "traces": [trace], "messages": [
                          {"role": "assistant", "content": "example", "exit_status": 0, "sampled": False},
                          {"role": "assistant", "content": "reply", "exit_status": 0, "sampled": True}]}
            verdict = verdict or {"parts": [{"name": "correct", "value": 1.0, "weight": 0.5}], "patch": "+x\n",
                                  "metrics": [{"name": "edits", "value": 3.0}],
                                  "tests": {"passed": 1, "failed": 1, "skipped": 5, "error": 0,
                                            "list": [{"name": "test_sum", "status": "failed", "message": "why"}]}}
            return read_trajectory({**dict(stream="s", seq=1, rollout="g/0", group="g", task="t", sample=0, attempt=1,
                                           outcome="ok", trainable=True, wait_ms=0, init_ms=0, run_ms=0, eval_ms=0,
                                           ended_ms=0, reward=0.25, raw_reward=0.5, group_size=2, group_ended=2,
                                           metadata=metadata, record=msgpack.packb(record),
                                           verdict=msgpack.packb(verdict)), **more})

        t = trajectory()
        self.assertEqual((t.reward, t.raw_reward, t.rewards, t.reward_weights), (0.25, 0.5, {"correct": 1.0}, {"correct": 0.5}))
        self.assertEqual((t.metrics, t.tests.pass_fraction, t.tests.list[0].message), ({"edits": 3.0}, 0.5, "why"))
        self.assertEqual((t.metadata, t.end, t.truncated, t.run_attempt, t.group_complete), ({"k": 1}, "length", True, 2, True))
        self.assertEqual(([message.sampled for message in t.messages], t.patch), ([False, True], "+x\n"))
        trace = t.traces[0]
        self.assertEqual(trace.versions().tolist(), ["", "", "v7", "v8", "v8", "v8"])
        self.assertEqual(trace.temperatures()[2:].tolist(), [0.5] * 4)
        self.assertTrue(np.isnan(trace.temperatures()[:2]).all())
        self.assertEqual((trace.turns[1].sampling.max_tokens, trace.turns[1].sampling.seed), (9, None))
        self.assertTrue((trace.column("routed_experts").values == experts).all())
        ragged = trace.column("kept_ids")
        self.assertEqual((ragged.offset, ragged.rows, ragged.offsets.tolist()), (4, 2, [0, 1, 3]))
        with self.assertRaisesRegex(KeyError, "it has routed_experts, kept_ids"):
            trace.column("teacher_logprobs")
        without = trajectory(group_ended=1, reward=None, raw_reward=None)
        self.assertEqual((without.reward, without.raw_reward, without.group_complete), (None, None, False))
        lies = [dict(columns=[column("x", experts, rows=7)]), dict(columns=[column("x", experts, type="f64")]),
                dict(columns=[column("x", experts, shape=[2, 4])]), dict(columns=[{**kept, "counts": raw(np.ones(1, "<u4"))}]),
                dict(columns=[column("x", np.full(6, np.inf, "<f4"))]), dict(metadata="{"), dict(verdict={"parts": 1}),
                dict(verdict={"parts": [{"name": "x", "value": float("nan"), "weight": 1.0}], "metrics": []})]
        for lie in lies:
            with self.assertRaises(MessageError, msg=str(lie)):
                trajectory(**lie)


if __name__ == "__main__":
    unittest.main()
