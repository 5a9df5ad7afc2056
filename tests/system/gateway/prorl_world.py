"""A fleet with a gateway, spoken to as ProRL's clients do: blocking calls, each on a connection of its own."""
import json
import os
import socket

from gateway_world import GATEWAY, SOURCE, Calling, Case, Fleet, add_gateway, call, script, wait_until  # noqa: F401
from harness import PYTHON, memory_bound  # noqa: F401

PARAMS = {"model": "hosted_vllm/Qwen/Qwen3-8B", "api_key": "mykey", "modify_params": False, "log_completions": False,
          "native_tool_calling": True, "temperature": 0.6, "top_p": 0.9, "max_iterations": 4}
KEYS = {"instance_id", "trajectory_id", "git_patch", "success", "finish", "messages", "tools", "end_properly", "resolved",
        "critical_error", "error", "filter", "timing"}


def send(port, path, body):
    """A request whose answer is not read yet: its socket."""
    data = json.dumps(body).encode()
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
                       f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return connection


def math(number=1, answer="2", **more):
    """An instance of mathematics, as data frames hold them."""
    return dict({"data_source": "deepscaler", "instance_id": f"math-{number}", "trajectory_id": number,
                 "prompt": [{"role": "user", "content": "What is 1+1? Answer in \\boxed{}."}],
                 "reward_model": {"ground_truth": answer, "style": "rule"}, "extra_info": {"split": "train", "index": number}},
                **more)


def job(instance, job_id=None, **params):
    body = {"instance": instance, "sampling_params": dict(PARAMS, **params)}
    return dict(body, job_id=job_id) if job_id else body


SPECIALS = {"<|im_start|>": 256, "<|im_end|>": 257, "<|endoftext|>": 258, "<s>": 259}
CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def write_model(folder):
    """A model's directory for the scripted engine: its tokenizer of bytes, and ChatML."""
    vocabulary, more = {}, 0
    for byte in range(256):
        itself = 0x21 <= byte <= 0x7e or 0xa1 <= byte <= 0xac or byte >= 0xae
        vocabulary[chr(byte if itself else 256 + more)] = byte
        more += not itself
    files = {"tokenizer.json": {"normalizer": None,
                                "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
                                "added_tokens": [{"id": number, "content": name, "special": True} for name, number in SPECIALS.items()],
                                "model": {"ignore_merges": False, "vocab": vocabulary, "merges": []}},
             "tokenizer_config.json": {"eos_token": "<|im_end|>", "chat_template": CHATML},
             "config.json": {"max_position_embeddings": 16384}, "generation_config.json": {"eos_token_id": [257, 258]}}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)


class World(Case):
    """One fleet for all tests of a class, each with a gateway of its own, which is new."""

    options = ()
    slots = 32
    workers = 1
    rules = ()
    worker_options = ()
    handler = ()      # options of the workers of run and eval
    run_options = ()  # of those of run
    dialect = {}      # of the engine's script

    @classmethod
    def setUpClass(cls):
        fleet = Fleet(slots=cls.slots, workers={"init": cls.workers}, worker_options=cls.worker_options)
        for stage in ("run", "eval"):
            fleet.add_worker(stage, f"{stage}-1", options=(*cls.handler, *(cls.run_options if stage == "run" else ())))
        cls.engine = fleet.add_engine(dict(script(0, *cls.rules), context=16384, **cls.dialect))
        cls.fleet = fleet.__enter__()
        cls.addClassCleanup(cls.fleet.__exit__, None, None, None)
        cls.fleet.run("engine", "remove", cls.engine.url)
        cls.number = 0

    def setUp(self):
        type(self).number += 1
        self.gateway = self.open(*self.options)

    def open(self, *options):
        gateway = add_gateway(self.fleet, "--stream", f"prorl-{self.number}", *options, name=f"gateway-{self.number}").start()
        self.addCleanup(gateway.end)
        return gateway

    def post(self, path, body=None, **keywords):
        return call(self.gateway.port, "POST", path, body, **keywords)

    def get(self, path):
        return call(self.gateway.port, "GET", path)

    def begin(self, body):
        return Calling(self.gateway.port, "POST", "/process", body)

    def up(self, address=None):
        """Started, with an engine."""
        self.assertEqual(self.post("/add_llm_server", {"address": address or self.engine.url + "/v1"}).status, 200)
        answer = self.post("/start")
        self.assertEqual(answer.status, 200, answer)

    def wait_running(self, count):
        """So many rollouts are at work."""
        self.fleet.wait_for(lambda status: status["stages"]["run"]["leased"] == count, 30, f"{count} runs")

    def trajectories(self):
        """All of this gateway's stream that are kept, by rollout."""
        done = self.fleet.run("list", "--stream", f"prorl-{self.number}", "--ended", "--json", check=False)
        return [json.loads(line) for line in done.stdout.splitlines()]
