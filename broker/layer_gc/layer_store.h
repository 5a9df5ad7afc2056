/*
 * layer_store.h - the files of a store of layers, <store>/<hex[0..2]>/<hex>.tar.lz4, as the broker
 * that owns it sees them. Nothing that is not named so is touched, no symlink is followed.
 * Blocking, perhaps for long: a store may lie on a file system of other machines.
 */
#ifndef SLUICE_BROKER_LAYER_GC_LAYER_STORE_H
#define SLUICE_BROKER_LAYER_GC_LAYER_STORE_H

#include <stdatomic.h>

#include "broker/layer_gc/needed_layers.h"

#define LAYER_STORE_OWNER_FILE ".sluice-broker"

/*
 * Makes the store (not its parents) where it is not there, and the broker whose data directory is
 * given its owner, by a file in it. -EBUSY: it belongs to another.
 */
int layer_store_claim(const char *store, const char *data_dir, struct fail *fail);

struct layer_sweep {
    const char *store;
    int64_t before_s; /* layers last written or asked for before this, by the wall clock ... */
    /* ... go, unless they are among the needed, which are read when the first such is found. */
    int (*read_needed)(void *context, struct needed_layers *ret, struct fail *fail);
    void *context;
    const atomic_bool *stop;
    uint64_t layers, bytes, freed_layers, freed_bytes; /* what it saw, and freed of that */
};
/* What went wrong first, when something did; what could be done is done. */
int layer_store_sweep(struct layer_sweep *sweep, struct fail *fail);

#endif
