"""An evaluation in the agent's own sandbox, and what is collected before it, are hurt: a worker dies, they are cancelled, time is up, memory or disk are used up."""
import glob
import os
import sys
import unittest
import uuid

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import Service, wait_until  # noqa: E402

WAIT = "(setsid sleep 1000 > /dev/null 2>&1 &); "
GOOD = "; echo 1 > /logs/verifier/reward.txt"


def processes_with(mark):
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as text:
                words = text.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if mark in " ".join(words) and os.path.basename(words[0]) in ("bash", "sleep", "python3", "test.sh"):
            found.append(int(path.split("/")[2]))
    return found


class Evaluation(unittest.TestCase):
    def setUp(self):
        self.mark = f"sluice-{uuid.uuid4().hex}"

    def task(self, name, script, agent="true", **limits):
        """The oracle does `agent`, and leaves a process; the verifier is `script`. Both say the mark."""
        return {"task": name, "prompt": "p", "agent": {"kind": "oracle"}, "limits": limits,
                "solution": {"commands": [WAIT + agent]},
                "eval": {"kind": "verifier", "sandbox": "agent", "command": f"bash -c '{script}' {self.mark}"}}

    def inside(self):
        return processes_with(self.mark)

    def directories(self, service):
        """Of the workers' cache: what sandboxes and layers leave behind would lie there."""
        with os.scandir(os.path.join(service.data, "cache")) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def assert_gone(self, service, before):
        wait_until(lambda: not self.inside(), 10, "what ran inside is gone")
        wait_until(lambda: self.directories(service) == before, 10, f"{self.directories(service)} are {before}")

    def test_a_killed_worker_loses_the_run_and_its_verdict_and_all_is_done_again(self):
        with Service() as service:
            before = self.directories(service)
            waiting, out = service.submit([self.task("killed", "sleep 6" + GOOD)], "killed", wait=False)
            first = wait_until(self.inside, 60, "the verifier runs")
            service.kill("sluice-worker", "run")
            wait_until(lambda: not set(first) & set(self.inside()), 10, "what it ran is gone")
            wait_until(self.inside, 60, "it runs again")
            (ended,) = service.finish(waiting, out)
            self.assertEqual((ended["outcome"], ended["reward"], ended["eval_sandbox"]), ("ok", 1.0, "agent"))
            self.assertEqual(service.status()["counters"]["lost"], 1)
            self.assert_gone(service, before)

    def test_a_cancelled_one_ends_at_once_and_without_a_reward(self):
        with Service() as service:
            before = self.directories(service)
            waiting, out = service.submit([self.task("cancelled", "echo 1 > /logs/verifier/reward.txt; sleep 1000", eval_s=1000)], "cancelled", wait=False)
            wait_until(self.inside, 60, "the verifier runs")
            service.run("cancel", "--stream", "cancelled")
            self.assert_gone(service, before)
            (ended,) = service.finish(waiting, out, 60)
            self.assertEqual((ended["outcome"], ended["trainable"], ended["parts"]), ("cancelled", False, []))
            (after,) = service.submit([self.task("after", "true" + GOOD)], "after")
            self.assertEqual((after["outcome"], after["reward"]), ("ok", 1.0))

    def test_a_run_cancelled_while_it_collects_ends_at_once(self):
        task = self.task("collects", "true" + GOOD)
        task["eval"]["collect"] = [{"command": f"echo > /tmp/begun; sleep 1000; : {self.mark}", "timeout_s": 2000}]
        with Service() as service:
            before = self.directories(service)
            waiting, out = service.submit([task], "collects", wait=False)
            wait_until(self.inside, 60, "the command runs")
            service.run("cancel", "--stream", "collects")
            self.assert_gone(service, before)
            (ended,) = service.finish(waiting, out, 60)
            self.assertEqual((ended["outcome"], ended["trainable"], ended["parts"]), ("cancelled", False, []))

    def test_what_its_limits_end_is_the_tasks_fault_and_what_the_service_ends_is_not(self):
        fill = "head -c 64M /dev/zero > /app-fill"
        tasks = {
            "time": self.task("time", "echo 1 > /logs/verifier/reward.txt; sleep 1000", eval_s=2),
            "memory": self.task("memory", 'echo 1 > /logs/verifier/reward.txt; x=$(head -c 200M /dev/zero | tr "\\0" x); sleep 9', memory_mib=64),
            "disk": self.task("disk", fill + GOOD, disk_mib=8),
            "agents-disk": self.task("agents-disk", "true" + GOOD, agent=fill + "; true", disk_mib=8),
            "processes": self.task("processes", "for i in {1..100}; do sleep 1000 & done; wait", eval_s=3, processes=32),
            "total": self.task("total", "echo 1 > /logs/verifier/reward.txt; sleep 1000", eval_s=1000, total_s=6),
        }
        with Service() as service:
            before = self.directories(service)
            ended = {t["task"]: t for t in service.submit(list(tasks.values()), "limits")}
            self.assert_gone(service, before)
            said = {name: (ended[name]["outcome"], ended[name]["trainable"]) for name in tasks}
            self.assertEqual(said, {**dict.fromkeys(tasks, ("task", False)), "total": ("infra", False)})
            for name, words in (("time", r"the verifier was stopped after [12]\.\d s"), ("memory", "memory limit"), ("disk", "the verifier left no reward"),
                                ("agents-disk", "the verifier left no reward"), ("processes", r"processes limit|the verifier was stopped after [23]\.\d s"),
                                ("total", "its total time of 6 s was over")):
                self.assertRegex(ended[name]["detail"], words)
            (after,) = service.submit([self.task("after", "true" + GOOD)], "after")
            self.assertEqual((after["outcome"], after["reward"]), ("ok", 1.0))


if __name__ == "__main__":
    unittest.main()
