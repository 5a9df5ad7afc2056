/* landlock_seccomp.h - the system call filter of containers without namespaces. */
#ifndef SLUICE_WORKERS_SANDBOX_BACKENDS_LANDLOCK_LANDLOCK_SECCOMP_H
#define SLUICE_WORKERS_SANDBOX_BACKENDS_LANDLOCK_LANDLOCK_SECCOMP_H

#include "common/base/fail.h"

/* Makes the filter of all containers; once, before any. */
void landlock_filter_prepare(void);

/* A process about to be executed: a ruleset of its own and the filter, whose listener goes to `tell` ... */
int landlock_container_guard(int tell, struct fail *fail);

#endif
