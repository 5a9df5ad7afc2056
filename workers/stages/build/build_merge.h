/*
 * build_merge.h - a sandbox stands on PARENTS_MAX layers at most. Where a Dockerfile comes to more, those that there
 * are so far become one, kept under a key of their digests and of the image: all that begin alike share it, as they
 * share layers.
 */
#ifndef SLUICE_WORKERS_STAGES_BUILD_BUILD_MERGE_H
#define SLUICE_WORKERS_STAGES_BUILD_BUILD_MERGE_H

#include "workers/stages/build/build_room.h"

/* `base` is the image that they lie on, `step` the one that there is no room for. 0, or negative with the build's fail
 * and *fault. */
int build_merge(struct build *build, const char *base, const struct stage_step *step, struct parents *layers,
                enum fault *fault);

#endif
