/*
 * core/status/service_health.h - how the broker is, and what is missing.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_SERVICE_HEALTH_H
#define SLUICE_BROKER_CORE_STATUS_SERVICE_HEALTH_H

#include "broker/core/status/view.h"

/* "healthy", "degraded" or "down", and why, in words. */
const char *status_health(const struct core *core, json_t *reasons);
/* What is missing, in words. */
json_t *status_advice(struct view view);

#endif
