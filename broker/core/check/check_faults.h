/*
 * core/check/check_faults.h - the part of core_check that looks at what may go wrong.
 */
#ifndef SLUICE_BROKER_CORE_CHECK_CHECK_FAULTS_H
#define SLUICE_BROKER_CORE_CHECK_CHECK_FAULTS_H

#include "broker/core/state/state.h"

/* NULL, or what is broken. */
const char *check_faults(const struct core *core, size_t blocked_inits);

#endif
