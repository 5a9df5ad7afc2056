/*
 * calls.h - when an engine is called: held back while it is paused, and again when it failed.
 *
 * Which version of the policy it serves, and whether it may be called, the broker says (lane.engine). While an
 * engine is paused whatever is asked of it waits before it begins, and the time of waiting is given back to its
 * fiber's deadlines. A pause ends by itself when its time is over, though the broker be gone. Calls in
 * flight go on, or, if the pause says abort, end with -ETIMEDOUT as of a deadline of their own
 * and are made again after it.
 *
 * These are the only retries inside a worker: at most ENGINE_TRIES in all, after 0.25, 0.5, 1 and 2 s (half of it by
 * prng), or what the engine asks for by Retry-After if that is longer, up to ENGINE_PAUSE_MAX_MS. The fiber's
 * deadline bounds them.
 */
#ifndef SLUICE_WORKERS_ENGINES_CALLS_H
#define SLUICE_WORKERS_ENGINES_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/fail.h"
#include "common/base/slice.h"
#include "workers/engines/server/parts.h"

struct engine;
struct engines;
struct generation;

/* As lane.engine says; `calls` is empty when it is not paused. */
void engine_told(struct engine *engine, struct slice version, uint64_t number, struct slice calls,
                 int64_t resume_in_ms);
/* The number of the version that it serves now. */
uint64_t engine_policy_number(const struct engine *engine);
/* Awaits the end of a pause, if there is one. 0, and the call is in flight; negative: it is not. */
int engine_call_begin(struct engine *engine, struct engine_call *call, struct fail *fail);
/*
 * It ended with `error`. True: it was aborted by a pause, and is to be made again. Else
 * ret->version, where the engine did not say, is what the broker says; two joined by '+' if that
 * changed while it was in flight; of what was sampled before it failed, too.
 */
bool engine_call_end(struct engine *engine, struct engine_call *call, int error, struct generation *ret);

enum { ENGINE_PAUSE_MAX_MS = 10000 };

/*
 * The act (identity.h; NULL: only who it is) until it succeeds, fails for good, or has failed ENGINE_TRIES times. When
 * the fiber's time runs out after failures, the failure is what is told, not the time: it was the engine's doing.
 */
int engine_try(struct engine *engine, int (*act)(void *arg, struct fail *fail), void *arg, struct fail *fail);

#endif
