"""sluice.export against the fake broker: records that cannot be read, and ledgers that are others."""
import json
import os
import sys
import tempfile
import unittest

from python_world import Case

from sluice.export import ExportError, export
from sluice.export.filters import read_filter
from sluice.trajectory import Trajectory


class Export(Case):
    def setUp(self):
        super().setUp()
        self.root = self.enter(tempfile.TemporaryDirectory())

    def export(self, **options):
        return export(self.client, "train", os.path.join(self.root, "out"), format="jsonl", columns=["seq"], **options)

    def seqs(self):
        found = []
        for folder, _, names in os.walk(os.path.join(self.root, "out", "data")):
            for name in sorted(names):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found += [json.loads(line)["seq"] for line in file]
        return found

    def test_a_record_that_cannot_be_read_is_passed_over_and_counted(self):
        for order, number in (("add", 3), ("add-broken", 1), ("add", 2), ("add-broken", 1)):
            self.broker(order, number)
        counts = self.export(shard=4)
        self.assertEqual((counts.rows, counts.unreadable, counts.to_seq), (5, 2, 7))
        self.assertEqual(self.seqs(), [1, 2, 3, 5, 6])
        self.broker("add", 1)
        counts = self.export(shard=4)
        self.assertEqual((counts.rows, counts.unreadable, counts.to_seq), (6, 2, 8))

    def test_nothing_new_is_no_file_and_no_error(self):
        self.broker("add", 3)
        self.export()
        self.assertEqual(self.export().files, 1)
        self.assertEqual(self.seqs(), [1, 2, 3])

    def test_another_ledger_is_noticed(self):
        self.broker("add", 5)
        self.export()
        self.broker("restore", 4)  # number 5 and those behind it are others now
        with self.assertRaisesRegex(ExportError, "another ledger; name another directory"):
            self.export()

    def test_a_broken_progress_is_refused_by_name(self):
        self.broker("add", 2)
        self.export()
        path = os.path.join(self.root, "out", ".sluice-export.json")
        for text in ("", "[]", "{", '{"version": 1}', '{"version": 9, "options": {}, "next": 1, "last": null, "files": []}'):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            with self.assertRaisesRegex(ExportError, "is not the progress of an export"):
                self.export()


class Filters(unittest.TestCase):
    def test_each_compares_what_is_there(self):
        t = Trajectory("s", 7, "g/0", "g", "add", 0, 1, "ok", True, 0, 0, 0, 0, 0, reward=0.5,
                       metadata={"split": "train", "level": 3, "hard": True}, metrics={"turns": 4.0})
        for text, holds in (("outcome=ok", True), ("outcome!=ok", False), ("reward>=0.5", True), ("reward<0.5", False),
                            ("seq=7", True), ("trainable=true", True), ("trainable=false", False), ("metadata.split=train", True),
                            ("metadata.split!=test", True), ("metadata.level>2", True), ("metadata.hard=true", True),
                            ("metadata.none=x", False), ("metadata.none!=x", True), ("metadata.split>3", False),
                            ("metrics.turns<=4", True), ("metrics.none>0", False), ("raw_reward>0", False), (" reward > 0.1 ", True)):
            self.assertEqual(read_filter(text)(t), holds, text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
