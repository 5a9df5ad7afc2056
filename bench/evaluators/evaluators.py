"""Evaluators: tests of programs a second, and an evaluation by a handler beside a built-in one."""
import tempfile

import page

PROGRAMS = ("stdin, one evaluation at a time", "stdin, two at a time", "stdin, eight at a time", "stdin, checker floats, two at a time",
            "stdin, a checker program in Python, two at a time", "stdin, a checker program in bash, two at a time")
HANDLERS = ("evaluation built in, one at a time, us", "evaluation by a handler, one at a time, us", "a handler's call costs more, us",
            "evaluation built in, {count} at once, us each", "evaluation by a handler, {count} in flight in one process, us each")


def table(values, head, rows):
    return "\n".join([f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {shown} | {values.cell(name)} |" for name, shown in rows)])


def measure(build, quick):
    """The part's text."""
    rounds, tests, evaluations, calls, together = (1, 20, 4, 500, 200) if quick else (3, 100, 8, 20000, 2000)
    values = page.Values()
    for number in range(1, rounds + 1):
        values.begin(number, rounds)
        with tempfile.TemporaryDirectory(prefix="sluice-bench-") as directory:
            page.note_lines(values, [f"{build}/bench/bench_programs", directory, str(tests), str(evaluations)])
        page.note_lines(values, [f"{build}/bench/bench_handlers", str(calls), str(together)])
    programs = table(values, ("programs", "tests/s"), [(f"tests/s: {what}", what) for what in PROGRAMS])
    handlers = table(values, ("evaluations", "us"), [(what.format(count=together),) * 2 for what in HANDLERS])
    return f"""## Evaluators

{values.circumstances()}

A program in Python that adds two numbers, on {tests} tests (a quarter of them where the checker is a program), {evaluations} evaluations, each in a sandbox
of its own from the task's JSON to the verdict; each test is a process forked from a warm interpreter. A checker that comes with the task
is started anew for each test, in a second sandbox.

{programs}

One thread evaluates: by `math`, and by a handler beside it, a process in C that gives 1 to each, over its socket pair.

{handlers}
"""
