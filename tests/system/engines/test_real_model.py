"""The demo's tasks on a real model: what a trajectory says was sampled is what the engine reported, id for id."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import SOURCE, Engine, Service, check_trajectories, free_ports, wait_until  # noqa: E402

SERVER, MODEL = os.environ.get("SLUICE_LLAMA_SERVER"), os.environ.get("SLUICE_MODEL")
DEMO = os.path.join(SOURCE, "client", "demo")


class Llama:
    """A real llama.cpp server with a real model."""

    def __init__(self, slots=4, options=()):
        self.slots, self.options = slots, options

    def __enter__(self):
        port = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([SERVER, "-m", MODEL, "--host", "127.0.0.1", "--port", str(port),
                                         "-c", "16384", "-np", str(self.slots), "-t", "1", "--poll", "0",
                                         *self.options], stdout=self.log, stderr=self.log)
        wait_until(self.is_healthy, 120, "the real engine is up")
        return self

    def is_healthy(self):
        assert self.process.poll() is None, "the real engine ended"
        try:
            return urllib.request.urlopen(self.url + "/health", timeout=5).status == 200
        except OSError:
            return False

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


def demo_tasks():
    """As client/demo.sh submits them, on a directory image and on a SIF image, and the options that allow those."""
    made = subprocess.run(["bash", os.path.join(DEMO, "image.sh")], stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    images = dict(line.split("=", 1) for line in made.stdout.splitlines())
    with open(os.path.join(DEMO, "tasks.jsonl"), encoding="utf-8") as lines:
        text = lines.read().replace("@DIRECTORY@", images["SLUICE_IMAGE_DIR"]).replace("@SIF@", images["SLUICE_IMAGE_SIF"])
    return [json.loads(line) for line in text.splitlines()], [word for path in images.values() for word in ("--images", path)]


def recorded_calls(engine):
    """(prompt ids, sampled ids) -> log-probabilities, as the recording proxy saw the engine report them."""
    calls = {}
    for line in engine.log():
        if line["path"] != "/completion" or line["status"] != 200:
            continue
        request, answer = line["request"], line["answer"]
        request = request if isinstance(request, dict) else json.loads(request)
        answer = answer if isinstance(answer, dict) else json.loads(answer)
        calls.setdefault((tuple(request["prompt"]), tuple(answer["tokens"])), []).append(
            [(entry["id"], entry["logprob"]) for entry in answer.get("completion_probabilities", [])])
    return calls


def agrees(ids, logprobs, reported):
    """Whether a turn has the engine's log-probabilities. The engine reports none for a token within a multi-byte
    character (they are asked for apart): what it did report must stand in the turn, in its order."""
    turn = iter(zip(ids, logprobs))
    return all(any(id == other and abs(logprob - stated) < 1e-4 for other, logprob in turn) for id, stated in reported)


class RealModel(unittest.TestCase):
    def test_the_demo_is_token_exact_also_when_a_worker_and_the_broker_are_killed(self):
        tasks, options = demo_tasks()
        with Llama() as llama, Engine(proxy=llama.url) as engine, Service(engines=[engine.url], options=options) as service:
            waiting, out = service.submit(tasks, "real", samples=2, wait=False)
            ended = lambda: sum(stream["head"] for stream in service.status()["streams"])
            wait_until(lambda: ended() >= 2, 300, "two rollouts ended")
            service.kill("sluice-worker", "run")
            wait_until(lambda: (service.status() or {"streams": []}) and ended() >= 4, 300, "two more")
            service.kill("sluice-broker")
            trajectories = service.finish(waiting, out, timeout=500)
            check_trajectories(self, trajectories, len(tasks), 2)
            self.check_against(recorded_calls(engine), trajectories)
            self.check_boxes(tasks, trajectories)
            self.check_replays(tasks, trajectories)
            print(f"{len(trajectories)} trajectories, rewards {[t.get('reward') for t in trajectories]}", flush=True)

    def check_boxes(self, tasks, trajectories):
        """The math rewards, judged again by hand: these answers are plain integers."""
        answers = {task["task"]: task["eval"]["answer"] for task in tasks if task["eval"]["kind"] == "math"}
        for t in trajectories:
            if t["task"] in answers:
                boxes = re.findall(r"\\boxed\{([^{}]*)\}", t["messages"][-1]["content"])
                if not boxes or boxes[-1].isdigit():
                    right = bool(boxes) and int(boxes[-1]) == int(answers[t["task"]])
                    self.assertEqual(t["reward"], float(right), t["messages"][-1])

    def check_replays(self, tasks, trajectories):
        """What a script does it does every time: with bash, edit and ipython, on either image."""
        replayed = {task["task"] for task in tasks if task["agent"]["kind"] == "replay"}
        rewards = [t.get("reward") for t in trajectories if t["task"] in replayed]
        for t in trajectories:
            if t["task"] in replayed:
                self.assertEqual((t["sandbox"]["commands"], t["sandbox"]["breaches"]), (3, []), t["rollout"])
        self.assertEqual(rewards, [1.0] * (2 * len(replayed)))
        self.assertGreater(len(rewards), 0)

    def check_against(self, calls, trajectories):
        sampled = 0
        for t in trajectories:
            for trace in t["traces"]:
                ids = trace["token_ids"]
                for turn in trace["turns"]:
                    start, end = turn["offset"], turn["offset"] + turn["length"]
                    if turn["role"] != "assistant":
                        self.assertNotIn(1, trace["mask"][start:end])
                        continue
                    key = (tuple(ids[:start]), tuple(ids[start:end]))
                    self.assertIn(key, calls, f"{t['rollout']}: the engine never reported this turn")
                    self.assertEqual(set(trace["mask"][start:end]), {1})
                    self.assertTrue(any(agrees(ids[start:end], trace["logprobs"][start:end], reported)
                                        for reported in calls[key]), f"{t['rollout']}: {turn}")
                    sampled += end - start
        self.assertGreater(sampled, 100)


if __name__ == "__main__":
    if not (SERVER and MODEL and os.path.exists(SERVER) and os.path.exists(MODEL)):
        print("skipped: no real engine (SLUICE_LLAMA_SERVER and SLUICE_MODEL are not set; bash tests/run.sh sets them)")
        sys.exit(77)
    unittest.main()
