/*
 * core/restore.h - the state from the ledger's rows.
 */
#ifndef SLUICE_BROKER_CORE_RESTORE_H
#define SLUICE_BROKER_CORE_RESTORE_H

struct core;

/* Before the first step: groups whose restored rollouts have all ended are closed. */
void restore_finish(struct core *core);
/* What was told of and has no other place yet, of a core that is being destroyed. */
void restore_drop(struct core *core);

#endif
