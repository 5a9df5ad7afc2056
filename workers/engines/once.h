/*
 * once.h - something that is found out once, by whichever fiber comes first, while the others
 * wait for it. A failure is shared with those who waited; the next to come tries again. When
 * the fiber that tried was cancelled or out of time, one of those who waited tries instead.
 */
#ifndef SLUICE_WORKERS_ENGINES_ONCE_H
#define SLUICE_WORKERS_ENGINES_ONCE_H

#include "common/base/fail.h"
#include "workers/runtime/fiber.h"

struct once {
    enum { ONCE_TO_DO, ONCE_BUSY, ONCE_DONE } state;
    struct once_waiter *waiters;
};

/* Awaits. What `make` returned, now or earlier. */
int once_run(struct once *once, int (*make)(void *arg, struct fail *fail), void *arg,
             struct fail *fail);
/* Lets the next to come find out anew. Does not disturb one who is at it. */
void once_reset(struct once *once);

#endif
