"""A sampler beside trainers that ask in rounds, or carry prompts: sluice simulate, on one fleet with the same tasks."""
import json
import subprocess

from page import Values

SAMPLES, SEEDS = 8, 5
ACCEPTANCES = (0.1, 0.2, 0.3, 0.5, 0.7)
# Of each step of a run that learns (docs/learning.md), 6 groups of those that its rounds asked for.
CURVE = [6 / asked for asked in (12, 6, 12, 18, 18, 12, 18, 18, 12, 12, 12, 30, 24, 30, 66)]
TASKS = {"long": ("math", "answers with a long tail: lognormal, one in twenty above 6,000 tokens"),
         "even": ("turns=1,prompt=300,sampled=300..3000,eval=0.01s", "answers of 300 to 3,000 tokens, uniform")}
ROUNDS = "rounds of a batch"


def ways(batch):
    return {"sampler": ["--sampling", "sampler"],
            "sampler, nothing made ahead": ["--sampling", "sampler", "--ahead", "0"],
            "carry-prompts": ["--sampling", "carry-prompts"],
            ROUNDS: ["--sampling", "rounds"],
            "rounds of three batches": ["--sampling", "rounds", "--round", str(3 * batch)]}


def mixed(most):
    """The share of groups whose rewards differ where a rollout's chance is uniform from 0 to `most`."""
    n = SAMPLES
    return 1 - (most ** n + (1 - (1 - most) ** (n + 1)) / most) / (n + 1)


def solved(acceptance):
    """Per cent, as --solved has them. What is learned is rewarded nearly always, so they end at 100."""
    if acceptance > mixed(1):
        return "50..50"
    most = min(range(1, 101), key=lambda percent: abs(mixed(percent / 100) - acceptance))
    return f"{100 - most}..100"


def simulate(build, batch, seed, tasks, hardness, way):
    fleet = ["--engines", "8", "--nodes", str(batch // 8), "--slots", "64", "--init-slots", "64", "--eval-slots", "64"]
    command = [f"{build}/broker/sluice-simulate", "--json", *fleet, "--tasks", tasks, "--samples", str(SAMPLES), "--train",
               "1m", "--batch", str(batch), "--seed", str(seed), "--solved", hardness, *way]
    return json.loads(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=600).stdout)


def note(values, what, said, rounds_s):
    seconds = (said["to_s"] - said["from_s"]) / said["batches"]
    values.note(f"{what}, s", seconds)
    values.note(f"{what}, of rounds", seconds / rounds_s)
    values.note(f"{what}, asked", said["groups_asked"] / said["groups_in_batches"])
    values.note(f"{what}, wasted", 100 * said["tokens_wasted"] / said["tokens"])
    values.note(f"{what}, filtered", 100 * said["tokens_filtered"] / said["tokens"])
    values.note(f"{what}, age", said["age"])


def table(values, kind, names, batch):
    rows = ["| what | a batch each, s | of rounds' time | groups for each in a batch | tokens thrown away, % | filtered, % | "
            "versions old |", "|---|---|---|---|---|---|---|"]
    for name in names:
        for way in ways(batch):
            what = f"{kind}, {name}, {way}"
            cells = " | ".join(values.cell(f"{what}, {cell}") for cell in ("s", "of rounds", "asked", "wasted", "filtered",
                                                                          "age"))
            rows.append(f"| {name}, {way} | {cells} |")
    return "\n".join(rows)


def measure(build, quick):
    values, batch, seeds = Values(), 8 if quick else 64, 1 if quick else SEEDS
    hardness = {f"{acceptance}": solved(acceptance) for acceptance in ACCEPTANCES}
    hardness["as a policy learns"] = ",".join(solved(acceptance) for acceptance in CURVE)
    for seed in range(1, seeds + 1):
        values.begin(seed, seeds)
        for kind, (tasks, _) in TASKS.items():
            for name, percents in hardness.items():
                said = {way: simulate(build, batch, seed, tasks, percents, words) for way, words in ways(batch).items()}
                rounds_s = (said[ROUNDS]["to_s"] - said[ROUNDS]["from_s"]) / said[ROUNDS]["batches"]
                for way, figures in said.items():
                    note(values, f"{kind}, {name}, {way}", figures, rounds_s)
    text = f"""## Batches: a sampler, rounds and carried prompts

{values.circumstances()}

How soon a trainer that wants only groups whose rewards differ has its next batch ([sampler.md](../sampler.md)), by
`sluice simulate`: the broker's real core with a made-up clock, so no figure hangs on the machine. 8 engines of 2,000
tokens/s, {batch * 8} run slots, batches of {batch} groups of {SAMPLES} rollouts, from each of which the trainer learns for 60 s;
16 batches after the first 4; seeds 1 to {seeds}, medians and what was least and most. The number is the share of groups that
are kept; *as a policy learns* it falls from 0.5 to 0.09 in 15 batches, the first one included.

* **rounds**: submit a round, wait for all of it, drop groups whose rewards are equal, submit the next until there are
  enough; the surplus is thrown away, and nothing is at work while the trainer learns.
* **carry-prompts**: submit a batch more whenever a slot would be idle, cancel all others when enough are kept, and begin their
  prompts again for the next batch; nothing is at work while the trainer learns.

*Thrown away* are tokens of groups that were cancelled, or kept and in no batch; *filtered*, of groups whose rewards were all
equal, which no way to ask can spare. *Versions old*: how many batches were learned from between a group's begin and its batch.
"""
    for kind, (_, words) in TASKS.items():
        text += f"\n{words[0].upper()}{words[1:]}:\n\n{table(values, kind, hardness, batch)}\n"
    return text
