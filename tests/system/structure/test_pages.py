"""Pages of what programs say are of today's programs: ids of the log, messages, names of the Python client."""
import glob
import os
import re
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import SLUICE  # noqa: E402
from texts import C, PROGRAMS, ROOT, cells, pages, paths, read  # noqa: E402


def sources(*folders, ends=(*C, ".def", ".py")):
    """(program, text) of each file of the programs."""
    for path in paths(*folders, ends=ends):
        yield os.path.relpath(path, ROOT).split(os.sep)[0], read(path)


class Logs(unittest.TestCase):
    def test_the_page_has_each_id_with_its_level_and_program_and_no_other(self):
        found = {}
        for folder, text in sources(*PROGRAMS, ends=C):
            for call in re.findall(r"\b(?:log_event|io_complain)\(([^;]*);", text):
                levels = re.findall(r"\bLOG_([A-Z]+)\b", call) or ["WARN"]
                for name in re.findall(r'"([a-z]+\.[a-z_-]+)"', call):
                    said = found.setdefault(name, (set(), set()))
                    said[0].add({"workers": "worker"}.get(folder, folder))
                    said[1].update(level.lower() for level in levels)
        self.assertGreater(len(found), 40)
        told = {}
        for row in cells(read("docs", "logs.md")):
            if re.fullmatch(r"`[a-z]+\.[a-z_-]+`", row[0]):
                self.assertNotIn(row[0], told, "twice")
                self.assertEqual(len(row), 4, row)
                told[row[0].strip("`")] = ({row[1]}, set(row[2].split(", ")))
        self.assertEqual(told.keys(), found.keys())
        for name, (program, levels) in told.items():
            self.assertEqual(program, found[name][0], name)
            self.assertLessEqual(levels, found[name][1], name)


    def test_no_pair_of_an_event_is_called_as_what_each_line_has(self):
        """Nor twice within an event: a line of JSON has each name once."""
        seen = 0
        for _, text in sources(*PROGRAMS, ends=C):
            for call in re.findall(r"\blog_event\(([^;]*);", text):
                said = re.sub(r'"\s*"', "", call).split('",', 1)[-1]  # without the id
                outside = re.sub(r'\\"(?:[^"\\]|\\[^"])*\\"', "", said)
                names = re.findall(r'(?<=["\s])([a-z_]+)=', outside)
                seen += len(names)
                self.assertEqual(len(names), len(set(names)), call)
                self.assertFalse({"time", "level", "program", "id"} & set(names), call)
        self.assertGreater(seen, 100)


def said_by(text, is_python):
    """The program with each literal in one piece, and "..." for what is filled in."""
    text = re.sub(r'"\s*(?:\\\s*)?f?"', "", text)
    return re.sub(r"\{[^{}\n]*\}" if is_python else r'%[-.*0-9]*(?:l|ll|z)?[a-z]|%" ?PRI[a-z0-9]+ ?"', "...", text)


class Troubles(unittest.TestCase):
    def test_each_message_of_the_page_is_one_of_a_program(self):
        said = "\n".join(said_by(text, ends == (".py",)) for ends in ((*C, ".def"), (".py",))
                         for _, text in sources(*PROGRAMS, ends=ends))
        seen = 0
        for row in cells(read("docs", "troubleshooting.md")):
            for message in re.findall(r"`([^`]+)`", row[0]):
                seen += 1
                for part in message.split("..."):
                    self.assertTrue(part.strip() in said, f"no program says {message!r}: {part!r}")
        self.assertGreater(seen, 30)


# Of other programs, and of scripts of the repository.
OTHERS = """--admin-api-key --allow-auto-truncate --auth-type --bare --batched --build --cgroupns --chmod --chown
--dangerously-bypass-approvals-and-sandbox --dangerously-skip-permissions --dev --enable-metrics --enable-scale-out --exit-immediately
--format --help-markdown --image-template --incremental-streaming-output --install --json --link --list --logprobs-mode --metrics --mode --mount --noconftest
--output-format --platform --print --quick --rollouts --scope --security-opt --signal --skip-tokenizer-init --target --threads --ubatch-size --user --yolo""".split()


class Options(unittest.TestCase):
    def test_each_option_that_a_sentence_names_is_one_of_a_program(self):
        overview = subprocess.run([SLUICE, "--help"], capture_output=True, text=True, timeout=30).stdout
        known = set(OTHERS)
        commands = [[command] for command in re.findall(r"^  ([a-z]+) ", overview.split("\nto begin")[0], re.M)]
        for words in [*commands, ["grade", "choice"]]:  # which is a program of its own
            done = subprocess.run([SLUICE, *words, "--help"], capture_output=True, text=True, timeout=30)
            known.update(re.findall(r"--[a-z][a-z-]+", done.stdout))
        self.assertGreater(len(known), 100)
        for page in pages():
            for code in re.findall(r"`([^`\n]+)`", read(page)):
                for option in re.findall(r"(?:^|\s)(--[a-z][a-z-]*[a-z])(?![-*a-z])", code):
                    self.assertTrue(option in known, f"{page}: {option}")


class Status(unittest.TestCase):
    def test_the_page_has_each_key_that_the_broker_writes(self):
        page = read("docs", "operations.md").split("### `status --json`", 1)[1].split("\n## ", 1)[0]
        keys = set()
        for _, text in sources(os.path.join("broker", "core", "status"), ends=(".c",)):
            keys.update(re.findall(r'json_object_set_new\(\w+, "(\w+)"', text))
            keys.update(re.findall(r'\{"(\w+)", worker->', text))
        self.assertGreater(len(keys), 60)
        for key in sorted(keys):
            self.assertIn(f"`{key}`", page)


class Where(unittest.TestCase):
    """A path in a page is one of the repository; docs/contributing/where.md is nothing but such."""

    FOLDERS = (*PROGRAMS, "tests", "bench")

    def test_each_path_that_a_page_names_is_there(self):
        for page in pages():
            now = read(page).split("\n## Old words, new words\n")[0]
            for path in re.findall(rf"`((?:{'|'.join(self.FOLDERS)})/[^`\s]*)`", now):
                self.assertTrue(glob.glob(os.path.join(ROOT, path)), f"{page}: {path}")

    def test_each_row_of_the_page_where_names_a_file(self):
        rows = [row for row in cells(read("docs", "contributing", "where.md"))][1:]
        rows = [row for row in rows if not row[0].startswith("**")]
        self.assertGreater(len(rows), 30)
        for what, where in rows:
            files = [path for path in re.findall(r"`([^`]+)`", where) if "/" in path]
            self.assertTrue(files, what)
            for path in files:
                self.assertTrue(os.path.isfile(os.path.join(ROOT, path)), f"{what}: {path}")


class Python(unittest.TestCase):
    def test_the_page_of_the_client_is_what_its_own_words_say(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "client", "python", "reference.py")],
                              capture_output=True, text=True, timeout=60)
        if "ModuleNotFoundError" in done.stderr:
            self.skipTest(f"{done.stderr.splitlines()[-1]}; .ci/packages.sh installs what the Python client needs")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read("docs", "python.md"), done.stdout,
                         "docs/python.md is behind: client/python/reference.py > docs/python.md")


if __name__ == "__main__":
    unittest.main()
