/*
 * turn_template_learn.h - learning an engine's turn template (bridge.h) from its template and tokenizer, and proving
 * it there: bridges of nasty contents must be what the engine itself makes of the same turns.
 */
#ifndef SLUICE_WORKERS_ENGINES_TEMPLATE_TURN_TEMPLATE_LEARN_H
#define SLUICE_WORKERS_ENGINES_TEMPLATE_TURN_TEMPLATE_LEARN_H

#include "workers/engines/server/engine_state.h"
#include "workers/engines/template/bridge.h"

/*
 * *ret is empty before; turn_template_finish it also after an error. -ENOTSUP: this template cannot be
 * bridged exactly in this role, and the sentence says why.
 */
int turn_template_learn(struct engine *engine, enum tell_role role, struct turn_template *ret, struct fail *fail);

/* One bridge with a turn template that is fit; what is told is encoded once (encoding.h). */
int turn_template_bridge(struct engine *engine, const struct turn_template *turn_template, const struct slice *contents,
                         size_t count, struct tokens *ret, struct fail *fail);

#endif
