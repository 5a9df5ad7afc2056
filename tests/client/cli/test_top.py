"""`sluice top` in a terminal of its own: a pty, read by an emulator of the few sequences that it writes. (O8)"""
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

BINARY = os.environ["SLUICE_BINARY_DIR"]
SLUICE = os.path.join(BINARY, "client", "sluice")
BROKER = os.environ.get("SLUICE_FAKE_BROKER", os.path.join(BINARY, "tests", "client", "client_fake_broker"))
KNOWN = re.compile(r"\x1b\[\??[0-9;]*[A-Za-z]")


class Broker:
    """The fake broker: one order a line."""

    def __init__(self):
        self.process = subprocess.Popen([BROKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def order(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class Top:
    """A `sluice top` whose terminal is ours; `rows` is what it shows."""

    def __init__(self, url, columns=80, rows=24, options=(), **environment):
        self.master, slave = os.openpty()
        self.terminal = slave
        self.size(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.text, self.rows, self.is_alternate, self.written = "", {}, False, ""

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen([SLUICE, "top", "--broker", url, "--interval", "100ms", *options], stdin=slave,
                                        stdout=slave, stderr=slave, preexec_fn=own_terminal,
                                        env=dict({"TERM": "xterm", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]}, **environment))

    def size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.columns, self.lines = columns, rows

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.take(os.read(self.master, 65536).decode(errors="replace"))
            except OSError:
                pass

    def take(self, text):
        """Rows begin with their place and are written whole; of the rest only the screen's coming and going matters."""
        self.written += text
        self.text += text
        while (found := KNOWN.search(self.text)) is not None:
            self.put(self.text[:found.start()])
            self.obey(found.group())
            self.text = self.text[found.end():]
        if "\x1b" not in self.text:
            self.put(self.text)
            self.text = ""

    def put(self, text):
        if text:
            self.rows[self.row] = self.rows.get(self.row, "") + text

    row = 0

    def obey(self, sequence):
        if sequence.endswith("H"):
            self.row = int(sequence[2:].split(";")[0])
        elif sequence == "\x1b[2K":
            self.rows.pop(self.row, None)
        elif sequence == "\x1b[2J":
            self.rows.clear()
        elif sequence in ("\x1b[?1049h", "\x1b[?1049l"):
            self.is_alternate = sequence.endswith("h")
            self.rows.clear()
            self.row = 0

    def shows(self, text):
        return any(text in row for row in self.rows.values())

    def wait(self, holds, what, seconds=30):
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}; it shows\n" +
                                     "\n".join(f"{k}|{row}" for k, row in sorted(self.rows.items())))
            self.read(0.05)

    def wait_shows(self, text):
        self.wait(lambda: self.shows(text), f"'{text}'")

    def finish(self):
        """Its exit status, once all that it wrote is read."""
        self.wait(lambda: self.process.poll() is not None, "it ended")
        while select.select([self.master], [], [], 0)[0]:
            self.read(0)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        os.close(self.master)
        os.close(self.terminal)


class TopCase(unittest.TestCase):
    def setUp(self):
        self.broker = Broker()
        self.addCleanup(self.broker.close)

    def top(self, *args, **more):
        top = Top(self.broker.url, *args, **more)
        self.addCleanup(top.close)
        return top

    def assert_given_back(self, top):
        self.assertFalse(top.is_alternate)
        self.assertTrue(top.written.rstrip().endswith("\x1b[?25h\x1b[?1049l"), top.written[-60:])
        self.assertEqual(termios.tcgetattr(top.terminal), top.before)

    def test_o8_at_80_by_24_it_is_readable_and_q_gives_the_terminal_back(self):
        top = self.top()
        top.wait_shows("h/0")
        self.assertTrue(top.is_alternate)
        top.wait_shows("health    ")
        top.wait_shows("turn 3, bash; http")
        self.assertTrue(top.rows[24].startswith("Tab panel  Enter details"), top.rows)
        for row in top.rows.values():
            self.assertLessEqual(len(row), 80)
        top.press("\r")
        top.wait_shows("http://gpu1:8000: HTTP 503; tried 2 times")
        top.press("\x1b")
        top.wait_shows("Tab panel")
        top.press("?")
        top.wait_shows("quit")
        top.press("xq")
        self.assertEqual(top.finish(), 0)
        self.assert_given_back(top)

    def test_o8_a_window_that_changes_is_drawn_anew(self):
        top = self.top()
        top.wait_shows("h/0")
        top.size(120, 40)
        top.wait(lambda: top.rows.get(40, "").startswith("Tab panel"), "the last row is 40")
        top.size(60, 16)
        top.wait(lambda: top.rows.get(16, "").startswith("Tab panel"), "the last row is 16")
        self.assertLessEqual(max(len(row) for row in top.rows.values()), 60)
        top.size(20, 5)
        top.wait_shows("40 x 12 is need")
        top.size(80, 24)
        top.wait_shows("h/0")

    def test_o8_signals_that_end_it_give_the_terminal_back(self):
        for kill in (lambda top: top.press("\x03"), lambda top: os.kill(top.process.pid, signal.SIGTERM),
                     lambda top: os.kill(top.process.pid, signal.SIGHUP)):
            top = self.top()
            top.wait_shows("h/0")
            kill(top)
            self.assertEqual(top.finish(), 0)
            self.assert_given_back(top)

    def test_o8_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(self):
        top = self.top()
        top.wait_shows("h/0")
        top.press("\x1a")
        _, status = os.waitpid(top.process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        top.wait(lambda: not top.is_alternate, "the terminal is as it was")
        self.assert_given_back(top)
        os.kill(top.process.pid, signal.SIGCONT)
        top.wait(lambda: top.is_alternate, "it is there again")
        top.wait_shows("h/0")
        top.press("q")
        self.assertEqual(top.finish(), 0)
        self.assert_given_back(top)

    def test_o8_a_broker_that_is_away_is_said_and_it_comes_back(self):
        top = self.top()
        top.wait_shows("h/0")
        self.broker.order("leave")
        top.wait_shows("no broker answers")
        self.assertTrue(top.shows("h/0"))
        self.broker.order("return")
        top.wait(lambda: not top.shows("no broker answers"), "it answers")
        self.broker.order("leave")
        top.press("q")
        self.assertEqual(top.finish(), 0)
        self.assert_given_back(top)

    def test_o8_over_a_line_that_takes_nothing_it_stays_alive_and_quits(self):
        top = self.top(columns=200, rows=200)
        for _ in range(300):  # each makes it paint all rows, which nobody reads
            top.size(150 if top.columns == 200 else 200, 200)
        top.press("q")
        top.process.wait(30)
        self.assertEqual(top.process.returncode, 0)
        self.assertEqual(termios.tcgetattr(top.terminal), top.before)

    def test_o8_only_what_differs_is_written(self):
        top = self.top()
        top.wait_shows("h/0")
        asked = int(self.broker.order("asked"))
        written = len(top.written)
        top.wait(lambda: int(self.broker.order("asked")) >= asked + 10, "ten more answers")
        self.assertLess(len(top.written) - written, 2000)

    def test_o8_colours_only_where_they_are_wanted(self):
        colour = re.compile(r"\x1b\[(1;)?3[0-9]m")
        top = self.top()
        top.wait_shows("h/0")
        self.assertRegex(top.written, colour)
        plain = self.top(NO_COLOR="1")
        plain.wait_shows("h/0")
        self.assertNotRegex(plain.written, colour)

    def test_o8_a_terminal_without_utf8_is_shown_ascii(self):
        top = self.top(columns=60, LANG="C", LC_ALL="C")
        top.wait_shows("h/0")
        self.assertTrue(top.written.isascii())

    def test_o8_piped_it_is_plain_lines(self):
        done = subprocess.run([SLUICE, "top", "--broker", self.broker.url, "--interval", "100ms", "--count", "3"],
                              capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(len(done.stdout.splitlines()), 3)
        self.assertNotIn("\x1b", done.stdout)
        self.assertRegex(done.stdout, r"(?m)\A\d\d:\d\d:\d\d  ")

    def test_o8_a_dumb_terminal_gets_lines_too(self):
        top = self.top(options=("--count", "2"), TERM="dumb")
        self.assertEqual(top.finish(), 0)
        self.assertNotIn("\x1b", top.written)
        self.assertEqual(top.written.count("\r\n"), 2)

    def test_o8_piped_without_a_broker_it_says_so_and_fails(self):
        self.broker.order("leave")
        done = subprocess.run([SLUICE, "top", "--broker", self.broker.url, "--count", "1"], capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no broker answers", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
