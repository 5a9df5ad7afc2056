#include "workers/engines/calls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "workers/engines/engine.h"
#include "workers/engines/server/engine_state.h"
#include "workers/engines/server/identity.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"

enum {
    SLICE_MS = 500, /* of waiting, after which its time is given back */
    BACKOFF_FIRST_MS = 250,
    BACKOFF_MAX_MS = 8000,
    REFUSAL_LOG_MS = 10000 /* between two lines of the log about an engine's refusals */
};

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

void engine_told(struct engine *engine, struct slice version, uint64_t number, struct slice calls, int64_t resume_in_ms)
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
    fiber_give_time(fiber_current(), loop_now_ms() - start_ms);
    return code == -ETIMEDOUT ? 0 : code;
}

static int await_resume(struct engine *engine, struct fail *fail)
{
    struct engine_policy *policy = &engine->policy;
    if (!is_paused(engine))
        return 0;
    struct engine_waiter waiter = {.next = policy->waiters, .fiber = fiber_current()};
    int code = 0;
    policy->waiters = &waiter;
    activity_wait("%s is paused", engine->url);
    activity_enter(PHASE_ENGINE);
    while (code == 0 && is_paused(engine))
        code = wait_a_slice(policy->resume_ms);
    forget_waiter(policy, &waiter);
    activity_leave(PHASE_ENGINE);
    activity_go_on();
    return code == 0 ? 0 : fail_set(fail, code, "while %s was paused", engine->url);
}

/* ---- calls ------------------------------------------------------------------------------- */

int engine_call_begin(struct engine *engine, struct engine_call *call, struct fail *fail)
{
    struct engine_policy *policy = &engine->policy;
    int error = await_resume(engine, fail);
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

bool engine_call_end(struct engine *engine, struct engine_call *call, int error, struct generation *ret)
{
    struct engine_policy *policy = &engine->policy;
    LIST_REMOVE(call, links);
    engine->use.calls--;
    if (error == 0 || ret->sampled.count > 0)
        mark(call, policy->version, ret);
    ret->policy_number = call->number;
    return error < 0 && error != -ECANCELED && call->aborts != policy->aborts;
}

/* ---- trying again ------------------------------------------------------------------------ */

static bool is_transient(int code)
{
    return code == -EAGAIN || code == -EIO || code == -ECONNREFUSED || code == -ETIMEDOUT || code == -EPROTO;
}

/* Half of the time for sure, the other half by prng, so that rollouts do not come back in step. */
static int64_t backoff_ms(struct engine *engine, int tries)
{
    int64_t ms = (int64_t)BACKOFF_FIRST_MS << tries, asked_ms = engine->pause_ms;
    engine->pause_ms = 0;
    if (ms > BACKOFF_MAX_MS)
        ms = BACKOFF_MAX_MS;
    ms = ms / 2 + clock_us() % (ms / 2);
    if (asked_ms > ENGINE_PAUSE_MAX_MS)
        asked_ms = ENGINE_PAUSE_MAX_MS;
    return ms > asked_ms ? ms : asked_ms;
}

/* It is tried again: what its job waits for, and a line of the log unless there was one of late. */
static void note_refusal(struct engine *engine, int tries, const char *why)
{
    activity_wait("%s; tried %d time%s", why, tries, tries == 1 ? "" : "s");
    const int64_t now_ms = loop_now_ms();
    if (engine->refusal_said_ms && now_ms - engine->refusal_said_ms < REFUSAL_LOG_MS) {
        engine->refusals_unsaid++;
        return;
    }
    log_event(LOG_WARN, "engine.refused", "url=%s tries=%d why=\"%s\" unsaid=%llu action=tries-again", engine->url,
              tries, why, (unsigned long long)engine->refusals_unsaid);
    engine->refusal_said_ms = now_ms;
    engine->refusals_unsaid = 0;
}

static int try_until(struct engine *engine, int (*act)(void *arg, struct fail *fail), void *arg, struct fail *fail)
{
    struct fail why = {0};
    for (int tries = 0;; tries++) {
        struct fail now = {0};
        int code = await_resume(engine, &now);
        if (code == 0)
            code = engine_act(engine, act, arg, &now);
        if (code == -ETIMEDOUT && fiber_is_late())
            return fail_set(fail, why.code ? why.code : code, "%s", why.code ? why.text : now.text);
        if (code == -ENOTSUP) /* it would be the same again */
            return fail_set(fail, -EPROTO, "%s", now.text);
        if (!is_transient(code))
            return code < 0 ? fail_set(fail, code, "%s", now.text) : 0;
        if (code != -EPROTO)
            engine_doubt(engine);
        why = now;
        why.code = code == -ETIMEDOUT ? -EIO : code;
        if (tries + 1 == ENGINE_TRIES)
            return fail_set(fail, code, "%s (tried %d times)", now.text, ENGINE_TRIES);
        note_refusal(engine, tries + 1, now.text);
        activity_enter(PHASE_ENGINE);
        int slept = await_sleep(backoff_ms(engine, tries));
        activity_leave(PHASE_ENGINE);
        if (slept == -ETIMEDOUT)
            return fail_set(fail, why.code, "%s", why.text);
        if (slept < 0)
            return fail_set(fail, slept, "cancelled");
    }
}

int engine_try(struct engine *engine, int (*act)(void *arg, struct fail *fail), void *arg, struct fail *fail)
{
    const int code = try_until(engine, act, arg, fail);
    activity_go_on();
    return code;
}
