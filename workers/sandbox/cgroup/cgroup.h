/*
 * cgroup.h - limits that the kernel holds. Where this process is in a cgroup v2 that was delegated to it, it makes
 *
 *     BASE/sluice-XXXXXX/        this worker's
 *                        own/    the worker, its spawner and all that serves sandboxes
 *                        sandbox-7/ one sandbox, from its first process's birth
 *
 * BASE is the delegated group, or the one above where this process is in a leaf that systemd or Sluice made for
 * programs. No process but this one is ever moved, and nothing is made where other processes are in BASE: the kernel
 * bounds groups only where none but leaves have processes.
 *
 * Groups by descriptor of their directory, close-on-exec, of their holder; -1: none.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CGROUP_CGROUP_H
#define SLUICE_WORKERS_SANDBOX_CGROUP_CGROUP_H

#include <limits.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/fail.h"
#include "schemas/limits.h"

struct usage;
struct clone_args;

struct cgroups {
    int base, ours;          /* -1: there are none */
    bool is_first;           /* to bound what is in base */
    char path[2 * PATH_MAX]; /* of `ours`, for people */
    char name[32];           /* in base */
    struct fail why;         /* there are none */
};

struct cgroup_limits {
    uint64_t memory_mib, processes;
    uint64_t disk_mib; /* what may be written, where that lies in memory; 0 */
};
/* Whether what is written to that directory is memory. */
bool cgroup_is_memory(const char *directory);

/* A new group, number `number` of this worker's, without a limit as yet; negative errno. */
int cgroup_make(const struct cgroups *cgroups, uint32_t number, struct fail *fail);
int cgroup_bound(int group, const struct cgroup_limits *limits, struct fail *fail);
/* Kills all that is in it and removes it. False: something is still ending. */
bool cgroup_remove(const struct cgroups *cgroups, uint32_t number);
void cgroup_kill(int group);

/* clone3 of a child that is in `group` from its birth, in a cgroup namespace that begins there. */
pid_t cgroup_clone(const struct clone_args *args, int group);
/* For cgroup_join in another process, which needs no right of its own. */
int cgroup_open_door(int group);
/* Moves this process, of one thread. */
int cgroup_join(int door);

/*
 * What the kernel has counted, into the usage: callable as long as the descriptor is open, by several processes at
 * once. The limit that the sandbox was, or must be, killed for; LIMIT_COUNT.
 */
enum limit_id cgroup_look(int group, const struct cgroup_limits *limits, struct usage *usage);

#endif
