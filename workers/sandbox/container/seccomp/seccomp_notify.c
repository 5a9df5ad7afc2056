#include "workers/sandbox/container/seccomp/seccomp_notify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "common/base/cleanup.h"

enum change { CHANGE_MODE, CHANGE_OWNER, CHANGE_TIMES };
enum { NONE = -1, ARGUMENTS = 6, NOTIF_MAX = 256 };

/* Numbers of arguments; NONE: it has none such. */
static const struct call {
    uint32_t number;
    int dir, path, value, flags;
    int fixed_flags;
    enum change change;
} calls[] = {
#ifdef __NR_chmod
    {__NR_chmod, NONE, 0, 1, NONE, 0, CHANGE_MODE},
    {__NR_chown, NONE, 0, 1, NONE, 0, CHANGE_OWNER},
    {__NR_lchown, NONE, 0, 1, NONE, AT_SYMLINK_NOFOLLOW, CHANGE_OWNER},
#endif
    {__NR_fchmod, 0, NONE, 1, NONE, 0, CHANGE_MODE},
    {__NR_fchmodat, 0, 1, 2, NONE, 0, CHANGE_MODE},
    {__NR_fchown, 0, NONE, 1, NONE, 0, CHANGE_OWNER},
    {__NR_fchownat, 0, 1, 2, 4, 0, CHANGE_OWNER},
    {__NR_utimensat, 0, 1, 2, 3, 0, CHANGE_TIMES},
};
enum { CALLS = sizeof(calls) / sizeof(*calls) };

void seccomp_notify_rules(struct seccomp_rules *rules)
{
    for (size_t i = 0; i < CALLS; i++)
        seccomp_add(rules, &calls[i].number, 1, SECCOMP_RET_USER_NOTIF);
}

/* ---- what is asked for -------------------------------------------------------------- */

struct request {
    pid_t pid;
    const struct call *call;
    const uint64_t *args;
};

static int read_memory(pid_t pid, uint64_t address, void *ret, size_t size)
{
    struct iovec here = {ret, size}, there = {(void *)(uintptr_t)address, size};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

/* A string; page by page, since what is behind it may not be there. */
static int read_path(pid_t pid, uint64_t address, char path[PATH_MAX])
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (size_t len = 0; len < PATH_MAX;) {
        size_t part = (size_t)(page - (address + len) % page);
        if (part > PATH_MAX - len)
            part = PATH_MAX - len;
        if (read_memory(pid, address + len, path + len, part) < 0)
            return -EFAULT;
        if (memchr(path + len, '\0', part))
            return 0;
        len += part;
    }
    return -ENAMETOOLONG;
}

/* Where the path begins: a descriptor of theirs, or their working directory. */
static int open_start(const struct request *request)
{
    char name[64];
    int dir = request->call->dir == NONE ? AT_FDCWD : (int)request->args[request->call->dir];
    if (dir == AT_FDCWD)
        snprintf(name, sizeof(name), "/proc/%d/cwd", request->pid);
    else
        snprintf(name, sizeof(name), "/proc/%d/fd/%d", request->pid, dir);
    int fd = open(name, O_PATH | O_CLOEXEC);
    return fd < 0 && errno == ENOENT ? -EBADF : fd < 0 ? -errno : fd;
}

/* "/proc/self" is who asks. */
static int open_path(const struct request *request, int start, const char *path, int flags)
{
    static const char self[] = "/proc/self/";
    char own[PATH_MAX + 32];
    if (strncmp(path, self, strlen(self)) == 0) {
        snprintf(own, sizeof(own), "/proc/%d/%s", request->pid, path + strlen(self));
        path = own;
    }
    int follow = flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0;
    int fd = openat(start, path, O_PATH | O_CLOEXEC | follow);
    return fd < 0 ? -errno : fd;
}

/* The file, as O_PATH; negative errno. */
static int open_target(const struct request *request)
{
    char path[PATH_MAX];
    const struct call *call = request->call;
    int flags = call->fixed_flags | (call->flags == NONE ? 0 : (int)request->args[call->flags]);
    AUTO_CLOSE int start = open_start(request);
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    if (call->path == NONE || (call->change == CHANGE_TIMES && request->args[call->path] == 0))
        return take_fd(&start);
    int code = read_path(request->pid, request->args[call->path], path);
    if (code < 0 || (start < 0 && path[0] != '/'))
        return code < 0 ? code : start;
    if (!path[0])
        return flags & AT_EMPTY_PATH ? take_fd(&start) : -ENOENT;
    return open_path(request, start, path, flags);
}

