#include "workers/sandbox/container/container.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/base/cleanup.h"
#include "workers/files/open_below.h"
#include "workers/sandbox/container/confine.h"
#include "workers/sandbox/container/host_image.h"
#include "workers/sandbox/container/mounts.h"
#include "workers/sandbox/container/namespaces.h"
#include "workers/sandbox/proto/kernel_info.h"

enum {
    INODES_PER_MIB = 128,
    INODES_MIN = 8192,
    INODES_MAX = 1 << 20,
    INODES_OWN = 64, /* of the container's own directories */
    OPTIONS_SIZE = 192 + (CONTAINER_LAYERS_MAX + 1) * (int)sizeof("/proc/self/fd/4294967295:")
};

/* The kernel counts ptys for the whole machine, 4096 of them, and whose they are only here. */
#define PTYS_MAX "64"
#define INOTIFY_INSTANCES_MAX "64"
#define INOTIFY_WATCHES_MAX "65536"

/* The stage is mounted on the base mounts' container/, and its own root/ is the container's. */
#define FROM_ROOT_TO_BASE_MOUNTS "../../"

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

/* ---- steps -------------------------------------------------------------------------- */

/* There, and not by its name below /proc/self/fd: the kernel would keep what it looked up for as long as we live. */
static int mount_at(int root, const char *target, const char *type, unsigned long flags, const char *options)
{
    AUTO_CLOSE int fd = open_in_root(root, target, O_PATH | O_DIRECTORY, 0);
    return fd < 0 || fchdir(fd) < 0 ? -1 : mount(type, ".", type, flags, options);
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
} stage_dirs[] = {
    {"upper", 0755},   {"work", 0755}, {"root", 0755}, {"shm", 01777}, {"commands", 0755},
    {"outputs", 0755}, {"run", 0755},  {"proc", 0555}, {"dev", 0755},
};

uint64_t container_disk_inodes(const struct container_plan *plan)
{
    uint64_t inodes = plan->wanted.disk_mib * INODES_PER_MIB;
    if (plan->wanted.inodes > 0)
        return plan->wanted.inodes + INODES_OWN;
    return inodes < INODES_MIN ? INODES_MIN : inodes > INODES_MAX ? INODES_MAX : inodes;
}

