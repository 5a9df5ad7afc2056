/*
 * using.h - what a worker's rollouts hold on each engine, so that the broker can place others: how
 * many there are, the tokens of their contexts, their calls in flight. One thread.
 */
#ifndef SLUICE_WORKERS_ENGINES_USING_H
#define SLUICE_WORKERS_ENGINES_USING_H

#include <stdbool.h>
#include <stdint.h>

#include "workers/engines/server/parts.h"

struct engine;
struct engine_probe;
struct engines;

/* One rollout's part of it. Begins as all zero; ends with engine NULL. */
struct engine_stay {
    struct engine *engine;
    uint64_t tokens;
};
/* The rollout is on this engine from now on, with a context of so many tokens. */
void engine_stay(struct engine_stay *stay, struct engine *engine, uint64_t tokens);

/* What the broker is to hear of an engine; good until the next await. */
struct engine_news {
    struct engine *engine;
    const char *url;
    struct engine_use use;
    const char *tokenizer_digest, *template_digest; /* of what it serves; the second "": not known yet */
    bool is_other;                                  /* than was told last */
    const struct engine_probe *probe;               /* NULL: none that is new (health.h) */
};

/*
 * The next engine that was probed, or whose use or identity is another than was told. It counts as told once
 * engines_tell_done is called, before the next call. False: there is none.
 */
bool engines_tell_next(const struct engines *engines, struct engine_news *ret);
void engines_tell_done(struct engine *engine);
/* Nothing counts as told any more. */
void engines_tell_again(struct engines *engines);

#endif
