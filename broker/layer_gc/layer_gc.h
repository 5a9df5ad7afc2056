/*
 * store.h - the layers that no rollout needs any more go from the store (docs/layers.md).
 *
 * A thread of its own looks through the store from time to time: whatever the store's file system
 * does, the broker goes on. What it deletes nobody has written or asked for since the grace, and
 * no group or rollout that has not ended names it; for the first grace after the broker's start it
 * deletes nothing, as workers may still hold results that it has not heard of.
 *
 * All functions are the owner's thread's, and none waits long.
 */
#ifndef SLUICE_BROKER_LAYER_GC_STORE_H
#define SLUICE_BROKER_LAYER_GC_STORE_H

#include <stdint.h>

#include "common/base/fail.h"

struct store;

struct store_options { /* copied */
    const char *dir, *data_dir;
    int64_t grace_ms;
};

enum store_state {
    STORE_SILENT,  /* it has not answered yet */
    STORE_REFUSED, /* it belongs to another broker */
    STORE_TENDED
};

struct store_view {
    enum store_state state;
    uint64_t layers, bytes;             /* there, at the end of the last look */
    uint64_t freed_layers, freed_bytes; /* since the start */
    uint64_t looks;
    struct fail error; /* of the last look, or why it is refused; code 0: none */
};

/* Begins, and gives the store a moment to say whose it is. -EBUSY: another broker's. */
int store_start(struct store **ret, const struct store_options *options, struct fail *fail);
void store_see(struct store *store, struct store_view *ret);
/* Ends it; a thread that hangs in the store's file system is left to itself. NULL-safe. */
void store_stop(struct store **store);

#endif
