#include "common/files/dir_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

DIR *dir_stream_open(int dir)
{
    const int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own < 0 ? NULL : fdopendir(own);
    if (!stream && own >= 0) {
        const int error = errno;
        close(own);
        errno = error;
    }
    return stream;
}

int dir_stream_next(DIR *stream, const struct dirent **ret)
{
    const struct dirent *entry;
    do {
        errno = 0;
        entry = readdir(stream);
    } while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    if (!entry)
        return -errno;
    *ret = entry;
    return 1;
}
