/*
 * core/streams/quotas.h - how full the broker is.
 *
 * core/state/quotas.def says what there is a quota of. What is used is counted for each client as
 * well; the sum over the clients is what all use. What follows for a submit: core/clients/admission.h.
 */
#ifndef SLUICE_BROKER_CORE_STREAMS_QUOTAS_H
#define SLUICE_BROKER_CORE_STREAMS_QUOTAS_H

#include "broker/core/state/stream.h"

struct core;

enum {
    RESULT_BYTES = 1024, /* what a kept trajectory weighs besides its record */
    FLOW_MS = 10000      /* "lately": this window and the one before */
};

void quota_take(struct core *core, struct client *client, enum quota quota, uint64_t amount);
void quota_release(struct core *core, struct client *client, enum quota quota, uint64_t amount);
/* In what time `amount` becomes free at the pace of late; false: nothing has. */
bool quota_flow(struct core *core, enum quota quota, uint64_t amount, double *ret_ms);

uint64_t quota_max(const struct core *core, enum quota quota);
/* Of what all may have, what one client of this name may: where nobody has a name, there is but one. */
uint64_t quota_share_percent(const struct core *core, struct slice name);
/* What one client of this name may use of it. */
uint64_t quota_share(const struct core *core, struct slice name, enum quota quota);
/* Per cent of the quota in use, by all. */
uint64_t quota_percent(const struct core *core, enum quota quota);
/* Of what one client may use, by this one; NULL uses nothing. */
uint64_t quota_client_percent(const struct core *core, const struct client *client, enum quota quota);

const char *quota_setting(enum quota quota);
/* "rollouts have not ended", to follow a number. */
const char *quota_used_words(enum quota quota);
/* "rollouts that fit are live", to follow a percentage. */
const char *quota_filled(enum quota quota);
const char *quota_remedy(enum quota quota);

#endif
