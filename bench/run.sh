#!/usr/bin/env bash
# bash bench/run.sh [--quick] [PART...]
#
# What Sluice costs and how soon it is itself again, part by part; all of them if none is named:
#   service   throughput with and without a ledger beside the raw ceiling (libzmq with credits and a
#             group-committed file: no schema, no leases, no database), latency, the time from a worker's
#             end to its jobs' next dispatch, from the broker's start to its first answer, and its memory; what others
#             notice of a peer that stalls, and the broker with up to 2,000 workers' connections
#   sandbox   until a sandbox is ready, how many a second, what one costs, and a layer packed and unpacked,
#             beside fork and exec, and bubblewrap
#   tools     calls of bash, edit and ipython beside tmux, pexpect, a Jupyter kernel over tcp and one behind
#             jupyter_server; what of these is not installed is skipped by name
#   evaluators  tests of programs a second, by checker and with one and two evaluations at a time; an evaluation by a handler
#             beside a built-in one
#   engines   model calls that one worker thread keeps in flight, and the CPU of a turn of 2,000 sampled tokens,
#             for each dialect
#   harness   model calls through the proxy of a harness beside the same engine's own: latency, CPU, how soon a stream's text
#             comes, and the memory of 1,000 open proxies
#   gateway   what HTTP adds to a submit and how many a second it carries, the memory of event streams and of calls
#             that wait, and how long a call of /run_code takes
#   nodes     1 to 32 nodes as network namespaces: throughput, what is short, nodes that die, join, are cut off or slow,
#             10,000 live rollouts in one worker; beside what sluice simulate says of the same fleets
#   peers     the service's pipeline on Redis, RabbitMQ, NATS JetStream, beanstalkd, the env server of verifiers and Ray
#             actors: rate, latency, CPU, and what comes of a killed worker's jobs
#   trajectories  encoding and decoding at 1,000, 30,000 and 100,000 tokens beside memcpy and LZ4, and a stream that
#             1, 4 and 16 read, without and with one that has stopped reading
#   sampling  a sampler beside rounds and carried prompts, by sluice simulate: seconds for each batch, groups asked for, tokens
#             thrown away
# Prints machine, date, medians and spread, and writes each part to docs/contributing/benchmarks.md and its plots to
# docs/contributing/plots; service and peers together also write how far the goals of speed are met. --quick sees that
# all of it works, in less than three minutes, and writes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1-} in
-h | --help)
    sed -n '2,/^set -/{/^set -/d; s/^# \{0,1\}//p}' bench/run.sh
    exit 0
    ;;
esac

bash .ci/packages.sh
bash bench/peer_systems/packages.sh
cmake --preset release >/dev/null
cmake --build --preset release --target sluice-broker sluice-worker bench_ceiling bench_rollouts bench_stand_ins bench_flood bench_sandbox \
    bench_layers bench_tools bench_programs bench_handlers bench_engines bench_harness bench_gateway sluice-gateway bench_nodes_engine sluice-simulate \
    bench_peers bench_trajectories | tail -n 1
# Debian's own python3 comes first: its packages are what .ci/packages.sh installs.
python=/usr/bin/python3
[ -x $python ] || python=python3
PYTHONDONTWRITEBYTECODE=1 exec $python bench/measure.py "$PWD/build/release" "$@"
