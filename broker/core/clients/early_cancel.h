/*
 * core/clients/early_cancel.h - cancels that came before their submit.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_EARLY_CANCEL_H
#define SLUICE_BROKER_CORE_CLIENTS_EARLY_CANCEL_H

#include "broker/core/state/interface.h"

struct call;
struct core;
struct group;

/* The caller's group or rollout of this name ends when it is submitted. */
void early_cancel_put(struct core *core, const struct call *call, struct slice name);
/* Ends what was cancelled ahead of a group that was submitted just now. */
void early_cancels_apply(struct core *core, const struct call *call, struct group *group);
void early_cancels_tick(struct core *core);
void early_cancels_finish(struct core *core);
/* For core_check. */
bool early_cancels_are_counted(const struct core *core);
bool early_cancel_restore(struct core *core, struct slice name, struct slice owner, uint64_t clock_ms);

#endif
