#include "workers/engines/engine_probe.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "workers/engines/dialects/metrics.h"
#include "workers/engines/engine.h"
#include "workers/engines/server/engine_state.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"

enum { HEALTH_MAX = 1 << 16 /* bytes of its answer */ };

static bool ask(struct engine *engine, const char *path, size_t most, http_answered answered)
{
    AUTO_BUFFER url = {0};
    buffer_printf(&url, "%s%s", engine->url, path);
    AUTO_FREE char *text = buffer_take_str(&url);
    return text && http_get_later(engine->http, text, most, PROBE_ANSWER_MS, answered, engine);
}

static void end(struct engine_probe *probe)
{
    probe->is_busy = false;
    probe->is_new = true;
}

/* ---- what it serves -------------------------------------------------------------------------- */

static void identify(void *arg)
{
    struct engine_about about;
    fiber_push_deadline(loop_now_ms() + PROBE_ANSWER_MS);
    engine_describe(arg, &about, NULL); /* if it cannot be, it stays what it was */
    fiber_pop_deadline();
}

static void identified(void *arg)
{
    struct engine *engine = arg;
    engine->probe.fiber = NULL;
    end(&engine->probe);
    if (engine->probed)
        engine->probed(engine->probed_arg);
}

/* The probe ends once that is known. */
static void end_by_identity(struct engine *engine)
{
    if (engine->probe.answers)
        engine->probe.fiber = fiber_start(http_loop(engine->http), identify, identified, engine);
    if (!engine->probe.fiber)
        end(&engine->probe);
}

/* ---- whether it answers ---------------------------------------------------------------------- */

static void take_metrics(void *arg, struct http_reply *reply, const struct fail *why)
{
    struct engine *engine = arg;
    struct engine_probe *probe = &engine->probe;
    AUTO_FREE char *text = why ? NULL : buffer_take_str(&reply->body);
    probe->has_cache = text && reply->status == 200 && metrics_cache_permille(text, &probe->cache_permille);
    probe->metrics_ms = probe->has_cache ? 0 : loop_now_ms() + PROBE_METRICS_MS;
    end_by_identity(engine);
}

static void take_health(void *arg, struct http_reply *reply, const struct fail *why)
{
    struct engine *engine = arg;
    struct engine_probe *probe = &engine->probe;
    probe->answers = why ? why->code == -EMSGSIZE : reply->status < 500; /* whatever it has to say */
    probe->has_cache = false;
    if (why)
        snprintf(probe->error, sizeof(probe->error), "%.256s", why->text);
    else if (!probe->answers)
        snprintf(probe->error, sizeof(probe->error), "%.200s/health: status %ld", engine->url, reply->status);
    if (!probe->answers || loop_now_ms() < probe->metrics_ms ||
        !ask(engine, "/metrics", PROBE_METRICS_MAX, take_metrics))
        end_by_identity(engine);
}

void engine_probe_start(struct engine *engine)
{
    if (!engine->probe.is_busy)
        engine->probe.is_busy = ask(engine, "/health", HEALTH_MAX, take_health);
}
