/*
 * core/queue/blocked.h - jobs that wait for an engine, an image, or a worker that offers what they need.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_BLOCKED_H
#define SLUICE_BROKER_CORE_QUEUE_BLOCKED_H

#include "broker/core/state/state.h"

struct image;

/* What waits for an engine is queued again, in its order. */
void blocked_release(struct core *core);
/* Those of the engine's policy, if they wait because its engines were full. */
void blocked_release_capacity(struct core *core, const struct engine *engine);
/* What waits for the image is queued again. */
void blocked_release_image(struct core *core, struct image *image);
/* What waits for workers that offer it is queued again, as many as such workers have free slots; false: nothing was. */
bool blocked_release_needs(struct core *core, enum stage stage);
/* Open breakers whose time has come: one job is let go to try each. */
void breakers_tick(struct core *core);
/* Ends what waits for failed images, a slice at a time. */
void images_tick(struct core *core);

#endif
