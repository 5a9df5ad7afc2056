/* run_base.h - what names of groups begin with: it follows from who asks, and for what. */
#ifndef SLUICE_CLIENT_GATEWAY_RUNS_RUN_BASE_H
#define SLUICE_CLIENT_GATEWAY_RUNS_RUN_BASE_H

#include "client/gateway/runs/had.h"
#include "client/gateway/runs/runs.h"

/* False: out of memory, or of chance. */
bool run_base(const struct run_plan *plan, char ret[HAD_NAME_SIZE]);

#endif
