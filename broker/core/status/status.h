/*
 * core/status/status.h - status.get.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_STATUS_H
#define SLUICE_BROKER_CORE_STATUS_STATUS_H

struct call;
struct core;

void handle_status_get(struct core *core, const struct call *call);

#endif
