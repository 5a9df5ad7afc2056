/* sources/directory.h - a directory as a source: all that is in it, or a refusal that names what is in the way. */
#ifndef SLUICE_WORKERS_SOURCES_DIRECTORY_H
#define SLUICE_WORKERS_SOURCES_DIRECTORY_H

#include "workers/sources/copying.h"

/* `fd` is open for reading. 0, or negative with the rootfs' trouble. */
int source_directory_copy(struct copying *copying, int fd);

#endif
