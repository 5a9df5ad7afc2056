#!/usr/bin/env bash
# bash tests/vm/run.sh [--kernel 6.1|6.12] [--as root|user] [--memory MIB] COMMAND...
#
# Boots a kernel of Debian's in a virtual machine, on this machine's own files (read-only, by 9p), and runs each
# COMMAND (one argument, for bash) there as root and as uid 1001, each time in a cgroup v2 of its own that is
# delegated to that user. For what depends on the kernel and cannot be tried on the one at hand:
#
#     bash tests/vm/run.sh --kernel 6.1 build/debug/tests/workers_test_sandbox 'build/debug/workers/sluice-worker --doctor'
#
# Ends with the first status that was not 0. By hand only: wants apt-get, /dev/kvm on a processor that says vmx or svm
# (else all is emulated, some twenty times slower), and
#     apt-get install --no-install-recommends qemu-system-x86 busybox-static cpio xz-utils e2fsprogs
# Kernels are fetched by apt-get, unpacked into $SLUICE_VM (~/.cache/sluice-vm) and not installed.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
cache=${SLUICE_VM:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice-vm}
kernel=6.1 as="root user" memory=3072
while [ $# -gt 0 ]; do
    case $1 in
    --kernel) kernel=${2:?--kernel needs a version}; shift 2 ;;
    --as) as=${2:?--as needs root or user}; shift 2 ;;
    --memory) memory=${2:?--memory needs MiB}; shift 2 ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || { echo "run.sh: say what to run (--help)" >&2; exit 2; }

# ---- a kernel and the modules it needs to see our files ------------------------------------

case $kernel in
6.1) meta=linux-image-amd64 ;;
*) meta=linux-image-$kernel-amd64 ;;
esac
mkdir -p "$cache"
if ! ls "$cache/$kernel"/boot/vmlinuz-* >/dev/null 2>&1; then
    package=$(apt-cache depends "$meta" | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
    (cd "$cache" && apt-get download "${package:?no package $meta: apt-get update?}" >&2)
    dpkg-deb -x "$cache/$package"_*.deb "$cache/$kernel"
    rm "$cache/$package"_*.deb
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/root" "$work/root/modules" "$work/root/host"

# Copies a module after those that it depends on, numbered; nothing where it is part of the kernel.
order=0
add_module() {
    local name=${1//_/[_-]} path needed
    path=$(find "$cache/$kernel/lib/modules" -name "$name.ko*" -print -quit)
    [ -n "$path" ] && ! ls "$work"/root/modules/*-"$1.ko" >/dev/null 2>&1 || return 0
    case $path in *.xz) xz -dc "$path" >"$work/module" ;; *) cp "$path" "$work/module" ;; esac
    mv "$work/module" "$work/$1.ko"
    for needed in $(grep -az '^depends=' "$work/$1.ko" | tr -d '\0' | sed 's/^depends=//; s/,/ /g'); do
        add_module "$needed"
    done
    order=$((order + 1))
    mv "$work/$1.ko" "$work/root/modules/$(printf %02d $order)-$1.ko"
}
for module in virtio_pci 9pnet_virtio 9p virtio_blk crc32c_generic ext4 overlay fuse; do
    add_module $module
done

# ---- what it starts with, and a disk of its own --------------------------------------------

cp "$(command -v busybox)" "$work/root/busybox"
cp "$source/tests/vm/init.sh" "$work/root/init"
chmod 755 "$work/root/init" "$work/root/busybox"
(cd "$work/root" && find . | cpio -o -H newc --quiet) >"$work/initramfs"
mke2fs -q -t ext4 -E root_owner=1001:1001,lazy_itable_init=1 "$work/disk" 8G 2>&1 | grep -v Creating || :

# What init.sh and inside.sh are told: where we are, as whom, and the commands, each quoted for bash.
{
    printf 'source=%q\nhere=%q\nas=%q\nbinaries=%q\n' "$source" "$PWD" "$as" "${SLUICE_BINARY_DIR:-$source/build/debug}"
    printf 'commands=('
    printf ' %q' "$@"
    printf ' )\n'
} >"$work/orders"
chmod -R a+rX "$work"

# ---- boot --------------------------------------------------------------------------------

accel=tcg,thread=multi
if [ -w /dev/kvm ] && grep -qE '^flags.* (vmx|svm)( |$)' /proc/cpuinfo; then accel=kvm; fi
qemu-system-x86_64 -nodefaults -no-user-config -nographic -no-reboot -accel "$accel" -cpu max -smp 2 -m "$memory" \
    -kernel "$cache/$kernel"/boot/vmlinuz-* -initrd "$work/initramfs" \
    -append "console=ttyS0 quiet loglevel=3 panic=-1 sluice=$work/orders" \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
    -drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" -serial stdio </dev/null |
    sed -u 's|\r||g' | tee "$work/said" | sed -u '1,/SeaBIOS\|Booting from ROM/d; s/^\x1bc.*\x1b\[2J//; /^sluice-vm status /d'
status=$(sed -n 's/^sluice-vm status //p' "$work/said" | tail -1)
exit "${status:-125}"
