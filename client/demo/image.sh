#!/usr/bin/env bash
# Makes a small Debian image with bash and IPython, once, into a cache, as a directory and as a SIF
# file with the same files in it; prints
#     SLUICE_IMAGE_DIR=<path>
#     SLUICE_IMAGE_SIF=<path>
# for `eval "$(bash client/demo/image.sh)"`. What it says to people goes to stderr.
#
# Needs no root and no container tools: Debian's packages are fetched and checked by apt, then only
# unpacked. That is enough for a sandbox, and not for a system that boots.
# SLUICE_CACHE says where the cache is (default ~/.cache/sluice).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
packages=(bash coreutils findutils grep sed mawk diffutils python3-ipython)

cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}/image
directory=$cache/debian-ipython
sif=$cache/debian-ipython.sif
mkdir -p "$cache"

say() { echo "image: $*" >&2; }

# Two at once: the second waits and finds everything there.
exec 9>"$cache/lock"
flock 9

work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# As for a machine on which nothing is installed.
closure() {
    apt-get -s install -y --no-install-recommends -o Dir::State::status=/dev/null -o Debug::NoLocking=1 \
        "${packages[@]}" | awk '/^Inst/ {print $2}'
}

make_directory() {
    local names root=$work/root
    names=$(closure)
    say "fetching $(wc -w <<<"$names") Debian packages"
    mkdir "$work/debs"
    (cd "$work/debs" && apt-get download -qq -o APT::Sandbox::User=root $names >&2)
    mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{dev,proc,sys,tmp,run,home,root,workspace}
    for merged in bin sbin lib lib64; do ln -s "usr/$merged" "$root/$merged"; done
    for deb in "$work"/debs/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink --no-same-owner; done
    ln -sf bash "$root/usr/bin/sh"
    ln -sf mawk "$root/usr/bin/awk"
    rm -rf "$root"/usr/share/{doc,man,locale,info,lintian}
    printf 'root:x:0:0:root:/root:/bin/bash\nagent:x:1000:1000:agent:/workspace:/bin/bash\n' >"$root/etc/passwd"
    printf 'root:x:0:\nagent:x:1000:\n' >"$root/etc/group"
    chmod -R u+rwX "$root"
    /usr/bin/python3 -m compileall -q -s "$root" "$root/usr/lib/python3" "$root"/usr/lib/python3.* >&2 || true
    mv "$root" "$directory"
}

make_sif() {
    say "packing $directory as a SIF file"
    gensquashfs -q -k -D "$directory" --all-root -c zstd "$work/root.squashfs" >&2
    python3 "$here/sif.py" "$work/root.squashfs" "$work/image.sif"
    mv "$work/image.sif" "$sif"
}

[ -d "$directory" ] || make_directory
[ -s "$sif" ] || make_sif

echo "SLUICE_IMAGE_DIR=$directory"
echo "SLUICE_IMAGE_SIF=$sif"
