/*
 * core/status/bottleneck.h - the part that work waits for.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_BOTTLENECK_H
#define SLUICE_BROKER_CORE_STATUS_BOTTLENECK_H

#include "broker/core/status/view.h"

/* It, and why; null where there is none. */
json_t *status_bottleneck(const struct core *core);

#endif
