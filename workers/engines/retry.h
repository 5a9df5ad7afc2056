/*
 * retry.h - trying again what an engine failed at: the only retries inside a worker. At most
 * ENGINE_TRIES in all, after 0.25, 0.5, 1 and 2 s (half of it by prng), or what the engine asks
 * for by Retry-After if that is longer, up to ENGINE_PAUSE_MAX_MS. The fiber's deadline bounds it.
 */
#ifndef SLUICE_WORKERS_ENGINES_RETRY_H
#define SLUICE_WORKERS_ENGINES_RETRY_H

#include "workers/engines/server/engine_state.h"

enum { ENGINE_PAUSE_MAX_MS = 10000 };

/*
 * The act (identity.h; NULL: only who it is) until it succeeds, fails for good, or has failed ENGINE_TRIES times. When the fiber's time
 * runs out after failures, the failure is what is told, not the time: it was the engine's doing.
 */
int engine_try(struct engine *engine, int (*act)(void *arg, struct fail *fail), void *arg,
               struct fail *fail);

#endif
