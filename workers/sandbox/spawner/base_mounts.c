#include "workers/sandbox/spawner/base_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/container/host_image.h"
#include "workers/sandbox/container/mounts.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

struct dir {
    const char *path;
    mode_t mode;
};

static const struct dir base_mounts_dirs[] = {
    {"skeleton", 0755},
    {"top", 0755},
    {"dev", 0755},
    {"empty", 0555},
    {"tree", 0755},
    {"container", 0755},
    {"disks", 0700},
    {"root_skeleton", 0755},
    {"harness_skeleton", 0755},
    {"harness_skeleton/opt", 0755},
    {"harness_skeleton/opt/harness", 0755},
};

static const struct dir skeleton_dirs[] = {
    {"dev", 0755},      {"etc", 0755},  {"home", 0755},      {"mnt", 0755},        {"opt", 0755},
    {"proc", 0555},     {"root", 0755}, {"run", 0755},       {"srv", 0755},        {"tmp", 01777},
    {"usr", 0755},      {"var", 0755},  {"var/lib", 0755},   {"var/log", 0755},    {"var/cache", 0755},
    {"var/tmp", 01777}, {"sys", 0555},  {"workspace", 0755}, {"run/sluice", 0755},
};

static const struct dir device_dirs[] = {{"pts", 0755}, {"shm", 01777}};
static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};

static const struct {
    const char *path, *to;
} device_links[] = {
    {"ptmx", "pts/ptmx"},          {"fd", "/proc/self/fd"},       {"stdin", "/proc/self/fd/0"},
    {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
};

static int make_dirs(int at, const struct dir *dirs, size_t count, struct fail *fail)
{
    for (size_t i = 0; i < count; i++)
        if (mkdirat(at, dirs[i].path, dirs[i].mode) < 0)
            return refuse(fail, dirs[i].path);
    return 0;
}

static int make_skeleton(int base, struct fail *fail)
{
    AUTO_CLOSE int skeleton = openat(base, "skeleton", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int top = openat(base, "top", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = make_dirs(skeleton, skeleton_dirs, COUNT(skeleton_dirs), fail);
    return code == 0 ? host_image_prepare(top, skeleton, fail) : code;
}

/*
 * Below the image where uid 0 is inside (seccomp_root.h): apt looks back whether it has really dropped its rights, and
 * is told not to.
 */
static int make_root_skeleton(int base, struct fail *fail)
{
    static const struct dir dirs[] = {{"etc", 0755}, {"etc/apt", 0755}, {"etc/apt/apt.conf.d", 0755}};
    static const char settings[] = "APT::Sandbox::User \"root\";\n";
    AUTO_CLOSE int skeleton = openat(base, "root_skeleton", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int code = make_dirs(skeleton, dirs, COUNT(dirs), fail);
    if (code < 0)
        return code;
    AUTO_CLOSE int file = openat(skeleton, "etc/apt/apt.conf.d/90sluice", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    const ssize_t len = sizeof(settings) - 1;
    return file < 0 || write(file, settings, (size_t)len) != len ? refuse(fail, "apt.conf.d") : 0;
}

/* The host's device nodes, read-only: what is written goes to the device, mode and times stay the host's. */
static int make_device(int dev, const char *name, struct fail *fail)
{
    char host[32];
    snprintf(host, sizeof(host), "/dev/%s", name);
    AUTO_CLOSE int made = openat(dev, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (made < 0 || container_attach_clone(AT_FDCWD, host, MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY, dev, name) < 0)
        return refuse(fail, host);
    return 0;
}

/* Read-only once it is whole: it is one for all containers. */
static int make_devices(int base, struct fail *fail)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    if (mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k,nr_inodes=64") < 0)
        return refuse(fail, "/dev");
    AUTO_CLOSE int dev = openat(base, "dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = make_dirs(dev, device_dirs, COUNT(device_dirs), fail);
    for (size_t i = 0; i < COUNT(devices) && code == 0; i++)
        code = make_device(dev, devices[i], fail);
    for (size_t i = 0; i < COUNT(device_links) && code == 0; i++)
        if (symlinkat(device_links[i].to, dev, device_links[i].path) < 0)
            code = refuse(fail, device_links[i].path);
    if (code == 0 && mount_setattr(dev, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)) < 0)
        code = refuse(fail, "/dev read-only");
    return code;
}

static int fill(const char *scratch, struct fail *fail)
{
    AUTO_CLOSE int base = open(scratch, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base < 0 || fchdir(base) < 0)
        return refuse(fail, scratch);
    int code = make_dirs(base, base_mounts_dirs, COUNT(base_mounts_dirs), fail);
    AUTO_CLOSE int nothing = openat(base, "nothing", O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
    if (code == 0 && nothing < 0)
        code = refuse(fail, "nothing");
    if (code == 0)
        code = make_skeleton(base, fail);
    if (code == 0)
        code = make_root_skeleton(base, fail);
    if (code == 0)
        code = make_devices(base, fail);
    return code == 0 ? host_image_mount(base, fail) : code;
}

int base_mounts_make(const char *scratch, struct fail *fail)
{
    if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
        return refuse(fail, "private mounts");
    if (mount("tmpfs", scratch, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m,nr_inodes=65536") < 0)
        return refuse(fail, "tmpfs");
    mode_t mask = umask(0);
    int code = fill(scratch, fail);
    umask(mask);
    return chdir("/") < 0 && code == 0 ? refuse(fail, "/") : code;
}
