#!/usr/bin/env bash
# bash tests/harnesses.sh [NAME...]
#
# Runs tests/harnesses/test_harness_programs.py with each harness named, else with all: the program itself, unmodified, with a
# real service and a scripted model. By hand: tests/run.sh does without. client/harness.sh installs them in /opt/harness, where
# a sandbox finds them; who may not write there is told so. The programs of Sluice are those of SLUICE_BINARY_DIR, else
# build/release, which is built. Exit status 1 if one failed or could not be installed.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(bash "$here/client/harness.sh" --list | cut -d' ' -f1)
binary=${SLUICE_BINARY_DIR:-}
if [ -z "$binary" ]; then
    binary=$here/build/release
    (cd "$here" && cmake --preset release >/dev/null &&
        cmake --build --preset release --target sluice sluice-broker sluice-worker sluice-verify | tail -n 1)
fi
export SLUICE_BINARY_DIR=$binary SLUICE_SOURCE_DIR=$here PYTHONDONTWRITEBYTECODE=1

said=() failed=0
for name in "${names[@]}"; do
    if ! bash "$here/client/harness.sh" "$name"; then
        said+=("$name: cannot be installed here") failed=1
    elif SLUICE_HARNESSES=$name /usr/bin/python3 "$here/tests/harnesses/test_harness_programs.py" "Programs.test_${name//-/_}"; then
        said+=("$name: passed")
    else
        said+=("$name: failed") failed=1
    fi
done
printf '%s\n' "${said[@]}"
exit $failed
