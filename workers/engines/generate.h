/* generate.h - a turn is sampled: in one call or, where it is told of meanwhile, in several (resumed.h). */
#ifndef SLUICE_WORKERS_ENGINES_GENERATE_H
#define SLUICE_WORKERS_ENGINES_GENERATE_H

#include "workers/engines/engine.h"
#include "workers/engines/server/listener.h"

/* Counts, ids and log-probabilities of the answer are checked against each other: else -EPROTO. */
int engine_generate(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                    uint64_t max_tokens, uint64_t seed_offset, struct generation *ret, struct fail *fail);
struct engine_turn {
    const struct tokens *prompt;
    const struct task_sampling *sampling;
    uint64_t max_tokens, seed_offset;
    const struct engine_listener *listener; /* NULL: nobody listens */
    bool trusts;                            /* engine_trust (server/identity.h); engine_settle it */
};
/*
 * The same, and whoever listens hears its text as it is sampled, where the engine streams (server/dialect.h): what is
 * heard stands. A call that breaks off, or that a pause aborts, goes on behind what it sampled (resumed.h); where that
 * cannot be, there is no other try: -EPROTO, or -ESTALE. For whoever only looks (listener.h) none of that is so: the
 * turn is tried again as if nobody listened, and where the stream was at fault, without one.
 * Where nobody listens, the answer may be a stream too, whose tokens are read as they come (server/dialect.h): one that
 * is at fault, or breaks off, is no more than another try, and that is asked for whole.
 */
int engine_generate_turn(struct engine *engine, const struct engine_turn *turn, struct generation *ret,
                         struct fail *fail);

#endif
