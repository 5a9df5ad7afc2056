#include "client/cli/grade/own_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/files/dirtree_remove.h"

#define NAME "sluice-grade-"

enum { ABANDONED_S = 60 /* after the last line of its log: its service has stopped by itself */ };

/* Negative: it is somebody's, or no such directory. */
static int lock_in(int directory, int flags)
{
    AUTO_CLOSE int lock = openat(directory, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    return lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 ? take_fd(&lock) : -1;
}

static bool is_old(int directory, const char *name)
{
    struct stat about;
    return fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW) < 0 || about.st_mtime < time(NULL) - ABANDONED_S;
}

static bool is_mine(int directory)
{
    struct stat about;
    return fstat(directory, &about) == 0 && about.st_uid == geteuid();
}

static void sweep_one(int place, const char *name)
{
    AUTO_CLOSE int directory = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0 || !is_mine(directory) || !is_old(directory, "log") || !is_old(directory, "lock"))
        return;
    AUTO_CLOSE int lock = lock_in(directory, 0);
    if (lock >= 0)
        dirtree_remove_at(place, name);
}

static void sweep(const char *path)
{
    DIR *place = opendir(path);
    for (const struct dirent *entry; place && (entry = readdir(place));)
        if (strncmp(entry->d_name, NAME, strlen(NAME)) == 0)
            sweep_one(dirfd(place), entry->d_name);
    if (place)
        closedir(place);
}

const char *own_directory_place(void)
{
    const char *place = getenv("TMPDIR");
    return place && *place == '/' && strlen(place) + strlen("/" NAME "XXXXXX") <= OWN_DIRECTORY_MAX ? place : "/tmp";
}

int own_directory_make(char *ret, size_t size, int *ret_lock, struct fail *fail)
{
    const char *place = own_directory_place();
    sweep(place);
    snprintf(ret, size, "%s/%sXXXXXX", place, NAME);
    if (!mkdtemp(ret)) {
        ret[0] = '\0';
        return fail_set(fail, -errno, "cannot make a directory in %s: %s", place, strerror(errno));
    }
    AUTO_CLOSE int directory = open(ret, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret_lock = directory < 0 ? -1 : lock_in(directory, O_CREAT | O_EXCL);
    return *ret_lock >= 0 ? 0 : fail_set(fail, -errno, "cannot lock %s: %s", ret, strerror(errno));
}
