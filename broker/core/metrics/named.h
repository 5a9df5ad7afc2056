/*
 * core/metrics/named.h - sums by names that others choose: streams, tools, kinds of sandboxes, reasons.
 *
 * The first METRIC_NAMES_MAX names are told apart. All beyond, and names that are empty or too long, are summed up as
 * `other`; but a name that was not counted for a day gives its place, and what was counted, to a new one.
 */
#ifndef SLUICE_BROKER_CORE_METRICS_NAMED_H
#define SLUICE_BROKER_CORE_METRICS_NAMED_H

#include "broker/core/state/metrics.h"

struct core;

void named_join(struct core *core, struct named_set *set, struct slice name, const struct observed *more);
/* It is to be told apart, where there is room. */
void named_see(struct core *core, struct named_set *set, struct slice name);

#endif
