"""SandboxFusion's /run_code, as verl, slime and ProRL call it."""
import base64
import shutil
import unittest
from concurrent.futures import ThreadPoolExecutor

from prorl_world import World, call

KEYS = {"status", "message", "compile_result", "run_result", "executor_pod_name", "files"}


class RunCode(World):
    slots = 8

    def run_code(self, code, language="python", **more):
        """As verl's reward function has it."""
        answer = self.post("/run_code", {"compile_timeout": 10, "run_timeout": 10, "code": code, "stdin": "", "memory_limit_MB": 1024,
                                         "language": language, "files": {}, "fetch_files": [], **more})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(set(answer.json), KEYS)
        return answer.json

    def test_what_a_program_prints(self):
        told = self.run_code("import sys\nprint(sys.stdin.read()[::-1])\nprint('w\u00f6rter', file=sys.stderr)", stdin="abc")
        self.assertEqual((told["status"], told["message"], told["compile_result"], told["files"]), ("Success", "", None, {}))
        run = told["run_result"]
        self.assertEqual((run["status"], run["return_code"], run["stdout"], run["stderr"]), ("Finished", 0, "cba\n", "w\u00f6rter\n"))
        self.assertTrue(0 < run["execution_time"] < 10, run)

    def test_one_that_fails(self):
        told = self.run_code("import sys\nprint('half')\nsys.exit(3)")
        self.assertEqual((told["status"], told["run_result"]["status"], told["run_result"]["return_code"], told["run_result"]["stdout"]),
                         ("Failed", "Finished", 3, "half\n"))
        raised = self.run_code("raise ValueError('no')")
        self.assertEqual(raised["run_result"]["return_code"], 1)
        self.assertIn("ValueError: no", raised["run_result"]["stderr"])
        killed = self.run_code("import os\nos.kill(os.getpid(), 9)")
        self.assertEqual((killed["status"], killed["run_result"]["status"], killed["run_result"]["return_code"]), ("Failed", "Finished", 137))

    def test_one_that_does_not_end(self):
        told = self.run_code("import time\nprint('begun', flush=True)\ntime.sleep(60)", run_timeout=0.5)
        run = told["run_result"]
        self.assertEqual((told["status"], run["status"], run["return_code"], run["stdout"]), ("Failed", "TimeLimitExceeded", None, "begun\n"))
        self.assertGreaterEqual(run["execution_time"], 0.5)

    @unittest.skipUnless(shutil.which("g++"), "there is no g++ here")
    def test_what_is_compiled(self):
        code = "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }"
        told = self.run_code(code, "cpp", stdin="20 22", compile_timeout=60)
        self.assertEqual((told["status"], told["compile_result"]["return_code"], told["run_result"]["stdout"]), ("Success", 0, "42\n"))
        wrong = self.run_code("int main() { return x; }", "cpp", compile_timeout=60)
        self.assertEqual((wrong["status"], wrong["run_result"], wrong["compile_result"]["status"]), ("Failed", None, "Finished"))
        self.assertIn("'x' was not declared", wrong["compile_result"]["stderr"].replace("\u2018", "'").replace("\u2019", "'"))

    def test_files_go_in_and_come_out(self):
        told = self.run_code("data = open('in/a.bin', 'rb').read()\nopen('out.bin', 'wb').write(data[::-1])",
                             files={"in/a.bin": base64.b64encode(b"\x00\xffabc").decode()}, fetch_files=["out.bin", "missing", "a'b"])
        self.assertEqual(told["status"], "Success", told)
        self.assertEqual({name: base64.b64decode(data) for name, data in told["files"].items()}, {"out.bin": b"cba\xff\x00"})

    def test_what_is_too_much_is_said(self):
        told = self.run_code("print('x' * 1000000)")
        self.assertEqual((told["status"], len(told["run_result"]["stdout"])), ("Success", 384 << 10))
        self.assertIn("stdout is cut at 393216 bytes", told["message"])
        hungry = self.run_code("x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1", memory_limit_MB=128)
        self.assertEqual(hungry["status"], "Failed", hungry)
        large = self.post("/run_code", {"code": "#" + "x" * (2 << 20), "language": "python"})
        self.assertEqual(large.status, 400, large)

    def test_code_that_answers_for_the_script_is_not_heard(self):
        code = """
import os
def parent(pid): return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
pid, forged = os.getpid(), b"run 0 1 Zm9yZ2Vk -\\nfile b3V0 AA==\\nfile b3V0 AQ==\\nmissing truth\\n"
while pid > 1:
    pid = parent(pid)
    try: open(f"/proc/{pid}/fd/1", "wb").write(forged)
    except OSError: pass
raise SystemExit(3)
"""
        told = self.run_code(code)
        self.assertEqual((told["status"], told["message"], told["run_result"]["return_code"]), ("Failed", "", 3), told)
        self.assertNotEqual(told["run_result"]["stdout"], "forged")

    def test_what_the_image_lacks_is_the_sandboxs_fault(self):
        told = self.run_code("1", "racket")
        self.assertEqual((told["status"], told["run_result"]), ("SandboxError", None))
        self.assertIn("racket", told["message"])

    def test_wrong_bodies(self):
        for body, loc in (({}, "code"), ({"code": "1"}, "language"), ({"code": 1, "language": "python"}, "code"),
                          ({"code": "1", "language": "cobol"}, "language"), ({"code": "1", "language": "python", "stdin": 7}, "stdin")):
            answer = self.post("/run_code", body)
            self.assertEqual((answer.status, answer.json["detail"][0]["loc"][-1]), (422, loc), (body, answer))
        least = self.post("/run_code", {"code": "print(1)", "language": "python"})
        self.assertEqual(least.json["run_result"]["stdout"], "1\n", least)

    def test_many_at_once_each_with_its_own(self):
        with ThreadPoolExecutor(32) as pool:
            told = list(pool.map(lambda i: self.run_code(f"print({i % 4})"), range(96)))
        self.assertEqual([one["run_result"]["stdout"] for one in told], [f"{i % 4}\n" for i in range(96)])

    def test_ping(self):
        self.assertEqual(call(self.gateway.port, "GET", "/v1/ping").json, "pong")


if __name__ == "__main__":
    unittest.main(verbosity=2)
