/*
 * build_store.h - layers that builds made, by what they were made of: in <store>/builds, a file keys/<64 digits> for
 * each key, with the digest of its layer, and the layers as in any store. Every worker of the store finds them; who
 * makes one holds its lock.
 *
 * They are not the broker's to collect: what no task has asked for in BUILD_IDLE_S, which is longer than any task may
 * last, is removed by the workers. What is gone is made again. In a fiber.
 */
#ifndef SLUICE_WORKERS_STAGES_BUILD_BUILD_STORE_H
#define SLUICE_WORKERS_STAGES_BUILD_BUILD_STORE_H

#include "common/digest/digest.h"
#include "workers/layers/layer.h"

enum { BUILD_IDLE_S = 31 * 24 * 3600, BUILD_SWEEP_S = 3600, BUILD_LOCK_POLL_MS = 100 };

struct build_store {
    char *path; /* <store>/builds; its own */
    struct layers layers;
};

int build_store_open(const struct layers *of, struct build_store *ret, struct fail *fail);
void build_store_close(struct build_store *store);

/* 1: it is there, and `layer` is its digest, or "" where it changed no file; 0: it is not. Both may be asked for again
 * as often. */
int build_store_find(const struct build_store *store, const char *key, char layer[DIGEST_SIZE], struct fail *fail);
int build_store_put(const struct build_store *store, const char *key, const char *layer, struct fail *fail);
/* Waits until nobody else makes it, or the time is up (-ETIMEDOUT). A descriptor, closed to let others; -1 where files
 * cannot be locked. */
int build_store_lock(const struct build_store *store, const char *key, int64_t until_ms, int *ret, struct fail *fail);

#endif
