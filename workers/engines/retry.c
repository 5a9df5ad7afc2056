#include "workers/engines/retry.h"

#include <errno.h>

#include "common/base/clock.h"
#include "workers/engines/engine.h"
#include "workers/engines/pause.h"
#include "workers/engines/server/identity.h"
#include "workers/runtime/fiber.h"

enum { BACKOFF_FIRST_MS = 250, BACKOFF_MAX_MS = 8000 };

static bool is_transient(int code)
{
    return code == -EAGAIN || code == -EIO || code == -ECONNREFUSED || code == -ETIMEDOUT ||
           code == -EPROTO;
}

/* Half of the time for sure, the other half by prng, so that rollouts do not come back in step.
 */
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

int engine_try(struct engine *engine, int (*act)(void *arg, struct fail *fail), void *arg,
               struct fail *fail)
{
    struct fail why = {0};
    for (int tries = 0;; tries++) {
        struct fail now = {0};
        int code = engine_await_resume(engine, &now);
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
        int slept = await_sleep(backoff_ms(engine, tries));
        if (slept == -ETIMEDOUT)
            return fail_set(fail, why.code, "%s", why.text);
        if (slept < 0)
            return fail_set(fail, slept, "cancelled");
    }
}
