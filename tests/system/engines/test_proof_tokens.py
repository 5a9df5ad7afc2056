"""proof_tokens.py with a few rollouts: tokens, masks and log-probabilities on a real engine are exact, byte for byte."""
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import proof_tokens
from test_real_model import MODEL, SERVER

ROLLOUTS = 10
proof_tokens.SAMPLES, proof_tokens.SLOTS = 5, 4


class Proof(unittest.TestCase):
    def test_rollouts_with_tools_are_token_exact_and_score_the_same_again(self):
        with tempfile.TemporaryDirectory() as into:
            trajectories = proof_tokens.roll_out(0, ROLLOUTS, into)
            self.assertEqual(len(trajectories), ROLLOUTS)
            verdict, several = proof_tokens.compare(into, trajectories)
            self.assertEqual((verdict.errors, verdict.unclaimed), ([], 0))
            self.assertGreater(verdict.tools, 0)
            self.assertGreater(several, 0)
            for t in trajectories:
                trace = t["traces"][0]
                self.assertRegex(trace["template_digest"], "^sha256:[0-9a-f]{64}$")
                self.assertRegex(trace["tokenizer_digest"], "^sha256:[0-9a-f]{64}$")
                self.check_times(trace)
            status, totals = proof_tokens.verify(into, "--tokens", "8")
            self.assertEqual((status, sum(totals["errors"].values()), totals["unscored"]), (0, 0, 0), totals)
            self.assertEqual(totals["sampled"], verdict.sampled)
            self.assertGreater(totals["recorded"]["tokens"], 5 * ROLLOUTS)
            self.assertLess(totals["recorded"]["mean"], 1e-4)  # this engine computes the same again
            self.assertTrue(xml.etree.ElementTree.parse(os.path.join(into, "verify.svg")).getroot().tag.endswith("svg"))
            print(totals, flush=True)

    def check_times(self, trace):
        for turn in trace["turns"]:
            if turn["role"] == "assistant":
                self.assertGreater(turn["prefill_seconds"], 0)
                self.assertGreaterEqual(turn["seconds"] + 0.01, turn["prefill_seconds"] + turn["decode_seconds"])
                self.assertNotIn("queue_seconds", turn)  # llama.cpp's server does not tell it


if __name__ == "__main__":
    if not (SERVER and MODEL and os.path.exists(SERVER) and os.path.exists(MODEL)):
        print("skipped: no real engine (SLUICE_LLAMA_SERVER and SLUICE_MODEL are not set; bash tests/run.sh sets them)")
        sys.exit(77)
    unittest.main()
