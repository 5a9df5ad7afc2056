#!/usr/bin/env bash
# bash tests/run.sh [--preset NAME] [--no-engine] [CTEST OPTIONS...]
#
# Installs what is missing (Debian packages; a small real model and llama.cpp's server, cached),
# builds with warnings as errors, and runs every test. The default preset is `debug`:
# AddressSanitizer and UndefinedBehaviorSanitizer. --no-engine leaves the real model out; its
# tests then say that they were skipped. Other options go to ctest (-R REGEX, -j N, ...).
set -euo pipefail
cd "$(dirname "$0")/.."

preset=debug
engine=yes
while [ $# -gt 0 ]; do
    case $1 in
    --preset) preset=${2:?--preset needs a name}; shift 2 ;;
    --no-engine) engine=no; shift ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) break ;;
    esac
done

bash .ci/packages.sh
if [ $engine = yes ]; then
    settings=$(bash client/engine.sh) || {
        echo "no real engine: the tests that need one will be skipped" >&2
        settings=
    }
    for setting in $settings; do export "${setting?}"; done
fi

cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset"
exec ctest --preset "$preset" "$@"
