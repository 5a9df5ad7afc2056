/*
 * core/check/check_fair_queues.h - the part of core_check that looks at shares and clients.
 */
#ifndef SLUICE_BROKER_CORE_CHECK_CHECK_FAIR_QUEUES_H
#define SLUICE_BROKER_CORE_CHECK_CHECK_FAIR_QUEUES_H

#include "broker/core/state/state.h"

/* Whether they agree with the jobs there are: NULL, or what is broken. */
const char *check_fair_queues(const struct core *core);

#endif
