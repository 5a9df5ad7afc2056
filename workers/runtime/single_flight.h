/*
 * single_flight.h - something that is found out once, by whichever fiber comes first, while the others
 * wait for it. A failure is shared with those who waited; the next to come tries again. When
 * the fiber that tried was cancelled or out of time, one of those who waited tries instead.
 */
#ifndef SLUICE_WORKERS_RUNTIME_SINGLE_FLIGHT_H
#define SLUICE_WORKERS_RUNTIME_SINGLE_FLIGHT_H

#include "common/base/fail.h"
#include "workers/runtime/fiber.h"

struct single_flight {
    enum { SINGLE_FLIGHT_TO_DO, SINGLE_FLIGHT_BUSY, SINGLE_FLIGHT_DONE } state;
    struct single_flight_waiter *waiters;
};

/* Awaits. What `make` returned, now or earlier. */
int single_flight_run(struct single_flight *once, int (*make)(void *arg, struct fail *fail), void *arg,
                      struct fail *fail);
/* Lets the next to come find out anew. Does not disturb one who is at it. */
void single_flight_reset(struct single_flight *once);

#endif
