"""The tools: a call of bash, edit and ipython, beside the machine's floor and the ways that others go."""
import os
import subprocess
import sys
import tempfile

import page

RIVALS = f"{page.SOURCE}/bench/peer_systems/rivals.py"
PACKAGES = ("jupyter_server", "ipykernel", "pexpect")


def cache():
    directory = f"{os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')}/sluice/bench"
    os.makedirs(directory, exist_ok=True)
    return directory


def rivals_python(installs):
    """Where the rivals' packages are; installed once, and what is not installed is what rivals.py then misses."""
    directory = f"{cache()}/python{sys.version_info[0]}.{sys.version_info[1]}"
    if installs and not os.path.isdir(directory):
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir",
                               "--disable-pip-version-check", "--root-user-action=ignore", "--target",
                               f"{directory}.new", *PACKAGES], timeout=600)
        if done.returncode == 0:
            os.rename(f"{directory}.new", directory)
    return directory


def versions(environment):
    """Of what is compared, as far as it is there."""
    script = ("import importlib.metadata as m, sys\n"
              "for name in sys.argv[1:]:\n"
              "    try: print(name, m.version(name))\n"
              "    except m.PackageNotFoundError: pass\n")

    def packages(path, *names):
        return page.said("env", f"PYTHONPATH={path}", sys.executable, "-c", script, *names).splitlines()
    ours = [f"Python {sys.version.split()[0]}", *packages("", "ipython")]
    others = packages(environment["PYTHONPATH"], "ipykernel", "ipython", "jupyter_client", "jupyter_server", "tornado",
                      "pexpect")
    for command, found in ((["bash", "--version"], ours), (["tmux", "-V"], others)):
        try:
            found.append(page.said(*command).splitlines()[0].replace("GNU bash, version", "bash").split("(")[0])
        except OSError:
            pass
    return f", {', '.join(ours)}; the others: {', '.join(others)}"


def measure(build, quick):
    """The part's text."""
    rounds, count, rivals_count = (1, 100, 20) if quick else (5, 2000, 200)
    environment = {**os.environ, "PYTHONPATH": rivals_python(not quick), "PYTHONDONTWRITEBYTECODE": "1"}
    values = page.Values()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as directory:
        for number in range(1, rounds + 1):
            values.begin(number, rounds)
            page.note_lines(values, [f"{build}/bench/bench_tools", directory, str(count)])
            page.note_lines(values, [sys.executable, RIVALS, str(rivals_count)], environment)
    return f"""## Tools

{values.circumstances(versions(environment))}

A call of a tool as an agent makes it, in a sandbox of the host's own files, until its result is there; the others run
on the host itself, without a sandbox. Fresh: from the first call, in a sandbox that is ready, to its answer.

{values.percentile_rows()}
"""
