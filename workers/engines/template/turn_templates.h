/*
 * turn_templates.h - those that were learnt of an engine, once for all its rollouts, and anew when somebody else is
 * there (identity.h). Everything here tries once; awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_TEMPLATE_TURN_TEMPLATES_H
#define SLUICE_WORKERS_ENGINES_TEMPLATE_TURN_TEMPLATES_H

#include "workers/engines/server/engine_state.h"
#include "workers/engines/template/bridge.h"

/* The turn template of its template for this role, which may be unfit; good until engine_leave_turn_template. */
int engine_learn_turn_template(struct engine *engine, enum tell_role role, const struct turn_template **ret,
                               struct fail *fail);
void engine_leave_turn_template(struct engine *engine, const struct turn_template *turn_template);
/*
 * What its template writes behind a reply where a turn of the role tool follows, up to the next
 * reply; "" where it has none. Borrowed until the fiber gives way.
 */
int engine_learn_tool_turn(struct engine *engine, const char **ret, struct fail *fail);
void turn_templates_finish(struct engine *engine);

#endif
