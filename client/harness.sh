#!/usr/bin/env bash
# bash client/harness.sh [--into DIRECTORY] NAME...
# bash client/harness.sh --list
#
# Installs harnesses (docs/harnesses.md), each into a directory of its own with its programs in bin/, below
# /opt/harness or DIRECTORY: on a node, for the image `host`, or in a Dockerfile. Each in the version with which it was
# tried; --list prints names and versions. Once; another version takes the place of what is there. What it says is on
# stderr. Needs npm or, for mini-swe-agent, /usr/bin/python3 with venv.
set -euo pipefail

into=/opt/harness
declare -A versions=([mini-swe-agent]=2.4.6 [claude-code]=2.1.328 [codex]=0.169.0 [opencode]=1.18.33 [qwen-code]=0.24.4)

say() { echo "harness: $*" >&2; }

list() { for name in "${!versions[@]}"; do echo "$name ${versions[$name]}"; done | sort; }

case $(uname -m) in
aarch64) machine=linux-arm64 ;;
*) machine=linux-x64 ;;
esac

# $1: where; then packages. Their own scripts, which would fetch more, do not run.
npm_install() {
    npm install --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel=error "${@:2}" >&2
}

# $1: where; $2: the program's name; $3: its path below node_modules, a pattern
link() {
    local found
    found=$(cd "$1" && compgen -G "node_modules/$3" | head -n 1) || { say "there is no $3 in what npm installed"; return 1; }
    mkdir -p "$1/bin"
    ln -sfn "../$found" "$1/bin/$2"
}

# $1: a name; $2: where. mini-swe-agent's LiteLLM does not start without mcp.
install_one() {
    local version=${versions[$1]}
    case $1 in
    mini-swe-agent)
        /usr/bin/python3 -m venv "$2" &&
            "$2/bin/python3" -m pip install -q --disable-pip-version-check "mini-swe-agent==$version" mcp >&2
        ;;
    claude-code)
        npm_install "$2" "@anthropic-ai/claude-code@$version" && link "$2" claude "@anthropic-ai/claude-code-$machine/claude"
        ;;
    codex)
        npm_install "$2" "@openai/codex@$version" && link "$2" codex "@openai/codex-$machine/vendor/*/bin/codex"
        ;;
    opencode)
        npm_install "$2" "opencode-ai@$version" && link "$2" opencode "opencode-$machine/bin/opencode"
        ;;
    qwen-code)
        npm_install "$2" "@qwen-code/qwen-code@$version" "node-$machine@22" &&
            link "$2" qwen .bin/qwen && link "$2" node "node-$machine/bin/node"
        ;;
    esac
}

# The version is written last: what has one is whole.
place() {
    local there=$into/$1
    [ "$(cat "$there/version" 2>/dev/null)" != "${versions[$1]}" ] || return 0
    say "$1 ${versions[$1]}, into $there"
    rm -rf "$there"
    mkdir -p "$there"
    install_one "$1" "$there" || { say "$1 cannot be installed"; return 1; }
    chmod -R a+rX "$there"
    echo "${versions[$1]}" >"$there/version"
}

names=()
while [ $# -gt 0 ]; do
    case $1 in
    --list) list; exit 0 ;;
    --into) into=${2:?--into needs a directory}; shift 2 ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *)
        [ -n "${versions[$1]:-}" ] || { say "there is no $1; there are: $(list | cut -d' ' -f1 | xargs)"; exit 2; }
        names+=("$1"); shift ;;
    esac
done
[ ${#names[@]} -gt 0 ] || { say "which one? $(list | cut -d' ' -f1 | xargs)"; exit 2; }
mkdir -p "$into" || exit 1
exec 9>"$into/.lock" || exit 1
flock 9
for name in "${names[@]}"; do
    place "$name"
done
