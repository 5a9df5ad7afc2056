#!/usr/bin/env bash
# bash bench/queued.sh [ROLLOUTS [SAMPLES [BYTES]]]        1000000 1 1024
#
# A broker with so many rollouts queued and no worker: its memory, the ledger's size, and how long
# it takes to start again after kill -9 and after a tidy end. BUILD names the build folder.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-1000000} samples=${2:-1} bytes=${3:-1024} build=${BUILD:-$PWD/build/release}
data=$(mktemp -d "${TMPDIR:-/tmp}/sluice-queued.XXXXXX")
broker=
trap '[ -z "$broker" ] || kill -KILL "$broker" 2>/dev/null || true; rm -rf "$data"' EXIT
trap 'exit 130' INT TERM

start() { # prints the seconds until it is ready
    local begin=$EPOCHREALTIME
    rm -f "$data/words" && mkfifo "$data/words"
    "$build/broker/sluice-broker" --data "$data/ledger" --front 5860 --sink 5861 --feed 5862 --log warn >"$data/words" &
    broker=$!
    grep -q -m 1 'broker ready' <"$data/words"
    awk "BEGIN {printf \"%.2f\", $EPOCHREALTIME - $begin}"
}
rss() { awk '/^VmRSS/ {printf "%d MiB", $2 / 1024}' "/proc/$broker/status"; }
end() { kill "-$1" "$broker"; wait "$broker" 2>/dev/null || true; }

start >/dev/null
echo "broker with nothing: $(rss)"
echo "$count rollouts in groups of $samples, tasks of $bytes bytes: accepted in $("$build/bench/bench_queued" tcp://127.0.0.1:5860 "$count" "$samples" "$bytes") s"
echo "memory: $(rss); ledger.db and its log: $(du -cm "$data"/ledger/ledger.db* | tail -n 1 | cut -f 1) MiB"
end KILL
start >"$data/seconds"
echo "started again after kill -9 in $(cat "$data/seconds") s; memory $(rss)"
end TERM
start >"$data/seconds"
echo "started again after a tidy end in $(cat "$data/seconds") s; memory $(rss)"
