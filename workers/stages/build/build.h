/*
 * build.h - what a task's Dockerfile asks for is made, before set-up: each step that changes files in a sandbox of its
 * own, on its base and the layers before, and kept as a layer under a key of all that it was made of (build_store.h).
 * What is there already is not made again, whoever made it.
 */
#ifndef SLUICE_WORKERS_STAGES_BUILD_BUILD_H
#define SLUICE_WORKERS_STAGES_BUILD_BUILD_H

#include "workers/stages/sandbox/parents.h"
#include "workers/stages/sandbox/stage_sandbox.h"

/*
 * The layers of the target of the task's build, or of its evaluator's own, lowest first. False: the job has ended, with
 * the line of the Dockerfile. In a fiber.
 */
bool build_run(struct job *job, struct task_base of, struct parents *ret);

#endif
