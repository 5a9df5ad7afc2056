"""The decisions of a chaos run: which harm, to whom, for how long. They follow from the seed alone, never from what happened."""
import dataclasses
import random


@dataclasses.dataclass
class Step:
    pause_s: float     # after the step before
    harm: str
    target: str        # a member's or a node's name; "" for harms that need none
    seconds: float     # until it is undone: started again, continued, healed
    dice: random.Random

    def __str__(self):
        return f"+{self.pause_s:.2f} s {self.harm} {self.target} for {self.seconds:.2f} s"


@dataclasses.dataclass
class Harm:
    weight: float
    targets: dict      # the start of a member's name: its weight
    seconds: tuple     # least and most
    doc: str


HARMS = {
    "kill": Harm(70, {"broker": 22, "init": 14, "run": 18, "eval": 14, "trainer": 26, "engine": 6}, (0.0, 0.6),
                 "kill -9, started again after a moment"),
    "freeze": Harm(10, {"broker": 2, "init": 2, "run": 4, "eval": 2, "trainer": 2, "engine": 2}, (0.2, 7.0),
                   "SIGSTOP, later SIGCONT; beyond the beats' timeout, too"),
    "end": Harm(8, {"broker": 1, "init": 2, "run": 2, "eval": 2}, (0.0, 0.4), "SIGTERM, started again when it has ended"),
    "hostile": Harm(5, {"": 1}, (0.0, 0.0), "bytes and messages that no peer of ours would send, at every socket"),
    "torn": Harm(3, {"broker": 1}, (0.0, 0.3), "kill -9 of the broker, and a torn write at the end of its WAL"),
    "power": Harm(8, {"broker": 1}, (0.0, 0.3), "kill -9 of the broker, and pages of its WAL that were not synced are lost"),
    "damage": Harm(2, {"store": 1}, (0.0, 0.0), "bytes of a layer in the store turned over"),
    "full": Harm(3, {"disk": 1}, (0.5, 2.0), "the ledger's disk filled to the last byte"),
    "partition": Harm(8, {"node": 1}, (0.3, 8.0), "a node's link taken away, without a word to either side"),
}


def decide(seed, names, harms, pause_s):
    """Steps without end. names: every member and node; harms: which of HARMS."""
    dice = random.Random(f"decisions {seed}")
    possible = {}
    for harm in harms:
        targets = {name: weight / sum(other.startswith(start) for other in names) for name in names
                   for start, weight in HARMS[harm].targets.items() if start and name.startswith(start)}
        if targets or "" in HARMS[harm].targets:
            possible[harm] = targets or {"": 1}
    while True:
        harm = dice.choices(list(possible), [HARMS[name].weight for name in possible])[0]
        target = dice.choices(list(possible[harm]), list(possible[harm].values()))[0]
        low, high = HARMS[harm].seconds
        # squared: most are short, and some are longer than every timeout
        yield Step(pause_s=dice.uniform(0.3, 1.7) * pause_s, harm=harm, target=target,
                   seconds=low + (high - low) * dice.random() ** 2, dice=random.Random(dice.getrandbits(64)))
