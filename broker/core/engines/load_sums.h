/*
 * core/engines/load_sums.h - what run workers hold on engines, and the sums of that.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_LOAD_SUMS_H
#define SLUICE_BROKER_CORE_ENGINES_LOAD_SUMS_H

#include "broker/core/engines/engines.h"

/* In the place of what the worker said before of that engine; who holds nothing there is not remembered. */
void load_replace(struct core *core, struct worker *worker, const struct load_report *now);
/* The worker is gone, with all that it saw. */
void load_forget_worker(struct worker *worker);
/* The engine is about to be forgotten. */
void load_forget_engine(struct core *core, const struct engine *engine);
/* For core_check: NULL, or what is broken. */
const char *load_check(const struct core *core);

#endif
