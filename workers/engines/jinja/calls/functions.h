/* functions.h - the functions that templates have without making them. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_CALLS_FUNCTIONS_H
#define SLUICE_WORKERS_ENGINES_JINJA_CALLS_FUNCTIONS_H

#include "workers/engines/jinja/calls/call.h"

/* raise_exception, namespace, range, dict, strftime_now. */
bool jinja_has_function(struct slice name);
struct jinja_value jinja_function(struct jinja_run *run, struct slice name, const struct jinja_arguments *given);

#endif
