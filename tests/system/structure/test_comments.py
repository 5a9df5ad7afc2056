"""What comments name is there: a header says its own name, and files that are named exist."""
import os
import re
import unittest

from texts import PROGRAMS, ROOT, paths, read

FOREIGN = {"sysexits.h"}  # of the C library
NAMED = re.compile(r"(?<![\w<>/.-])((?:[\w-]+/)*[\w-]+\.(?:c|h|def))\b")
OWN = re.compile(r"\s*/\*\s*(?:\* )?((?:[\w-]+/)*[\w-]+\.(?:h|def)) - ")


def comments(text):
    return re.findall(r"/\*.*?\*/", text, re.S)


def is_end_of(named, path):
    return path == named or path.endswith("/" + named)


class Comments(unittest.TestCase):
    def setUp(self):
        self.files = [os.path.relpath(path, ROOT)
                      for path in paths(*PROGRAMS, "tests", "bench", ends=(".c", ".h", ".def", ".txt", ".py"))]

    def test_files_that_comments_name_exist(self):
        wrong = [(path, named) for path in self.files if path.endswith((".c", ".h", ".def")) and not path.startswith("tests/")
                 for comment in comments(read(path)) for named in NAMED.findall(comment)
                 if named not in FOREIGN and not any(is_end_of(named, other) for other in self.files)]
        self.assertEqual(wrong, [])

    def test_headers_and_tables_say_their_own_names(self):
        said = [(path, own.group(1)) for path in self.files if path.endswith((".h", ".def"))
                for own in [OWN.match(read(path))] if own]
        self.assertGreater(len(said), 500)
        self.assertEqual([(path, own) for path, own in said if not is_end_of(own, path)], [])


if __name__ == "__main__":
    unittest.main()
