/*
 * core/clients/get.h - rollout.get: where a rollout is.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_GET_H
#define SLUICE_BROKER_CORE_CLIENTS_GET_H

struct call;
struct core;

void handle_rollout_get(struct core *core, const struct call *call);

#endif
