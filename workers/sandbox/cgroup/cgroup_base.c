/* Where a worker's groups are: found, begun, swept, left. */
#include "workers/sandbox/cgroup/cgroup_base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/cgroup/cgroup_files.h"

enum { TRIES = 16, DIGITS = 6 };

static const char own_leaf[] = "own", prefix[] = "sluice-", controllers[] = "+memory +pids";

static int open_dir(int at, const char *path) { return openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* ---- where we are ------------------------------------------------------------------- */

/* The path of our group, from the root of our cgroup namespace, and where that is mounted. */
static bool find_own(char point[PATH_MAX], char own[PATH_MAX])
{
    static char line[2 * PATH_MAX]; /* too large for a stack; there is one thread */
    point[0] = own[0] = '\0';
    AUTO_FCLOSE FILE *mounts = fopen("/proc/self/mounts", "re");
    while (mounts && !point[0] && fgets(line, sizeof(line), mounts))
        if (!strstr(line, " cgroup2 ") || sscanf(line, "%*s %4095s cgroup2", point) != 1)
            point[0] = '\0';
    AUTO_FCLOSE FILE *cgroups = fopen("/proc/self/cgroup", "re");
    while (cgroups && !own[0] && fgets(line, sizeof(line), cgroups))
        if (sscanf(line, "0::%4095s", own) != 1)
            own[0] = '\0';
    return point[0] && own[0];
}

/* What a systemd unit with Delegate= has. */
static bool is_marked(int dir)
{
    char value[4] = "";
    return (fgetxattr(dir, "user.delegate", value, sizeof(value)) > 0 ||
            fgetxattr(dir, "trusted.delegate", value, sizeof(value)) > 0) &&
           value[0] == '1';
}

/* Of a container that has its own: the root of all groups has no type. */
static bool is_namespace_root(int dir, const char *path)
{
    return strcmp(path, "/") == 0 && faccessat(dir, "cgroup.type", F_OK, 0) == 0;
}

/* Root may write everywhere and owns what is systemd's: it takes only what was given. */
static int check_delegated(int dir, const char *path, bool wants_mark, struct fail *fail)
{
    struct stat it;
    bool is_ours = !wants_mark && geteuid() != 0 && fstat(dir, &it) == 0 && it.st_uid == geteuid();
    if (!is_ours && !is_marked(dir) && !is_namespace_root(dir, path))
        return fail_set(fail, -EPERM, "%.200s is not delegated to this process", path);
    static const char *const files[] = {".", "cgroup.procs", "cgroup.subtree_control"};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (faccessat(dir, files[i], W_OK, AT_EACCESS) < 0)
            return fail_set(fail, -errno, "%.200s/%s: %s", path, files[i], strerror(errno));
    return 0;
}

static int check_controllers(int dir, const char *path, struct fail *fail)
{
    char has[256];
    if (!cgroup_read(dir, "cgroup.controllers", has, sizeof(has)) || !strstr(has, "memory") || !strstr(has, "pids"))
        return fail_set(fail, -ENOTSUP, "%.200s has no controllers memory and pids", path);
    return 0;
}

/* "sluice-" and six hexadecimal digits: no unit is called so. */
static bool is_our_name(const char *name, size_t len)
{
    return len == sizeof(prefix) - 1 + DIGITS && begins(name, prefix) &&
           strspn(name + sizeof(prefix) - 1, "0123456789abcdef") >= DIGITS;
}

static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || !slash[1])
        return false;
    slash[slash == path] = '\0';
    return true;
}

/* Out of the leaf of a Sluice program that started us. */
static void leave_leaf(char *path)
{
    char *leaf = strrchr(path, '/'), *group = leaf;
    if (!leaf)
        return;
    while (group > path && *--group != '/')
        ;
    if (strcmp(leaf + 1, own_leaf) == 0 && is_our_name(group + 1, (size_t)(leaf - group - 1)))
        group[group == path] = '\0';
}

static int open_base(const char *point, const char *path, bool wants_mark, struct fail *fail)
{
    AUTO_CLOSE int mount = open_dir(AT_FDCWD, point);
    AUTO_CLOSE int dir = mount < 0 ? -1 : open_dir(mount, path[1] ? path + 1 : ".");
    if (dir < 0)
        return fail_set(fail, -errno, "%.200s%.200s: %s", point, path, strerror(errno));
    int code = check_delegated(dir, path, wants_mark, fail);
    if (code == 0)
        code = check_controllers(dir, path, fail);
    return code < 0 ? code : take_fd(&dir);
}

/* Ours, or the one above it where that is marked: systemd's DelegateSubgroup=. */
static int find_base(char point[PATH_MAX], char own[PATH_MAX], struct fail *fail)
{
    struct fail above_fail;
    if (!find_own(point, own))
        return fail_set(fail, -ENOTSUP, "there is no cgroup v2 hierarchy");
    leave_leaf(own);
    int base = open_base(point, own, false, fail);
    if (base >= 0 || !cut_last(own))
        return base;
    int above = open_base(point, own, true, &above_fail);
    return above < 0 ? base : above;
}

/* ---- what dead workers left --------------------------------------------------------- */

static size_t visit_containers(int ours, bool is_to_die)
{
    size_t left = 0;
    int again = open_dir(ours, ".");
    DIR *stream = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        unsigned number;
        if (sscanf(entry->d_name, "sandbox-%u", &number) != 1 || unlinkat(ours, entry->d_name, AT_REMOVEDIR) == 0)
            continue;
        left++;
        for (int i = 0; is_to_die && i < TRIES && !cgroup_remove(&(struct cgroups){.ours = ours}, number); i++)
            usleep(1000); /* the killed have not quite ended */
    }
    if (stream)
        closedir(stream);
    else
        cleanup_close(&again);
    return left;
}

