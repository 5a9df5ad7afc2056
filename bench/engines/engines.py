"""Model calls: how many one worker thread keeps in flight, and what a long turn costs it."""
import page


def measure(build, quick):
    """The part's text."""
    rounds, turns, streams, seconds = (1, 50, 2, 2) if quick else (5, 200, 10, 10)
    values = page.Values()
    for number in range(1, rounds + 1):
        values.begin(number, rounds)
        page.note_lines(values, [f"{build}/bench/bench_engines", "turns", str(turns)])
        page.note_lines(values, [f"{build}/bench/bench_engines", "streams", str(streams)])
        page.note_lines(values, [f"{build}/bench/bench_engines", "digits", str(turns)])
        page.note_lines(values, [f"{build}/bench/bench_engines", "calls", "2048", str(seconds)])
    return f"""## Model calls

{values.circumstances()}

One thread, as a run worker has it, and an engine that is another process and answers with documents made beforehand, each in the
form of its dialect. A turn: 4,000 tokens of prompt are sent, 2,000 sampled ones come back with their log-probabilities, are checked,
recorded, and the record is encoded as it is published; CPU of the worker alone. Its floor, taken in turn with it: the same ids are
written and sent, and the same answer comes and each of its bytes is looked at once.

Streams: the same turn, answered whole, and as events a millisecond apart that the worker reads along while nobody hears them, or that a viewer
hears. What counts from its last token begins when the engine begins to send what tells it; the next request is who the engine is, or what the
ids say.

{values.rows()}
"""
