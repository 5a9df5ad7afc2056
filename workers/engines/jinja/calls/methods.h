/* methods.h - what Python's str, dict and list can be asked to do. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_CALLS_METHODS_H
#define SLUICE_WORKERS_ENGINES_JINJA_CALLS_METHODS_H

#include "workers/engines/jinja/calls/call.h"

bool jinja_has_method(const struct jinja_value *of, struct slice name);
struct jinja_value jinja_method(struct jinja_run *run, struct slice name, const struct jinja_value *of,
                                const struct jinja_arguments *given);

#endif
