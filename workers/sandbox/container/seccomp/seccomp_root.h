/*
 * seccomp_root.h - what makes uid 0 of a sandbox enough for package managers: a second filter on each process inside
 * that answers success, without doing anything, to calls that change owners and identities, and to making devices. One
 * id is mapped and there is no capability, so that the kernel could only refuse them; files stay uid 0's, and who asks
 * which user it is hears 0.
 *
 * It comes after a process has given up its own rights (launch.c): capset is among what it answers.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_SECCOMP_SECCOMP_ROOT_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_SECCOMP_SECCOMP_ROOT_H

#include "common/base/fail.h"

/* Makes the filter; once, before any sandbox. */
void seccomp_root_prepare(void);
/* On this process and what it starts. */
int seccomp_root_apply(struct fail *fail);

#endif
