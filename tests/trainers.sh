#!/usr/bin/env bash
# bash tests/trainers.sh [--list] [NAME...]
#
# Runs tests/client/trainers/test_NAME.py, of each trainer named, else of all: the trainer's own classes, from the package
# index, with a real service and a small real model on this machine's processor. By hand: tests/run.sh does without. --list
# lists the names.
#
# Each trainer has an environment of its own, trainers/NAME in $SLUICE_CACHE (default ~/.cache/sluice), made once and again
# when what the test wants has changed; torch, where it is wanted, is that of client/learn.sh (6 GB, once). The programs are
# those of SLUICE_BINARY_DIR, else build/release, which is built. Says of each trainer whether its test passed, failed, or
# cannot be installed or run here, and why; exit status 1 if one failed.
#
# What a test wants stands at its beginning:
#     # Packages: trl>=1.16 datasets       what pip installs
#     # Options: --no-deps                 further options of pip
#     # Python: 3.12                       the oldest that will do (3.9)
#     # Torch: yes                         torch, transformers, accelerate and gguf (no)
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
tests=$here/tests/client/trainers
cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}/trainers

say() { printf '\n== %s\n' "$*"; }

names() { (cd "$tests" && printf '%s\n' test_*.py | sed 's/^test_\(.*\)\.py$/\1/'); }

# $1: a trainer; $2: one of the lines at its test's beginning
wants() { sed -n '1,20s/^# '"$2"': *//p' "$tests/test_$1.py"; }

named=()
while [ $# -gt 0 ]; do
    case $1 in
    --list) names; exit 0 ;;
    -h | --help) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "trainers: $1 is no option; see --help" >&2; exit 2 ;;
    *)
        [ -e "$tests/test_$1.py" ] || { echo "trainers: no test of $1; there are: $(names | xargs)" >&2; exit 2; }
        named+=("$1"); shift ;;
    esac
done
[ ${#named[@]} -gt 0 ] || mapfile -t named < <(names)

# The newest Python here that is $1 or newer, such as 3.12.
python_of() {
    local path found
    for path in /usr/bin/python3 $(compgen -c python3 | grep -x 'python3\.[0-9]*' | sort -t. -k2nr -u); do
        found=$(command -v "$path") || continue
        "$found" -c "import sys, ensurepip; sys.exit(sys.version_info[:2] < tuple(map(int, '$1'.split('.'))))" 2>/dev/null &&
            { echo "$found"; return; }
    done
    return 1
}

# Has the environment of $1 made and sets $python; where that cannot be, $why, and fails. One at a time makes it.
prepare() {
    local lock code=0
    mkdir -p "$cache"
    exec {lock}>"$cache/$1.lock"
    flock "$lock"
    make_environment "$1" || code=$?
    exec {lock}>&-
    return $code
}

make_environment() {
    local environment=$cache/$1 wanted interpreter oldest site
    oldest=$(wants "$1" Python)
    wanted="$(wants "$1" Packages) | $(wants "$1" Options) | $oldest | $(wants "$1" Torch)"
    python=$environment/bin/python
    [ "$(cat "$environment/complete" 2>/dev/null)" != "$wanted" ] || return 0
    interpreter=$(python_of "${oldest:-3.9}") || { why="no Python ${oldest:-3.9} or newer with ensurepip is here"; return 1; }
    echo "into $environment"
    rm -rf "$environment"
    "$interpreter" -m venv "$environment"
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    if [ "$(wants "$1" Torch)" = yes ]; then
        local settings
        settings=$(bash "$here/client/learn/environment.sh")
        eval "$settings"
        "$SLUICE_LEARN_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/learn.pth"
        if [ "$(basename "$(dirname "$site")")" != "$(basename "$(dirname "$(cat "$site/learn.pth")")")" ]; then
            why="torch is installed for another Python than ${oldest}, which this trainer needs"
            return 1
        fi
    fi
    # shellcheck disable=SC2046
    if ! {
        "$python" -m pip install --disable-pip-version-check --progress-bar on pyzmq msgpack numpy lz4 &&
            "$python" -m pip install --disable-pip-version-check --progress-bar on \
                $(wants "$1" Options) $(wants "$1" Packages)
    } 2> >(tee "$environment/errors" >&2); then
        why=$(grep -m 1 '^ERROR' "$environment/errors" || echo "pip failed")
        return 1
    fi
    echo "$wanted" >"$environment/complete"
}

binary=${SLUICE_BINARY_DIR:-}
if [ -z "$binary" ]; then
    say "building"
    binary=$here/build/release
    (cd "$here" && cmake --preset release >/dev/null &&
        cmake --build --preset release --target sluice sluice-broker sluice-worker | tail -n 1)
fi
settings=$(bash "$here/client/engine.sh")
eval "$settings"
export SLUICE_BINARY_DIR=$binary SLUICE_SOURCE_DIR=$here SLUICE_LLAMA_SERVER SLUICE_MODEL
export PYTHONPATH=$here/client/python:$here/client/learn:$tests PYTHONDONTWRITEBYTECODE=1
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false TQDM_DISABLE=1 CUDA_VISIBLE_DEVICES=

said=() failed=0
for name in "${named[@]}"; do
    say "$name"
    why=
    if ! prepare "$name"; then
        said+=("$name: cannot be installed here: $why")
        continue
    fi
    status=0
    "$python" "$tests/test_$name.py" 2>&1 | tee "$cache/$name/log" || status=${PIPESTATUS[0]}
    case $status in
    0) said+=("$name: passed") ;;
    77) said+=("$name: cannot be run here: $(sed -n 's/^skipped: //p' "$cache/$name/log" | tail -n 1)") ;;
    *) said+=("$name: failed; $cache/$name/log") failed=1 ;;
    esac
done
say "all"
printf '%s\n' "${said[@]}"
exit $failed
