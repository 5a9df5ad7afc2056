#include "workers/files/dir_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/dir_stream.h"

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Its room doubles when it is full, at each power of two. */
static int add_name(struct dir_names *names, const char *name)
{
    if ((names->count & (names->count - 1)) == 0) {
        char **more = reallocarray(names->each, names->count ? names->count * 2 : 1, sizeof(*more));
        if (!more)
            return -ENOMEM;
        names->each = more;
    }
    names->each[names->count] = strdup(name);
    return names->each[names->count] ? (names->count++, 0) : -ENOMEM;
}

int dir_names_read(int dir, size_t max, struct dir_names *ret)
{
    const struct dirent *entry;
    *ret = (struct dir_names){0};
    AUTO_DIR stream = dir_stream_open(dir);
    int code = stream ? 0 : -errno;
    while (stream && (code = dir_stream_next(stream, &entry)) > 0) {
        code = ret->count == max ? -E2BIG : add_name(ret, entry->d_name);
        if (code < 0)
            break;
    }
    if (ret->count > 1)
        qsort(ret->each, ret->count, sizeof(*ret->each), compare_names);
    errno = -code;
    return code;
}

void dir_names_finish(struct dir_names *names)
{
    while (names->count > 0)
        free(names->each[--names->count]);
    free(names->each);
    names->each = NULL;
}
