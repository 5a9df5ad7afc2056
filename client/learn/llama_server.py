"""llama.cpp's server as a process that is started anew for each version of the weights."""
import os
import subprocess
import time
import urllib.request

CORES = os.cpu_count() or 1
THREADS = CORES // 2 if CORES > 3 else 1  # they wait for each other: on few cores, one is much faster where others work, too
EXACT = ("-ctk", "f32", "-ctv", "f32", "-fa", "off")  # log-probabilities as torch computes them, to 1e-4


class LlamaServer:
    def __init__(self, program, port, log, slots=8, tokens=512):
        # It ends with this process, however that ends: the next one starts its own, on the weights of its checkpoint.
        self.command = ["setpriv", "--pdeathsig", "KILL", program, "--host", "127.0.0.1", "--port", str(port), "-np", str(slots), "-c", str(slots * tokens),
                        "-t", str(THREADS), "--poll", "0", *EXACT]
        self.url, self.log, self.process = f"http://127.0.0.1:{port}", log, None

    def start(self, weights):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.command, "-m", weights], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=1) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.02)
        self.stop()
        raise SystemExit(f"learn: llama.cpp's server did not start; see the end of {self.log}")

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None
