/*
 * spawner.h - the process that clones sandboxes: single-threaded, because PR_SET_PDEATHSIG follows the thread, and a
 * program of its own, linked statically (spawner_main.c), because each clone costs page tables and pages of all that is
 * mapped and written to. It builds nothing itself: each new pid 1 builds its own container and answers the worker over its own
 * socket. What the spawner keeps is an eye on their memory and processes.
 *
 * It lives in a user, mount and pid namespace of its own (namespaces.h): those of the sandboxes are
 * children of its own, it has no right on the host, and with it they all end.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_SPAWNER_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_SPAWNER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/proto/tier.h"

struct usage;

/* What the worker decides; told in these bytes, as both were built together. */
struct spawner_setup {
    enum tier tier;
    bool has_namespaces, is_host_root;
    bool is_in_memory; /* what sandboxes write */
    char scratch[PATH_MAX], disks[PATH_MAX]; /* disks: where tiers that write to a disk do so */
    uint64_t rights;   /* where it is not apart: capabilities that the worker has */
    /* Each process's own; descriptors are given beside it: */
    struct cgroups cgroups;
    struct usage *usages;
    int usages_fd;         /* -1: for those that are forked alone */
    int apptainer_program; /* -1: none is needed */
};

enum {
    SPAWNER_WORKER_FD = 3, /* the wire to the worker, open when it begins */
    SPAWNER_GIVEN_MAX = 4
};
/* Its descriptors, in the order in which they are given; how many there are. */
size_t spawner_list_given(struct spawner_setup *setup, int *ret_given[SPAWNER_GIVEN_MAX]);

/* Says on `socket` (wire.h) that it is ready, or why not; serves that until its other end is gone; then kills every
 * sandbox and ends. */
_Noreturn void spawner_run(int socket, const struct spawner_setup *setup);

#endif
