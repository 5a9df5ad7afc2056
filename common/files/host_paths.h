/*
 * host_paths.h - which directories of a machine are its own, and never handed to tasks: settings, devices, what the
 * kernel tells (/etc, /proc, /sys, /dev, /boot, /usr/local/etc). Real, absolute paths.
 */
#ifndef SLUICE_COMMON_FILES_HOST_PATHS_H
#define SLUICE_COMMON_FILES_HOST_PATHS_H

#include <stdbool.h>

/* Whether it lies in the other, or is the same. */
bool host_path_is_in(const char *path, const char *dir);
/* Whether it lies in one of them. /dev/shm is anybody's. */
bool host_path_is_inside(const char *path);
/* Whether it is one, lies in one, or holds one. */
bool host_path_is_own(const char *path);

#endif
