/*
 * seccomp_rules.h - which system calls no container has, by tables, and the filter (seccomp.h) that is made of them. A
 * container of Landlock's adds rules of its own (landlock_seccomp.c).
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_SECCOMP_SECCOMP_RULES_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_SECCOMP_SECCOMP_RULES_H

#include <stdbool.h>

#include "common/base/fail.h"
#include "common/base/slice.h"
#include "workers/sandbox/container/seccomp/seccomp.h"

/* The calls that no container has. */
void container_deny_calls(struct seccomp_rules *rules, bool is_server);
/* Makes the filter of all containers; once, before any. */
void container_prepare_filter(void);
/* The same but for what a fork server of kernels needs; of this process alone. */
void container_prepare_server_filter(void);
/* What was made, on this process and its children ... */
int container_apply_filter(struct fail *fail);
/* ... and for those that come in from there; borrowed. */
struct slice container_filter(void);

#endif
