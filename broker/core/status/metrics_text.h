/*
 * core/status/metrics_text.h - metrics.get: what the table of schemas/metrics/metrics.def has of the broker, from
 * memory. One pass over the workers, and otherwise nothing that grows with them, with rollouts or with streams.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_METRICS_TEXT_H
#define SLUICE_BROKER_CORE_STATUS_METRICS_TEXT_H

#include <stdbool.h>

struct buffer;
struct call;
struct core;

/* Appended to `out`, whose `failed` says whether there was memory. */
void metrics_write(const struct core *core, bool is_openmetrics, struct buffer *out);

void handle_metrics_get(struct core *core, const struct call *call);

#endif
