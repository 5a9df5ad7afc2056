"""Tasks that a model of 135 M parameters can learn in minutes: two kinds, each shown by three examples as earlier turns.

A word's first letter, and the larger of two digits, in a \\boxed{}. The model knows the form from the examples and is right
about a third of the time at first. Some words and pairs are held out: they are never trained on.
"""
import random

WORDS = ("apple river stone cloud house tiger paper green seven music light table horse water bread chair ocean night dream tree "
         "king queen road fire wind snow rain leaf bird fish door wall floor window garden summer winter orange yellow purple "
         "silver golden market street bridge castle forest island mountain valley desert engine rocket planet").split()
PAIRS = [(a, b) for a in range(1, 10) for b in range(1, 10) if a != b]
HELD_OUT = 12  # of each kind


def _turns(examples, question):
    told = []
    for asked, answer in (*examples, (question, None)):
        told.append({"role": "user", "content": asked})
        if answer is not None:
            told.append({"role": "assistant", "content": f"\\boxed{{{answer}}}"})
    return told


def _task(name, examples, question, evaluation):
    return {"task": name, "messages": _turns(examples, question), "agent": {"kind": "chat"},
            "sampling": {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": 12},
            "eval": {**evaluation, "extract": "box"}}


def first_letter(word):
    return _task(f"first-{word}", (("sun", "s"), ("glass", "g"), ("moon", "m")), word,
                 {"kind": "exact", "answer": word[0]})


def larger(pair):
    return _task(f"larger-{pair[0]}-{pair[1]}", (("3 9", "9"), ("8 2", "8"), ("4 5", "5")), f"{pair[0]} {pair[1]}",
                 {"kind": "math", "answer": str(max(pair))})


class Tasks:
    """The same tasks in the same order for the same seed."""

    def __init__(self, seed):
        chance = random.Random(seed)
        words, pairs = chance.sample(WORDS, len(WORDS)), chance.sample(PAIRS, len(PAIRS))
        self.seed = seed
        self.held_out = [first_letter(word) for word in words[:HELD_OUT]] + [larger(pair) for pair in pairs[:HELD_OUT]]
        self._words, self._pairs = words[HELD_OUT:], pairs[HELD_OUT:]

    def __iter__(self):
        """Training tasks without an end, each time the same ones."""
        chance = random.Random(f"{self.seed} tasks")
        while True:
            yield first_letter(chance.choice(self._words)) if chance.random() < 0.5 else larger(chance.choice(self._pairs))
