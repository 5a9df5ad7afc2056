/* build_ignore.h - what a context's .dockerignore names is removed from it. Blocking, for offload.h. */
#ifndef SLUICE_WORKERS_STAGES_BUILD_BUILD_IGNORE_H
#define SLUICE_WORKERS_STAGES_BUILD_BUILD_IGNORE_H

#include <stdatomic.h>

#include "common/base/fail.h"

/* -EINVAL: the file cannot be read as one; -ECANCELED. `root` is the context, ours alone; without the file nothing
 * goes. */
int build_ignore_apply(int root, const atomic_bool *stop, struct fail *fail);

#endif
