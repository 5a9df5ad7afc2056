/*
 * core/engines/versions.h - policy versions of engines, and their pauses.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_VERSIONS_H
#define SLUICE_BROKER_CORE_ENGINES_VERSIONS_H

#include "broker/core/engines/engines.h"

struct call;

/* What the engine serves, whether it may be called and with which credentials, to every worker that calls engines. */
void versions_changed(struct core *core, struct engine *engine);
/* The worker has not heard of what changed since `heard`. */
void versions_tell(struct core *core, const struct worker *worker, uint64_t heard);
void versions_restore(struct core *core, struct engine *engine, const struct core_engine *row);
/* Nothing is known of its policy and its credentials any more, and it is not paused. */
void versions_reset(struct core *core, struct engine *engine);
/* When the first pause ends; INT64_MAX: there is none. */
int64_t versions_due(const struct core *core);
void versions_tick(struct core *core);
/* For core_check: NULL, or what is broken. */
const char *versions_check(const struct core *core);

void handle_policy_set(struct core *core, const struct call *call);
void handle_policy_pause(struct core *core, const struct call *call);
void handle_policy_resume(struct core *core, const struct call *call);

#endif
