/*
 * core/engines/images.h - the images that live groups have, and those that have failed of late.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_IMAGES_H
#define SLUICE_BROKER_CORE_ENGINES_IMAGES_H

#include "broker/core/engines/breaker.h"
#include "broker/core/queue/jobs.h"

struct failure;
struct group_work;

enum { IMAGES_MAX = 4096 }; /* known at a time; those of further groups are not watched */
struct image {
    struct list idle;    /* in core->idle_images while no live group has it, the oldest first */
    struct list working; /* in core->working_images in a step in which it was found to work */
    struct list failed;  /* in core->failed_images while groups that wait for it are being ended */
    struct breaker breaker;
    struct queue waiting; /* init jobs, blocked */
    uint64_t groups;      /* live ones that have it */
    uint32_t round;       /* of counting faults: a group's counts once in each */
    int64_t failed_ms;    /* what has waited since before ends like this: */
    char *verdict;
    uint32_t name_len;
    char name[];
};

/* Makes it the group's. None for a task that names none, and when too many are known. */
void image_join(struct core *core, struct group_work *work, struct slice name);
/* The group has ended. */
void image_part(struct core *core, struct group_work *work);
/* One of its groups' init has ended well: what waits for it is noted to be let go. */
void image_works(struct core *core, struct image *image);
void images_finish(struct core *core);
/* Takes the failure to what it blames; true if that is out of order, and the job is not at fault. */
bool job_blames(struct core *core, struct job *job, const struct failure *failure);

#endif
