/* sources/copying.h - what the files that copy a source share. */
#ifndef SLUICE_WORKERS_SOURCES_COPYING_H
#define SLUICE_WORKERS_SOURCES_COPYING_H

#include "workers/images/rootfs/rootfs.h"

struct copying {
    struct rootfs *rootfs; /* what is made; its trouble says what went wrong */
    const char *place;     /* of all that is made, below its root */
    uint8_t *chunk;
};
enum { COPYING_CHUNK = 256 * 1024 };

/* The place of `path`, which is relative; the caller frees it. NULL: the trouble says why. */
char *copying_place(struct copying *copying, const char *path);

/* 0, or negative with the rootfs' trouble. `fd` is open for reading, `it` what it is; "" is the source itself. */
int copying_file(struct copying *copying, int fd, const struct stat *it, const char *path);

/* The source is at fault: it changed while it was read. */
int copying_changed(struct copying *copying, const char *path);
bool copying_is_same(int fd, const struct stat *before);

#endif
