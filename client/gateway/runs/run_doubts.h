/*
 * run_doubts.h - rollouts of which nobody knows, since the broker was started again, whether it still has them: it is
 * asked for each, some at a time, and as often as it takes. Nobody waits for what its ledger does not know.
 */
#ifndef SLUICE_CLIENT_GATEWAY_RUNS_RUN_DOUBTS_H
#define SLUICE_CLIENT_GATEWAY_RUNS_RUN_DOUBTS_H

#include "client/gateway/runs/run_place.h"

enum { RUN_DOUBTS_A_SWEEP = 256 /* so many are asked for */ };

/* Once a second. `lose`: the broker does not know it; `cancel`: it does, and it was to be cancelled. */
void run_doubts_sweep(struct runs_of *of, void (*lose)(struct run_place *), void (*cancel)(struct run_place *));

#endif
