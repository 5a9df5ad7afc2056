/* landlock_layers.h - without mounts, what lies in layers is copied. */
#ifndef SLUICE_WORKERS_SANDBOX_BACKENDS_LANDLOCK_LANDLOCK_LAYERS_H
#define SLUICE_WORKERS_SANDBOX_BACKENDS_LANDLOCK_LANDLOCK_LAYERS_H

#include "workers/sandbox/backends/landlock/landlock_container.h"

/* Copies what is in `layer`, a lower directory, over what `upper` has; noted in the usage as
 * the container's own. -ENOTSUP where it changes more than workspace and tmp. */
int landlock_layers_copy(const char *layer, int upper, enum tier tier, struct usage *usage, struct fail *fail);
/* The same of any directory, whatever it has at its top. */
int landlock_layers_copy_dir(const char *path, int to, struct usage *usage, struct fail *fail);
/* Makes the directory `name`; what else is there, a link too, goes: a layer may have put anything in its place. */
int landlock_layers_need_dir(int at, const char *name, struct fail *fail);

#endif
