#include "workers/evaluators/evaluator_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/stages/sandbox/stage_sandbox.h"

int evaluator_file_open(struct sandbox *sandbox, const char *path, off_t *ret_size, struct fail *fail)
{
    struct stat it;
    AUTO_CLOSE int file = sandbox_open_file(sandbox, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0, fail);
    int code = file < 0 ? file : sandbox_stat_file(sandbox, file, &it, fail);
    if (code == -ELOOP)
        return fail_set(fail, code, "it is a symbolic link, and has to be a plain file");
    if (code < 0)
        return code;
    if (!S_ISREG(it.st_mode))
        return fail_set(fail, -EINVAL, "it is not a plain file");
    *ret_size = it.st_size;
    return take_fd(&file);
}

int evaluator_file_read(int file, off_t from, size_t len, struct buffer *ret, struct fail *fail)
{
    uint8_t *room = buffer_reserve(ret, len + 1);
    if (!room)
        return fail_memory(fail);
    for (size_t have = 0; have < len;) {
        const ssize_t got = pread(file, room + have, len - have, from + (off_t)have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_set(fail, -EIO, "cannot read a file that was left: %s", strerror(errno));
        if (got == 0)
            break;
        have += (size_t)got;
        ret->len += (size_t)got;
    }
    return 0;
}
