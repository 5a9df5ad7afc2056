"""Tasks of several steps (docs/tasks/steps.md) in a whole service: agents and evaluators of handlers, which are
opened anew for each step, and a second step that is killed, cancelled, or without a verdict."""
import os
import shlex
import sys
import tempfile
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import PYTHON, SOURCE, Engine, Service, wait_until  # noqa: E402

SCRIPT = {"rules": [{"path": "/completion", "if": "one", "reply": "I write one."}, {"path": "/completion", "if": "two", "reply": "I write two."}]}
HANDLER = '''
import os
import signal
import time
from sluice.handlers import Score, agent, evaluator

HERE = os.path.dirname(os.path.abspath(__file__))


def note(what, step):
    with open(os.path.join(HERE, "log"), "a") as log:
        log.write(f"{what} {step}\\n")


def wait(what, step):
    note(what, step)
    while os.path.exists(os.path.join(HERE, f"hold {what} {step}")):
        time.sleep(0.02)


@agent
def writes(job):
    assert "steps" not in job.task, job.task
    turn = job.sample()
    job.exec(f"echo {turn.text.split()[-1].strip('.')} >> word.txt")
    wait("agent", job.task["step"])
    return turn.text


def end(metadata, step):
    """As the task wants of its second step."""
    if step != "second":
        return
    flag, how = os.path.join(HERE, "died"), metadata.get("second")
    if how == "dies" and not os.path.exists(flag):
        open(flag, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "breaks":
        raise ValueError("no verdict today")
    if how == "sleeps":
        time.sleep(600)


@evaluator
def words(job, answer, metadata, messages):
    """Whether the step's word is the last, by the file and by what was said."""
    step = job.task["step"]
    wait("evaluator", step)
    end(metadata, step)
    if step == metadata.get("none"):
        return Score(None, metrics={"seen": 1}, detail="nothing to say")
    word = {"first": "one"}.get(step, "two")
    left = job.exec("tail -n 1 word.txt").text.strip()
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    return {"reward": float(left == word and answer == said[-1] == f"I write {word}."), "said": len(said), "lines": len(job.exec("cat word.txt").text.split())}
'''
STEPS = {"agent": {"kind": "writes"}, "eval": {"kind": "words", "sandbox": "agent"},
         "steps": [{"name": "first", "prompt": "Write one."}, {"name": "second", "prompt": "Write two."}]}


def task(name="t", **more):
    return dict(STEPS, task=name, **more)


