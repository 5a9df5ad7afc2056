/*
 * discovery.h - what a worker knows of an engine, found out once for all its rollouts, and anew when
 * somebody else is there (identity.h). What was learnt belongs to one identity: a server that changes while it is
 * being learnt is learnt again, and nothing of the one before is kept for another. Everything here tries once; awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_SERVER_DISCOVERY_H
#define SLUICE_WORKERS_ENGINES_SERVER_DISCOVERY_H

#include "workers/engines/server/engine_state.h"

/*
 * Sets the dialect and the facts: one whole portrait, or, where several servers of one address take turns, two in a
 * row that agree. engine_learn (identity.h) has it done once for all.
 */
int engine_discover(struct engine *engine, struct fail *fail);
/* Whether a server that the facts tell of gave this mark. */
bool engine_has_mark(const struct engine *engine, const struct engine_mark *mark);

#endif
