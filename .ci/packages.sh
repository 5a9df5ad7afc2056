#!/usr/bin/env bash
# Installs the Debian packages that Sluice is built and tested with, and nothing that is there already.
# Arguments are further packages. Run by client/demo.sh and tests/run.sh; needs root or sudo only when something is missing.
set -euo pipefail

packages=(
    build-essential cmake ninja-build pkg-config git ca-certificates
    libzmq3-dev libczmq-dev libmsgpack-dev libcurl4-openssl-dev liblz4-dev libcmocka-dev
    libsqlite3-dev libjansson-dev libarchive-dev libssl-dev libsquashfs-dev libpcre2-dev libmicrohttpd-dev zlib1g-dev
    libfaketime fuse-overlayfs bubblewrap
    python3 python3-pip python3-venv python3-zmq python3-msgpack python3-numpy python3-lz4 python3-pytest unzip curl squashfs-tools-ng
    python3-ipython python3-ipykernel
    groff-base zsh
    "$@"
)

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
    echo "installing: ${missing[*]}"
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            echo "these Debian packages are missing and there is no sudo: ask for 'apt-get install ${missing[*]}'" >&2
            exit 1
        }
        as_root=(sudo)
    fi
    # promtool comes with a server, which shall not run where nobody asked for it.
    if [ -d /run/systemd/system ] && [[ " ${missing[*]} " == *" prometheus "* ]]; then
        echo "masking prometheus.service, as only promtool is wanted: 'systemctl unmask prometheus' undoes it"
        "${as_root[@]}" systemctl --quiet mask prometheus.service
    fi
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
