#include "broker/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/cleanup.h"

static int refuse_second(const char *dir, int fd, struct fail *fail)
{
    char pid[16] = "";
    ssize_t len = pread(fd, pid, sizeof(pid) - 1, 0);
    pid[len > 0 ? len : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    return fail_set(fail, -EBUSY, "another broker (pid %s) uses %s: end it, or choose another directory",
                    pid[0] ? pid : "unknown", dir);
}

int lock_take(const char *dir, int *ret_fd, struct fail *fail)
{
    if (mkdir(dir, 0750) < 0 && errno != EEXIST)
        return fail_set(fail, -errno, "cannot make the directory %s: %s", dir, strerror(errno));
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/lock", dir) >= (int)sizeof(path))
        return fail_set(fail, -ENAMETOOLONG, "the directory's name is too long: %.100s...", dir);
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0)
        return fail_set(fail, -errno, "cannot write in the directory %s: %s: check its owner and mode",
                        dir, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? refuse_second(dir, fd, fail)
                   : fail_set(fail, -errno, "cannot lock %s: %s", path, strerror(errno));
    char pid[16];
    int len = snprintf(pid, sizeof(pid), "%d\n", getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)len, 0) != len) {
        /* the pid is only for people; on a full disk the lock still holds */
    }
    *ret_fd = take_fd(&fd);
    return 0;
}
