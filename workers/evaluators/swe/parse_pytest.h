/* parse_pytest.h - parsers of what pytest prints, and of what others print like it: rows of log_parsers.def. */
#ifndef SLUICE_WORKERS_EVALUATORS_SWE_PARSE_PYTEST_H
#define SLUICE_WORKERS_EVALUATORS_SWE_PARSE_PYTEST_H

#include "workers/evaluators/swe/test_log.h"

void parse_pytest(struct slice text, struct test_log *ret);
void parse_pytest_options(struct slice text, struct test_log *ret);
void parse_pytest_v2(struct slice text, struct test_log *ret);
void parse_matplotlib(struct slice text, struct test_log *ret);
void parse_r2e(struct slice text, struct test_log *ret);
void parse_seaborn(struct slice text, struct test_log *ret);

#endif
