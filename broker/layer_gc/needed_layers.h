/*
 * needed_layers.h - which layers of the store somebody may still ask for: what the inits of groups
 * that have not ended left, and the runs of rollouts that have not. Read from the ledger through a
 * connection of its own, as of one moment; inline layers are not in the store and not here.
 * For a thread that may take its time.
 */
#ifndef SLUICE_BROKER_LAYER_GC_NEEDED_LAYERS_H
#define SLUICE_BROKER_LAYER_GC_NEEDED_LAYERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fail.h"

enum { LAYER_DIGEST_BYTES = 32 };

struct layer_digest {
    uint8_t bytes[LAYER_DIGEST_BYTES];
};

struct needed_layers {            /* zero it first */
    struct layer_digest *digests; /* in order */
    size_t count;
};

/* -ECANCELED once *stop is true. On failure *ret stays as it was. */
int needed_layers_read(const char *ledger_path, const atomic_bool *stop, struct needed_layers *ret, struct fail *fail);
bool needed_layers_has(const struct needed_layers *needed, const struct layer_digest *digest);
void needed_layers_finish(struct needed_layers *needed);

/* Of 64 lower-case hexadecimal digits; what follows them is not looked at. */
bool layer_digest_parse(const char *hex, struct layer_digest *ret);

#endif
