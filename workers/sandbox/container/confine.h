/*
 * confine.h - what a sandbox gives up before anything untrusted runs in it: limits, rights, and the system calls of
 * seccomp_rules.h.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_CONFINE_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_CONFINE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/fail.h"
#include "workers/sandbox/container/plan.h"

enum { CONTAINER_FILES_MAX = 4096 };
/* Of one sandbox: signals that wait and timers (of the machine's tens of thousands for a user), bytes of message
 * queues. */
enum { CONTAINER_SIGNALS_MAX = 1024, CONTAINER_QUEUES_MAX = 819200 };

/* Limits that need the namespaces' rights; then gives those rights up for good. */
int container_confine(const struct container_plan *plan, struct fail *fail);
/* Of each process that is started, when it has given up its last right: what the first process must not have. */
int container_confine_process(const struct container_plan *plan, struct fail *fail);
/* Gives up all rights and system calls but those that a fork server of kernels needs: setns,
 * which what it forks gives up, and binding to CPUs. */
int container_confine_server(struct fail *fail);
/* Makes of this process, and of what it starts, the first that the kernel ends when memory runs out. */
int container_offer_to_killer(struct fail *fail);
/* The way back to capabilities that are given up, which takes CAP_SETPCAP. */
int container_drop_bounds(struct fail *fail);
/* All of them but `kept`. */
int container_set_rights(uint32_t kept, struct fail *fail);
/* Both. */
int container_drop_rights(uint32_t kept, struct fail *fail);

/* The limits of the processes inside; set in each before it is executed. */
struct container_limits {
    struct {
        int what; /* RLIMIT_... */
        uint64_t most;
    } each[6];
    size_t count;
};
struct container_limits container_limits(const struct container_plan *plan);
void container_limit(const struct container_plan *plan);

#endif
