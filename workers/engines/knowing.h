/*
 * knowing.h - what a worker knows of an engine, found out once for all its rollouts, and when that
 * is doubted: after it was away, and whenever a look at what it serves says something else.
 * Everything here tries once; awaits.
 */
#ifndef SLUICE_WORKERS_KNOWING_H
#define SLUICE_WORKERS_KNOWING_H

#include "workers/engines/dialect.h"

/* Sets the dialect and the facts. */
int engine_learn(struct engine *engine, struct fail *fail);
/*
 * As engine_learn, and has a look whether it still serves the same if the last one was
 * LOOK_EVERY_MS ago. That it does not answer within LOOK_WAIT_MS means nothing: it is busy, and is
 * left alone for LOOK_REST_MS.
 */
enum { LOOK_EVERY_MS = 2000, LOOK_WAIT_MS = 2000, LOOK_REST_MS = 30000 };
int engine_confirm(struct engine *engine, struct fail *fail);
/* The frame of its template for this role, which may be unfit; good for as long as the engine. */
int engine_learn_frame(struct engine *engine, enum tell_role role, const struct frame **ret,
                       struct fail *fail);
/*
 * What its template writes behind a reply where a turn of the role tool follows, up to the next
 * reply; "" where it has none. Borrowed until the fiber gives way.
 */
int engine_learn_tool_turn(struct engine *engine, const char **ret, struct fail *fail);
/* It may come back as another: asks anew next time. */
void engine_doubt(struct engine *engine);

#endif
