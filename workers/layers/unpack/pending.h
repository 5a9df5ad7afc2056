/* pending.h - what is done last, when no more entries can come between. */
#ifndef SLUICE_WORKERS_LAYERS_UNPACK_PENDING_H
#define SLUICE_WORKERS_LAYERS_UNPACK_PENDING_H

#include "workers/layers/unpack/unpack.h"

/* `path` is copied. */
int layer_pending_add(struct unpack *unpack, struct pending pending, const char *path);
int layer_pending_apply(struct unpack *unpack);
void layer_pending_finish(struct unpack *unpack);

#endif
