/*
 * core/clients/limits.h - how full the broker is, and what follows: the overload ladder.
 *
 * core/clients/limits.def says what is limited, core/clients/ladder.def what happens on the way. What is
 * used is counted for each client as well; the sum over the clients is what all use.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_LIMITS_H
#define SLUICE_BROKER_CORE_CLIENTS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/slice.h"

struct core;
struct call;
struct client;

enum limit {
#define LIMIT(name, setting, used, filled, remedy) LIMIT_##name,
#include "broker/core/clients/limits.def"
#undef LIMIT
    LIMIT_COUNT
};

enum rung {
#define RUNG(name, percent, meaning) RUNG_##name = percent,
#include "broker/core/clients/ladder.def"
#undef RUNG
};

enum {
    RESULT_BYTES = 1024,    /* what a kept trajectory weighs besides its record */
    RETRY_FIRST_MS = 1000,  /* retry_after_ms is not less ... */
    RETRY_LAST_MS = 60000,  /* ... and not more ... */
    RETRY_BLIND_MS = 10000, /* ... nor than this while nothing has ended lately */
    RETRY_DISK_MS = 5000,   /* after disk-low */
    FLOW_MS = 10000         /* "lately": this window and the one before */
};

/* What is used of a limit, and how fast it becomes free. */
struct usage {
    uint64_t used;
    uint64_t holders;             /* clients that use any of it */
    uint64_t freed, freed_before; /* in the window since since_ms, and the one before */
    int64_t since_ms, before_ms;
};

void limit_take(struct core *core, struct client *client, enum limit limit, uint64_t amount);
void limit_release(struct core *core, struct client *client, enum limit limit, uint64_t amount);
/* Of what all may have, what one client of this name may: where nobody has a name, there is but one. */
uint64_t owners_percent(const struct core *core, struct slice name);
uint64_t limit_max(const struct core *core, enum limit limit);
/* What one client of this name may use of it. */
uint64_t client_max(const struct core *core, struct slice name, enum limit limit);
/* Per cent of the limit in use, by all. */
uint64_t limit_percent(const struct core *core, enum limit limit);
/* Of what one client may use, by this one; NULL uses nothing. */
uint64_t client_percent(const struct core *core, const struct client *client, enum limit limit);
const char *limit_setting(enum limit limit);
/* "rollouts that fit are live", to follow a percentage. */
const char *limit_filled(enum limit limit);
const char *limit_remedy(enum limit limit);

/* Whether a submit for this client (NULL: a new one) fits; refuses it if not. */
bool limits_admit(struct core *core, const struct call *call, const struct client *client, uint64_t samples);
/* A sentence once the first rung is reached, by this client or by all; else empty. */
struct slice limits_warning(struct core *core, const struct client *client);

#endif
