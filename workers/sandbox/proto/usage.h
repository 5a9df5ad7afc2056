/*
 * usage.h - what one sandbox uses and which of its limits it met, in memory that the worker, the
 * spawner and the sandbox's pid 1 share: written where a thing is seen, read by the worker at any
 * time, also after the sandbox is gone. Those inside never have it.
 */
#ifndef SLUICE_WORKERS_SANDBOX_PROTO_USAGE_H
#define SLUICE_WORKERS_SANDBOX_PROTO_USAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "schemas/limits.h"

enum { USAGE_COUNT = 65536 }; /* sandboxes of one worker at one time */

struct usage {
    bool taken;                                                 /* the worker's alone */
    _Atomic uint64_t memory_kib, processes, disk_bytes, inodes; /* the most that was seen */
    _Atomic uint64_t container_bytes, container_inodes;         /* of the container itself, not counted */
    _Atomic uint64_t disk_now;                                  /* bytes, the container's own too */
    _Atomic uint64_t kernel_peak, aside;                        /* of the last look: cgroup.c */
    _Atomic uint64_t cpu_us;                                    /* of processes that have ended */
    _Atomic uint32_t breaches[LIMIT_COUNT];
    _Atomic bool is_beyond[LIMIT_COUNT];
    _Atomic bool is_starved; /* the kernel killed it for memory that others took */
};

/* USAGE_COUNT of them for this process and those it forks from now on, and for whom `fd` is given to; NULL, errno. */
struct usage *usages_create(int *fd);
/* All of them, by that; at `near` if there is room; NULL, errno. */
struct usage *usages_map(int fd, void *near);
void usages_destroy(struct usage **usages);
/* One that is all zero; NULL when all are taken. `last`: where it looks on, the caller's. */
struct usage *usage_take(struct usage *usages, uint32_t *last);
void usage_give_back(struct usage *usage);

void usage_peak(_Atomic uint64_t *peak, uint64_t seen);
/* Counts each time that it goes beyond, not each time that it is seen there. */
void usage_see(struct usage *usage, enum limit_id limit, bool is_beyond);
/* The file system that the sandbox writes to, when that is its own; `dir` is open there. */
void usage_see_disk(struct usage *usage, int dir);
/* What is written now is the container's own. */
void usage_start_disk(struct usage *usage, int dir);

#endif
