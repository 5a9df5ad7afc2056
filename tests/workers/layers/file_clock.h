/* file_clock.h - the clock that a file system dates changes by, which stands still for milliseconds at a time. */
#ifndef SLUICE_TESTS_WORKERS_LAYERS_FILE_CLOCK_H
#define SLUICE_TESTS_WORKERS_LAYERS_FILE_CLOCK_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

/* Now, by a file ".clock" of the directory. */
static inline struct timespec file_clock_read(const char *dir)
{
    char path[512];
    struct stat it;
    snprintf(path, sizeof(path), "%s/.clock", dir);
    AUTO_CLOSE int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(file, "x", 1), 1);
    assert_int_equal(fstat(file, &it), 0);
    unlink(path);
    return it.st_ctim;
}

/* Returns once what changes in that file system gets a later time than all that has changed so far. */
static inline void file_clock_tick(const char *dir)
{
    const struct timespec first = file_clock_read(dir);
    for (struct timespec now = first; now.tv_sec == first.tv_sec && now.tv_nsec == first.tv_nsec;)
        now = file_clock_read(dir);
}

#endif
