/*
 * core/status/rollout_list.h - rollout.list: rollouts that have not ended, from the core's own memory, and those that
 * have, whose rows the ledger reads (SEND_LIST).
 */
#ifndef SLUICE_BROKER_CORE_STATUS_ROLLOUT_LIST_H
#define SLUICE_BROKER_CORE_STATUS_ROLLOUT_LIST_H

#include "broker/core/state/interface.h"

struct call;

enum {
    LIST_LIMIT = 100,      /* rollouts listed without a limit */
    LIST_LOOKED_AT = 20000 /* ended rollouts of a stream that one request looks at: its newest */
};

void handle_rollout_list(struct core *core, const struct call *call);

#endif
