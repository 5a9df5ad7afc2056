#include "workers/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "common/cleanup.h"

enum { YOUNG_S = 60 }; /* a directory without a lock that its worker may still be about to make */

static const char prefix[] = "sluice-worker-";

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about, (void)type, (void)where;
    remove(path);
    return 0;
}

/* Never follows a link nor leaves the file system. */
static void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static bool is_dead(const char *directory)
{
    char path[600];
    struct stat about;
    if (lstat(directory, &about) < 0 || !S_ISDIR(about.st_mode) || about.st_uid != geteuid())
        return false;
    snprintf(path, sizeof(path), "%s/lock", directory);
    AUTO_CLOSE int lock = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0)
        return errno == ENOENT && time(NULL) - about.st_mtime > YOUNG_S;
    return flock(lock, LOCK_EX | LOCK_NB) == 0;
}

static void sweep(const char *parent)
{
    DIR *directory = opendir(parent);
    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[512];
        if (strncmp(entry->d_name, prefix, sizeof(prefix) - 1) != 0 ||
            (size_t)snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) >=
                sizeof(path) - 8)
            continue;
        if (is_dead(path))
            remove_tree(path);
    }
    closedir(directory);
}

/* The lock gets its name only once it is held, so that a named one that is free means dead. */
static int take_lock(struct scratch *scratch)
{
    char made[512], named[512];
    snprintf(made, sizeof(made), "%s/lock.new", scratch->path);
    snprintf(named, sizeof(named), "%s/lock", scratch->path);
    scratch->lock = open(made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (scratch->lock < 0 || flock(scratch->lock, LOCK_EX | LOCK_NB) < 0 || rename(made, named) < 0)
        return -errno;
    return 0;
}

int scratch_create(struct scratch *ret, struct fail *fail)
{
    const char *parent = getenv("TMPDIR");
    if (!parent || parent[0] != '/')
        parent = "/tmp";
    sweep(parent);
    *ret = (struct scratch){.lock = -1};
    if ((size_t)snprintf(ret->path, sizeof(ret->path), "%s/%sXXXXXX", parent, prefix) >=
        sizeof(ret->path))
        return fail_set(fail, -ENAMETOOLONG, "TMPDIR is too long: %s", parent);
    if (!mkdtemp(ret->path)) {
        ret->path[0] = '\0';
        return fail_set(fail, -errno, "cannot make a directory in %s: %s", parent, strerror(errno));
    }
    int error = take_lock(ret);
    if (error == 0)
        return 0;
    fail_set(fail, error, "cannot lock %s: %s", ret->path, strerror(-error));
    scratch_remove(ret);
    return error;
}

void scratch_remove(struct scratch *scratch)
{
    if (scratch->path[0])
        remove_tree(scratch->path);
    scratch->path[0] = '\0';
    if (scratch->lock >= 0)
        close(take_fd(&scratch->lock));
}
