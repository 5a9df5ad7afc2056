/*
 * own_image.h - an evaluator's sandbox on an image of its own (eval.image, eval.build): over that lies what
 * eval.artifacts names, as the agent's sandbox showed it at its end, of the task's image, of init and of the agent. Of
 * all these nothing else is there. In a fiber.
 */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_OWN_IMAGE_H
#define SLUICE_WORKERS_STAGES_SANDBOX_OWN_IMAGE_H

#include "workers/stages/sandbox/stage_sandbox.h"

/* Adds the layers of eval.build (job->built), and one of the artifacts; the image was found. */
int own_image_add(struct stage_sandbox *room, const struct job *job, struct fail *fail);

#endif
