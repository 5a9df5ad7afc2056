"""Harnesses: what the proxy in front of the engine costs a call, and what an open one costs its worker."""
import page

PACE_US = 1000  # between two tokens of a stream at its pace


def measure(build, quick):
    """The part's text."""
    program = f"{build}/bench/bench_harness"
    rounds, calls, paced, sessions = (1, 16, 8, 50) if quick else (5, 200, 24, 1000)
    values = page.Values()
    for number in range(1, rounds + 1):
        values.begin(number, rounds)
        page.note_lines(values, [program, "calls", str(calls)])
        page.note_lines(values, [program, "calls", str(paced), str(PACE_US)])
        page.note_lines(values, [program, "sessions", str(sessions)])
    return f"""## Harnesses

{values.circumstances()}

A call: a conversation of 4,000 tokens goes on, 500 tokens are sampled. The engine, a process of its own, answers at once, in the form of
`/v1/completions`; its streams have an event a token, sent by itself, at once or one each {PACE_US / 1000:g} ms. A client asks it so directly, and by
chat through the proxy of a harness, one call after the other. The proxies are in one process, on listeners of its loopback, where a worker
has them in sandboxes: what a sandbox costs is not in it.

{values.rows()}
"""
