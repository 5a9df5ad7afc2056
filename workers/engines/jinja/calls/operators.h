/* operators.h - arithmetic, comparisons and joins. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_CALLS_OPERATORS_H
#define SLUICE_WORKERS_ENGINES_JINJA_CALLS_OPERATORS_H

#include "workers/engines/jinja/calls/call.h"

/* Two values and the operator between them, "~" and comparisons included. */
struct jinja_value jinja_operate(struct jinja_run *run, const struct jinja_value *a, struct slice operator,
                                 const struct jinja_value * b);

#endif
