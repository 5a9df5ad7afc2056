"""ProRL's own clients, as they are, against the gateway: run_math.py and profile_batch.py of the folder that PRORL_SCRIPTS names
(scripts/ of its repository), with the Python of PRORL_PYTHON, which has aiohttp, pandas, numpy and pyarrow. Nothing of them is here."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from prorl_world import GATEWAY, World, math

FOLDER = os.environ.get("PRORL_SCRIPTS")
CLIENTS_PYTHON = os.environ.get("PRORL_PYTHON", sys.executable)

# What stands in the place of start_server.py: the gateway, on the port that the scripts ask for.
START_SERVER = """
import argparse, os
options = argparse.ArgumentParser()
options.add_argument("--port")
options.add_argument("--timeout")
options.add_argument("--reward-server-ip", nargs="*")
given = options.parse_args()
os.execv({gateway!r}, [{gateway!r}, "--listen", given.port, "--broker", {broker!r}, "--prorl-timeout", given.timeout + "s",
                       "--state", {state!r}, "--stream", {stream!r}])
"""
ROWS = """
import json, sys
import pandas
pandas.DataFrame(json.load(sys.stdin)).to_parquet(sys.argv[1])
"""
BATCH = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
from profile_batch import OpenHandsBatchProcessor
given = json.load(sys.stdin)
told = []
for _ in range(2):
    batch = OpenHandsBatchProcessor([given["gateway"]], openhands_num_workers=8, server_addresses=[given["engine"]])
    told.append(asyncio.run(batch.generate_sequences(given["messages"])))
print(json.dumps(told))
"""


class Clients(World):
    def run_python(self, script, *arguments, given=None, seconds=240):
        done = subprocess.run([CLIENTS_PYTHON, "-c", script, *arguments] if "\n" in script else [CLIENTS_PYTHON, script, *arguments],
                              input=json.dumps(given), capture_output=True, text=True, timeout=seconds)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_run_math(self):
        """Starts a server of its own, and stops it."""
        port = self.gateway.port
        self.gateway.end()
        with tempfile.TemporaryDirectory() as folder:
            script, rows, results = (os.path.join(folder, name) for name in ("run_math.py", "rows.parquet", "results.jsonl"))
            shutil.copy(os.path.join(FOLDER, "run_math.py"), script)
            with open(os.path.join(folder, "start_server.py"), "w", encoding="utf-8") as file:
                file.write(START_SERVER.format(gateway=GATEWAY, broker=self.fleet.url, state=os.path.join(folder, "ids"),
                                               stream=f"prorl-{self.number}"))
            given = [math(number, answer="2" if number % 2 else "3") for number in range(40)]
            for row in given:
                del row["trajectory_id"]
            self.run_python(ROWS, rows, given=given)
            said = self.run_python(script, "--dataset-path", rows, "--output", results, "--port", str(port), "--llm-addresses",
                                   self.engine.url + "/v1", "--sampling-params", '{"max_iterations": 3}')
            self.assertIn("Resolved 20", said)
            with open(results, encoding="utf-8") as lines:
                told = [json.loads(line) for line in lines]
        self.assertEqual({(row["instance_id"], row["trajectory_id"]) for row in told}, {(f"math-{n}", n) for n in range(40)})

    def test_profile_batch(self):
        """Clears, adds, starts and stops around each batch; weights may have changed in between."""
        messages = [math(number // 4, trajectory_id=number % 4) for number in range(32)]
        told = json.loads(self.run_python(BATCH, os.path.join(FOLDER, "profile"), given={
            "gateway": f"http://127.0.0.1:{self.gateway.port}", "engine": self.engine.url.removeprefix("http://"), "messages": messages}))
        for batch in told:
            self.assertEqual(len(batch), 8)
            for trajectories in batch.values():
                self.assertEqual(sorted(trajectories), list("0123"))
                self.assertTrue(all(one["resolved"] and one["messages"] for one in trajectories.values()), trajectories)


if __name__ == "__main__":
    if not FOLDER:
        print("skipped: PRORL_SCRIPTS names no folder of ProRL's scripts")
        sys.exit(77)
    unittest.main(verbosity=2)
