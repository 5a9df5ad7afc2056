/*
 * mounts.h - the single steps of building a container: making and mounting inside a root.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_MOUNTS_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_MOUNTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the kernel says that a descriptor is; 0, -ENAMETOOLONG or another negative errno. */
int container_name_of(int fd, char *ret, size_t size);
/* Makes a directory and its parents inside `root`; 0 or negative errno. */
int container_make_dirs(int root, const char *path, mode_t mode);
int container_attach_clone(int dir, const char *path, uint64_t attributes, int root, const char *target);

#endif