/* A leaf that has processes cannot be removed: theirs is alive. Without it nobody can come back in. */
static void sweep_one(int base, const char *name)
{
    AUTO_CLOSE int dir = open_dir(base, name);
    if (dir < 0 || (unlinkat(dir, own_leaf, AT_REMOVEDIR) < 0 && errno != ENOENT))
        return;
    visit_containers(dir, true);
    unlinkat(base, name, AT_REMOVEDIR);
}

static void sweep(int base)
{
    int again = open_dir(base, ".");
    DIR *stream = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream)))
        if (is_our_name(entry->d_name, strlen(entry->d_name)))
            sweep_one(base, entry->d_name);
    if (stream)
        closedir(stream);
    else
        cleanup_close(&again);
}

/* ---- begun and left ----------------------------------------------------------------- */

/* -ENOENT or -ENODEV: another worker that starts has taken it for a dead one's. */
static int make_own(struct cgroups *cgroups)
{
    uint32_t number = (uint32_t)getpid() * 2654435761u;
    int code = -EEXIST;
    for (int i = 0; i < TRIES && code == -EEXIST; i++, number += 7919) {
        snprintf(cgroups->name, sizeof(cgroups->name), "%s%0*x", prefix, DIGITS, number & 0xffffff);
        code = mkdirat(cgroups->base, cgroups->name, 0755) < 0 ? -errno : 0;
    }
    if (code < 0 || (cgroups->ours = open_dir(cgroups->base, cgroups->name)) < 0)
        return code < 0 ? code : -errno;
    if (mkdirat(cgroups->ours, own_leaf, 0755) < 0)
        return -errno;
    AUTO_CLOSE int own = open_dir(cgroups->ours, own_leaf);
    return own < 0 ? -errno : cgroup_write(own, "cgroup.procs", "0");
}

static void say_who_is_there(int base, const char *path, struct fail *fail)
{
    char pids[32], name[64], comm[64] = "";
    cgroup_read(base, "cgroup.procs", pids, sizeof(pids));
    pids[strcspn(pids, "\n")] = '\0';
    snprintf(name, sizeof(name), "/proc/%s/comm", pids);
    cgroup_read(AT_FDCWD, name, comm, sizeof(comm));
    comm[strcspn(comm, "\n")] = '\0';
    fail_set(fail, -EBUSY, "other processes are in %.200s, %s (%s) for one", path, pids[0] ? pids : "?", comm);
}

static int begin(struct cgroups *cgroups, const char *path, struct fail *fail)
{
    int code = make_own(cgroups);
    if (code < 0)
        return fail_set(fail, code, "a group in %.200s: %s", path, strerror(-code));
    char before[256];
    cgroup_read(cgroups->base, "cgroup.subtree_control", before, sizeof(before));
    code = cgroup_write(cgroups->base, "cgroup.subtree_control", controllers);
    cgroups->is_first = code == 0 && !(strstr(before, "memory") && strstr(before, "pids"));
    if (code == -EBUSY) {
        say_who_is_there(cgroups->base, path, fail);
        return code;
    }
    if (code == 0)
        code = cgroup_write(cgroups->ours, "cgroup.subtree_control", controllers);
    return code < 0 ? fail_set(fail, code, "cgroup.subtree_control of %.200s: %s", path, strerror(-code)) : 0;
}

bool cgroups_open(struct cgroups *ret)
{
    static char point[PATH_MAX], path[PATH_MAX];
    struct fail fail = {0};
    *ret = (struct cgroups){.ours = -1};
    ret->base = find_base(point, path, &ret->why);
    if (ret->base < 0)
        return false;
    sweep(ret->base);
    int code = -ENOENT;
    for (int i = 0; i < TRIES && (code == -ENOENT || code == -ENODEV); i++) {
        cleanup_close(&ret->ours);
        ret->ours = -1;
        code = begin(ret, path, &fail);
    }
    if (code < 0) {
        cgroups_close(ret);
        ret->why = fail;
        return false;
    }
    snprintf(ret->path, sizeof(ret->path), "%.4000s%.4000s/%s", point, path[1] ? path : "", ret->name);
    return true;
}

void cgroups_refuse(struct cgroups *ret, const char *word)
{
    *ret = (struct cgroups){.base = -1, .ours = -1};
    fail_set(&ret->why, -ENOTSUP, "%s", word);
}

void cgroups_clear(const struct cgroups *cgroups)
{
    if (cgroups_are_there(cgroups))
        visit_containers(cgroups->ours, true);
}

size_t cgroups_sweep_containers(const struct cgroups *cgroups) { return visit_containers(cgroups->ours, false); }

/* The controllers are let go of only where they are ours and no other worker uses them; then this process fits into
 * base again. */
void cgroups_close(struct cgroups *cgroups)
{
    if (cgroups->ours >= 0) {
        visit_containers(cgroups->ours, true);
        cgroup_write(cgroups->ours, "cgroup.subtree_control", "-memory -pids");
        if (cgroups->is_first)
            cgroup_write(cgroups->base, "cgroup.subtree_control", "-memory -pids");
        cgroup_write(cgroups->base, "cgroup.procs", "0");
        sweep(cgroups->base);
    }
    cleanup_close(&cgroups->ours);
    cleanup_close(&cgroups->base);
    *cgroups = (struct cgroups){.base = -1, .ours = -1};
}
