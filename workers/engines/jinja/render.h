/* render.h - what a template's statements write. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_RENDER_H
#define SLUICE_WORKERS_ENGINES_JINJA_RENDER_H

#include "workers/engines/jinja/evaluate.h"

/* Writes to run->out, which is set, as are its frames. What went wrong is in run. */
void jinja_write_all(struct jinja_run *run, const struct jinja_node *statements);
/* For run->call_macro. */
struct jinja_value jinja_call_macro(struct jinja_run *run, const struct jinja_value *macro,
                                    const struct jinja_arguments *given);

#endif
