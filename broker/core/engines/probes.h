/*
 * core/engines/probes.h - whether engines answer that nobody calls.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_PROBES_H
#define SLUICE_BROKER_CORE_ENGINES_PROBES_H

#include "broker/core/engines/engines.h"

/* Begins or ends probing it, as it is registered and paused now. */
void probes_refresh(struct core *core, struct engine *engine);
/* The worker, which has just beaten, is asked for what is due. */
void probes_ask(struct core *core, const struct worker *worker);
/* What a load report says of a probe, if it does. */
void probes_take(struct core *core, struct engine *engine, const struct msg_engine_load *in);
/* For core_check: NULL, or what is broken. */
const char *probes_check(const struct core *core);
/* A run ended well there: it is neither set aside nor silent. */
void engine_works(struct core *core, struct engine *engine);

#endif
