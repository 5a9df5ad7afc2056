/*
 * using.h - what a worker's rollouts hold on each engine, so that the broker can place others: how
 * many there are, the tokens of their contexts, their calls in flight. One thread.
 */
#ifndef SLUICE_WORKERS_USING_H
#define SLUICE_WORKERS_USING_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct engines;

struct engine_use {
    uint64_t runs, tokens, calls;
};

/* One rollout's part of it. Begins as all zero; ends with engine NULL. */
struct engine_stay {
    struct engine *engine;
    uint64_t tokens;
};
/* The rollout is on this engine from now on, with a context of so many tokens. */
void engine_stay(struct engine_stay *stay, struct engine *engine, uint64_t tokens);

/*
 * The next engine whose use is another than it was told of; *url is good for as long as the worker.
 * It counts as told once engines_tell_done is called, before the next call. False: there is none.
 */
bool engines_tell_next(const struct engines *engines, struct engine **ret, const char **url,
                       struct engine_use *use);
void engines_tell_done(struct engine *engine);
/* Nothing counts as told any more. */
void engines_tell_again(struct engines *engines);

#endif
