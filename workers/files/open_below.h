/*
 * open_below.h - paths opened below a directory, which nothing in them leads out of; with O_CLOEXEC. "" is the
 * directory itself. A rename anywhere on the machine may disturb the kernel at that (openat2(2), EAGAIN): then it is
 * tried again.
 */
#ifndef SLUICE_WORKERS_FILES_OPEN_BELOW_H
#define SLUICE_WORKERS_FILES_OPEN_BELOW_H

#include <stdint.h>
#include <sys/types.h>

enum { OPEN_TRIES_MAX = 10000 };

/* Each: a descriptor, or -1 with errno. */

/* `resolve` is openat2's; `mode` is for O_CREAT. */
int open_below(int dir, const char *path, uint64_t flags, mode_t mode, uint64_t resolve);
/* As those for whom `root` is the root see it: links lead where they do there. */
int open_in_root(int root, const char *path, uint64_t flags, mode_t mode);

#endif
