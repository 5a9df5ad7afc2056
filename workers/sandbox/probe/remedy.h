/* remedy.h - what stands in the way of a check that failed, and what helps. */
#ifndef SLUICE_WORKERS_SANDBOX_PROBE_REMEDY_H
#define SLUICE_WORKERS_SANDBOX_PROBE_REMEDY_H

#include "workers/sandbox/probe/probe.h"

/* Says in result->text and ->cure what stands in the way of a check that failed. */
void remedy_find(enum probe_check check, const struct kernel_info *kernel, struct probe_result *result);

#endif
