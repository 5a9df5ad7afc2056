#!/usr/bin/env bash
# bash client/demo.sh [--engine URL] [--samples N] [--keep]
#
# The whole of Sluice on this machine: installs what is missing, builds, starts a real llama.cpp
# server with a small real model (or uses yours: --engine URL), brings up broker and workers,
# submits client/demo/tasks.jsonl (arithmetic scored by \boxed{}; work with bash, ipython and edit in
# sandboxes on this machine's own files, on a directory image and on a SIF image, scored by commands) and
# client/demo/handlers.jsonl (an agent, a tool and an evaluator in Python: those of docs/handlers.md) and
# client/demo/harness.py's (a program that knows nothing of Sluice, as an agent), shows progress, then rewards per task, two
# rollouts in full, where the trajectories are, and the address of the page.
# Everything it starts, it stops; what it leaves is the folder ./sluice-demo. With --keep it stays up until Ctrl-C, so that
# there is something to see on the page.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$PWD/sluice-demo

engine=
samples=4
keep=
while [ $# -gt 0 ]; do
    case $1 in
    --engine) engine=${2:?--engine needs a URL}; shift 2 ;;
    --samples) samples=${2:?--samples needs a number}; shift 2 ;;
    --keep) keep=yes; shift ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "demo: unknown option $1 (see --help)" >&2; exit 2 ;;
    esac
done

. "$here/client/processes.sh"

say "installing what is missing, building"
bash "$here/.ci/packages.sh"
(cd "$here" && cmake --preset release >/dev/null &&
    cmake --build --preset release --target sluice sluice-broker sluice-worker sluice-image sluice-verify \
        sluice-simulate sluice-gateway | tail -n 1)
sluice=$here/build/release/client/sluice

mkdir -p "$out"
rm -rf "$out/data" "$out/trajectories.jsonl"

if [ -z "$engine" ]; then
    say "a real model"
    settings=$(bash "$here/client/engine.sh")
    eval "$settings"
    port=$(free_port 8080)
    # Its threads spin while they wait for each other: on few cores, one that sleeps is much faster.
    "$SLUICE_LLAMA_SERVER" -m "$SLUICE_MODEL" --host 127.0.0.1 --port "$port" -c 16384 -np 4 \
        -t $(($(nproc) > 3 ? $(nproc) / 2 : 1)) --poll 0 \
        >"$out/llama-server.log" 2>&1 &
    pids+=($!)
    engine=http://127.0.0.1:$port
    wait_for 120 curl -fsS "$engine/health" || {
        echo "demo: the engine did not start; see $out/llama-server.log" >&2
        exit 1
    }
    echo "llama.cpp's server with $(basename "$SLUICE_MODEL") at $engine"
fi

say "images"
settings=$(bash "$here/client/demo/image.sh")
eval "$settings"
sed -e "s|@DIRECTORY@|$SLUICE_IMAGE_DIR|" -e "s|@SIF@|$SLUICE_IMAGE_SIF|" "$here/client/demo/tasks.jsonl" >"$out/tasks.jsonl"
cat "$here/client/demo/handlers.jsonl" >>"$out/tasks.jsonl"
/usr/bin/python3 "$here/client/demo/harness.py" >>"$out/tasks.jsonl"
echo "Debian with IPython: $SLUICE_IMAGE_DIR, and as a SIF file: $SLUICE_IMAGE_SIF"

say "an agent, a tool and an evaluator of one's own: $out/mine.py, from docs/handlers.md"
sed -n '/^```python$/,/^```$/{/^```/!p;/^```$/q}' "$here/docs/handlers.md" >"$out/mine.py"
cat "$out/mine.py"

say "broker and workers"
front=$(free_port 5750)
page=$(free_port 5780)
export SLUICE_BROKER=tcp://127.0.0.1:$front
"$sluice" up --front "$front" --gateway "$page" --engine "$engine" --data "$out/data" \
    --handler "mine=PYTHONPATH='$here/client/python' exec /usr/bin/python3 -m sluice.handlers '$out/mine.py'" \
    --images "$SLUICE_IMAGE_DIR" --images "$SLUICE_IMAGE_SIF" >"$out/sluice.log" 2>&1 &
pids+=($!)
wait_for 60 "$sluice" status || {
    echo "demo: sluice did not come up; the last lines of $out/sluice.log:" >&2
    tail -n 5 "$out/sluice.log" >&2
    exit 1
}
echo "up at $SLUICE_BROKER, with a page at http://127.0.0.1:$page; log in $out/sluice.log"

say "$(wc -l <"$out/tasks.jsonl") tasks x $samples samples"
status=0
"$sluice" submit "$out/tasks.jsonl" --stream demo --samples "$samples" \
    --wait --out "$out/trajectories.jsonl" || status=$?
[ $status -eq 0 ] || [ $status -eq 3 ] || exit $status

say "one rollout in full"
rollout=$(/usr/bin/python3 "$here/client/demo/choose.py" "$out/trajectories.jsonl")
"$sluice" show "$rollout" --tokens

say "one rollout of the harness, whose model was sampled over HTTP"
rollout=$(/usr/bin/python3 "$here/client/demo/choose.py" "$out/trajectories.jsonl" harness-loop)
"$sluice" show "$rollout" --tokens

say "done"
cat <<EOF
trajectories: $out/trajectories.jsonl

What to try next, with an engine of your own ($here/build/release/client is where sluice is):
  sluice up --engine http://127.0.0.1:8080               # leave it running
  echo '{"task": "sum", "prompt": "What is 17+25? Answer in \\\\boxed{}.", "eval": {"kind": "math", "answer": "42"}}' >mine.jsonl
  sluice submit mine.jsonl --stream mine --samples 4 --wait
docs/tasks.md has every field of a task, docs/trainers.md the loop of a trainer.
EOF
if [ -n "$keep" ]; then
    echo "the page: http://127.0.0.1:$page (until Ctrl-C)"
    wait "${pids[-1]}"
else
    echo "the page was http://127.0.0.1:$page; with --keep it stays up"
fi
exit $status
