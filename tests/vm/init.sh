#!/busybox sh
# pid 1 of the virtual machine: loads modules, finds the host's files and hands over to inside.sh.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
for module in /modules/*; do
    /busybox insmod "$module" || echo "sluice-vm: $module does not load"
done
/busybox mkdir -p /proc
/busybox mount -t proc proc /proc
orders=$(/busybox sed 's/.*sluice=\([^ ]*\).*/\1/' /proc/cmdline)
/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose,access=any host /host || exec /busybox poweroff -f
source=$(/busybox sed -n 's/^source=//p' "/host$orders")
/busybox umount /proc
exec /busybox switch_root /host /bin/bash "$source/tests/vm/inside.sh" "$orders"
