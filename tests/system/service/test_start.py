"""A start that fails says what to do, exits 1 and leaves nothing; so does Ctrl-C."""
import json
import os
import signal
import socket
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import BROKER, SLUICE, WORKER, Service, free_ports, wait_until  # noqa: E402


class Start(unittest.TestCase):
    def failed_start(self, service):
        done = subprocess.run(service.arguments, env=service.environment, capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        service.check_nothing_left()
        return done.stdout + done.stderr

    def test_a_port_in_use_is_named(self):
        service = Service()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", service.port))
            taken.listen()
            said = self.failed_start(service)
        self.assertIn(str(service.port), said)
        self.assertIn("in use", said)

    def test_a_data_directory_that_cannot_be_written_is_named(self):
        service = Service()
        with open(service.data, "w", encoding="utf-8") as file:
            file.write("a file, not a directory")
        said = self.failed_start(service)
        self.assertIn(service.data, said)

    def test_a_second_broker_on_the_same_data_is_refused(self):
        with Service() as service:
            port = free_ports(3)
            done = subprocess.run([BROKER, "--front", str(port), "--sink", str(port + 1), "--feed", str(port + 2),
                                   "--data", service.data], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 1)
            self.assertIn(service.data, done.stderr)

    def test_no_broker_is_a_sentence_that_says_what_to_do(self):
        port = free_ports(3)
        done = subprocess.run([SLUICE, "status", "--broker", f"tcp://127.0.0.1:{port}"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is it up, and is this its FRONT?", done.stderr)

    def test_no_engine_is_a_sentence_that_says_what_to_do(self):
        with Service() as service:
            path = os.path.join(service.root, "tasks.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write(json.dumps({"task": "a", "prompt": "hello", "agent": {"kind": "chat"}}) + "\n")
            done = service.run("submit", path, "--stream", "s", check=False)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("sluice engine add", done.stdout + done.stderr)

    def test_the_status_tells_the_tier_and_the_kernel_of_every_worker(self):
        with Service() as service:
            doctor = subprocess.run([SLUICE, "doctor", "--json", "--cache", os.path.join(service.data, "cache")],
                                    capture_output=True, text=True, timeout=60)
            tier = json.loads(doctor.stdout)["tier"]
            workers = service.status()["workers"]
            self.assertEqual(len(workers), 3)
            for worker in workers:
                self.assertEqual((worker["sandbox"], worker["sandboxes"], worker["kernel"]), (tier, 0, os.uname().release))
                self.assertEqual("sandbox_why" in worker, tier != "overlay-tmpfs", worker)
            said = service.run("status").stdout
            self.assertIn(tier, said)
            self.assertIn(os.uname().release, said)

    def test_with_log_format_json_every_event_of_all_programs_is_an_object(self):
        with Service(options=["--log-format", "json"]) as service:
            wait_until(lambda: "lane-connected" in service.read_log(), 30, "a worker is connected to")
            lines = service.read_log().splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        self.assertEqual({event["program"] for event in events}, {"broker", "worker"})
        for event in events:
            self.assertEqual(list(event)[:4], ["time", "level", "program", "id"])
            self.assertTrue(all(isinstance(value, str) for value in event.values()), event)
        self.assertEqual([line for line in lines if line.startswith("20")], [])  # no event as text

    def test_ctrl_c_stops_all_and_leaves_nothing(self):
        with Service() as service:
            service.stop(signal.SIGINT)
            self.assertEqual(service.process.returncode, 0)

    def test_a_killed_supervisor_takes_its_processes_with_it(self):
        with Service() as service:
            os.kill(service.process.pid, signal.SIGKILL)
            service.process.wait(10)
            wait_until(lambda: not service.processes(), 60, "every process gone")

    def test_help_teaches_and_wrong_usage_exits_2(self):
        for command in ([SLUICE, "--help"], [SLUICE, "up", "--help"], [SLUICE, "submit", "--help"],
                        [BROKER, "--help"], [WORKER, "--help"]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 0, command)
            self.assertGreater(len(done.stdout), 200, command)
        for command in ([SLUICE, "frobnicate"], [SLUICE, "submit"], [BROKER, "--nonsense"], [WORKER, "nonsense"]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, command)


if __name__ == "__main__":
    unittest.main()
