#!/usr/bin/env bash
# bash tests/sdks.sh [NAME...]
#
# Runs tests/harnesses/test_sdks.py with each SDK named, else with all: the package itself, unmodified, in a sandbox, with a
# real service and a scripted model. By hand: tests/run.sh does without. Installs them, from npm and PyPI, each in sdk-NAME of
# SLUICE_SDKS_DIR (/opt/sluice-sdks), where a sandbox finds them. The programs of Sluice are those of SLUICE_BINARY_DIR, else
# build/release, which is built. Exit status 1 if one failed or could not be installed.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
into=${SLUICE_SDKS_DIR:-/opt/sluice-sdks}
declare -A packages=([openai]=openai@7.57.0 [anthropic]=@anthropic-ai/sdk@1.14.0 [google]=@google/genai@3.3.0
    [openai-python]=openai==3.57.0 [anthropic-python]=anthropic==2.14.0 [google-python]=google-genai==3.6.1)

case $(uname -m) in
aarch64) machine=linux-arm64 ;;
*) machine=linux-x64 ;;
esac

# $1: a name. Once; another version takes the place of what is there.
install_sdk() {
    local at=$into/sdk-$1 package=${packages[$1]}
    [ "$(cat "$at/version" 2>/dev/null)" != "$package" ] || return 0
    rm -rf "$at" && mkdir -p "$at" || return 1
    case $1 in
    *-python) /usr/bin/python3 -m venv "$at" && "$at/bin/python3" -m pip install -q --disable-pip-version-check "$package" ;;
    *)
        npm install --prefix "$at" --ignore-scripts --no-audit --no-fund --loglevel=error "$package" "node-$machine@22" &&
            mkdir -p "$at/bin" && ln -sfn "../node_modules/node-$machine/bin/node" "$at/bin/node"
        ;;
    esac && echo "$package" >"$at/version"
}

names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(printf '%s\n' "${!packages[@]}" | sort)
binary=${SLUICE_BINARY_DIR:-}
if [ -z "$binary" ]; then
    binary=$here/build/release
    (cd "$here" && cmake --preset release >/dev/null &&
        cmake --build --preset release --target sluice sluice-broker sluice-worker sluice-verify | tail -n 1)
fi
export SLUICE_BINARY_DIR=$binary SLUICE_SOURCE_DIR=$here SLUICE_SDKS_DIR=$into PYTHONDONTWRITEBYTECODE=1

said=() failed=0
for name in "${names[@]}"; do
    if [ -z "${packages[$name]:-}" ]; then
        said+=("$name: no such SDK; there are: $(printf '%s\n' "${!packages[@]}" | sort | xargs)") failed=1
    elif ! install_sdk "$name"; then
        said+=("$name: cannot be installed here") failed=1
    elif SLUICE_SDKS=$name /usr/bin/python3 "$here/tests/harnesses/test_sdks.py" "Sdks.test_${name//-/_}"; then
        said+=("${packages[$name]}: passed")
    else
        said+=("${packages[$name]}: failed") failed=1
    fi
done
printf '%s\n' "${said[@]}"
exit $failed
