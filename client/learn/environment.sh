#!/usr/bin/env bash
# bash client/learn/environment.sh [trl]
#
# Installs torch and transformers into an environment of their own, once, about 6 GB; prints
#     SLUICE_LEARN_PYTHON=<path>
# for `eval "$(bash client/learn/environment.sh)"`. With `trl` that Python is of an environment beside it, with TRL (0.3 GB),
# which has torch from the first one. What it says to people, and pip's progress, goes to stderr.
# SLUICE_CACHE says where the cache is (default ~/.cache/sluice).
set -euo pipefail

environment=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}/learn/env
python=$environment/bin/python3
mkdir -p "${environment%/*}"

# Two at once: the second waits and finds everything there.
exec 9>"${environment%/*}/lock"
flock 9

if [ ! -e "$environment/complete" ]; then
    echo "learn: torch and transformers, into $environment (some minutes, once)" >&2
    /usr/bin/python3 -m venv "$environment"
    "$python" -m pip install --disable-pip-version-check --progress-bar on \
        "torch>=2.4" "transformers>=5" "accelerate>=1.10" "gguf>=0.17" "pyzmq>=22" "msgpack>=1.0" "lz4>=3.0" >&2
    touch "$environment/complete"
fi

if [ "${1:-}" = trl ]; then
    trl=${environment%/*}/trl
    if [ ! -e "$trl/complete" ]; then
        echo "learn: TRL, into $trl" >&2
        /usr/bin/python3 -m venv "$trl"
        "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
            >"$("$trl/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/learn.pth"
        "$trl/bin/python3" -m pip install --disable-pip-version-check --progress-bar on "trl>=1.16,<1.17" >&2
        touch "$trl/complete"
    fi
    python=$trl/bin/python3
fi
echo "SLUICE_LEARN_PYTHON=$python"
