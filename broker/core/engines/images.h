/*
 * core/engines/images.h - the images that live groups have, and those that have failed of late.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_IMAGES_H
#define SLUICE_BROKER_CORE_ENGINES_IMAGES_H

#include "broker/core/state/engine.h"

struct core;

enum { IMAGES_MAX = 4096 }; /* known at a time; those of further groups are not watched */

/* Makes it the group's. None for a task that names none, and when too many are known. */
void image_join(struct core *core, struct group_work *work, struct slice name);
/* The group has ended. */
void image_part(struct core *core, struct group_work *work);
/* One of its groups' init has ended well: what waits for it is noted to be let go. */
void image_works(struct core *core, struct image *image);
void images_finish(struct core *core);

#endif
