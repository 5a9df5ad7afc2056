/* setup.h - what a task has done before its agent: files, and commands. */
#ifndef SLUICE_WORKERS_STAGES_SETUP_H
#define SLUICE_WORKERS_STAGES_SETUP_H

#include "workers/stages/sandbox/stage_sandbox.h"

/*
 * Writes job->task's files and runs its setup, in that order. False: the job has ended, by the task's fault where it
 * is.
 */
bool setup_run(struct job *job, struct stage_sandbox *stage);

#endif
