/*
 * metrics.h - POST /aggregate_metrics: of the answers to /run, without those that failed, the mean, maximum, minimum,
 * median and standard deviation of each number that they hold, of all and of each task, under the names that NeMo
 * Gym's own servers give them ("mean/reward").
 */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_METRICS_H
#define SLUICE_CLIENT_GATEWAY_GYM_METRICS_H

#include "client/gateway/http_call.h"

void metrics_aggregate(struct http_call *call);

#endif