static int make_stage(const struct container_plan *plan, struct container *container, struct fail *fail)
{
    container->base = open(plan->scratch, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (container->base < 0 || fchdir(container->base) < 0)
        return refuse(fail, plan->scratch);
    if (mount("tmpfs", "container", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k,nr_inodes=64") < 0)
        return refuse(fail, "tmpfs");
    container->stage = openat(container->base, "container", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (container->stage < 0)
        return refuse(fail, plan->scratch);
    for (size_t i = 0; i < sizeof(stage_dirs) / sizeof(*stage_dirs); i++)
        if (mkdirat(container->stage, stage_dirs[i].path, stage_dirs[i].mode) < 0)
            return refuse(fail, "tmpfs");
    return 0;
}

static int size_disk(const struct container_plan *plan, const struct container *container, struct fail *fail)
{
    char options[96];
    snprintf(options, sizeof(options), "size=%lum,nr_inodes=%lu", (unsigned long)plan->wanted.disk_mib,
             (unsigned long)container_disk_inodes(plan));
    if (mount_at(container->stage, ".", "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV, options) < 0)
        return refuse(fail, "the disk's size");
    return 0;
}

/* ---- the overlay: layers over the image over the skeleton; the host's names over all of it -- */

struct overlay {
    char options[OPTIONS_SIZE]; /* not from the heap, of which each container would have pages for it */
    size_t len;
    int lowers[CONTAINER_LAYERS_MAX + 1];
    size_t count;
};

__attribute__((format(printf, 2, 3))) static void add(struct overlay *overlay, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    overlay->len += (size_t)vsnprintf(overlay->options + overlay->len, OPTIONS_SIZE - overlay->len, format, arguments);
    va_end(arguments);
    assert(overlay->len < OPTIONS_SIZE);
}

/* By descriptor: no path is too long or needs escaping. */
static int add_lower(struct overlay *overlay, const char *path, struct fail *fail)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_set(fail, -errno, "lower directory %s: %s", path, strerror(errno));
    overlay->lowers[overlay->count++] = fd;
    add(overlay, "/proc/self/fd/%d:", fd);
    return 0;
}

/*
 * Building on an image of the task's own failed: -ENOMEDIUM where it is for something that an image
 * can cause. All else is ours: a disk that cannot be read or written, no memory, a mount refused.
 * -EINVAL is kept for an image that is not there.
 */
static int blame_image(const struct container_plan *plan, int code, struct fail *fail)
{
    static const int its[] = {ENOENT, ENOTDIR, EISDIR, EEXIST, EACCES, ELOOP, EINVAL, EOVERFLOW, ENAMETOOLONG};
    for (size_t i = 0; i < sizeof(its) / sizeof(*its); i++)
        if (code == -its[i] && !host_image_is(plan->image))
            return fail->code = -ENOMEDIUM;
    return code == -EINVAL ? fail->code = -EIO : code;
}

static int add_image(const struct container_plan *plan, struct overlay *overlay, struct fail *fail)
{
    if (host_image_is(plan->image))
        return 0;
    int code = add_lower(overlay, plan->image, fail);
    if (code == -ENOENT || code == -ENOTDIR)
        return fail->code = -EINVAL;
    return blame_image(plan, code, fail);
}

static int add_lowers(const struct container_plan *plan, struct overlay *overlay, struct fail *fail)
{
    int code = 0;
    add(overlay, "lowerdir=%s", host_image_is(plan->image) ? FROM_ROOT_TO_BASE_MOUNTS "top:" : "");
    for (size_t i = plan->layer_count; i-- > 0 && code == 0;)
        code = add_lower(overlay, plan->layers[i], fail);
    if (code == 0)
        code = add_image(plan, overlay, fail);
    if (plan->wanted.uid == 0)
        add(overlay, FROM_ROOT_TO_BASE_MOUNTS "root_skeleton:");
    if (plan->harness_dir)
        add(overlay, FROM_ROOT_TO_BASE_MOUNTS "harness_skeleton:");
    add(overlay, FROM_ROOT_TO_BASE_MOUNTS "skeleton");
    return code;
}

/* Where the container's writing goes: upper, work and, with FUSE, merged. */
static int open_written(const struct container_plan *plan, int disk, const char *name, int flags)
{
    char path[PATH_MAX];
    if (!plan->disk)
        return openat(disk, name, flags | O_DIRECTORY | O_CLOEXEC);
    int len = snprintf(path, sizeof(path), "%s/%s", plan->disk, name);
    return len < PATH_MAX ? open(path, flags | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* The spawner mounted it (fuse.c); the first look waits until its process answers. */
static int attach_merged(const struct container_plan *plan, int disk, struct fail *fail)
{
    AUTO_CLOSE int merged = open_written(plan, disk, "merged", O_PATH);
    if (merged < 0 || container_attach_clone(merged, "", 0, disk, "root") < 0)
        return refuse(fail, "fuse-overlayfs");
    return 0;
}

/* Ours by their names from the container's root, where the mount is made: the kernel keeps nothing for those. */
static int mount_overlay(const struct container_plan *plan, int disk, struct fail *fail)
{
    struct overlay overlay = {.len = 0};
    AUTO_CLOSE int upper = plan->disk ? open_written(plan, disk, "upper", O_PATH) : -1;
    AUTO_CLOSE int work = plan->disk ? open_written(plan, disk, "work", O_PATH) : -1;
    int code = add_lowers(plan, &overlay, fail);
    if (plan->disk)
        add(&overlay, ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d,userxattr", upper, work);
    else
        add(&overlay, ",upperdir=../upper,workdir=../work,userxattr");
    if (code == 0 && plan->tier == TIER_fuse_overlayfs)
        code = attach_merged(plan, disk, fail);
    else if (code == 0 && mount_at(disk, "root", "overlay", MS_NOSUID | MS_NODEV, overlay.options) < 0)
        code = blame_image(plan, refuse(fail, "overlay"), fail);
    while (overlay.count > 0)
        close(overlay.lowers[--overlay.count]);
    return code;
}

/* ---- directories that must be there, whatever an earlier stage made of them ----------- */

static const struct {
    const char *path;
    bool may_be_link; /* else it would be mounted over what the link leads to */
} needed_dirs[] = {{"proc", false}, {"dev", false}, {"run", false}, {"run/sluice", false}, {"workspace", true}};

static bool has_dir(int root, const char *path, bool may_be_link)
{
    AUTO_CLOSE int there = open_in_root(root, path, O_PATH | O_DIRECTORY | (may_be_link ? 0u : (uint64_t)O_NOFOLLOW),
                                        0);
    return there >= 0;
}

/* A file or a link in its place is removed (from the overlay, so from no image). */
static int need_dir(int root, const char *path, bool may_be_link)
{
    if (has_dir(root, path, may_be_link) ||
        (container_make_dirs(root, path, 0755) == 0 && has_dir(root, path, may_be_link)))
        return 0;
    char above[64];
    const char *slash = strrchr(path, '/');
    snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    AUTO_CLOSE int parent = open_in_root(root, above, O_PATH | O_DIRECTORY, 0);
    const char *name = slash ? slash + 1 : path;
    if (parent < 0 || unlinkat(parent, name, 0) < 0)
        return -1;
    return mkdirat(parent, name, 0755);
}

/* ---- what is mounted over it, made on the stage --------------------------------------- */

/* The devices come from the base mounts; ptys and shared memory are the container's own. */
static int make_devices(const struct container *container, struct fail *fail)
{
    if (container_attach_clone(container->base, "dev", 0, container->stage, "dev") < 0)
        return refuse(fail, "/dev");
    AUTO_CLOSE int dev = open_in_root(container->stage, "dev", O_PATH | O_DIRECTORY, 0);
    if (dev < 0 ||
        mount_at(dev, "pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,max=" PTYS_MAX) < 0)
        return refuse(fail, "devpts");
    return container_attach_clone(container->stage, "shm", 0, dev, "shm") < 0 ? refuse(fail, "/dev/shm") : 0;
}

/* Two tmpfs of the tools, apart from the disk so that a full disk does not silence them:
 * commands, which the sandbox sees read-only, and in it the outputs. */
static int make_run(struct container *container, struct fail *fail)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    const int stage = container->stage;
    if (mount_at(stage, "commands", "tmpfs", flags, "mode=0755,size=64m,nr_inodes=256") < 0 ||
        mount_at(stage, "outputs", "tmpfs", flags, "mode=0700,size=64m,nr_inodes=1024") < 0)
        return refuse(fail, "/run/sluice: tmpfs");
    container->commands = open_in_root(stage, "commands", O_RDONLY | O_DIRECTORY, 0);
    container->outputs = open_in_root(stage, "outputs", O_RDONLY | O_DIRECTORY, 0);
    if (container->commands < 0 || container->outputs < 0 || mkdirat(container->commands, "out", 0700) < 0)
        return refuse(fail, "/run/sluice");
    if (container_attach_clone(stage, "commands", MOUNT_ATTR_RDONLY, stage, "run") < 0 ||
        container_attach_clone(stage, "outputs", 0, stage, "run/out") < 0)
        return refuse(fail, "/run/sluice");
    return 0;
}

/* From the stage to its place. */
static int move_in(const struct container *container, int root, struct fail *fail)
{
    static const char *const moves[][2] = {{"proc", "proc"}, {"dev", "dev"}, {"run", "run/sluice"}};
    for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
        AUTO_CLOSE int target = open_in_root(root, moves[i][1], O_PATH | O_DIRECTORY, 0);
        if (target < 0 || move_mount(container->stage, moves[i][0], target, "", MOVE_MOUNT_T_EMPTY_PATH) < 0)
            return refuse(fail, moves[i][1]);
    }
    return 0;
}

static int make_fixed(int root, struct fail *fail)
{
    for (size_t i = 0; i < sizeof(needed_dirs) / sizeof(*needed_dirs); i++)
        if (need_dir(root, needed_dirs[i].path, needed_dirs[i].may_be_link) < 0)
            return refuse(fail, needed_dirs[i].path);
    return 0;
}

/*
 * On the stage first, and then all of /opt/harness: whatever an image has there is covered, and nothing is made in it.
 * The skeleton has the place, and the host's /opt (host_image.c), but where that has mounts of its own.
 */
static int attach_harness(const struct container_plan *plan, const struct container *container, int root,
                          struct fail *fail)
{
    const uint64_t attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    int made = mkdirat(container->stage, "harness", 0755);
    AUTO_CLOSE int dirs = made < 0 ? -1 : open_in_root(container->stage, "harness", O_PATH | O_DIRECTORY, 0);
    if (dirs < 0 || mkdirat(dirs, plan->harness_name, 0755) < 0 ||
        container_attach_clone(AT_FDCWD, plan->harness_dir, attributes, dirs, plan->harness_name) < 0)
        return fail_set(fail, -errno, "the harness %s in %.400s: %s", plan->harness_name, plan->harness_dir,
                        strerror(errno));
    if (need_dir(root, "opt/harness", true) < 0)
        return host_image_is(plan->image)
                   ? fail_set(fail, -errno, "the host's /opt has no directory harness (%s): make it", strerror(errno))
                   : blame_image(plan, refuse(fail, "/opt/harness"), fail);
    return container_attach_clone(container->stage, "harness", attributes, root, "opt/harness") < 0
               ? refuse(fail, "/opt/harness")
               : 0;
}

/* ---- the namespaces' own settings --------------------------------------------------- */

/* Written while we still may; those not required are not there on every kernel. */
static int set_kernel_limits(const struct container_plan *plan, int proc, struct fail *fail)
{
    static const struct {
        const char *path, *value;
        bool required;
    } settings[] = {
        {"sys/user/max_user_namespaces", "0", true},
        {"sys/user/max_inotify_instances", INOTIFY_INSTANCES_MAX, false},
        {"sys/user/max_inotify_watches", INOTIFY_WATCHES_MAX, false},
        {"self/oom_score_adj", "1000", true},
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        if (plan->is_zygote && strncmp(settings[i].path, "sys/", 4) == 0)
            continue; /* they would hold for the sandboxes on it too */
        else if (write_text(proc, settings[i].path, settings[i].value) < 0 && settings[i].required)
            return refuse(fail, settings[i].path);
    return 0;
}

/* Where uid 0 of the host runs us, the owner of these files is the sandbox's own user. By mount(2), which makes no tree
 * for each first, as container_attach_clone does: there are ten. */
static int cover_proc(const struct container_plan *plan, const struct container *container, struct fail *fail)
{
    static const char *const hidden[] = {"kcore",      "keys",        "timer_list",  "kallsyms", "kpagecount",
                                         "kpageflags", "kpagecgroup", "vmallocinfo", "slabinfo", "sched_debug"};
    char null[PATH_MAX];
    if (snprintf(null, sizeof(null), "%s/dev/null", plan->scratch) >= (int)sizeof(null))
        return fail_set(fail, -ENAMETOOLONG, "%.200s: too long", plan->scratch);
    if (fchdir(container->proc) < 0)
        return refuse(fail, "/proc");
    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
        if (mount(null, hidden[i], NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
            return refuse(fail, hidden[i]);
    return 0;
}

static int make_proc(const struct container_plan *plan, struct container *container, struct fail *fail)
{
    if (mount_at(container->stage, "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return refuse(fail, "proc");
    container->proc = open_in_root(container->stage, "proc", O_RDONLY | O_DIRECTORY, 0);
    if (container->proc < 0)
        return refuse(fail, "/proc");
    int code = set_kernel_limits(plan, container->proc, fail);
    return code == 0 && plan->is_host_root ? cover_proc(plan, container, fail) : code;
}

/* Before Linux 6.14 there is one pid_max, the whole machine's, and where root runs the worker
 * a sandbox may write it. */
static bool has_own_pid_max(void)
{
    unsigned major, minor;
    kernel_info_version(&major, &minor);
    return major > 6 || (major == 6 && minor >= 14);
}

/* The last that is written there: its files are the sandbox's user's, or root's, and oom_score_adj is one of them. */
static int finish_proc(const struct container_plan *plan, const struct container *container, struct fail *fail)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    char pids[32];
    snprintf(pids, sizeof(pids), "%lu", 301 + (unsigned long)plan->wanted.processes);
    if (!plan->is_zygote && has_own_pid_max()) /* it would hold for the sandboxes on it too */
        write_text(container->proc, "sys/kernel/pid_max", pids);
    if (mount_setattr(container->proc, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)) < 0)
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

/* -EINVAL is for plans that ask for what is not there. */
static int conclude(int code, struct fail *fail) { return code == -EINVAL ? fail->code = -EIO : code; }

int container_prepare(const struct container_plan *plan, struct container *ret, struct fail *fail)
{
    *ret = (struct container){.upper = -1,
                              .disk = -1,
                              .commands = -1,
                              .outputs = -1,
                              .proc = -1,
                              .base = -1,
                              .stage = -1,
                              .workspace = "/workspace"};
    umask(0);
    const struct namespaces_identity inside = {(uid_t)plan->wanted.uid, (gid_t)plan->wanted.gid};
    int code = plan->is_zygote ? 0 : namespaces_take_identity(&inside, plan->uid, plan->gid, fail);
    if (code == 0)
        code = raise_loopback(fail);
    if (code == 0)
        code = container_drop_bounds(fail);
    if (code == 0)
        code = make_stage(plan, ret, fail);
    if (code == 0)
        code = make_devices(ret, fail);
    if (code == 0)
        code = make_run(ret, fail);
    return conclude(code == 0 ? make_proc(plan, ret, fail) : code, fail);
}

static int furnish(const struct container_plan *plan, struct container *container, int root, struct fail *fail)
{
    int code = blame_image(plan, make_fixed(root, fail), fail);
    if (code == 0)
        code = move_in(container, root, fail);
    if (code == 0)
        code = finish_proc(plan, container, fail);
    if (code < 0)
        return code;
    container->upper = container->disk = open_written(plan, container->stage, "upper", O_RDONLY);
    if (container->upper < 0)
        return refuse(fail, "the disk");
    const bool is_host = host_image_is(plan->image);
    code = is_host ? host_image_attach(container->base, root, fail)
                   : image_mask_paths(plan->image, container->base, root, fail);
    if (code == 0 && plan->harness_dir)
        code = attach_harness(plan, container, root, fail);
    if (code == 0 && plan->wanted.is_sealed && !is_host)
        code = blame_image(plan, system_names_seal(root, fail), fail);
    return code;
}

int container_build(const struct container_plan *plan, struct container *container, struct fail *fail)
{
    int code = size_disk(plan, container, fail);
    if (code == 0)
        code = mount_overlay(plan, container->stage, fail);
    if (code < 0)
        return code;
    AUTO_CLOSE int root = openat(container->stage, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    code = furnish(plan, container, root, fail);
    if (code == 0)
        code = enter(root, fail);
    umask(022);
    close(container->stage);
    close(container->base);
    container->stage = container->base = -1;
    return conclude(code, fail); /* on failure the process ends */
}
