/*
 * core/state/metrics.h - what is counted for metrics.get alone (core/metrics/counting.h); the rest of it is read from
 * the state. All of it begins at 0 with the broker.
 */
#ifndef SLUICE_BROKER_CORE_STATE_METRICS_H
#define SLUICE_BROKER_CORE_STATE_METRICS_H

#include "broker/core/state/worker.h"
#include "schemas/metrics/metrics.h"

/* Why a job that was handed out is queued again. */
#define AGAIN_WHYS(X)                                                                                                  \
    X(LOST, "worker-lost")                                                                                             \
    X(MISSING, "missing")   /* its worker never had it */                                                              \
    X(RETURNED, "returned") /* its worker is leaving */                                                                \
    X(INFRA, "infra")                                                                                                  \
    X(TASK, "task")                                                                                                    \
    X(UNCOUNTED, "out-of-order") /* of its engine or image, which was known to be */                                   \
    X(MIXED, "mixed")            /* its engine serves something else than its policy */                                \
    X(STALE, "stale")                                                                                                  \
    X(STORE, "store")       /* what its run had left could not be read */                                              \
    X(REPLACED, "replaced") /* a sampler's */

enum again_why {
#define X(name, word) AGAIN_##name,
    AGAIN_WHYS(X)
#undef X
        AGAIN_COUNT
};

/* What is counted of an engine; it goes with the engine. */
#define ENGINE_ERRORS(X)                                                                                               \
    X(CALL, "call")                                                                                                    \
    X(PROBE, "probe")                                                                                                  \
    X(IDENTITY, "identity")

enum engine_error {
#define X(name, word) ENGINE_ERROR_##name,
    ENGINE_ERRORS(X)
#undef X
        ENGINE_ERROR_COUNT
};

struct engine_spent {
    uint64_t turns, sampled_tokens, prompt_tokens, cached_tokens;
    struct observed calls;
};

/* By names that others choose (core/metrics/named.h). Of a counter only the first class is used. */
struct named {
    char name[METRIC_NAME_MAX + 1];
    int64_t seen_ms; /* when it was counted last */
    struct observed observed;
};

struct named_set {
    struct named each[METRIC_NAMES_MAX];
    size_t count;
    struct observed other;
    bool has_other;
};

struct metrics {
    uint64_t trainable[OUTCOME_COUNT]; /* of those ended */
    uint64_t lost[STAGE_COUNT][LOSS_COUNT], again[STAGE_COUNT][AGAIN_COUNT];
    struct observed stage_seconds[STAGE_COUNT], queue_seconds[STAGE_COUNT], policy_lag;
    struct named_set rewards, tools, sandboxes, traces;
    struct engine_spent unknown; /* of results whose engine is not known any more */
};

#endif
