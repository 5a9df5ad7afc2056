/*
 * core/queue/job_progress.h - how far leased jobs have come, as their workers say (job.progress): kept by dispatch, so
 * that what waits costs nothing, and gone with its lease. For people alone: nothing is decided by it.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_JOB_PROGRESS_H
#define SLUICE_BROKER_CORE_QUEUE_JOB_PROGRESS_H

#include "broker/core/state/job.h"

struct core;

struct job_progress {
    uint64_t token; /* of its dispatch: its name in core->progress */
    uint32_t turn;  /* 0: before the first */
    char *tool;     /* the last one; in `text`, may be "" */
    char *why;      /* why it does not get on; the same */
    char text[];
};

/* NULL: nothing is known, or it is not leased. */
const struct job_progress *job_progress_find(const struct core *core, const struct job *job);
/* Of a leased job, in the place of what was known. */
void job_progress_set(struct core *core, const struct job *job, uint64_t turn, struct slice tool, struct slice why);
void job_progress_forget(struct core *core, const struct job *job);
void job_progress_finish(struct core *core);

#endif
