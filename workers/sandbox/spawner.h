/*
 * spawner.h - the process that clones sandboxes: small and single-threaded, because a clone
 * costs page tables and because PR_SET_PDEATHSIG follows the thread. It builds nothing itself:
 * each new pid 1 builds its own room and answers the worker over its own socket. What the
 * spawner keeps is an eye on their memory and processes.
 *
 * It lives in a user, mount and pid namespace of its own (apart.h): those of the sandboxes are
 * children of its own, it has no right on the host, and with it they all end.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_H

#include <stdbool.h>

#include "workers/sandbox/tier.h"

struct gauge;
struct cgroups;

struct spawner_setup {
    const char *scratch, *disks; /* disks: where tiers that write to a disk do so */
    enum tier tier;
    struct gauge *gauges;
    int gauges_fd; /* -1: for those that are forked alone */
    const struct cgroups *cgroups; /* or NULL */
    bool is_apart, is_host_root;
    bool is_in_memory; /* what sandboxes write */
};
/* Serves `socket` (wire.h) until its other end is gone; then kills every sandbox and ends. */
_Noreturn void spawner_run(int socket, const struct spawner_setup *setup);

#endif
