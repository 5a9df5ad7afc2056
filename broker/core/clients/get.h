/*
 * core/clients/get.h - rollout.get: where a rollout is.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_GET_H
#define SLUICE_BROKER_CORE_CLIENTS_GET_H

#include "common/base/slice.h"

struct call;
struct core;
struct group;

/* rollout.state of one that has not ended, in answer to the call that named it so. */
void send_rollout_state(struct core *core, const struct call *call, struct slice rollout, const struct group *group,
                        uint32_t sample);

void handle_rollout_get(struct core *core, const struct call *call);

#endif
