#include "workers/engines/pause.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "workers/engines/engine.h"
#include "workers/engines/server/engine_state.h"
#include "workers/engines/server/identity.h"
#include "workers/runtime/fiber.h"

enum { SLICE_MS = 500 }; /* of waiting, after which its time is given back */

/* ---- what the broker says ---------------------------------------------------------------- */

static void abort_calls(struct engine_policy *policy)
{
    policy->aborts++;
    const struct engine_call *call;
    LIST_FOREACH(call, &policy->calls, links)
        fiber_expire(call->fiber);
}

static void wake_all(const struct engine_policy *policy)
{
    for (const struct engine_waiter *waiter = policy->waiters; waiter; waiter = waiter->next)
        fiber_wake(waiter->fiber);
}

static void end_pause(struct engine *engine)
{
    if (engine->policy.is_paused)
        engine_doubt(engine); /* it may have been restarted in it */
    engine->policy.is_paused = false;
}

uint64_t engine_policy_number(const struct engine *engine) { return engine->policy.number; }

void engine_told(struct engine *engine, struct slice version, uint64_t number, struct slice calls,
                 int64_t resume_in_ms)
{
    struct engine_policy *policy = &engine->policy;
    snprintf(policy->version, sizeof(policy->version), "%.*s", SLICE_ARG(version));
    policy->number = number;
    if (calls.len == 0)
        end_pause(engine);
    policy->is_paused = calls.len > 0;
    policy->resume_ms = loop_now_ms() + resume_in_ms;
    if (slice_is(calls, "abort"))
        abort_calls(policy);
    if (!policy->is_paused)
        wake_all(policy);
}

/* ---- waiting ----------------------------------------------------------------------------- */

static bool is_paused(struct engine *engine)
{
    if (loop_now_ms() >= engine->policy.resume_ms)
        end_pause(engine);
    return engine->policy.is_paused;
}

static void forget_waiter(struct engine_policy *policy, struct engine_waiter *waiter)
{
    struct engine_waiter **at = &policy->waiters;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
}

/* A slice of waiting, however late the fiber is: that time is its again. */
static int wait_a_slice(int64_t resume_ms)
{
    int64_t start_ms = loop_now_ms(), left_ms = resume_ms - start_ms;
    fiber_lift_deadline(0);
    int code = await_wake(left_ms < SLICE_MS ? left_ms : SLICE_MS);
    fiber_pop_deadline();
    fiber_give_time(loop_now_ms() - start_ms);
    return code == -ETIMEDOUT ? 0 : code;
}

int engine_await_resume(struct engine *engine, struct fail *fail)
{
    struct engine_policy *policy = &engine->policy;
    if (!is_paused(engine))
        return 0;
    struct engine_waiter waiter = {.next = policy->waiters, .fiber = fiber_current()};
    int code = 0;
    policy->waiters = &waiter;
    while (code == 0 && is_paused(engine))
        code = wait_a_slice(policy->resume_ms);
    forget_waiter(policy, &waiter);
    return code == 0 ? 0 : fail_set(fail, code, "while %s was paused", engine->url);
}

/* ---- calls ------------------------------------------------------------------------------- */

int engine_call_begin(struct engine *engine, struct engine_call *call, struct fail *fail)
{
    struct engine_policy *policy = &engine->policy;
    int error = engine_await_resume(engine, fail);
    if (error < 0)
        return error;
    *call = (struct engine_call){.fiber = fiber_current(), .aborts = policy->aborts};
    memcpy(call->version, policy->version, sizeof(call->version));
    call->number = policy->number;
    LIST_INSERT_HEAD(&policy->calls, call, links);
    engine->use.calls++;
    return 0;
}

static void mark(const struct engine_call *call, const char *now, struct generation *ret)
{
    if (ret->version[0])
        return;
    if (strcmp(call->version, now) == 0)
        snprintf(ret->version, sizeof(ret->version), "%s", now);
    else
        snprintf(ret->version, sizeof(ret->version), "%s+%s", call->version, now);
}

bool engine_call_end(struct engine *engine, struct engine_call *call, int error,
                     struct generation *ret)
{
    struct engine_policy *policy = &engine->policy;
    LIST_REMOVE(call, links);
    engine->use.calls--;
    if (error == 0)
        mark(call, policy->version, ret);
    ret->policy_number = call->number;
    return error < 0 && error != -ECANCELED && call->aborts != policy->aborts;
}
