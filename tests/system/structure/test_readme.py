"""What the pages say is so: links lead somewhere, commands and their options exist, the Python example is the package's."""
import glob
import os
import re
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import SLUICE, SOURCE  # noqa: E402

PAGES = [os.path.join(SOURCE, "README.md"), *glob.glob(os.path.join(SOURCE, "docs", "*.md"))]


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


class Pages(unittest.TestCase):
    def test_links_lead_somewhere(self):
        seen = 0
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#]+)\)", read(page)):
                if "://" not in target:
                    seen += 1
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), target)), f"{page}: {target}")
        self.assertGreater(seen, 10)

    def test_commands_and_options_exist(self):
        helps, seen = {}, 0
        for page in PAGES:
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
        named = re.findall(r"bash ((?:client|tests|bench|\.ci)/[a-z/_.]+)", read(PAGES[0]))
        self.assertIn("client/demo.sh", named)
        for path in named:
            self.assertTrue(os.path.exists(os.path.join(SOURCE, path)), path)


if __name__ == "__main__":
    unittest.main()