class Steps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(os.path.join(self.folder, "mine.py"), "w", encoding="utf-8") as file:
            file.write(HANDLER)

    def start(self, **more):
        engine = Engine(SCRIPT)
        engine.__enter__()
        self.addCleanup(engine.__exit__, None, None, None)
        package = shlex.quote(os.path.join(SOURCE, "client", "python"))
        command = f"PYTHONPATH={package} {PYTHON} -m sluice.handlers {shlex.quote(os.path.join(self.folder, 'mine.py'))}"
        return Service(engines=[engine.url], options=["--handler", f"mine={command}"], **more)

    def log(self):
        try:
            with open(os.path.join(self.folder, "log"), encoding="utf-8") as lines:
                return lines.read().splitlines()
        except OSError:
            return []

    def hold(self, what):
        path = os.path.join(self.folder, f"hold {what}")
        with open(path, "w", encoding="utf-8"):
            return path

    def check(self, trajectory):
        """Both steps, each once."""
        self.assertEqual((trajectory["outcome"], trajectory["reward"]), ("ok", 1), trajectory["detail"])
        self.assertIn("1 is the mean of 2 of 2 steps: first 1, second 1", trajectory["detail"])
        self.assertEqual([trace["reason"] for trace in trajectory["traces"]], ["", "step: second"])
        for trace in trajectory["traces"]:
            self.assertEqual([turn["role"] for turn in trace["turns"]], ["prompt", "assistant"])
        self.assertEqual([message["content"] for message in trajectory["messages"]], ["Write one.", "I write one.", "Write two.", "I write two."])
        self.assertEqual({metric["name"]: metric["value"] for metric in trajectory["metrics"]},
                         {"first.said": 1, "first.lines": 1, "second.said": 2, "second.lines": 2})

    def test_an_agent_and_an_evaluator_of_a_handler_are_asked_anew_for_each_step(self):
        with self.start() as service:
            ended, = service.submit([task()], "train")
        self.check(ended)
        self.assertEqual(self.log(), ["agent first", "evaluator first", "agent second", "evaluator second"])

    def test_a_worker_killed_in_the_second_step_begins_again_with_the_first_and_nothing_counts_twice(self):
        for held in ("agent second", "evaluator second"):
            with self.subTest(held=held), self.start() as service:
                if os.path.exists(os.path.join(self.folder, "log")):
                    os.remove(os.path.join(self.folder, "log"))
                hold = self.hold(held)
                waiting, out = service.submit([task()], "train", wait=False)
                wait_until(lambda: held in self.log(), 60, f"{held} is at work")
                before = self.log()
                service.kill("sluice-worker", "run")
                os.remove(hold)
                ended = service.finish(waiting, out)
                self.assertEqual(len(ended), 1)
                self.check(ended[0])
                self.assertEqual(self.log(), before + ["agent first", "evaluator first", "agent second", "evaluator second"])
                streams = service.status()["streams"]
                self.assertEqual([stream["head"] for stream in streams], [1])

    def test_a_handler_that_dies_in_the_second_evaluation_costs_a_try_of_the_whole(self):
        with self.start() as service:
            ended, = service.submit([task(metadata={"second": "dies"})], "train")
        self.check(ended)
        self.assertEqual(self.log().count("agent first"), 2)

    def test_what_is_cancelled_in_the_second_step_has_no_reward_and_leaves_nothing(self):
        for held in ("agent second", "evaluator second"):
            with self.subTest(held=held), self.start() as service:
                if os.path.exists(os.path.join(self.folder, "log")):
                    os.remove(os.path.join(self.folder, "log"))
                hold = self.hold(held)
                waiting, out = service.submit([task()], "train", wait=False)
                wait_until(lambda: held in self.log(), 60, f"{held} is at work")
                service.run("cancel", "--stream", "train")
                ended, = service.finish(waiting, out, timeout=60)
                self.assertEqual((ended["outcome"], ended["reward"]), ("cancelled", None), ended["detail"])
                os.remove(hold)
                again, = service.submit([task("after")], "next")
                self.check(again)

    def test_a_second_step_without_a_verdict_is_no_reward_whatever_the_first_got(self):
        with self.start() as service:
            ended = {one["task"]: one for one in service.submit([
                task("breaks", metadata={"second": "breaks"}),
                task("late", metadata={"second": "sleeps"}, steps=[STEPS["steps"][0], dict(STEPS["steps"][1], limits={"eval_s": 1})]),
                task("none", metadata={"none": "second"}), task("first", metadata={"none": "first"}, steps_reward="final")], "train")}
        self.assertEqual({name: (one["outcome"], one["reward"], one["parts"], one["trainable"]) for name, one in ended.items()},
                         {name: ("task", None, [], False) for name in ("breaks", "late", "none", "first")})
        self.assertRegex(ended["breaks"]["detail"], "step second: .*ValueError: no verdict today")
        self.assertRegex(ended["late"]["detail"], "step second: the evaluator words had not ended when the time of the stage was up")
        self.assertIn("step second: nothing to say", ended["none"]["detail"])
        self.assertIn("step first: nothing to say", ended["first"]["detail"])
        self.assertEqual({name: len(one["traces"]) for name, one in ended.items()}, {"breaks": 2, "late": 2, "none": 2, "first": 1})

    def test_sampled_tokens_are_of_all_steps_together(self):
        with self.start() as service:
            third = {"name": "third", "prompt": "Write two."}
            ended, = service.submit([task(limits={"sampled_tokens": 20}, steps=[*STEPS["steps"], third])], "train")
        self.assertEqual((ended["outcome"], round(ended["reward"], 3)), ("agent", 0.333), ended["detail"])
        self.assertIn("all 20 of limits.sampled_tokens are used up (step third)", ended["detail"])
        self.assertEqual([sum(trace["mask"]) for trace in ended["traces"]], [13, 7])
        self.assertEqual(self.log(), ["agent first", "evaluator first", "agent second", "evaluator second", "evaluator third"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
