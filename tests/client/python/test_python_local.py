"""sluice.local(): a service of one's own, and nothing left of it, however its client or its process ends."""
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
import threading
import unittest
import unittest.mock
import warnings

BINARY = os.environ["SLUICE_BINARY_DIR"]
if "SLUICE_PYTHON_INSTALLED" not in os.environ:
    os.environ["PATH"] = os.path.join(BINARY, "client") + ":" + os.environ["PATH"]

from python_world import ENVIRONMENT  # noqa: E402
import sluice  # noqa: E402

TASK = {"task": "a", "agent": {"kind": "none"}, "eval": {"kind": "command", "command": "true"}}


def processes(directory):
    """Pids whose command line names it."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if directory.encode() in file.read():
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


class Local(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sl-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.place = folder.name
        self.old, tempfile.tempdir = tempfile.tempdir, self.place
        self.addCleanup(setattr, tempfile, "tempdir", self.old)

    def assert_nothing_left(self, seconds=30):
        end = time.monotonic() + seconds
        while processes(self.place) or glob.glob(self.place + "/*"):
            self.assertLess(time.monotonic(), end, (processes(self.place), glob.glob(self.place + "/*")))
            time.sleep(0.05)

    def run_python(self, code, **more):
        return subprocess.Popen([sys.executable, "-c", code], env=dict(ENVIRONMENT, TMPDIR=self.place, PATH=os.environ["PATH"]),
                                stdout=subprocess.PIPE, text=True, **more)

    def test_tasks_become_trajectories_and_nothing_is_left(self):
        with sluice.local(slots=2) as client:
            self.assertEqual(os.stat(os.path.dirname(client.url[6:])).st_mode & 0o777, 0o700)
            client.submit([TASK], stream="s", samples=3)
            self.assertEqual([(t.outcome, t.reward) for t in client.trajectories("s", until_idle=True)], [("ok", 1.0)] * 3)
            with sluice.Client(client.url) as other:
                self.assertEqual(len(other.status()["workers"]), 3)
        self.assert_nothing_left()
        client.close()  # again

    def test_what_was_accepted_is_there_at_the_next_start_with_the_same_data(self):
        data = os.path.join(self.place, "kept")
        with sluice.local(data=data) as client:
            client.submit([TASK], stream="s")
        with sluice.local(data=data) as client:
            self.assertEqual([t.outcome for t in client.trajectories("s", until_idle=True)], ["ok"])
        self.assertTrue(os.path.exists(os.path.join(data, "ledger.db")))

    def test_a_client_that_is_dropped_stops_its_service(self):
        client = sluice.local()
        directory = os.path.dirname(client.log)
        self.assertTrue(processes(directory))
        del client
        self.assert_nothing_left()

    def test_an_interpreter_that_ends_or_raises_stops_it(self):
        for end in ("", "raise SystemExit(1)", "1 / 0"):
            child = self.run_python(f"import sluice\nclient = sluice.local()\nprint(client.url, flush=True)\n{end}", stderr=subprocess.DEVNULL)
            self.assertTrue(child.stdout.readline().startswith("ipc://"))
            child.wait(60)
            child.stdout.close()
            self.assert_nothing_left()

    def test_an_interpreter_that_is_killed_takes_its_service_with_it_and_the_next_one_tidies_up(self):
        child = self.run_python("import sluice, time\nclient = sluice.local()\nprint(client.log, flush=True)\ntime.sleep(600)")
        log = child.stdout.readline().strip()
        child.send_signal(signal.SIGKILL)
        child.wait(30)
        child.stdout.close()
        end = time.monotonic() + 30
        while processes(self.place):
            self.assertLess(time.monotonic(), end, "its service goes on")
            time.sleep(0.05)
        os.utime(log, (time.time() - 3600, time.time() - 3600))
        sluice.local().close()
        self.assert_nothing_left()

    def test_a_thread_that_starts_one_and_ends_and_a_forked_child_do_not_stop_it(self):
        made = []
        thread = threading.Thread(target=lambda: made.append(sluice.local()))
        thread.start()
        thread.join()
        with made.pop() as client:
            pid = os.fork()
            if pid == 0:
                client._stop()  # as its exit would
                os._exit(0)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            client.submit([TASK], stream="s")
            self.assertEqual(len(list(client.trajectories("s", until_idle=True))), 1)
        self.assert_nothing_left()

    def test_what_cannot_start_says_why_in_the_programs_words(self):
        file = os.path.join(self.place, "file")
        with open(file, "w", encoding="utf-8"):
            pass
        for call, said in ((dict(engine="nonsense"), "not a base URL"), (dict(options=["--sandbx", "x"]), "did you mean '--sandbox'"),
                           (dict(data=file + "/x"), "Not a directory"), (dict(wait=0), "not ready within 0 s")):
            with self.assertRaisesRegex(sluice.ServiceError, said):
                sluice.local(**call)
        for call, field in ((dict(engine=3), "engine"), (dict(engine=[""]), "engine"), (dict(slots=0), "slots"), (dict(options="--run 2"), "options"),
                            (dict(wait=-1), "wait"), (dict(images=[3]), "images"), (dict(data=3), "data")):
            with self.assertRaises((sluice.BadArgument, TypeError)) as raised:
                sluice.local(**call)
            self.assertEqual(getattr(raised.exception, "field", field), field)
        os.remove(file)
        self.assert_nothing_left()

    def test_programs_that_are_not_there_or_cannot_be_executed_are_named(self):
        from sluice import service
        with unittest.mock.patch.object(service, "find_program", return_value=os.path.join(self.place, "sluice")):
            path = service.find_program()
            for content, mode, said in (("", 0o600, "Permission denied.*chmod"), ("nothing", 0o755, "Exec format error")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content)
                os.chmod(path, mode)
                with self.assertRaisesRegex(sluice.ServiceError, said):
                    sluice.local()
            os.remove(path)
        with unittest.mock.patch.dict(os.environ, PATH="/nowhere"), unittest.mock.patch.object(service.sysconfig, "get_path",
                return_value="/nowhere"), unittest.mock.patch.object(service.importlib.metadata, "files", return_value=[]):
            with self.assertRaisesRegex(sluice.ServiceError, "client alone. Install the wheel"):
                sluice.local()
        self.assert_nothing_left()

    def test_a_directory_that_cannot_be_made_names_another_place(self):
        tempfile.tempdir = "/proc"
        with self.assertRaisesRegex(sluice.ServiceError, "/proc.*TMPDIR=DIR"):
            sluice.local()

    def test_a_machine_without_sandboxes_is_warned_of(self):
        from sluice import service

        class Status:
            def status(self):
                return {"workers": [{"sandbox": "none", "sandbox_why": "user namespaces: not allowed"}]}
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            service.warn_of_sandboxes(Status())
        self.assertRegex(str(seen[0].message), "user namespaces: not allowed.*sluice doctor")


if __name__ == "__main__":
    unittest.main()
