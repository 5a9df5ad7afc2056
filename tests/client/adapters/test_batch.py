"""sluice.batch: padded and packed arrays, each value by hand."""
import subprocess
import sys
import unittest
import warnings

import python_path
import numpy as np
from made import group, rollout, trace

from sluice import BadArgument, Column
from sluice.advantages import dr_grpo
from sluice.batch import as_torch, pack, split, to_batch

TWO = [trace("0011"), trace("01011", 11)]


class Splits(unittest.TestCase):
    def test_a_trace_is_divided_at_its_first_sampled_token(self):
        parts = split(TWO[1])
        self.assertEqual([part.tolist() for part in parts], [[11], [12, 13, 14, 15], [1, 0, 1, 1], [-0.5, 0, -0.5, -0.5]])
        self.assertTrue(np.shares_memory(parts.response_ids, TWO[1].token_ids))
        self.assertEqual([len(part) for part in split(trace("000"))], [3, 0, 0, 0])
        self.assertEqual([len(part) for part in split(trace("11"))], [0, 2, 2, 2])


class Padding(unittest.TestCase):
    def equal(self, batch, **wanted):
        for name, values in wanted.items():
            self.assertEqual(batch[name].tolist(), values, name)

    def test_rows_are_padded_on_the_right(self):
        batch = to_batch(TWO, [2.0, -1.0])
        self.equal(batch, ids=[[1, 2, 3, 4, 0], [11, 12, 13, 14, 15]], mask=[[0, 0, 1, 1, 0], [0, 1, 0, 1, 1]],
                   attention=[[1, 1, 1, 1, 0], [1] * 5], logprobs=[[0, 0, -.5, -.5, 0], [0, -.5, 0, -.5, -.5]],
                   advantages=[[0, 0, 2, 2, 0], [0, -1, 0, -1, -1]], positions=[[0, 1, 2, 3, 0], [0, 1, 2, 3, 4]],
                   group=[-1, -1], rollout=[0, 1])
        self.assertEqual([str(batch[name].dtype) for name in ("ids", "attention", "mask", "logprobs", "advantages", "positions")],
                         ["int64", "uint8", "uint8", "float32", "float32", "int64"])
        self.assertEqual((batch.prompt_width, batch.left_out, batch.without_tokens), (0, 0, 0))
        self.equal(to_batch(TWO, pad_id=9, width=6), ids=[[1, 2, 3, 4, 9, 9], [11, 12, 13, 14, 15, 9]])
        self.assertEqual(to_batch(TWO, multiple=4)["ids"].shape, (2, 8))
        self.assertEqual(to_batch([])["ids"].shape, (0, 0))

    def test_prompts_end_where_responses_begin(self):
        batch = to_batch(TWO, [2.0, -1.0], layout="prompt", pad_id=9)
        self.assertEqual(batch.prompt_width, 2)
        self.equal(batch, ids=[[1, 2, 3, 4, 9, 9], [9, 11, 12, 13, 14, 15]], mask=[[0, 0, 1, 1, 0, 0], [0, 0, 1, 0, 1, 1]],
                   attention=[[1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1]], positions=[[0, 1, 2, 3, 0, 0], [0, 0, 1, 2, 3, 4]],
                   advantages=[[0, 0, 2, 2, 0, 0], [0, 0, -1, 0, -1, -1]])
        wide = to_batch(TWO, layout="prompt", prompt_width=3, width=8)
        self.equal(wide, ids=[[0, 1, 2, 3, 4, 0, 0, 0], [0, 0, 11, 12, 13, 14, 15, 0]])

    def test_what_is_too_long_is_an_error_that_names_it(self):
        for options, told in (({"width": 4}, "width is 4, and row 1 has 5 tokens: nothing is cut"),
                              ({"layout": "prompt", "prompt_width": 1}, "prompt_width is 1, and row 0 has 2 tokens"),
                              ({"layout": "prompt", "width": 5}, "width is 3, and row 1 has 4 tokens"),
                              ({"layout": "prompt", "width": 2}, "width is 2, of which prompts take 2"),
                              ({"layout": "left"}, r"layout wants right\|prompt")):
            with self.assertRaisesRegex(BadArgument, told):
                to_batch(TWO, **options)

    def test_groups_have_advantages_and_what_has_no_reward_has_mask_0(self):
        groups = [group(rollout(1.0, [TWO[0]]), rollout(None, [TWO[1]]), rollout(0.0, [trace("01"), trace("1")])),
                  group(rollout(1.0), rollout(1.0, [trace("01")], trainable=False))]
        batch = to_batch(groups, dr_grpo)
        self.equal(batch, group=[0, 0, 0, 0, 1], rollout=[0, 1, 2, 2, 4],
                   mask=[[0, 0, 1, 1, 0], [0] * 5, [0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0] * 5],
                   advantages=[[0, 0, .5, .5, 0], [0] * 5, [0, -.5, 0, 0, 0], [-.5, 0, 0, 0, 0], [0] * 5])
        self.assertEqual((batch.left_out, batch.without_tokens), (2, 1))
        np.testing.assert_allclose(to_batch(groups)["advantages"][0, 2], 0.5 / (np.sqrt(0.5) + 1e-4), rtol=1e-6)

    def test_what_makes_no_batch_is_refused(self):
        for of, advantages, told in ((TWO, [1.0], "a number for each of the 2 traces"), (TWO, dr_grpo, "a number for each"),
                                     ([TWO[0], group()], None, "of traces, or of groups"), ([group()], [1.0], "a function of")):
            with self.assertRaisesRegex(BadArgument, told):
                to_batch(of, advantages)


