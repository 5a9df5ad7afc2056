"""A harness in an image that has settings of its own reaches its model all the same."""
import os
import shutil
import sys
import tempfile
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
sys.path.append(os.path.join(__file__.rsplit("/", 2)[0], "sandboxes"))
from harness import Engine, Service  # noqa: E402
from test_images import make_root  # noqa: E402

PROGRAMS = ["/bin/bash", "/bin/cat", "/bin/mkdir", "/bin/grep", "/usr/bin/curl"]
NAMES = [name for one in ("http_proxy", "https_proxy", "all_proxy") for name in (one, one.upper())] + ["npm_config_proxy", "npm_config_https_proxy"]
ASK = """curl -sS --max-time 20 -H 'Content-Type: application/json' -d '{"messages": [{"role": "user", "content": "x"}]}' """


class Images(unittest.TestCase):
    def test_an_images_own_proxies_do_not_keep_it_from_its_model(self):
        there = tempfile.mkdtemp(prefix="sluice-images-")
        self.addCleanup(shutil.rmtree, there)
        root = make_root(os.path.join(there, "plain"), "plain", PROGRAMS)
        os.symlink("bash", os.path.join(root, "bin", "sh"))
        variables = "".join(f"ENV {name}=http://127.0.0.1:9\n" for name in NAMES) + "ENV NO_PROXY=example.org no_proxy=example.org\n"
        of = {"task": "one", "prompt": "x", "agent": {"kind": "harness", "command": ASK + '"$OPENAI_BASE_URL/chat/completions" > /workspace/said'},
              "build": {"dockerfile": "FROM plain\n" + variables}, "eval": {"kind": "command", "command": "cat /workspace/said; grep -q fine /workspace/said"}}
        with Engine({"reply": "fine"}) as engine, Service(engines=[engine.url], options=["--images", there, "--task-dir", there]) as service:
            t, = service.submit([of], "train")
        self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), (t["detail"], t["messages"]))


if __name__ == "__main__":
    unittest.main()
