/*
 * doubts.h - sessions of which nobody knows, since the broker was started again, whether it still has them: it is asked
 * for each, one of a task at a time, and as often as it takes. Those that its ledger does not know end in an error.
 */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_DOUBTS_H
#define SLUICE_CLIENT_GATEWAY_POLAR_DOUBTS_H

#include "client/gateway/polar/tasks.h"

enum { DOUBTS_A_SWEEP = 64 /* tasks that begin to be asked for */ };

/* The broker was started again. */
void doubts_begin(struct polar_of *of);
/* With another ledger: what had ended is told anew, or lost. Tasks whose results were had are let go. */
void doubts_begin_anew(struct polar_of *of);
/* Once a second, where all is told that the stream has. `lose`: the broker does not know that session. */
void doubts_sweep(struct polar_of *of, void (*lose)(struct polar_task *task, unsigned sample));

#endif
