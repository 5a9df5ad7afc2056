/*
 * core/state/settings.h - what the core is told at its start. core/state/settings.def has the settings, their defaults
 * and their bounds.
 */
#ifndef SLUICE_BROKER_CORE_STATE_SETTINGS_H
#define SLUICE_BROKER_CORE_STATE_SETTINGS_H

#include <stdint.h>

/* Groups remembered by name, by core and ledger, after all their rollouts are acknowledged. Of those
   before them the ledger keeps digests (ledger_find_past). */
enum { FORGOTTEN_MAX = 100000 };

#define SETTING_MEMBER_MS(name) name##_ms
#define SETTING_MEMBER_COUNT(name) name
#define SETTING_MEMBER_BYTES(name) name
#define SETTING_TYPE_MS int64_t
#define SETTING_TYPE_COUNT uint64_t
#define SETTING_TYPE_BYTES uint64_t

struct core_settings {
#define SETTING(type, name, preset, min, max, doc) SETTING_TYPE_##type SETTING_MEMBER_##type(name);
#include "broker/core/state/settings.def"
#undef SETTING
};

/* How a rollout gets its engine (core/engines/placing.c). */
#define PLACINGS(X)                                                                                                    \
    X(LIVE_TOKENS, "live-tokens") /* least tokens of live contexts, and near its group */                              \
    X(ASSIGNMENTS, "assignments") /* fewest rollouts given since the start */                                          \
    X(ROUND_ROBIN, "round-robin")                                                                                      \
    X(HASH, "hash") /* of the rollout's name and the engine's */

enum placing {
#define X(name, word) PLACING_##name,
    PLACINGS(X)
#undef X
        PLACING_COUNT
};

#endif