/* ---- doing it ----------------------------------------------------------------------- */

static bool is_in_places(const struct seccomp_notify *seccomp_notify, int target)
{
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", target);
    ssize_t len = readlink(name, path, sizeof(path) - 1);
    if (len <= 0)
        return false;
    path[len] = '\0';
    for (size_t i = 0; i < sizeof(seccomp_notify->places) / sizeof(*seccomp_notify->places); i++)
        if (seccomp_notify->places[i] &&
            strncmp(path, seccomp_notify->places[i], strlen(seccomp_notify->places[i])) == 0)
            return true;
    return false;
}

static int set_times(const struct request *request, const char *name)
{
    struct timespec times[2];
    uint64_t address = request->args[request->call->value];
    int code = address ? read_memory(request->pid, address, times, sizeof(times)) : 0;
    if (code < 0)
        return code;
    return utimensat(AT_FDCWD, name, address ? times : NULL, 0) < 0 ? -errno : 0;
}

static int apply(const struct request *request, int target)
{
    char name[64];
    const struct call *call = request->call;
    const uint64_t *value = request->args + call->value;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", target);
    switch (call->change) {
    case CHANGE_MODE: return chmod(name, (mode_t)value[0] & 07777) < 0 ? -errno : 0;
    case CHANGE_OWNER: return fchownat(target, "", (uid_t)value[0], (gid_t)value[1], AT_EMPTY_PATH) < 0 ? -errno : 0;
    case CHANGE_TIMES: return set_times(request, name);
    }
    return -ENOSYS;
}

/* What was opened stays what it is, whatever its asker does meanwhile; that it was this asker's is
 * asked after it was opened. */
static int grant(const struct seccomp_notify *seccomp_notify, int listener, const struct seccomp_notif *asked)
{
    struct request request = {.pid = (pid_t)asked->pid, .args = (const uint64_t *)asked->data.args};
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].number == (uint32_t)asked->data.nr)
            request.call = &calls[i];
    if (!request.call)
        return -ENOSYS;
    AUTO_CLOSE int target = open_target(&request);
    if (target < 0)
        return target;
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &asked->id) < 0)
        return -ESRCH;
    return is_in_places(seccomp_notify, target) ? apply(&request, target) : -EPERM;
}

static void serve_one(const struct seccomp_notify *seccomp_notify, int listener)
{
    union { /* the kernel's may be larger than ours */
        struct seccomp_notif asked;
        uint8_t room[NOTIF_MAX];
    } in = {.room = {0}};
    union {
        struct seccomp_notif_resp answer;
        uint8_t room[NOTIF_MAX];
    } out = {.room = {0}};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0)
        return; /* it was killed meanwhile */
    out.answer.id = in.asked.id;
    out.answer.error = grant(seccomp_notify, listener, &in.asked);
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &out);
}

/* ---- listeners ---------------------------------------------------------------------- */

bool seccomp_notify_add(struct seccomp_notify *seccomp_notify, int listener)
{
    if (seccomp_notify->count == NOTIFIERS_MAX) {
        close(listener);
        return false;
    }
    seccomp_notify->listeners[seccomp_notify->count++] = listener;
    return true;
}

size_t seccomp_notify_poll(const struct seccomp_notify *seccomp_notify, struct pollfd *ret, size_t max)
{
    size_t count = 0;
    for (; count < seccomp_notify->count && count < max; count++)
        ret[count] = (struct pollfd){seccomp_notify->listeners[count], POLLIN, 0};
    return count;
}

void seccomp_notify_serve(struct seccomp_notify *seccomp_notify, const struct pollfd *polled, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (polled[i].revents & POLLIN)
            serve_one(seccomp_notify, polled[i].fd);
        else if (polled[i].revents) {
            close(polled[i].fd);
            seccomp_notify->listeners[i] = seccomp_notify->listeners[--seccomp_notify->count];
        }
}
