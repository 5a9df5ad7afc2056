/* stage_confirm.h - whether what a job came to can be believed. */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_STAGE_CONFIRM_H
#define SLUICE_WORKERS_STAGES_SANDBOX_STAGE_CONFIRM_H

#include "workers/stages/sandbox/stage_sandbox.h"

/* Whether image, layers and cache are where and what they were: 0, or negative errno. In a fiber. */
int stage_look(const struct job *job, const struct stage_sandbox *stage, struct fail *fail);
/*
 * Call it last, while the sandbox is open: what the job came to, good or bad, is believed only where the sandbox is
 * whole, and its image, its layers and the cache are where and what they were. Else the job ends as infra, with neither
 * layer nor reward.
 */
void stage_confirm(struct job *job, struct stage_sandbox *stage);

#endif
