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

/* Makes what has the key: ret is the digest of its layer, or "" where it changed no file. */
typedef int (*build_maker)(void *arg, char ret[DIGEST_SIZE]);
/*
 * The layer of that key, made where it is not there, by one worker at a time: others wait until it is, or the time is
 * up (-ETIMEDOUT).
 */
int build_store_get(const struct build_store *store, const char *key, int64_t until_ms, build_maker make, void *arg,
                    char ret[DIGEST_SIZE], struct fail *fail);

#endif
