"""Every program on the trainers' page runs, in its order, against a real service."""
import os
import re
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import PYTHON, SLUICE, SOURCE, Service  # noqa: E402

PAGE = os.path.join(SOURCE, "docs", "trainers.md")


class Trainers(unittest.TestCase):
    def test_every_block_of_the_page_runs(self):
        with open(PAGE, encoding="utf-8") as text:
            blocks = re.findall(r"^## (.*?)$|^```(python|sh)\n(.*?)^```$", text.read(), re.S | re.M)
        ran, title = 0, ""
        with Service() as service:
            environment = dict(service.environment, PYTHONPATH=os.path.join(SOURCE, "client", "python"),
                               PYTHONDONTWRITEBYTECODE="1", PATH=os.path.dirname(SLUICE) + ":" + os.environ["PATH"])
            for heading, language, program in blocks:
                title = heading or title
                if heading:
                    continue
                command = [PYTHON, "-c", program] if language == "python" else ["bash", "-ec", program]
                done = subprocess.run(command, cwd=service.root, env=environment, capture_output=True, text=True,
                                      timeout=120)
                self.assertEqual(done.returncode, 0, f"{title}:\n{program}\n{done.stdout}{done.stderr}")
                ran += 1
        self.assertGreater(ran, 10)


if __name__ == "__main__":
    unittest.main()
