/*
 * prefix.h - a simulated engine's prefix cache: how many tokens of each context it still has. Beyond
 * its size the context that was used least recently goes, unless a call is using it.
 *
 * The owner of a context holds its struct prefix, which starts as zeros, is in at most one cache, and
 * must be forgotten before its memory goes.
 */
#ifndef SLUICE_BROKER_SIMULATE_PREFIX_H
#define SLUICE_BROKER_SIMULATE_PREFIX_H

#include <stdint.h>

#include "common/containers/list.h"

struct prefix {
    struct list link; /* in its cache's, while it has tokens */
    uint64_t tokens;
    unsigned in_use; /* calls that work on it */
};

struct prefix_cache {
    struct list prefixes; /* the one used least recently first */
    uint64_t used_tokens, max_tokens;
};

void prefix_cache_init(struct prefix_cache *cache, uint64_t max_tokens);
/* It is used now, and has at least so many tokens from now on. */
void prefix_keep(struct prefix_cache *cache, struct prefix *prefix, uint64_t tokens);
void prefix_forget(struct prefix_cache *cache, struct prefix *prefix);
/* Lets go of what no longer fits. */
void prefix_make_room(struct prefix_cache *cache);

#endif
