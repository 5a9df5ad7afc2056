/*
 * copy_step.h - COPY and ADD. Rules: docs.docker.com/reference/dockerfile; docs/tasks/dockerfiles.md says which hold
 * here.
 */
#ifndef SLUICE_WORKERS_STAGES_BUILD_COPY_STEP_H
#define SLUICE_WORKERS_STAGES_BUILD_COPY_STEP_H

#include "workers/stages/build/build_room.h"

/* 0, or negative with the build's fail. */
int copy_step_run(struct build *build, const struct stage_step *step, struct stage_sandbox *room);
/* Adds what it would copy: bytes, names, permission bits; of other stages and images their keys. */
int copy_step_add(struct build *build, const struct stage_step *step, struct digest *digest);

#endif
