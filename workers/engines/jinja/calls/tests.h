/* tests.h - "x is NAME". */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_CALLS_TESTS_H
#define SLUICE_WORKERS_ENGINES_JINJA_CALLS_TESTS_H

#include "workers/engines/jinja/calls/call.h"

bool jinja_test(struct jinja_run *run, struct slice name, const struct jinja_value *of,
                const struct jinja_arguments *given);

#endif
