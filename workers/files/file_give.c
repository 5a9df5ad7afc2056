#include "workers/files/file_give.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"

int file_give(int dir, const char *name, mode_t mode, struct slice content, struct fail *fail)
{
    AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0 || fchmod(fd, mode) < 0 || dirtree_write_at(fd, content.data, content.len, 0) < 0)
        return fail_set(fail, -errno, "/run/sluice: %s: %s", name, strerror(errno));
    return 0;
}
