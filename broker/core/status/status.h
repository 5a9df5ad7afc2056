/*
 * core/status/status.h - status.get.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_STATUS_H
#define SLUICE_BROKER_CORE_STATUS_STATUS_H

#include <stdbool.h>
#include <stdint.h>

struct buffer;
struct call;
struct core;

/* As an admin sees it, appended to `out`. */
bool status_whole(const struct core *core, int64_t now_ms, struct buffer *out);

void handle_status_get(struct core *core, const struct call *call);

#endif
