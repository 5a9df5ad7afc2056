/* cgroup_files.h - one file of a cgroup, whole: for cgroup.c and cgroup_base.c. */
#ifndef SLUICE_WORKERS_SANDBOX_CGROUP_CGROUP_FILES_H
#define SLUICE_WORKERS_SANDBOX_CGROUP_CGROUP_FILES_H

#include <stdbool.h>
#include <stddef.h>

int cgroup_write(int group, const char *name, const char *text); /* 0 or negative errno */
/* False when it is empty or cannot be read; NUL-terminated anyhow. */
bool cgroup_read(int group, const char *name, char *ret, size_t size);

#endif
