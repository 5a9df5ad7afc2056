/*
 * base.h - the image that sandboxes of a task stand on, and its environment: the one it names, or where it has a build,
 * what its Dockerfile comes to: the base of the target's stages, and what its ENV, WORKDIR and USER make of the base's
 * (dockerfile/stages.h). All workers work that out alike, from the task's text. In a fiber.
 */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_BASE_H
#define SLUICE_WORKERS_STAGES_SANDBOX_BASE_H

#include "workers/dockerfile/stages.h"
#include "workers/jobs/job.h"

/* -EINVAL: the task is at fault, the sentence begins with "the Dockerfile, line N". build_stages_finish *ret in any
 * case. */
int base_read(const struct job *job, const struct task_base *of, struct build_stages *ret, struct fail *fail);
/* What a Dockerfile leaves open: a stage without USER is root's, one without WORKDIR starts at the root. */
int base_fill_environment(struct image_config *environment, struct fail *fail);
/* Holds the image that FROM calls `name`, or "scratch"; errors are those of images_hold. *ret_path (may be NULL): what
 * it is. */
int base_hold(const struct job *job, const char *name, struct image_hold *ret, char **ret_path, struct fail *fail);
/* The base of a stage's chain. */
const char *base_of(const struct build_stages *stages, size_t stage);
/* Holds the image, with the environment of all that runs on it. Of a build no other image is looked at than
 * those that it stands on. */
int base_find(const struct job *job, const struct task_base *of, struct image_hold *ret, struct fail *fail);

#endif
