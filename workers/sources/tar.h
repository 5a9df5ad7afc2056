/* sources/tar.h - a tar as a source, packed or not. */
#ifndef SLUICE_WORKERS_SOURCES_TAR_H
#define SLUICE_WORKERS_SOURCES_TAR_H

#include "workers/sources/copying.h"

/* `fd` is open for reading. 0, or negative with the rootfs' trouble. */
int source_tar_copy(struct copying *copying, int fd, const struct stat *it);

/* Whether it begins as one. Moves the file's position. */
bool source_tar_is(int fd);

#endif
