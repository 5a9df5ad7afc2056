"""Sandboxes and layers: how soon one is ready, how many a second, and what one costs, beside the machine's floor."""
import subprocess
import tempfile

import page

LAYER_FILES, LAYER_BYTES = 1000, 1024


def layer(values, build, directory):
    """A layer of small files, packed by the sandbox that wrote them and unpacked where none is kept."""
    done = subprocess.run([f"{build}/bench/bench_layers", str(LAYER_FILES), str(LAYER_BYTES), directory],
                          check=True, text=True, stdout=subprocess.PIPE, timeout=300)
    packed, unpacked, _ = map(float, done.stdout.split())
    values.note(f"a layer of {LAYER_FILES:,} files of {LAYER_BYTES:,} bytes packed, ms", packed)
    values.note("... and unpacked, ms", unpacked)
    values.note("... both, ms", packed + unpacked)


def measure(build, quick):
    """The part's text."""
    rounds, count, alive = (2, 40, 20) if quick else (5, 400, 200)
    values = page.Values()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as directory:
        for number in range(1, rounds + 1):
            values.begin(number, rounds)
            page.note_lines(values, [f"{build}/bench/bench_sandbox", directory, str(count), str(alive)])
            layer(values, build, directory)
    return f"""## Sandboxes

{values.circumstances()}

{values.rows()}
"""
