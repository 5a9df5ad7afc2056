"""What the pages say is so: links lead somewhere, commands and their options exist, the Python example is the package's."""
import os
import re
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import SLUICE  # noqa: E402
from texts import ROOT, pages, read  # noqa: E402


class Pages(unittest.TestCase):
    def test_links_lead_somewhere(self):
        seen = 0
        for page in pages():
            for target in re.findall(r"\]\(([^)#]+)\)", read(page)):
                if "://" not in target:
                    seen += 1
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), target)), f"{page}: {target}")
        self.assertGreater(seen, 10)

    def test_commands_and_options_exist(self):
        helps, seen = {}, 0
        for page in pages():
            for block in re.findall(r"```\n(.*?)```", read(page), re.S):
                for command, rest in re.findall(r"^\s*sluice(?: |-(?=broker|worker))([a-z]+)([^#\n&]*)", block, re.M):
                    if command not in helps:
                        done = subprocess.run([SLUICE, command, "--help"], capture_output=True, text=True, timeout=30)
                        self.assertEqual(done.returncode, 0, f"{page}: sluice {command}")
                        helps[command] = done.stdout
                    for option in re.findall(r"--[a-z-]+", rest):
                        seen += 1
                        self.assertIn(option, helps[command] + "--help", f"{page}: sluice {command} {option}")
        self.assertGreater(seen, 10)

    def test_scripts_named_in_the_readme_exist(self):
        named = re.findall(r"bash ((?:client|tests|bench|\.ci)/[a-z/_.]+)", read("README.md"))
        self.assertIn("client/demo.sh", named)
        for path in named:
            self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)


if __name__ == "__main__":
    unittest.main()
