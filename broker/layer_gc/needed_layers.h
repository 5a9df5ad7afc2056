/*
 * store_needs.h - which layers of the store somebody may still ask for: what the inits of groups
 * that have not ended left, and the runs of rollouts that have not. Read from the ledger through a
 * connection of its own, as of one moment; inline layers are not in the store and not here.
 * For a thread that may take its time.
 */
#ifndef SLUICE_BROKER_LAYER_GC_STORE_NEEDS_H
#define SLUICE_BROKER_LAYER_GC_STORE_NEEDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fail.h"

enum { STORE_DIGEST_BYTES = 32 };

struct store_digest {
    uint8_t bytes[STORE_DIGEST_BYTES];
};

struct store_needs {              /* zero it first */
    struct store_digest *digests; /* in order */
    size_t count;
};

/* -ECANCELED once *stop is true. On failure *ret stays as it was. */
int store_needs_read(const char *ledger_path, const atomic_bool *stop, struct store_needs *ret, struct fail *fail);
bool store_needs_has(const struct store_needs *needs, const struct store_digest *digest);
void store_needs_finish(struct store_needs *needs);

/* Of 64 lower-case hexadecimal digits; what follows them is not looked at. */
bool store_digest_parse(const char *hex, struct store_digest *ret);

#endif
