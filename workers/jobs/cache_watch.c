#include "workers/jobs/cache_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

static int add(struct cache_watch *watch, const char *path, struct fail *fail)
{
    int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return fail_set(fail, -errno, "cannot open %s: %s", path, strerror(errno));
    char *copy = strdup(path);
    watch->each[watch->count].dir = dir;
    watch->each[watch->count++].path = copy;
    return copy ? 0 : fail_memory(fail);
}

int cache_watch_open(struct cache_watch *ret, const char *cache, const char *mount_point, struct fail *fail)
{
    *ret = (struct cache_watch){.count = 0};
    int code = add(ret, cache, fail);
    return code == 0 && mount_point ? add(ret, mount_point, fail) : code;
}

void cache_watch_close(struct cache_watch *watch)
{
    while (watch->count > 0) {
        watch->count--;
        close(watch->each[watch->count].dir);
        free(take_ptr(&watch->each[watch->count].path));
    }
}

/* What a name leads to now, beside what it led to then. */
static int look_at(const char *path, int dir, struct fail *fail)
{
    struct stat then, now;
    if (fstat(dir, &then) < 0)
        return fail_set(fail, -ENODEV, "the cache's file system at %s does not answer: %s", path, strerror(errno));
    if (then.st_nlink == 0)
        return fail_set(fail, -ENODEV, "%s was removed", path);
    if (stat(path, &now) < 0)
        return fail_set(fail, -ENODEV, "%s is not there any more: %s", path, strerror(errno));
    if (now.st_dev != then.st_dev)
        return fail_set(fail, -ENODEV, "%s is on another file system now: something was mounted or unmounted there",
                        path);
    if (now.st_ino != then.st_ino)
        return fail_set(fail, -ENODEV, "%s was replaced by another directory", path);
    return 0;
}

int cache_watch_look(const struct cache_watch *watch, struct fail *fail)
{
    int code = 0;
    for (size_t i = 0; watch && i < watch->count && code == 0; i++)
        code = look_at(watch->each[i].path, watch->each[i].dir, fail);
    return code;
}
