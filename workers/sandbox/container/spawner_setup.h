/* spawner_setup.h - what the worker decides for a spawner and all its sandboxes; told in these bytes, as both were
 * built together. */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_SPAWNER_SETUP_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_SPAWNER_SETUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/proto/tier.h"

struct usage;

struct spawner_setup {
    enum tier tier;
    bool has_namespaces, is_host_root;
    bool is_in_memory;                       /* what sandboxes write */
    char scratch[PATH_MAX], disks[PATH_MAX]; /* disks: where tiers that write to a disk do so */
    uint64_t rights;                         /* where it is not apart: capabilities that the worker has */
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

#endif
