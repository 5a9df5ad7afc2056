/* The file that a command writes to, in the sandbox's directory of outputs, which the agent can do anything to. */
#include "workers/tools/bash/shell_output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/files/dirtree_remove.h"
#include "workers/sandbox/requests.h"
#include "workers/tools/bash/shell_inside.h"
#include "workers/files/dirtree.h"

/* What commands left there, but no sockets: Jupyter kernels listen on those. */
static void clear_directory(int dir)
{
    const struct dirent *entry;
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *open = fd < 0 ? NULL : fdopendir(fd);
    if (!open) {
        cleanup_close(&fd);
        return;
    }
    while ((entry = readdir(open))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || entry->d_type == DT_SOCK)
            continue;
        if (entry->d_type == DT_DIR)
            dirtree_remove_at(dir, name);
        else
            unlinkat(dir, name, 0);
    }
    closedir(open);
}

static int make_file(struct shell_output *output)
{
    const ssize_t len = (ssize_t)strlen(output->name);
    struct stat it;
    if (fstat(output->dir, &it) == 0 && (it.st_mode & 0700) != 0700)
        fchmod(output->dir, (it.st_mode & 07777) | 0700);
    cleanup_close(&output->file);
    unlinkat(output->dir, output->name, 0);
    output->file = openat(output->dir, output->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (output->file < 0 || fchmod(output->file, 0666) < 0)
        return -errno;
    ssize_t wrote = pwrite(output->file, output->name, (size_t)len, 0);
    return wrote == len ? 0 : wrote < 0 ? -errno : -ENOSPC;
}

int shell_output_open(struct shell_output *output, struct fail *fail)
{
    int code = make_file(output);
    if (code < 0) {
        clear_directory(output->dir);
        code = make_file(output);
    }
    output->is_full = code == -ENOSPC && output->file >= 0;
    if (code == 0 || output->is_full)
        return 0;
    return fail_set(fail, sandbox_outputs_code(-code), "a file in /run/sluice/out: %s", strerror(-code));
}

bool shell_output_is_begun(const struct shell_output *output)
{
    char found[sizeof(output->name)];
    const size_t len = strlen(output->name);
    return output->is_full || pread(output->file, found, sizeof(found), 0) != (ssize_t)len ||
           memcmp(found, output->name, len) != 0;
}

uint64_t shell_output_size(const struct shell_output *output)
{
    struct stat it;
    return fstat(output->file, &it) == 0 ? (uint64_t)it.st_size : 0;
}

void shell_output_close(struct shell_output *output)
{
    if (output->file >= 0)
        unlinkat(output->dir, output->name, 0);
    cleanup_close(&output->file);
    output->file = -1;
}
