/* The checks that need namespaces, each in the process that was cloned for it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/probe/probe.h"
#include "workers/sandbox/container/mounts.h"
#include "workers/sandbox/container/plan.h"

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

static int write_text(const char *path, const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* ---- namespaces ----------------------------------------------------------------------- */

static int take_identity(const struct probe_place *place, struct fail *fail)
{
    char map[64];
    snprintf(map, sizeof(map), "%d %lu 1\n", CONTAINER_UID, (unsigned long)place->uid);
    if (write_text("/proc/self/setgroups", "deny") < 0 || write_text("/proc/self/uid_map", map) < 0)
        return refuse(fail, "uid_map");
    snprintf(map, sizeof(map), "%d %lu 1\n", CONTAINER_UID, (unsigned long)place->gid);
    return write_text("/proc/self/gid_map", map) < 0 ? refuse(fail, "gid_map") : 0;
}

/* AppArmor lets a namespace be made and then refuses every right in it. */
int probe_try_userns(const struct probe_place *place, struct fail *fail)
{
    int code = take_identity(place, fail);
    if (code == 0 && unshare(CLONE_NEWUTS) < 0)
        code = refuse(fail, "a right inside the namespace");
    return code;
}

int probe_try_namespaces(const struct probe_place *place, struct fail *fail)
{
    int code = take_identity(place, fail);
    if (code == 0 && sethostname("sandbox", 7) < 0)
        code = refuse(fail, "hostname");
    return code;
}

int probe_try_network(const struct probe_place *place, struct fail *fail)
{
    int code = take_identity(place, fail);
    AUTO_CLOSE int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    if (code == 0 && (any < 0 || ioctl(any, SIOCSIFFLAGS, &request) < 0))
        code = refuse(fail, "loopback");
    return code;
}

/* ---- mounts --------------------------------------------------------------------------- */

/* A tmpfs over our directory, seen by nobody else, and the working directory. */
static int enter_tmpfs(const struct probe_place *place, struct fail *fail)
{
    int code = take_identity(place, fail);
    if (code < 0)
        return code;
    if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
        return refuse(fail, "private mounts");
    if (mount("tmpfs", place->path, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=100") < 0)
        return refuse(fail, "tmpfs");
    return chdir(place->path) < 0 ? refuse(fail, place->path) : 0;
}

int probe_try_mounts(const struct probe_place *place, struct fail *fail)
{
    int code = enter_tmpfs(place, fail);
    if (code < 0)
        return code;
    if (mkdir("usr", 0755) < 0 ||
        container_attach_clone(AT_FDCWD, "/usr", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, AT_FDCWD, "usr") < 0)
        return refuse(fail, "a read-only clone of /usr");
    if (mkdir("old", 0755) < 0 || syscall(SYS_pivot_root, ".", "old") < 0)
        return refuse(fail, "pivot_root");
    return 0;
}

int probe_try_proc(const struct probe_place *place, struct fail *fail)
{
    int code = enter_tmpfs(place, fail);
    if (code < 0)
        return code;
    if (mkdir("proc", 0755) < 0 || mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return refuse(fail, "mounting it");
    return access("proc/1/status", R_OK) < 0 ? refuse(fail, "proc/1/status") : 0;
}

int probe_try_terminals(const struct probe_place *place, struct fail *fail)
{
    int code = enter_tmpfs(place, fail);
    if (code < 0)
        return code;
    if (mkdir("pts", 0755) < 0 ||
        mount("devpts", "pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620") < 0)
        return refuse(fail, "mounting it");
    AUTO_CLOSE int pty = open("pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    return pty < 0 ? refuse(fail, "opening one") : 0;
}

/* ---- overlay -------------------------------------------------------------------------- */

/* What every task does sooner or later: write, remove what an image has, make it again. */
static int use_overlay(struct fail *fail)
{
    AUTO_CLOSE int written = open("merged/new", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (written < 0 || write(written, "x", 1) != 1)
        return refuse(fail, "writing a file");
    if (unlink("merged/dir/file") < 0 || rmdir("merged/dir") < 0)
        return refuse(fail, "removing what a lower directory has");
    if (mkdir("merged/dir", 0755) < 0)
        return refuse(fail, "making a removed directory again");
    if (access("merged/dir/file", F_OK) == 0)
        return fail_set(fail, -EIO, "a removed file came back");
    return 0;
}

static int try_overlay(struct fail *fail)
{
    static const char *const dirs[] = {"lower", "lower/dir", "upper", "work", "merged"};
    for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
        if (mkdir(dirs[i], 0755) < 0)
            return refuse(fail, dirs[i]);
    AUTO_CLOSE int file = open("lower/dir/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (file < 0)
        return refuse(fail, "lower/dir/file");
    if (mount("overlay", "merged", "overlay", MS_NOSUID | MS_NODEV,
              "lowerdir=lower,upperdir=upper,workdir=work,userxattr") < 0)
        return refuse(fail, "mounting it");
    return use_overlay(fail);
}

int probe_try_overlay_tmpfs(const struct probe_place *place, struct fail *fail)
{
    int code = enter_tmpfs(place, fail);
    return code < 0 ? code : try_overlay(fail);
}

int probe_try_overlay_disk(const struct probe_place *place, struct fail *fail)
{
    struct statfs on;
    int code = take_identity(place, fail);
    if (code == 0 && (chdir(place->path) < 0 || fstatfs(place->directory, &on) < 0))
        code = refuse(fail, place->path);
    if (code < 0)
        return code;
    if (on.f_type == TMPFS_MAGIC)
        return fail_set(fail, -ENOTSUP, "the cache directory is itself on a tmpfs");
    return try_overlay(fail);
}

/* ---- FUSE ----------------------------------------------------------------------------- */

int probe_try_fuse(const struct probe_place *place, struct fail *fail)
{
    char options[96];
    int code = enter_tmpfs(place, fail);
    if (code < 0)
        return code;
    AUTO_CLOSE int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0)
        return refuse(fail, "/dev/fuse");
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", device, CONTAINER_UID,
             CONTAINER_UID);
    if (mkdir("merged", 0755) < 0 || mount("fuse", "merged", "fuse", MS_NOSUID | MS_NODEV, options) < 0)
        return refuse(fail, "mounting one");
    return 0;
}
