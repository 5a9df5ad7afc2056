/*
 * The quota daemon of containers on a disk that is not theirs alone: it adds up what each has written, since
 * no file system limit does, and removes what they leave. Small files of many containers cost time to
 * look at: it spends at most a tenth of a core.
 */
#include "workers/sandbox/spawner/disk_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "common/base/clock.h"
#include "common/files/dirtree_remove.h"
#include "workers/files/locked_dir.h"
#include "workers/sandbox/container/plan.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/proto/wire.h"
#include "workers/files/dirtree.h"

enum {
    LOOK_EVERY_MS = 200,
    LOOK_SHARE = 10,
    DEPTH_MAX = 4096, /* directories deeper than that count as more inodes than allowed */
    BLOCK_BYTES = 512,
    SLACK_BYTES = 1 << 20 /* blocks of the file system's own */
};

struct quota {
    const char *path;
    int orders, births;
    int removers;    /* a pipe of containers to be removed; -1 */
    int64_t in_hand; /* a container that has no place in it; -1: none */
    struct quota_order *containers;
    size_t count, capacity;
};

/* ---- looking -------------------------------------------------------------------------- */

struct written {
    uint64_t bytes, inodes;
    unsigned depth;
};

static void add_entry(struct written *written, int dir, const char *name, uint64_t inodes_max);

/* Stops once it is too much: there is no more to know then. */
static void add_dir(struct written *written, int dir, const char *name, mode_t mode, uint64_t inodes_max)
{
    int fd = dirtree_open_own(dir, name, O_RDONLY | O_DIRECTORY, mode);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if ((!stream && errno != ENOENT) || written->depth == DEPTH_MAX)
        written->inodes = UINT64_MAX / 2; /* nothing is hidden by being hard to look at */
    if (!stream) {
        cleanup_close(&fd);
        return;
    }
    int code = 0;
    written->depth++;
    while (written->inodes <= inodes_max && (code = dir_stream_next(stream, &entry)) > 0)
        add_entry(written, fd, entry->d_name, inodes_max);
    written->depth--;
    if (code < 0)
        written->inodes = UINT64_MAX / 2;
    dirtree_leave_own(fd, mode);
    closedir(stream);
}

/* A file with many names counts once in all. */
static void add_entry(struct written *written, int dir, const char *name, uint64_t inodes_max)
{
    struct stat it;
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    uint64_t names = S_ISDIR(it.st_mode) || it.st_nlink < 1 ? 1 : (uint64_t)it.st_nlink;
    written->bytes += S_ISDIR(it.st_mode) ? 0 : (uint64_t)it.st_blocks * BLOCK_BYTES / names;
    written->inodes++;
    if (S_ISDIR(it.st_mode))
        add_dir(written, dir, name, it.st_mode, inodes_max);
}

static void look_at(const struct quota *quota, struct quota_order *container)
{
    char path[PLAN_DISK_PATH_MAX + 32];
    struct written written = {0};
    uint64_t container_bytes = atomic_load(&container->usage->container_bytes),
             container_inodes = atomic_load(&container->usage->container_inodes);
    snprintf(path, sizeof(path), "%s/%u%s", quota->path, container->id, container->is_whole ? "" : "/upper");
    add_dir(&written, AT_FDCWD, path, S_IFDIR | 0700, container->inodes + container_inodes);
    written.bytes -= container_bytes < written.bytes ? container_bytes : written.bytes;
    written.inodes -= container_inodes < written.inodes ? container_inodes : written.inodes;
    atomic_store(&container->usage->disk_now, written.bytes);
    usage_peak(&container->usage->disk_bytes, written.bytes);
    usage_peak(&container->usage->inodes, written.inodes);
    bool is_full = written.bytes > container->bytes + SLACK_BYTES, is_many = written.inodes > container->inodes;
    usage_see(container->usage, LIMIT_DISK, is_full);
    usage_see(container->usage, LIMIT_INODES, is_many);
    if (is_full || is_many) {
        struct wire_head head = {
            .verb = WIRE_BREACH, .id = container->id, .number = {is_full ? LIMIT_DISK : LIMIT_INODES}};
        wire_try_send(quota->births, &head); /* the next look says it again */
    }
}

/* ---- orders --------------------------------------------------------------------------- */

static void add_container(struct quota *quota, const struct quota_order *order)
{
    if (quota->count == quota->capacity) {
        size_t capacity = quota->capacity ? quota->capacity * 2 : 64;
        struct quota_order *more = realloc(quota->containers, capacity * sizeof(*more));
        if (!more)
            _exit(1); /* the spawner cannot watch this container: it ends, too */
        quota->containers = more;
        quota->capacity = capacity;
    }
    quota->containers[quota->count++] = *order;
}

