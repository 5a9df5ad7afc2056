#!/usr/bin/env bash
# Fetches a real Apptainer and runs the tests of the tier `apptainer` with it, in the build directory given
# (default build/release). By hand: tests/run.sh does without.
#
#     bash tests/apptainer.sh [--setuid] [BUILD]
#
# Without --setuid it is Debian's package, from sid, with sid's libc beside it so that it runs on Debian 12: it
# needs no root, and user namespaces. With --setuid (as root, with Go 1.23 or newer) it is built from the source of
# the same package, and its starter is set-user-ID root, as on nodes that forbid user namespaces: the tests run a third
# time there, with those forbidden. Both are kept in $SLUICE_CACHE (/var/cache/sluice for root, else ~/.cache/sluice).
set -euo pipefail

source_dir=$(cd "$(dirname "$0")/.." && pwd)
kind=plain
if [ "${1:-}" = --setuid ]; then kind=setuid; shift; fi
build=$(realpath "${1:-$source_dir/build/release}")
if [ "$(id -u)" = 0 ]; then home=/var/cache; else home=${XDG_CACHE_HOME:-$HOME/.cache}; fi
cache=${SLUICE_CACHE:-$home/sluice}/apptainer
prefix=$cache/$kind
mkdir -p "$cache"
chmod 755 "$cache"

say() { echo "apptainer: $*" >&2; }

# Two at once: the second waits and finds everything there.
exec 9>"$cache/lock"
flock 9
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# apt with sid alone and lists of its own; the machine's are not touched.
sid_apt() {
    apt-get -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$work/state" -o Dir::State::status="$work/status" \
        -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none "$@" >&2
}

prepare_apt() {
    local sid='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian sid main'
    mkdir -p "$work"/{state/lists/partial,cache/archives/partial,debs,root}
    : >"$work/status"
    printf 'deb %s\ndeb-src %s\n' "$sid" "$sid" >"$work/sources.list"
    sid_apt update
}

# The package finds its parts by where it lies, some below usr/lib, some below usr.
fetch_plain() {
    local library=usr/lib/$(uname -m)-linux-gnu program
    command -v patchelf >/dev/null || { say "patchelf is needed: apt-get install patchelf"; exit 1; }
    prepare_apt
    (cd "$work/debs" && sid_apt download apptainer libc6)
    for package in "$work"/debs/*.deb; do dpkg -x "$package" "$work/root"; done
    mkdir -p "$work/root/usr/etc" "$work/root/usr/lib/etc" "$work/root/usr/var/lib/apptainer/mnt/session"
    ln -s ../../etc/apptainer "$work/root/usr/etc/apptainer"
    ln -s ../../../etc/apptainer "$work/root/usr/lib/etc/apptainer"
    ln -s ../var "$work/root/usr/lib/var"
    mkdir "$work/root/libc"
    mv "$work/root/$library"/{ld-linux-*.so.*,libc.so.6,libm.so.6,libresolv.so.2} "$work/root/libc/"
    for program in usr/bin/apptainer "$library/apptainer/bin/starter"; do
        patchelf --set-interpreter "$prefix/libc/$(basename "$work"/root/libc/ld-linux-*.so.*)" "$work/root/$program"
        patchelf --force-rpath --set-rpath "$prefix/libc" "$work/root/$program"
    done
    chmod -R go+rX "$work/root"
    mv "$work/root" "$prefix"
}

# Nothing of what is built as root and set-user-ID may be another's to write.
build_setuid() {
    [ "$(id -u)" = 0 ] || { say "--setuid is for root"; exit 1; }
    command -v go >/dev/null || { say "Go 1.23 or newer is needed"; exit 1; }
    prepare_apt
    (cd "$work/debs" && sid_apt source --download-only apptainer && tar -xzf apptainer_*.orig.tar.gz)
    local source
    source=$(echo "$work"/debs/apptainer-*/)
    say "building it from $(basename "$source") (some minutes, once)"
    (cd "$source" && basename "$PWD" | sed 's/apptainer-//' >VERSION && ./mconfig --with-suid --without-network --prefix="$prefix" &&
        GOFLAGS=-buildvcs=false GOCACHE=$work/go GOMODCACHE=$work/mod make -C builddir && make -C builddir install) >"$cache/build.log" 2>&1 ||
        { say "not built: $cache/build.log"; rm -rf "$prefix"; chmod -R u+w "$work"; exit 1; }
    chmod -R u+w "$work"
}

if ! [ -e "$prefix/ready" ]; then
    rm -rf "$prefix"
    if [ $kind = plain ]; then fetch_plain; else build_setuid; fi
    : >"$prefix/ready"
fi
flock -u 9

bin=$prefix/bin
[ -d "$bin" ] || bin=$prefix/usr/bin
export PATH=$bin:$PATH
as_user=()
if [ "$(id -u)" = 0 ]; then
    getent passwd 1001 >/dev/null || { say "apptainer wants to know its user: useradd --uid 1001 --no-create-home NAME"; exit 1; }
    as_user=(setpriv --reuid 1001 --regid 1001 --clear-groups)
fi
say "$(apptainer --version), $kind, in $bin"

# Status 1 says that the machine could do better.
"${as_user[@]}" "$build/client/sluice" doctor --sandbox apptainer --cache /tmp >"$work/doctor" || [ $? = 1 ] || { cat "$work/doctor"; exit 1; }
sed -n '/^The tier/,/^$/p' "$work/doctor"
SLUICE_NEEDS_APPTAINER=$kind ctest --test-dir "$build" -R '^workers/test_apptainer' --output-on-failure
for attack in attacks attacks_neighbour attacks_stops; do
    say "test_$attack on this tier"
    SLUICE_TEST_TIER=apptainer SLUICE_SOURCE_DIR=$source_dir SLUICE_BINARY_DIR=$build "${as_user[@]}" \
        "$build/tests/workers_test_$attack"
done
cd "$source_dir/tests/system/sandboxes"
# Debian's own python3 comes first: another may lie where that user does not see it.
python=/usr/bin/python3
[ -x $python ] || python=python3
PYTHONDONTWRITEBYTECODE=1 SLUICE_SOURCE_DIR=$source_dir SLUICE_BINARY_DIR=$build \
    "${as_user[@]}" $python -m unittest test_tiers
