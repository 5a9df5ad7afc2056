#!/usr/bin/env bash
# bash client/learn.sh [--steps N] [--seed N] [--out DIR] [--trainer trl] [OPTIONS OF client/learn/learn.py...]
#
# A language model learns through Sluice, on this machine's processor: installs what is missing (torch and transformers into
# an environment of their own, about 6 GB, once), builds, brings up broker and workers, and makes --steps (15) steps of DAPO
# on SmolLM2-135M, whose engine, llama.cpp's server, is given the new weights after each. Shows a line a step, and how well
# the model does on held-out tasks before and after; leaves metrics.jsonl, learn.svg and a checkpoint in --out
# (./sluice-learn), and goes on from there when it is started again, however it ended. Delete --out to begin anew.
# With --trainer trl, TRL's GRPOTrainer makes the steps (docs/trainers/trl.md), and shows its own metrics.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$PWD/sluice-learn

more=() trainer= program=learn.py
while [ $# -gt 0 ]; do
    case $1 in
    --trainer)
        trainer=${2:?--trainer needs a name} program=${2}_example.py
        [ "$trainer" = trl ] || { echo "learn: --trainer knows trl alone, not $trainer" >&2; exit 2; }
        shift 2 ;;
    --out) out=$(realpath -m "${2:?--out needs a directory}"); shift 2 ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exec /usr/bin/python3 "$here/client/learn/learn_options.py" --help ;;
    *) more+=("$1"); shift ;;
    esac
done

. "$here/client/processes.sh"

say "installing what is missing, building"
bash "$here/.ci/packages.sh" python3-venv
(cd "$here" && cmake --preset release >/dev/null && cmake --build --preset release --target sluice sluice-broker sluice-worker | tail -n 1)
sluice=$here/build/release/client/sluice

say "a real model"
settings=$(bash "$here/client/engine.sh")
eval "$settings"

settings=$(bash "$here/client/learn/environment.sh" $trainer)
eval "$settings"

mkdir -p "$out"
say "broker and workers"
front=$(free_port 5750)
export SLUICE_BROKER=tcp://127.0.0.1:$front
"$sluice" up --front "$front" --data "$out/data" >>"$out/sluice.log" 2>&1 &
pids+=($!)
wait_for 60 "$sluice" status || {
    echo "learn: sluice did not come up; the last lines of $out/sluice.log:" >&2
    tail -n 5 "$out/sluice.log" >&2
    exit 1
}
echo "up at $SLUICE_BROKER; log in $out/sluice.log"

# Threads of OpenMP sleep soon when they wait: on a machine that others use, too, a step takes 11 s and not 87.
export GOMP_SPINCOUNT=10000

say "learning"
PYTHONPATH=$here/client/python TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 TQDM_DISABLE=1 \
    "$SLUICE_LEARN_PYTHON" "$here/client/learn/$program" --model "$SLUICE_MODEL" --server "$SLUICE_LLAMA_SERVER" \
    --port "$(free_port 8090)" --out "$out" "${more[@]}" &
pids+=($!)
wait $! # not in the foreground, where a signal to this shell would wait for it
