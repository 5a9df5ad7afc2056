#include "workers/sandbox/room.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/buffer.h"
#include "common/cleanup.h"
#include "workers/sandbox/apart.h"

enum {
    INODES_PER_MIB = 128,
    INODES_MIN = 8192,
    INODES_MAX = 1 << 20,
    INODES_OWN = 64 /* of the room's own directories */
};

/* The kernel counts ptys for the whole machine, 4096 of them, and whose they are only here. */
#define PTYS_MAX "64"
#define INOTIFY_INSTANCES_MAX "64"
#define INOTIFY_WATCHES_MAX "65536"

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

/* ---- steps -------------------------------------------------------------------------- */

static int mount_at(int root, const char *target, const char *type, unsigned long flags,
                    const char *options)
{
    char path[64];
    AUTO_CLOSE int fd = room_open(root, target, O_PATH | O_DIRECTORY, 0);
    if (fd < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return mount(type, path, type, flags, options);
}

static int write_text(int root, const char *path, const char *text)
{
    AUTO_CLOSE int fd = openat(root, path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* ---- the disk: one tmpfs with everything that can be written ------------------------ */

static const struct {
    const char *path;
    mode_t mode;
} disk_dirs[] = {
    {"upper", 0755}, {"work", 0755},     {"root", 0755},
    {"shm", 01777},  {"commands", 0755}, {"outputs", 0755},
};

uint64_t room_disk_inodes(const struct room_plan *plan)
{
    uint64_t inodes = plan->disk_mib * INODES_PER_MIB;
    if (plan->inodes > 0)
        return plan->inodes + INODES_OWN;
    return inodes < INODES_MIN ? INODES_MIN : inodes > INODES_MAX ? INODES_MAX : inodes;
}

/* Returns the open disk. */
static int make_disk(const struct room_plan *plan, int stock, struct fail *fail)
{
    char options[96];
    snprintf(options, sizeof(options), "mode=0755,size=%lum,nr_inodes=%lu",
             (unsigned long)plan->disk_mib, (unsigned long)room_disk_inodes(plan));
    if (fchdir(stock) < 0 || mount("tmpfs", "room", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return refuse(fail, "tmpfs");
    AUTO_CLOSE int disk = openat(stock, "room", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (disk < 0)
        return refuse(fail, plan->scratch);
    for (size_t i = 0; i < sizeof(disk_dirs) / sizeof(*disk_dirs); i++)
        if (mkdirat(disk, disk_dirs[i].path, disk_dirs[i].mode) < 0)
            return refuse(fail, "tmpfs");
    return take_fd(&disk);
}

/* ---- the overlay: layers over the image over the skeleton --------------------------- */

/* Appends a lower directory by descriptor: no path is too long or needs escaping. */
static int add_lower(struct buffer *options, int *fds, size_t *count, int dir, const char *path,
                     struct fail *fail)
{
    int fd = openat(dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_set(fail, -errno, "lower directory %s: %s", path, strerror(errno));
    fds[(*count)++] = fd;
    buffer_printf(options, "%s/proc/self/fd/%d", *count == 1 ? "lowerdir=" : ":", fd);
    return 0;
}

/*
 * Building on an image of the task's own failed: -ENOMEDIUM where it is for something that an image
 * can cause. All else is ours: a disk that cannot be read or written, no memory, a mount refused.
 * -EINVAL is kept for an image that is not there.
 */
static int blame_image(const struct room_plan *plan, int code, struct fail *fail)
{
    static const int its[] = {ENOENT, ENOTDIR, EISDIR, EEXIST,      EACCES,
                              ELOOP,  EINVAL,  EOVERFLOW, ENAMETOOLONG};
    for (size_t i = 0; i < sizeof(its) / sizeof(*its); i++)
        if (code == -its[i] && !host_image_is(plan->image))
            return fail->code = -ENOMEDIUM;
    return code == -EINVAL ? fail->code = -EIO : code;
}

static int add_image(const struct room_plan *plan, struct buffer *options, int *fds, size_t *count,
                     struct fail *fail)
{
    if (host_image_is(plan->image))
        return 0;
    int code = add_lower(options, fds, count, AT_FDCWD, plan->image, fail);
    if (code == -ENOENT || code == -ENOTDIR)
        return fail->code = -EINVAL;
    return blame_image(plan, code, fail);
}

static int add_lowers(const struct room_plan *plan, int stock, struct buffer *options, int *fds,
                      size_t *count, struct fail *fail)
{
    int code = 0;
    for (size_t i = plan->layer_count; i-- > 0 && code == 0;)
        code = add_lower(options, fds, count, AT_FDCWD, plan->layers[i], fail);
    if (code == 0)
        code = add_image(plan, options, fds, count, fail);
    return code < 0 ? code : add_lower(options, fds, count, stock,
                                             host_image_is(plan->image) ? "host" : "skeleton", fail);
}

/* Where the room's writing goes: upper, work and, with FUSE, merged. */
static int open_written(const struct room_plan *plan, int disk, const char *name, int flags)
{
    char path[PATH_MAX];
    if (!plan->disk)
        return openat(disk, name, flags | O_DIRECTORY | O_CLOEXEC);
    int len = snprintf(path, sizeof(path), "%s/%s", plan->disk, name);
    return len < PATH_MAX ? open(path, flags | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* The spawner mounted it (fuse.c); the first look waits until its process answers. */
static int attach_merged(const struct room_plan *plan, int disk, struct fail *fail)
{
    AUTO_CLOSE int merged = open_written(plan, disk, "merged", O_PATH);
    if (merged < 0 || room_attach_clone(merged, "", 0, disk, "root") < 0)
        return refuse(fail, "fuse-overlayfs");
    return 0;
}

static int mount_overlay(const struct room_plan *plan, int stock, int disk, struct fail *fail)
{
    AUTO_BUFFER options = {0};
    int lowers[ROOM_LAYERS_MAX + 2];
    size_t count = 0;
    AUTO_CLOSE int upper = open_written(plan, disk, "upper", O_PATH);
    AUTO_CLOSE int work = open_written(plan, disk, "work", O_PATH);
    int code = add_lowers(plan, stock, &options, lowers, &count, fail);
    buffer_printf(&options, ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d,userxattr", upper,
                  work);
    if (code == 0 && !buffer_append(&options, "", 1))
        code = fail_set(fail, -ENOMEM, "overlay: out of memory");
    if (code == 0 && plan->tier == TIER_fuse_overlayfs)
        code = attach_merged(plan, disk, fail);
    else if (code == 0 && mount_at(disk, "root", "overlay", MS_NOSUID | MS_NODEV,
                                   (const char *)options.data) < 0)
        code = blame_image(plan, refuse(fail, "overlay"), fail);
    while (count > 0)
        close(lowers[--count]);
    return code;
}

/* ---- directories that must be there, whatever an earlier stage made of them ----------- */

static const struct {
    const char *path;
    bool may_be_link; /* else it would be mounted over what the link leads to */
} needed_dirs[] = {{"proc", false}, {"dev", false}, {"run", false}, {"run/sluice", false}, {"workspace", true}};

static bool has_dir(int root, const char *path, bool may_be_link)
{
    AUTO_CLOSE int there =
        room_open(root, path, O_PATH | O_DIRECTORY | (may_be_link ? 0u : (uint64_t)O_NOFOLLOW), 0);
    return there >= 0;
}

/* A file or a link in its place is removed (from the overlay, so from no image). */
static int need_dir(int root, const char *path, bool may_be_link)
{
    if (has_dir(root, path, may_be_link) ||
        (room_make_dirs(root, path, 0755) == 0 && has_dir(root, path, may_be_link)))
        return 0;
    char above[64];
    const char *slash = strrchr(path, '/');
    snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    AUTO_CLOSE int parent = room_open(root, above, O_PATH | O_DIRECTORY, 0);
    const char *name = slash ? slash + 1 : path;
    if (parent < 0 || unlinkat(parent, name, 0) < 0)
        return -1;
    return mkdirat(parent, name, 0755);
}

/* ---- what is mounted over it -------------------------------------------------------- */

/* The devices come from the stock; ptys and shared memory are the room's own. */
static int make_devices(int root, int stock, int disk, struct fail *fail)
{
    if (room_attach_clone(stock, "dev", 0, root, "dev") < 0)
        return refuse(fail, "/dev");
    AUTO_CLOSE int dev = room_open(root, "dev", O_PATH | O_DIRECTORY, 0);
    if (dev < 0 || mount_at(dev, "pts", "devpts", MS_NOSUID | MS_NOEXEC,
                            "newinstance,ptmxmode=0666,mode=620,max=" PTYS_MAX) < 0)
        return refuse(fail, "devpts");
    return room_attach_clone(disk, "shm", 0, dev, "shm") < 0 ? refuse(fail, "/dev/shm") : 0;
}

/* Two tmpfs of the tools, apart from the disk so that a full disk does not silence them:
 * commands, which the sandbox sees read-only, and in it the outputs. */
static int make_run(int root, int disk, struct room *room, struct fail *fail)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (mount_at(disk, "commands", "tmpfs", flags, "mode=0755,size=64m,nr_inodes=256") < 0 ||
        mount_at(disk, "outputs", "tmpfs", flags, "mode=0700,size=64m,nr_inodes=1024") < 0)
        return refuse(fail, "/run/sluice: tmpfs");
    room->commands = room_open(disk, "commands", O_RDONLY | O_DIRECTORY, 0);
    room->outputs = room_open(disk, "outputs", O_RDONLY | O_DIRECTORY, 0);
    if (room->commands < 0 || room->outputs < 0 || mkdirat(room->commands, "out", 0700) < 0)
        return refuse(fail, "/run/sluice");
    if (room_attach_clone(disk, "commands", MOUNT_ATTR_RDONLY, root, "run/sluice") < 0 ||
        room_attach_clone(disk, "outputs", 0, root, "run/sluice/out") < 0)
        return refuse(fail, "/run/sluice");
    return 0;
}

static int make_fixed(int root, struct fail *fail)
{
    for (size_t i = 0; i < sizeof(needed_dirs) / sizeof(*needed_dirs); i++)
        if (need_dir(root, needed_dirs[i].path, needed_dirs[i].may_be_link) < 0)
            return refuse(fail, needed_dirs[i].path);
    return 0;
}

/* ---- the namespaces' own settings --------------------------------------------------- */

/* Written while we still may; those not required are not there on every kernel. */
static int set_kernel_limits(const struct room_plan *plan, int proc, struct fail *fail)
{
    char pids[32];
    snprintf(pids, sizeof(pids), "%lu", 301 + (unsigned long)plan->processes);
    const struct {
        const char *path, *value;
        bool required;
    } settings[] = {
        {"sys/user/max_user_namespaces", "0", true},
        {"sys/user/max_inotify_instances", INOTIFY_INSTANCES_MAX, false},
        {"sys/user/max_inotify_watches", INOTIFY_WATCHES_MAX, false},
        {"sys/kernel/pid_max", pids, false},
        {"self/oom_score_adj", "1000", true},
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        if (plan->is_floor && strncmp(settings[i].path, "sys/", 4) == 0)
            continue; /* they would hold for the sandboxes on it too */
        else if (write_text(proc, settings[i].path, settings[i].value) < 0 && settings[i].required)
            return refuse(fail, settings[i].path);
    return 0;
}

/* Where uid 0 of the host runs us, the owner of these files is the sandbox's own user. */
static int guard_proc(int proc, int root, struct fail *fail)
{
    static const char *const hidden[] = {"kcore",      "keys",       "timer_list",  "kallsyms",
                                         "kpagecount", "kpageflags", "kpagecgroup", "vmallocinfo",
                                         "slabinfo",   "sched_debug"};
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
        if (room_attach_clone(root, "dev/null", 0, proc, hidden[i]) < 0 && errno != ENOENT)
            return refuse(fail, hidden[i]);
    if (mount_setattr(proc, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)) < 0)
        return refuse(fail, "/proc read-only");
    return 0;
}

static int raise_loopback(struct fail *fail)
{
    AUTO_CLOSE int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    if (any < 0 || ioctl(any, SIOCSIFFLAGS, &request) < 0)
        return refuse(fail, "loopback");
    return sethostname("sandbox", 7) < 0 ? refuse(fail, "hostname") : 0;
}

static int enter(int root, struct fail *fail)
{
    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return refuse(fail, "pivot_root");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return refuse(fail, "leaving the old root");
    return 0;
}

/* ---- in order ----------------------------------------------------------------------- */

static int furnish(const struct room_plan *plan, int stock, int disk, int root,
                   struct room *room, struct fail *fail)
{
    int code = blame_image(plan, make_fixed(root, fail), fail);
    if (code == 0 && mount_at(root, "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        code = refuse(fail, "proc");
    if (code == 0)
        code = make_devices(root, stock, disk, fail);
    if (code == 0)
        code = make_run(root, disk, room, fail);
    if (code == 0 && host_image_is(plan->image))
        code = host_image_attach(root, fail);
    if (code < 0)
        return code;
    room->proc = room_open(root, "proc", O_RDONLY | O_DIRECTORY, 0);
    room->upper = room->disk = open_written(plan, disk, "upper", O_RDONLY);
    if (room->proc < 0 || room->upper < 0)
        return refuse(fail, "/proc");
    code = set_kernel_limits(plan, room->proc, fail);
    if (code < 0 || !plan->is_host_root)
        return code;
    code = guard_proc(room->proc, root, fail);
    return code == 0 && host_image_is(plan->image) ? host_image_hide_secrets(root, stock, fail) : code;
}

int room_build(const struct room_plan *plan, struct room *ret, struct fail *fail)
{
    struct room room = {.upper = -1, .disk = -1, .commands = -1, .outputs = -1, .proc = -1, .workspace = "/workspace"};
    umask(0);
    int code = plan->is_floor ? 0 : apart_take_identity(plan->uid, plan->gid, fail);
    AUTO_CLOSE int stock = open(plan->scratch, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int disk = code < 0 ? code : make_disk(plan, stock, fail);
    if (disk < 0)
        return disk;
    code = mount_overlay(plan, stock, disk, fail);
    if (code < 0)
        return code;
    AUTO_CLOSE int root = openat(disk, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    code = furnish(plan, stock, disk, root, &room, fail);
    if (code == 0)
        code = enter(root, fail);
    if (code == 0)
        code = raise_loopback(fail);
    if (code == -EINVAL) /* no plan's fault by now */
        code = fail->code = -EIO;
    umask(022);
    *ret = room; /* on failure the process ends */
    return code;
}
