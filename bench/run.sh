#!/usr/bin/env bash
# bash bench/run.sh [--quick]
#
# What Sluice costs and how soon it is itself again: throughput with and without a ledger beside the raw
# ceiling (libzmq with credits and a group-committed file: no schema, no leases, no database), latency,
# the time from a worker's end to its jobs' next dispatch, from the broker's start to its first answer,
# and its memory. Prints machine, date, medians and spread, and writes them to docs/benchmarks.md;
# --quick writes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

bash .ci/packages.sh
cmake --preset release >/dev/null
cmake --build --preset release --target sluice-broker sluice-worker bench_ceiling bench_rollouts | tail -n 1
# Debian's own python3 comes first: its packages are what .ci/packages.sh installs.
python=/usr/bin/python3
[ -x $python ] || python=python3
PYTHONDONTWRITEBYTECODE=1 exec $python bench/measure.py "$PWD/build/release" "$@"
