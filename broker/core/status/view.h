/*
 * core/status/view.h - who asks for the status, and how its values are written.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_VIEW_H
#define SLUICE_BROKER_CORE_STATUS_VIEW_H

#include "broker/core/state/state.h"

#include <jansson.h>

enum { LISTED_MAX = 1000 }; /* of each list, by name; the rest is counted */

/* Who asks: an admin sees all; a client what is its own, and how the broker is. */
struct view {
    const struct core *core;
    const struct client *client; /* of a client; NULL while it has no stream */
    bool is_whole;
    struct slice name; /* of the client's key */
};

static inline json_t *status_text(struct slice s) { return json_stringn(s.data ? (const char *)s.data : "", s.len); }

static inline json_t *status_number(uint64_t number) { return json_integer((json_int_t)number); }

#endif
