#!/usr/bin/env bash
# Installs what only the benchmarks want: the servers that Sluice is measured beside, and gnuplot. What cannot be installed
# is said and left out: the bench then skips it by name. No service is started, neither now nor at the next boot.
set -euo pipefail

packages=(redis-server beanstalkd nats-server rabbitmq-server gnuplot-nox)
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || {
        echo "not installed, and there is no sudo without a password: ${missing[*]}" >&2
        exit 0
    }
    as_root=(sudo -n)
fi

# Debian asks this file whether a service of a new package may be started.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
    "${as_root[@]}" chmod 755 $policy
    trap '"${as_root[@]}" rm -f $policy' EXIT
fi
"${as_root[@]}" apt-get update -qq || true
for package in "${missing[@]}"; do
    echo "installing $package"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null || {
        echo "$package could not be installed" >&2
        continue
    }
    if [ -d /run/systemd/system ] && [ "$package" != gnuplot-nox ]; then
        "${as_root[@]}" systemctl disable --quiet --now "$package" epmd.socket epmd 2>/dev/null || true
    fi
done
