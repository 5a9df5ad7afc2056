#include "workers/sandbox/embedded/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

static int write_whole(int fd, struct slice program)
{
    while (program.len > 0) {
        ssize_t wrote = write(fd, program.data, program.len);
        if (wrote < 0)
            return -1;
        program = slice_of(program.data + wrote, program.len - (size_t)wrote);
    }
    return 0;
}

/* Before Linux 6.3 all can be executed, and to say so is an error; vm.memfd_noexec of 2 forbids it. */
static int open_in_memory(const char *name)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_EXEC);
    return fd < 0 && errno == EINVAL ? memfd_create(name, flags) : fd;
}

/* Nobody writes to what processes run from. */
static int write_and_seal(int fd, struct slice program)
{
    return write_whole(fd, program) < 0
               ? -1
               : fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

/* Nothing that can be written to is executed: opened once more, for reading. */
static int open_in_directory(struct slice program, const char *directory, struct fail *fail)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/.program-XXXXXX", directory) >= (int)sizeof(path))
        return fail_set(fail, -ENAMETOOLONG, "%s: too long", directory);
    AUTO_CLOSE int written = mkostemp(path, O_CLOEXEC);
    if (written < 0)
        return refuse(fail, directory);
    int fd = fchmod(written, 0500) < 0 || write_whole(written, program) < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    int code = fd < 0 ? refuse(fail, path) : fd;
    unlink(path);
    return code;
}

int program_open(struct slice program, const char *name, const char *directory, struct fail *fail)
{
    AUTO_CLOSE int fd = open_in_memory(name);
    if (fd < 0)
        return open_in_directory(program, directory, fail);
    return write_and_seal(fd, program) < 0 ? refuse(fail, name) : take_fd(&fd);
}
