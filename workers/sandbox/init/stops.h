/*
 * stops.h - the processes of a sandbox held still for a while, so that all of them have written at one moment what is
 * packed then, and go on behind it. Who had been stopped before stays so.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_STOPS_H
#define SLUICE_WORKERS_SANDBOX_INIT_STOPS_H

#include "workers/sandbox/init/init_inside.h"

struct stops {
    pid_t pids[PROC_SEEN_MAX]; /* to go on again */
    size_t count;
};

/* All but us. False: new ones appear as fast as they are stopped, or do not stop. stops_release *ret in any case. */
bool stops_hold(const struct init *init, struct stops *ret);
/* Those who were started last first: nobody who waits for his children sees that they were stopped. */
void stops_release(struct stops *stops);

#endif