class Columns(unittest.TestCase):
    def column(self, name="experts", offset=1, rows=2, kind=np.int16, offsets=None):
        return Column(name, offset, np.arange(1, 2 * rows + 1, dtype=kind).reshape(rows, 2), offsets)

    def test_a_column_stands_where_the_trace_has_it(self):
        traces = [trace("0011"), trace("011", columns=[self.column()])]
        batch = to_batch(traces, layout="prompt", columns=["experts"])
        self.assertEqual((batch["experts"].shape, batch["experts"].dtype), ((2, 4, 2), np.int16))
        self.assertEqual(batch["experts"][1].tolist(), [[0, 0], [0, 0], [1, 2], [3, 4]])
        self.assertEqual(batch["has_experts"].tolist(), [[False] * 4, [False, False, True, True]])
        packed, = pack(traces, 7, columns=["experts"])
        self.assertEqual(packed["experts"].tolist(), [[0, 0]] * 5 + [[1, 2], [3, 4]])

    def test_one_that_is_no_array_is_refused_with_why(self):
        with_column = lambda column: [trace("011", columns=[column])]  # noqa: E731
        ragged = self.column(rows=2, offsets=np.array([0, 1, 2]))
        for traces, name, told in ((TWO, "experts", "no trace has a column 'experts'; they have none"),
                                   (with_column(self.column()), "x", "they have experts"),
                                   (with_column(ragged), "experts", "a different number of values"),
                                   (with_column(self.column("ids")), "ids", "would hide an array"),
                                   (with_column(self.column()) + with_column(self.column(kind=np.int32)), "experts",
                                    r"int16 \(2,\), int32 \(2,\)")):
            with self.assertRaisesRegex(BadArgument, told):
                to_batch(traces, columns=[name])


class Packing(unittest.TestCase):
    def test_traces_stand_one_behind_the_other(self):
        one, = pack(TWO, 9, [2.0, -1.0])
        for name, wanted in (("ids", [1, 2, 3, 4, 11, 12, 13, 14, 15]), ("positions", [0, 1, 2, 3, 0, 1, 2, 3, 4]),
                             ("mask", [0, 0, 1, 1, 0, 1, 0, 1, 1]), ("advantages", [0, 0, 2, 2, 0, -1, 0, -1, -1]),
                             ("attention", [1] * 9), ("sequence_lengths", [4, 5]), ("cu_seqlens", [0, 4, 9]), ("row", [0, 1])):
            self.assertEqual(one[name].tolist(), wanted, name)
        self.assertEqual((one["cu_seqlens"].dtype, one["sequence_lengths"].dtype), (np.int32, np.int32))

    def test_no_pack_is_longer_than_its_bound_and_every_trace_is_in_one(self):
        chance = np.random.default_rng(3)
        traces = [trace("01" * int(size), 100 * k) for k, size in enumerate(chance.integers(1, 30, 200))]
        packs = pack(traces, 64)
        self.assertEqual(sorted(row for one in packs for row in one["row"]), list(range(200)))
        for one in packs:
            self.assertLessEqual(len(one["ids"]), 64)
            for place, row in enumerate(one["row"]):
                begin, end = one["cu_seqlens"][place:place + 2]
                self.assertEqual(one["ids"][begin:end].tolist(), traces[row].token_ids.tolist())
        total = sum(len(one.token_ids) for one in traces)
        self.assertLess(len(packs), 1.1 * total / 64 + 1)

    def test_one_trace_longer_than_the_bound_is_an_error(self):
        with self.assertRaisesRegex(BadArgument, "tokens is 4, and row 1 has 5 tokens"):
            pack(TWO, 4)
        self.assertEqual(pack([], 4), [])

    def test_what_is_left_out_is_counted(self):
        packs = pack([group(rollout(1.0, [TWO[0]]), rollout(None, [TWO[1]]), rollout(0.0))], 5)
        self.assertEqual((sum(one.left_out for one in packs), sum(one.without_tokens for one in packs)), (1, 1))


class Torch(unittest.TestCase):
    def test_it_is_not_imported_by_anything_else(self):
        code = ("import sys, sluice.batch, sluice.advantages, sluice.adapters.rollouts\n"
                "sluice.batch.to_batch([])\nassert 'torch' not in sys.modules")
        subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": f"{python_path.SOURCE}/client/python"})

    def test_tensors_share_the_memory_that_may_be_written(self):
        try:
            import torch
        except ImportError as missing:
            self.skipTest(str(missing))
        batch = to_batch(TWO, [2.0, -1.0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tensors = as_torch(batch)
            own = as_torch({"ids": TWO[0].token_ids, "mask": TWO[0].mask, "counts": np.array([1, 2], np.uint16)})
        self.assertEqual({name: tensor.tolist() for name, tensor in tensors.items()},
                         {name: values.tolist() for name, values in batch.arrays.items()})
        batch["ids"][0, 0] = 77
        self.assertEqual(int(tensors["ids"][0, 0]), 77)
        self.assertEqual({name: tensor.dtype for name, tensor in own.items()},
                         {"ids": torch.int64, "mask": torch.uint8, "counts": torch.int32})
        own["mask"][0] = 1
        self.assertEqual(int(TWO[0].mask[0]), 0)


if __name__ == "__main__":
    unittest.main()
