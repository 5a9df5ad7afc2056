"""The same task on each tier of sandbox that this machine allows, through the whole service."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import SLUICE, Service, check_trajectories  # noqa: E402
from test_images import IMAGE, make_root, make_sif, make_squashfs  # noqa: E402


def call(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


TASK = {
    "task": "everywhere", "files": [{"path": "given.txt", "text": "hello\n"}], "setup": ["echo base > base.txt"],
    "agent": {"kind": "replay", "tools": ["bash", "edit", "ipython", "submit"], "script": [
        call("bash", command="cat given.txt base.txt; chmod +x given.txt; kept=5"),
        call("edit", command="str_replace", path="/workspace/given.txt", old_str="hello", new_str="goodbye"),
        call("bash", command="echo a long line > long.txt; ln long.txt same.txt"),
        call("edit", command="str_replace", path="long.txt", old_str="a long", new_str="one"),
        call("ipython", code="open('given.txt').read()"),
        call("bash", command="echo $kept; (exec 3<>/dev/tcp/127.0.0.1/PORT) 2>/dev/null || echo nobody"),
        call("submit", answer="done")]},
    "eval": {"kind": "command", "command": "test -x given.txt && test -s base.txt && diff given.txt expected.txt && "
             "echo one line | cmp - same.txt",
             "files": [{"path": "expected.txt", "text": "goodbye\n"}]}}


def on_image(path):
    """What an image has is seen by all stages, and what was made in the workspace by the next."""
    return {"task": "imaged", "image": path, "setup": ["echo made >made"],
            "agent": {"kind": "replay", "tools": ["bash", "submit"], "script": [
                call("bash", command="cat /etc/which made; echo more >>made"),
                call("submit", answer="done")]},
            "eval": {"kind": "command", "command": "test \"$(cat /etc/which made)\" = $'packed\\nmade\\nmore'"}}


def allowed_tiers():
    with subprocess.Popen([SLUICE, "doctor", "--json"], stdout=subprocess.PIPE) as doctor:
        told = json.load(doctor.stdout)
    return [tier["name"] for tier in told["tiers"] if tier["ok"]]


class Tiers(unittest.TestCase):
    def test_a_task_is_done_and_scored_alike_on_every_tier(self):
        tiers = allowed_tiers()
        self.assertGreater(len(tiers), 0)
        for tier in tiers:
            with self.subTest(tier=tier), Service(options=["--sandbox", tier]) as service:
                # the broker itself listens outside: no sandbox may reach it
                task = json.loads(json.dumps(TASK).replace("PORT", str(service.port)))
                trajectories = service.submit([task], "tiers", samples=2)
                check_trajectories(self, trajectories, 1, 2)
                for t in trajectories:
                    said = [m["content"].strip() for m in t["messages"]]
                    self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), t)
                    self.assertEqual(said[0], "hello\nbase")
                    self.assertIn('was edited', said[1])
                    self.assertIn('was edited', said[3])
                    self.assertEqual(said[4], "Out[1]: 'goodbye\\n'")
                    self.assertEqual(said[5], "5\nnobody")
                self.assertEqual({worker["sandbox"] for worker in service.status()["workers"]}, {tier})

    def test_a_task_on_a_sif_is_done_on_every_tier_that_has_images_and_unpacks_it_once(self):
        with tempfile.TemporaryDirectory(prefix="sluice-tiers-") as there:
            root = make_root(os.path.join(there, "root"), "packed")
            sif = make_sif(make_squashfs(root, os.path.join(there, "it.squashfs")), os.path.join(there, "it.sif"))
            for tier in allowed_tiers():
                if tier == "landlock":
                    continue
                with self.subTest(tier=tier), Service(options=["--sandbox", tier, "--images", there]) as service:
                    trajectories = service.submit([on_image(sif)], "imaged", samples=2)
                    check_trajectories(self, trajectories, 1, 2)
                    for t in trajectories:
                        self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), t)
                        self.assertTrue(t["messages"][0]["content"].startswith("packed\nmade\n"), t)
                    said = subprocess.run([IMAGE, "list", "--json", "--cache", os.path.join(service.data, "cache")],
                                          capture_output=True, check=True)
                    self.assertEqual([row["kind"] for row in json.loads(said.stdout)], ["sif"])


if __name__ == "__main__":
    unittest.main()
