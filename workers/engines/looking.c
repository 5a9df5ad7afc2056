#include "workers/engines/looking.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "workers/engines/dialects/dialect.h"
#include "workers/engines/metrics.h"
#include "workers/runtime/fiber.h"

enum { HEALTH_MAX = 1 << 16 /* bytes of its answer */ };

static bool ask(struct engine *engine, const char *path, size_t most, http_answered answered)
{
    AUTO_BUFFER url = {0};
    buffer_printf(&url, "%s%s", engine->url, path);
    AUTO_FREE char *text = buffer_take_str(&url);
    return text && http_get_later(engine->http, text, most, LOOK_ANSWER_MS, answered, engine);
}

static void end(struct engine_look *look)
{
    look->is_busy = false;
    look->is_new = true;
}

/* ---- what it serves -------------------------------------------------------------------------- */

static void identify(void *arg)
{
    struct engine_about about;
    fiber_push_deadline(loop_now_ms() + LOOK_ANSWER_MS);
    engine_describe(arg, &about, NULL); /* if it cannot be, it stays what it was */
    fiber_pop_deadline();
}

static void identified(void *arg)
{
    struct engine *engine = arg;
    engine->look.fiber = NULL;
    end(&engine->look);
    if (engine->looked)
        engine->looked(engine->looked_arg);
}

/* The look ends once that is known. */
static void end_by_identity(struct engine *engine)
{
    if (engine->look.answers)
        engine->look.fiber = fiber_start(http_loop(engine->http), identify, identified, engine);
    if (!engine->look.fiber)
        end(&engine->look);
}

/* ---- whether it answers ---------------------------------------------------------------------- */

static void take_metrics(void *arg, struct http_reply *reply, const struct fail *why)
{
    struct engine *engine = arg;
    struct engine_look *look = &engine->look;
    AUTO_FREE char *text = why ? NULL : buffer_take_str(&reply->body);
    look->has_cache = text && reply->status == 200 &&
                      metrics_cache_permille(text, &look->cache_permille);
    look->metrics_ms = look->has_cache ? 0 : loop_now_ms() + LOOK_METRICS_MS;
    end_by_identity(engine);
}

static void take_health(void *arg, struct http_reply *reply, const struct fail *why)
{
    struct engine *engine = arg;
    struct engine_look *look = &engine->look;
    look->answers = why ? why->code == -EMSGSIZE : reply->status < 500; /* whatever it has to say */
    look->has_cache = false;
    if (why)
        snprintf(look->error, sizeof(look->error), "%.256s", why->text);
    else if (!look->answers)
        snprintf(look->error, sizeof(look->error), "%.200s/health: status %ld", engine->url,
                 reply->status);
    if (!look->answers || loop_now_ms() < look->metrics_ms ||
        !ask(engine, "/metrics", LOOK_METRICS_MAX, take_metrics))
        end_by_identity(engine);
}

void engine_look(struct engine *engine)
{
    if (!engine->look.is_busy)
        engine->look.is_busy = ask(engine, "/health", HEALTH_MAX, take_health);
}
