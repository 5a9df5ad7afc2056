/* parse_django.h - the parser of what Django's runner prints: a row of log_parsers.def. */
#ifndef SLUICE_WORKERS_EVALUATORS_SWE_PARSE_DJANGO_H
#define SLUICE_WORKERS_EVALUATORS_SWE_PARSE_DJANGO_H

#include "workers/evaluators/swe/test_log.h"

void parse_django(struct slice text, struct test_log *ret);
/* The number of tests that unittest says it ran, of all its runs; -1: it does not say. */
int64_t total_of_unittest(struct slice text);

#endif
