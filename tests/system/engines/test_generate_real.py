"""verl's form of server over a real model: the worker's own tokenizer and chat template make the ids, and what is recorded is what the
model's own server scores and renders."""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import SLUICE, SOURCE, Service  # noqa: E402
from test_real_model import MODEL, SERVER, Llama  # noqa: E402

TASK = {"task": "hello", "prompt": "List the files here, with bash.", "agent": {"kind": "bash", "max_turns": 3},
        "sampling": {"max_tokens": 40, "temperature": 0.7, "seed": 7}, "eval": {"kind": "none"}}


class Verl:
    """POST /generate alone, by a llama.cpp server's /completion. It reports no log-probability of a token within a character: the
    token is forced then, which its number does not see."""

    def __init__(self, llama):
        self.llama, self.paths = llama, []

    def complete(self, prompt, **settings):
        body = json.dumps(dict({"prompt": prompt, "n_probs": 1, "return_tokens": True, "cache_prompt": True}, **settings)).encode()
        with urllib.request.urlopen(urllib.request.Request(self.llama.url + "/completion", body, {"Content-Type": "application/json"})) as answer:
            return json.loads(answer.read())

    def forced(self, prompt, id):
        return self.complete(prompt, n_predict=1, temperature=0.0, logit_bias=[[id, 10000]])["completion_probabilities"][0]["logprob"]

    def generate(self, asked):
        told = self.complete(asked["prompt_ids"], n_predict=asked["max_tokens"], temperature=asked["temperature"], top_p=asked["top_p"],
                             min_p=asked["min_p"], top_k=max(0, asked["top_k"]), seed=asked.get("seed", -1), repeat_penalty=1.0)
        ids, entries = told["tokens"], told["completion_probabilities"]
        if [entry["id"] for entry in entries] == ids:
            return {"response_ids": ids, "logprobs": [entry["logprob"] for entry in entries]}
        return {"response_ids": ids, "logprobs": [self.forced(asked["prompt_ids"] + ids[:i], id) for i, id in enumerate(ids)]}

    def __enter__(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def send(self, status, answer):
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.send(404, {"detail": "Not Found"})

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.paths.append(self.path)
                if self.path != "/generate":
                    return self.send(404, {"detail": "Not Found"})
                try:
                    return self.send(200, outer.generate(json.loads(body)))
                except (KeyError, OSError) as error:
                    return self.send(500, {"detail": repr(error)})

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def write_model(folder, llama):
    """The model's directory, of what its GGUF file and its server say."""
    with urllib.request.urlopen(llama.url + "/props") as answer:
        props = json.loads(answer.read())
    files = {"chat_template.jinja": props["chat_template"],
             "tokenizer_config.json": json.dumps({"eos_token": props["eos_token"], "bos_token": props["bos_token"]}),
             "tokenizer.json": subprocess.run([sys.executable, os.path.join(SOURCE, "tests", "engines", "gguf_tokenizer.py"), MODEL],
                                              capture_output=True, text=True, check=True).stdout}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


@unittest.skipUnless(SERVER and MODEL, "SLUICE_LLAMA_SERVER and SLUICE_MODEL name a real engine")
class GenerateReal(unittest.TestCase):
    def test_rollouts_are_exact_by_a_model_directory_alone(self):
        with tempfile.TemporaryDirectory() as folder, Llama(slots=2) as llama, Verl(llama) as verl:
            write_model(folder, llama)
            with_model = ["--model-dir", folder, "--model-context", "2048"]
            checked = subprocess.run([SLUICE, "engine", "check", verl.url, *with_model], capture_output=True, text=True, timeout=280)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
            with Service(engines=[verl.url], options=with_model + ["--tries", "2"]) as service:
                ended = service.submit([TASK], "train", samples=2)
                self.assertEqual([t["outcome"] for t in ended], ["agent"] * 2, [t["detail"] for t in ended])
                self.assertGreater(sum(turn["role"] == "assistant" for t in ended for trace in t["traces"] for turn in trace["turns"]), 2)
                file = os.path.join(service.root, "train.out.jsonl")
                verified = service.run("verify", file, "--engine", llama.url, "--tolerance", "0.05", check=False)
                self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)


if __name__ == "__main__":
    unittest.main()
