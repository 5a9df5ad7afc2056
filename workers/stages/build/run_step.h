/* run_step.h - RUN: its command in the sandbox, until it ends or the build's time is up. */
#ifndef SLUICE_WORKERS_STAGES_BUILD_RUN_STEP_H
#define SLUICE_WORKERS_STAGES_BUILD_RUN_STEP_H

#include "workers/stages/build/build_room.h"

/* 0, or negative with the build's fail. */
int run_step_run(struct build *build, const struct stage_step *step, struct stage_sandbox *room);
/* Adds what it runs, as whom, where, and with which variables and network. */
void run_step_add(struct build *build, const struct stage_step *step, struct digest *digest);

#endif
