/*
 * history_rewrite.h - what a template makes of replies once they are history. Many leave out what the model
 * thought, between <think> and </think> for instance, once another turn has begun: then the next
 * prompt does not extend what was sampled. Learnt by probes; a reply that could be meant is shown
 * to the template itself. Blanks at a reply's ends do not count: they stay as they were sampled.
 */
#ifndef SLUICE_WORKERS_ENGINES_TEMPLATE_HISTORY_REWRITE_H
#define SLUICE_WORKERS_ENGINES_TEMPLATE_HISTORY_REWRITE_H

#include "workers/engines/server/engine_state.h"
#include "workers/engines/template/bridge.h"

/* Sets turn template->rewrites. */
int history_rewrite_learn(struct engine *engine, enum tell_role role, struct turn_template *turn_template,
                          struct fail *fail);
/* -ENOTSUP when the template does not keep this reply as it is. */
int history_rewrite_check(struct engine *engine, const struct turn_template *turn_template, const char *reply,
                          struct fail *fail);

#endif
