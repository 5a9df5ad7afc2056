#!/usr/bin/env bash
# bash tests/harnesses.sh [NAME...]
#
# Runs tests/harnesses/test_harness_programs.py with each harness named, else with all: the program itself, unmodified, with a
# real service and a scripted model. By hand: tests/run.sh does without. `sluice harness install` fetches them, where run workers
# find them; SLUICE_HARNESS_PYTHON names a Python for those of PyPI. The programs of Sluice are those of SLUICE_BINARY_DIR, else
# build/release, which is built. Exit status 1 if one failed or could not be installed.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

binary=${SLUICE_BINARY_DIR:-}
if [ -z "$binary" ]; then
    binary=$here/build/release
    (cd "$here" && cmake --preset release >/dev/null &&
        cmake --build --preset release --target sluice sluice-broker sluice-worker sluice-verify | tail -n 1)
fi
export SLUICE_BINARY_DIR=$binary SLUICE_SOURCE_DIR=$here PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$here/client/python SLUICE_PYTHON=${SLUICE_PYTHON:-/usr/bin/python3}
python=(${SLUICE_HARNESS_PYTHON:+--python "$SLUICE_HARNESS_PYTHON"})

names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <("$binary/client/sluice" harness list | tail -n +2 | cut -d' ' -f1)
said=() failed=0
for name in "${names[@]}"; do
    if ! "$binary/client/sluice" harness install "$name" "${python[@]}"; then
        said+=("$name: cannot be installed here") failed=1
    elif SLUICE_HARNESSES=$name /usr/bin/python3 "$here/tests/harnesses/test_harness_programs.py" "Programs.test_${name//-/_}"; then
        said+=("$name: passed")
    else
        said+=("$name: failed") failed=1
    fi
done
printf '%s\n' "${said[@]}"
exit $failed
