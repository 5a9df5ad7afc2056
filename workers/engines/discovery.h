/*
 * discovery.h - what a worker knows of an engine, found out once for all its rollouts, and anew when
 * somebody else is there (identity.h). What was learnt belongs to one identity: a server that changes while it is
 * being learnt is learnt again, and nothing of the one before is kept for another. Everything here tries once; awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_DISCOVERY_H
#define SLUICE_WORKERS_ENGINES_DISCOVERY_H

#include "workers/engines/dialects/dialect.h"

/* Sets the dialect and the facts. */
int engine_learn(struct engine *engine, struct fail *fail);
/* Whether a server that the facts tell of gave this mark. */
bool engine_has_mark(const struct engine *engine, const struct engine_mark *mark);
/* The turn template of its template for this role, which may be unfit; good until engine_leave_turn_template. */
int engine_learn_turn_template(struct engine *engine, enum tell_role role, const struct turn_template **ret,
                       struct fail *fail);
void engine_leave_turn_template(struct engine *engine, const struct turn_template *turn_template);
/*
 * What its template writes behind a reply where a turn of the role tool follows, up to the next
 * reply; "" where it has none. Borrowed until the fiber gives way.
 */
int engine_learn_tool_turn(struct engine *engine, const char **ret, struct fail *fail);
#endif
