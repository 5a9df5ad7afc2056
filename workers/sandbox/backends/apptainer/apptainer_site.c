#include "workers/sandbox/backends/apptainer/apptainer_site.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

int site_make_dir(int at, const char *name, mode_t mode, struct fail *fail)
{
    return mkdirat(at, name, mode) < 0 && errno != EEXIST ? refuse(fail, name) : 0;
}

int site_make_file(int at, const char *name, mode_t mode, struct slice bytes, struct fail *fail)
{
    AUTO_CLOSE int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    for (size_t done = 0; fd >= 0 && done < bytes.len;) {
        ssize_t wrote = write(fd, bytes.data + done, bytes.len - done);
        if (wrote < 0 && errno != EINTR)
            return refuse(fail, name);
        done += wrote < 0 ? 0 : (size_t)wrote;
    }
    return fd < 0 && errno != EEXIST ? refuse(fail, name) : 0;
}

int site_open_dir(int at, const char *name, struct fail *fail)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? refuse(fail, name) : fd;
}
