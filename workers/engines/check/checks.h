/* checks.h - the functions behind checks.def. */
#ifndef SLUICE_WORKERS_ENGINES_CHECK_CHECKS_H
#define SLUICE_WORKERS_ENGINES_CHECK_CHECKS_H

#include "workers/engines/check/check.h"

extern check_run_one *const engine_checks[ENGINE_CHECK_COUNT];

#endif