static void remove_one(const struct quota *quota, uint32_t id)
{
    char path[PLAN_DISK_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/%u", quota->path, id);
    dirtree_remove(path);
}

/* Until the quota daemon has no more for anybody. */
static _Noreturn void be_remover(const struct quota *quota, int containers)
{
    uint32_t id;
    close(quota->orders);
    close(quota->births);
    close(quota->removers);
    while (read(containers, &id, sizeof(id)) == sizeof(id))
        remove_one(quota, id);
    _exit(0);
}

/* Removing can take long: in processes of their own, as many as can be had, that all take from one pipe. */
static void start_removers(struct quota *quota)
{
    int ends[2];
    size_t started = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    quota->removers = ends[1];
    for (int i = 0; i < QUOTA_REMOVERS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            be_remover(quota, ends[0]);
        started += pid > 0;
    }
    close(ends[0]);
    fcntl(quota->removers, F_SETFL, O_NONBLOCK);
    if (started > 0)
        return;
    close(quota->removers);
    quota->removers = -1;
}

/* Where they are too far behind it stays in hand, and no more orders are taken;
 * where there are none it is done here. */
static void hand_on(struct quota *quota)
{
    const uint32_t id = (uint32_t)quota->in_hand;
    ssize_t sent = quota->removers < 0 ? -1 : write(quota->removers, &id, sizeof(id));
    if (sent < 0 && quota->removers >= 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (sent < 0)
        remove_one(quota, id);
    quota->in_hand = -1;
}

static void remove_container(struct quota *quota, uint32_t id)
{
    for (size_t i = 0; i < quota->count; i++)
        if (quota->containers[i].id == id)
            quota->containers[i--] = quota->containers[--quota->count];
    quota->in_hand = id;
    hand_on(quota);
}

static bool take_order(struct quota *quota)
{
    struct quota_order order;
    ssize_t got = recv(quota->orders, &order, sizeof(order), 0);
    if (got < 0 && errno == EINTR)
        return true;
    if (got != sizeof(order))
        return false;
    if (order.is_end)
        remove_container(quota, order.id);
    else
        add_container(quota, &order);
    return true;
}

/* ---- its life ------------------------------------------------------------------------- */

static void sweep(const char *parent, const char *own)
{
    DIR *stream = opendir(parent);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        char path[PLAN_DISK_PATH_MAX + 256];
        snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
        if (!strstr(entry->d_name, HELD_DIR_TMP) || strcmp(path, own) == 0)
            continue;
        AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir >= 0)
            locked_dir_remove(dir, path);
    }
    if (stream)
        closedir(stream);
}

/* What spawners that were killed have left behind may be much: in a process of its own, too. */
static void start_sweep(const char *parent, const char *own)
{
    pid_t pid = fork();
    if (pid > 0)
        return;
    sweep(parent, own);
    if (pid == 0)
        _exit(0);
}

static void look(struct quota *quota, int64_t *ret_next_ms)
{
    int64_t began_ms = clock_ms();
    for (size_t i = 0; i < quota->count; i++)
        look_at(quota, &quota->containers[i]);
    int64_t pause_ms = LOOK_SHARE * (clock_ms() - began_ms);
    *ret_next_ms = began_ms + (pause_ms > LOOK_EVERY_MS ? pause_ms : LOOK_EVERY_MS);
}

_Noreturn void quota_run(const char *path, const char *parent, int orders, int births)
{
    struct quota quota = {.path = path, .orders = orders, .births = births, .removers = -1, .in_hand = -1};
    int64_t next_ms = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_IGN); /* who removes is not waited for */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    start_sweep(parent, path);
    start_removers(&quota);
    for (;;) {
        int64_t left_ms = next_ms - clock_ms();
        int wait_ms = quota.count == 0 ? -1 : left_ms > 0 ? (int)left_ms : 0;
        bool is_behind = quota.in_hand >= 0;
        struct pollfd on[] = {{is_behind ? -1 : orders, POLLIN, 0}, {is_behind ? quota.removers : -1, POLLOUT, 0}};
        poll(on, 2, wait_ms);
        if (on[1].revents)
            hand_on(&quota);
        if (on[0].revents && !take_order(&quota))
            break;
        if (quota.count > 0 && clock_ms() >= next_ms)
            look(&quota, &next_ms);
    }
    cleanup_close(&quota.removers);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) /* with SIGCHLD ignored: until none is left */
        ;
    dirtree_remove(path);
    _exit(0);
}
