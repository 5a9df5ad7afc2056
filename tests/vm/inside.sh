# The rest of pid 1, with the host's programs: mounts what a system has, then runs each command for each user in a
# cgroup that is delegated to that user, and says what of it was left.
exec </dev/null >/dev/ttyS0 2>&1
mount -t proc proc /proc
. "$1"
mount -t sysfs sys /sys
mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
mount -t tmpfs -o mode=755 run /run

# /tmp and /var/tmp are a disk; what we were started from stays where it was.
kept=("$source" "$binaries" "$here")
for i in "${!kept[@]}"; do
    mkdir -p "/run/kept/$i"
    [ ! -d "${kept[$i]}" ] || mount --bind "${kept[$i]}" "/run/kept/$i"
done
mount -t ext4 /dev/vda /tmp && chmod 1777 /tmp
mount --bind /tmp /var/tmp
for i in "${!kept[@]}"; do
    [ -d "${kept[$i]}" ] || ! mountpoint -q "/run/kept/$i" || { mkdir -p "${kept[$i]}" && mount --bind "/run/kept/$i" "${kept[$i]}"; }
done
chmod 666 /dev/kvm /dev/fuse 2>/dev/null
chmod 666 /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty
python=/usr/bin/python3
$python -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH22x", b"lo", 0x41))' # lo is up
export SLUICE_SOURCE_DIR=$source SLUICE_BINARY_DIR=$binaries HOME=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LANG=C.UTF-8 TERM=dumb

echo "== Linux $(uname -r)"
echo "+memory +pids +cpu" >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/unit
echo "+memory +pids +cpu" >/sys/fs/cgroup/unit/cgroup.subtree_control

# As systemd delegates: the directory and three of its files are the user's, and an attribute says so.
delegate() { # directory uid
    mkdir "$1"
    chown "$2:$2" "$1" "$1"/cgroup.{procs,threads,subtree_control}
    $python -c 'import os, sys; os.setxattr(sys.argv[1], "user.delegate", b"1")' "$1" 2>/dev/null || :
}

run_as() { # user number command
    local uid=0 group=/sys/fs/cgroup/unit/$1-$2 status=0 run=()
    [ "$1" = root ] || { uid=1001; run=(setpriv --reuid 1001 --regid 1001 --clear-groups); }
    delegate "$group" $uid
    echo "== $1: $3"
    ( echo $BASHPID >"$group/cgroup.procs"; cd "$here" && exec "${run[@]}" bash -c "$3" ) || status=$?
    local left
    left=$(find "$group" -mindepth 1 -type d -printf '%P ')
    echo "== $1: status $status${left:+, cgroups left: $left}"
    return $status
}

worst=0 number=0
for command in "${commands[@]}"; do
    for user in $as; do
        number=$((number + 1))
        status=0
        run_as "$user" $number "$command" || status=$?
        [ $worst -ne 0 ] || worst=$status
    done
done
echo "sluice-vm status $worst"
sync
echo o >/proc/sysrq-trigger
read -r <> <(:)
