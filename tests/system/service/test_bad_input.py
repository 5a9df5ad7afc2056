"""Wrong things that people type and write: each is refused at once, by name, with what to do; by the command line and by
Python alike. bad_input.txt has them with what is said; bad_input.py reads it."""
import concurrent.futures
import http.server
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet  # noqa: E402
from harness import SLUICE, free_ports  # noqa: E402

from bad_input import filled, in_python, is_said, read_table, task_of  # noqa: E402
from sluice import Client, SluiceError  # noqa: E402

TABLE = read_table(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bad_input.txt"))
TASK = {"task": "t", "kind": "noop"}
AT_ONCE_S, HANGS_S = 15, 60  # with sanitizers, beside other tests
NOISE = re.compile(r"^==\d+==WARNING: ASan doesn't fully support .*\n", re.M)
CRASH = re.compile(r"Sanitizer|runtime error|Traceback|Assertion|core dumped")


class NoEngine(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


class BadInput(Case):
    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(slots=1)
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)
        cls.fleet.__enter__()
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="sluice-bad-"))
        cls.files()
        cls.client = cls.enterClassContext(Client(cls.fleet.url, timeout=20))
        cls.client.submit(TASK, "done", group=lambda task: "done")
        cls.client.backup("taken")
        web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), NoEngine)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        cls.addClassCleanup(web.server_close)
        cls.addClassCleanup(web.shutdown)
        dead, free = free_ports(4), free_ports(15)
        cls.words = {"DEADBROKER": f"tcp://127.0.0.1:{dead}", "DEAD": f"http://127.0.0.1:{dead + 3}", "BROKER": cls.fleet.url,
                     "WEB": f"http://127.0.0.1:{web.server_port}", "FRONT": cls.fleet.url.rsplit(":", 1)[1], **{f"PORT{k}": str(free + 3 * k) for k in range(5)}, "DIR": cls.folder}

    @classmethod
    def files(cls):
        for name, text in {"good.jsonl": json.dumps(TASK) + "\n", "empty.jsonl": "", "bad.cursor": "{}", "open.key": "x"}.items():
            with open(os.path.join(cls.folder, name), "w", encoding="ascii") as file:
                file.write(text)
        with open(os.path.join(cls.folder, "binary.jsonl"), "wb") as file:
            file.write(b"\x7fELF\x00\xff\xfe\n")
        os.chmod(os.path.join(cls.folder, "open.key"), 0o644)
        subprocess.run([SLUICE, "keys", "init", "keys"], cwd=cls.folder, check=True, stdout=subprocess.DEVNULL)

    # ---- one row ----------------------------------------------------------------------------------

    def typed(self, arguments):
        """(status, what it said on stderr) of a command line."""
        began = time.monotonic()
        done = subprocess.run([SLUICE, *arguments], cwd=self.folder, env=dict(os.environ, SLUICE_BROKER=self.fleet.url, SLUICE_PYTHON="/no/python"), capture_output=True,
                              text=True, errors="replace", timeout=HANGS_S, stdin=subprocess.DEVNULL, check=False)
        self.assertLess(time.monotonic() - began, AT_ONCE_S, arguments)
        said = NOISE.sub("", done.stderr)
        self.assertIsNone(CRASH.search(done.stdout + said), (arguments, said))
        return done.returncode, re.sub(r"^sluice[a-z-]*: ", "", said.strip()) or done.stdout.strip()

    def called(self, expression):
        """What the exception says, or the warning; "" where nothing was wrong."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                eval(expression, {"client": self.client, "Client": self.opened, "TASK": TASK})  # the table is ours
            except (SluiceError, OSError) as why:
                return str(why)
        return str(warned[0].message) if warned else ""

    def opened(self, *arguments, **options):
        return self.enter(Client(*arguments, **options))

    def wrong_of(self, row):
        """What is not as the row says, or None."""
        status, said = self.typed(shlex.split(filled(row.typed, self.words)))
        if (status, is_said(filled(row.says, self.words), said)) != (row.status, True):
            return f"bad_input.txt:{row.number}: sluice {row.typed}\n  said {status} {said}\n  not  {row.status} {row.says}"
        return None

    # ---- the table ---------------------------------------------------------------------------------

    def test_more_than_200_wrong_things_are_in_the_table_once(self):
        self.assertGreater(len(TABLE), 250)
        self.assertEqual(len({row.typed for row in TABLE}), len(TABLE))
        self.assertGreater(sum(row.python is not None for row in TABLE), 80)
        for row in TABLE:
            self.assertTrue(row.says, f"bad_input.txt:{row.number}")
            self.assertLess(len(row.says), 400, row.says)

    def test_each_wrong_command_line_says_what_is_wrong_and_what_to_do(self):
        rows = [row for row in TABLE if not row.is_task]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            wrong = [said for said in pool.map(self.wrong_of, rows) if said]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_each_wrong_call_of_python_says_the_same(self):
        os.chdir(self.folder)
        wrong = []
        for row in (row for row in TABLE if row.python):
            said = self.called(filled(row.python, self.words))
            wanted = filled(row.python_says or in_python(row.says), self.words)
            if not is_said(wanted, said):
                wrong.append(f"bad_input.txt:{row.number}: {row.python}\n  said {said}\n  not  {wanted}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_each_wrong_line_of_a_task_file_is_named_and_said_alike_by_both(self):
        rows = [row for row in TABLE if row.is_task]
        path = os.path.join(self.folder, "tasks.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(row.typed + "\n" for row in rows)
        status, said = self.typed(["submit", path, "--stream", "s"])
        lines = said.split("\n")
        self.assertEqual((status, lines[-1]), (1, f"sluice: {len(rows)} of {len(rows)} lines are not tasks; nothing was submitted"))
        wrong = []
        for number, (row, line) in enumerate(zip(rows, lines, strict=False), 1):
            if not is_said(f"{path}:{number}: {row.says}", line):
                wrong.append(f"bad_input.txt:{row.number}: {row.typed}\n  said {line}\n  not  {row.says}")
            task = task_of(row.typed)
            in_dict = self.called(f"client.submit([{task!r}], 's')") if task is not None else ""
            if task is not None and not is_said(f"tasks[0]: {row.says}\n1 of 1 tasks is not a task; nothing was submitted", in_dict):
                wrong.append(f"bad_input.txt:{row.number}: {row.typed}\n  Python said {in_dict}\n  not         {row.says}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))
        self.assertEqual(len(lines), len(rows) + 1)


if __name__ == "__main__":
    unittest.main()
