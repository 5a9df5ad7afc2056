/*
 * layer_gc.h - the layers that no rollout needs any more go from the store (docs/contributing/layers.md).
 *
 * A thread of its own looks through the store from time to time: whatever the store's file system
 * does, the broker goes on. What it deletes nobody has written or asked for since the grace, and
 * no group or rollout that has not ended names it; for the first grace after the broker's start it
 * deletes nothing, as workers may still hold results that it has not heard of.
 *
 * All functions are the owner's thread's, and none waits long.
 */
#ifndef SLUICE_BROKER_LAYER_GC_LAYER_GC_H
#define SLUICE_BROKER_LAYER_GC_LAYER_GC_H

#include <stdint.h>

#include "common/base/fail.h"

struct layer_gc;

struct layer_gc_options { /* copied */
    const char *dir, *data_dir;
    int64_t grace_ms;
};

enum layer_gc_state {
    LAYER_GC_SILENT,  /* it has not answered yet */
    LAYER_GC_REFUSED, /* it belongs to another broker */
    LAYER_GC_TENDED
};

struct layer_gc_view {
    enum layer_gc_state state;
    uint64_t layers, bytes;             /* there, at the end of the last look */
    uint64_t freed_layers, freed_bytes; /* since the start */
    uint64_t looks;
    struct fail error; /* of the last look, or why it is refused; code 0: none */
};

/* Begins, and gives the store a moment to say whose it is. -EBUSY: another broker's. */
int layer_gc_start(struct layer_gc **ret, const struct layer_gc_options *options, struct fail *fail);
void layer_gc_see(struct layer_gc *gc, struct layer_gc_view *ret);
/* Ends it; a thread that hangs in the store's file system is left to itself. NULL-safe. */
void layer_gc_stop(struct layer_gc **gc);

#endif
