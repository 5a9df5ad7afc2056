/* parse_suites.h - parsers of runners whose results take more than a line: rows of log_parsers.def. */
#ifndef SLUICE_WORKERS_EVALUATORS_SWE_PARSE_SUITES_H
#define SLUICE_WORKERS_EVALUATORS_SWE_PARSE_SUITES_H

#include "workers/evaluators/swe/test_log.h"

void parse_sympy(struct slice text, struct test_log *ret);
void parse_maven(struct slice text, struct test_log *ret);
void parse_gradle(struct slice text, struct test_log *ret);
void parse_karma(struct slice text, struct test_log *ret);
void parse_phpunit(struct slice text, struct test_log *ret);

#endif
