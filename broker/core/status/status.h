/*
 * core/status/status.h - the parts of status.get's answer, one JSON value each.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_STATUS_H
#define SLUICE_BROKER_CORE_STATUS_STATUS_H

#include "broker/core/state.h"

#include <jansson.h>

enum { LISTED_MAX = 1000 }; /* of each list, by name; the rest is counted */

/* Who asks: an admin sees all; a client what is its own, and how the broker is. */
struct view {
    const struct core *core;
    const struct client *client; /* of a client; NULL while it has no stream */
    bool is_whole;
    struct slice name; /* of the client's key */
};

/* The workers of a stage. */
struct crew {
    uint64_t workers, draining, hung, unreached, slots, free;
};

struct crew crew_of(const struct core *core, enum stage stage);
/* Jobs of a stage that wait, for whatever, of all. */
size_t status_waiting(const struct core *core, enum stage stage);

/* core/status/lists.c */
json_t *status_workers(const struct core *core);
json_t *status_lost(const struct core *core);
json_t *status_id_conflicts(const struct core *core);
json_t *status_engines(const struct core *core);
json_t *status_images(const struct core *core);
json_t *status_clients(const struct core *core);
json_t *status_streams(struct view view);

/* core/status/bottleneck.c: the part that work waits for, and why; null where there is none. */
json_t *status_bottleneck(const struct core *core);
/* core/status/health.c: "healthy", "degraded" or "down", and why, in words. */
const char *status_health(const struct core *core, json_t *reasons);
/* What is missing, in words. */
json_t *status_advice(struct view view);

static inline json_t *status_text(struct slice s)
{
    return json_stringn(s.data ? (const char *)s.data : "", s.len);
}

static inline json_t *status_number(uint64_t number)
{
    return json_integer((json_int_t)number);
}

#endif
