/*
 * prewarmed.h - the first process of a sandbox to be: it is in its namespaces and waits for a plan. To make those is
 * half of what a sandbox takes until it is ready, so that the spawner has one in hand before it is asked for it.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_PREWARMED_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_PREWARMED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct zygote;
struct init_setup;

struct prewarmed {
    pid_t pid; /* a child of ours; 0: there is none */
    int pidfd, control;
    int its_end;    /* of control: it may still share our descriptors; to be closed when it is born */
    int cgroup;     /* -1 */
    uint32_t group; /* its number */
    bool is_wanted; /* the last one was taken */
};

/* In the namespace of the zygote, or in none where that is NULL; `group`: the number of its own. 0 or negative errno.
 * Only the parent returns. */
int prewarmed_make(struct prewarmed *prewarmed, const struct zygote *zygote, const struct init_setup *setup,
                   uint32_t group);
/* Takes it, out of `prewarmed`. */
struct prewarmed prewarmed_take(struct prewarmed *prewarmed);
/* Kills it, if there is one; its end is the caller's to hear of, and then to remove its group. */
void prewarmed_drop(struct prewarmed *prewarmed);

#endif
