#include "workers/runtime/single_flight.h"

#include <errno.h>
#include <stddef.h>

#include "common/base/clock.h"

struct single_flight_waiter { /* on its fiber's stack */
    struct single_flight_waiter *next;
    struct fiber *fiber;
    bool answered, must_try;
    int code;
    struct fail fail;
};

static void waiter_remove(struct single_flight *once, struct single_flight_waiter *waiter)
{
    for (struct single_flight_waiter **at = &once->waiters; *at; at = &(*at)->next)
        if (*at == waiter) {
            *at = waiter->next;
            return;
        }
}

/* Returns when the one who is at it has ended, or this fiber must. */
static int once_wait(struct single_flight *once, struct single_flight_waiter *waiter, struct fail *fail)
{
    *waiter = (struct single_flight_waiter){.next = once->waiters, .fiber = fiber_current()};
    once->waiters = waiter;
    while (!waiter->answered) {
        int error = await_wake(-1);
        if (error < 0 && !waiter->answered) {
            waiter_remove(once, waiter);
            return fail_set(fail, error, "while waiting for another to ask the engine");
        }
    }
    return 0;
}

static void once_answer(struct single_flight *once, int code, bool must_try, const struct fail *fail)
{
    while (once->waiters) {
        struct single_flight_waiter *waiter = once->waiters;
        once->waiters = waiter->next;
        waiter->answered = true;
        waiter->code = code;
        waiter->must_try = must_try;
        waiter->fail = *fail;
        fiber_wake(waiter->fiber);
    }
}

static bool fiber_is_over(void) { return fiber_is_cancelled() || fiber_is_late(); }

int single_flight_run(struct single_flight *once, int (*make)(void *arg, struct fail *fail), void *arg,
                      struct fail *fail)
{
    while (once->state == SINGLE_FLIGHT_BUSY) {
        struct single_flight_waiter waiter;
        int error = once_wait(once, &waiter, fail);
        if (error < 0)
            return error;
        if (waiter.code < 0 && !waiter.must_try)
            return fail_set(fail, waiter.code, "%s", waiter.fail.text);
    }
    if (once->state == SINGLE_FLIGHT_DONE)
        return 0;
    once->state = SINGLE_FLIGHT_BUSY;
    struct fail why = {0};
    int code = make(arg, &why);
    once->state = code < 0 ? SINGLE_FLIGHT_TO_DO : SINGLE_FLIGHT_DONE;
    once_answer(once, code, fiber_is_over(), &why);
    return code < 0 ? fail_set(fail, code, "%s", why.text) : 0;
}

void single_flight_reset(struct single_flight *once)
{
    if (once->state == SINGLE_FLIGHT_DONE)
        once->state = SINGLE_FLIGHT_TO_DO;
}
