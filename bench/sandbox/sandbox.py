"""Sandboxes and layers: how soon one is ready, how many a second, and what one costs, beside the machine's floor."""
import os
import shutil
import subprocess
import tempfile
import time

import page

LAYER_FILES, LAYER_BYTES = 1000, 1024


def timed(command):
    """Milliseconds of a command of the shell."""
    begin = time.monotonic()
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True, timeout=300)
    return (time.monotonic() - begin) * 1000


def layer_floor(values, directory, tree):
    """The same files by the programs everybody has: nothing is synced, and no digest is taken."""
    out, packed = os.path.join(directory, "out"), os.path.join(directory, "packed")
    values.note("... packed by tar and lz4, ms", timed(f"tar -C {tree} -cf - . | lz4 -q > {packed}"))
    os.mkdir(out)
    values.note("... unpacked by lz4 and tar, ms", timed(f"lz4 -dcq {packed} | tar -C {out} -xf -"))
    shutil.rmtree(out)
    values.note("... copied by cp -a, ms", timed(f"cp -a {tree} {out}"))
    shutil.rmtree(out)


def bench_layers(values, build, directory, more=(), where=""):
    done = subprocess.run([f"{build}/bench/bench_layers", str(LAYER_FILES), str(LAYER_BYTES), directory, *more],
                          check=True, text=True, stdout=subprocess.PIPE, timeout=300)
    packed, unpacked, _, synced, made = map(float, done.stdout.split())
    values.note(f"a layer of {LAYER_FILES:,} files of {LAYER_BYTES:,} bytes packed{where}, ms", packed)
    values.note(f"... and unpacked{where}, ms", unpacked)
    values.note(f"... both{where}, ms", packed + unpacked)
    values.note(f"... floor of packing: one file of its bytes written and synced{where}, ms", synced)
    values.note(f"... floor of unpacking: such files made, written and dated by one thread{where}, ms", made)


def layer(values, build, directory):
    """A layer of small files, packed by the sandbox that wrote them and unpacked where none is kept."""
    tree = os.path.join(directory, "tree")
    os.makedirs(tree)
    bench_layers(values, build, directory, [tree])
    if shutil.which("lz4"):
        layer_floor(values, directory, tree)
    shutil.rmtree(tree)


def measure(build, quick):
    """The part's text."""
    rounds, count, alive = (1, 40, 20) if quick else (5, 400, 200)
    values = page.Values()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as directory:
        for number in range(1, rounds + 1):
            values.begin(number, rounds)
            page.note_lines(values, [f"{build}/bench/bench_sandbox", directory, str(count), str(alive)])
            layer(values, build, directory)
            with tempfile.TemporaryDirectory(prefix="sluice-bench-", dir="/dev/shm") as memory:
                bench_layers(values, build, memory, where=" on a tmpfs")
    return f"""## Sandboxes

{values.circumstances()}

{values.rows()}
"""
