/* apptainer_look.h - the first process looks whether it is where it was to be put. */
#ifndef SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_LOOK_H
#define SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_LOOK_H

#include "workers/sandbox/backends/apptainer/apptainer.h"

/* Inode numbers of /proc/self/ns/... below `proc`: pid, mnt, ipc, uts, net. 0 or negative errno. */
int apptainer_namespaces(int proc, uint64_t ret[APPTAINER_NAMESPACES], struct fail *fail);
/* -EPROTO with the first that is the same. */
int apptainer_check_namespaces(const uint64_t outside[APPTAINER_NAMESPACES],
                               const uint64_t inside[APPTAINER_NAMESPACES], struct fail *fail);
/* Not the same, but below. */
bool apptainer_is_below(const char *path, const char *point);
/* One line of /proc/self/mountinfo: -EPROTO when it is none of `points` and none of apptainer's own. */
int apptainer_check_mount(const char *line, const char *points, struct fail *fail);

#endif
