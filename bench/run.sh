#!/usr/bin/env bash
# bash bench/run.sh [--quick]
#
# No-op rollouts through init, run and eval (1 KiB tasks, durable, 4 + 4 + 4 workers over tcp on
# this machine) beside the raw ceiling: libzmq with credits and a group-committed file, no schema,
# no leases, no database. Both are measured in turn in the same run; what is compared is the ratio.
# Prints machine, date, median and spread, and writes them to docs/benchmarks.md.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=5 count=20000 latencies=500
if [ "${1:-}" = --quick ]; then rounds=2 count=4000 latencies=100; fi

bash .ci/packages.sh
cmake --preset release >/dev/null
cmake --build --preset release --target sluice-broker sluice-worker bench_ceiling bench_rollouts | tail -n 1
build=$PWD/build/release
data=$(mktemp -d "${TMPDIR:-/tmp}/sluice-bench.XXXXXX")
pids=()
stop() {
    kill -TERM "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
    pids=()
}
trap 'stop; rm -rf "$data"' EXIT
trap 'exit 130' INT TERM

front=tcp://127.0.0.1:5850 feed=tcp://127.0.0.1:5852
start() {
    "$build/broker/sluice-broker" --front 5850 --sink 5851 --feed 5852 --data "$data/ledger" >"$data/log" 2>&1 &
    pids+=($!)
    for stage in init run eval; do
        for _ in 1 2 3 4; do
            "$build/workers/sluice-worker" $stage --broker $front --slots 64 --data "$data" >>"$data/log" 2>&1 &
            pids+=($!)
        done
    done
}

median() { sort -g | awk '{v[NR]=$1} END {print (NR % 2) ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }
spread() { sort -g | awk '{v[NR]=$1} END {printf "%s to %s", v[1], v[NR]}'; }

start
"$build/bench/bench_rollouts" latency $front $feed 20 1024 >/dev/null # everything is up and warm
rates=() limits=() ratios=() p50s=() p99s=()
for ((round = 1; round <= rounds; round++)); do
    limit=$("$build/bench/bench_ceiling" 4 $count 4000 64 1024 "$data/ceiling")
    rate=$("$build/bench/bench_rollouts" rate $front $feed $count 4000 1024)
    read -r p50 p99 < <("$build/bench/bench_rollouts" latency $front $feed $latencies 1024)
    ratio=$(awk "BEGIN {printf \"%.3f\", $rate / $limit}")
    echo "round $round: ceiling $limit/s, sluice $rate/s, ratio $ratio; idle p50 $p50 ms, p99 $p99 ms"
    rates+=("$rate") limits+=("$limit") ratios+=("$ratio") p50s+=("$p50") p99s+=("$p99")
done
stop

row() { printf '| %s | %s | %s |\n' "$1" "$(printf '%s\n' "${@:2}" | median)" "$(printf '%s\n' "${@:2}" | spread)"; }
{
    echo "# Benchmarks"
    echo
    echo "Made by \`bash bench/run.sh\` on $(date -u +%F): $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1),"
    echo "Linux $(uname -r), libzmq $(pkg-config --modversion libzmq), SQLite $(pkg-config --modversion sqlite3); $rounds rounds, load average before: $(cut -d' ' -f1 /proc/loadavg)."
    echo
    echo "No-op rollouts of 1 KiB through init, run and eval; every submit, stage result and end is on disk before"
    echo "it is acknowledged; 4 + 4 + 4 worker processes over tcp on one machine; 4,000 outstanding; $count a round."
    echo
    echo "| what | median | spread |"
    echo "|---|---|---|"
    row "raw ceiling (libzmq + group-committed file), jobs/s" "${limits[@]}"
    row "Sluice, rollouts/s" "${rates[@]}"
    row "ratio" "${ratios[@]}"
    row "idle, submit to trajectory, p50 ms" "${p50s[@]}"
    row "idle, submit to trajectory, p99 ms" "${p99s[@]}"
    [ -f bench/notes.md ] && { echo; cat bench/notes.md; }
} >"$data/benchmarks.md"
cat "$data/benchmarks.md"
[ "${1:-}" = --quick ] || cp "$data/benchmarks.md" docs/benchmarks.md
