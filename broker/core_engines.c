#include "broker/core_internal.h"

#include <stdlib.h>

struct slice engine_url(const struct engine *engine)
{
    return engine ? slice_of(engine->url, engine->url_len) : slice_of(NULL, 0);
}

static struct engine *find(const struct core *core, struct slice url)
{
    struct engine *engine;
    LIST_EACH(engine, &core->engines, link)
        if (slice_equal(engine_url(engine), url))
            return engine;
    return NULL;
}

static void set_registered(struct core *core, struct engine *engine, bool registered)
{
    if (registered != engine->registered)
        breaker_reset(core, &engine->breaker);
    core->engines_registered += (size_t)registered - (size_t)engine->registered;
    engine->registered = registered;
}

struct engine *engine_intern(struct core *core, struct slice url, bool registered)
{
    struct engine *engine = find(core, url);
    if (!engine) {
        engine = core_alloc(core, 1, sizeof(*engine) + url.len + 1);
        if (!engine)
            return NULL;
        memcpy(engine->url, url.data, url.len);
        engine->url_len = (uint32_t)url.len;
        list_push_back(&core->engines, &engine->link);
        core->engine_count++;
    }
    if (registered)
        set_registered(core, engine, true);
    return engine;
}

/* An engine that nobody registers and no rollout names is forgotten. */
static void forget_unused(struct core *core, struct engine *engine)
{
    if (engine->registered || engine->refs)
        return;
    breaker_reset(core, &engine->breaker);
    list_remove(&engine->link);
    core->engine_count--;
    free(engine);
}

struct engine *engine_choose(const struct core *core, const struct rollout *rollout)
{
    struct engine *engine, *best = NULL, *last = NULL;
    LIST_EACH(engine, &core->engines, link) {
        if (!engine->registered || !breaker_lets(core, &engine->breaker))
            continue;
        if (rollout->avoids_engine && engine == rollout->engine)
            last = engine;
        else if (!best || engine->live < best->live)
            best = engine;
    }
    return best ? best : last;
}

bool engine_is_ready(const struct core *core)
{
    const struct engine *engine;
    LIST_EACH(engine, &core->engines, link)
        if (engine->registered && breaker_lets(core, &engine->breaker))
            return true;
    return false;
}

void rollout_set_engine(struct core *core, struct rollout *rollout, struct engine *engine)
{
    struct engine *old = rollout->engine;
    if (engine)
        engine->refs++;
    rollout->engine = engine;
    if (old) {
        old->refs--;
        forget_unused(core, old);
    }
}

/* ---- engine.add, engine.remove ----------------------------------------------------- */

static struct slice strip_slashes(struct slice url)
{
    while (url.len && url.data[url.len - 1] == '/')
        url.len--;
    return url;
}

static bool starts_with(struct slice text, const char *start)
{
    size_t len = strlen(start);
    return text.len > len && memcmp(text.data, start, len) == 0;
}

static bool is_base_url(struct slice url)
{
    for (size_t i = 0; i < url.len; i++)
        if (url.data[i] <= ' ' || url.data[i] == 0x7f)
            return false;
    return starts_with(url, "http://") || starts_with(url, "https://");
}

static void persist_engine(struct core *core, const struct engine *engine, bool present)
{
    struct slice url = effect_copy(core, engine_url(engine));
    struct effect *persist = effect_push(core, PERSIST_ENGINE);
    persist->engine = url;
    persist->present = present;
}

void handle_engine_add(struct core *core, const struct call *call)
{
    const struct msg_engine_add *in = call->in;
    struct slice url = strip_slashes(in->url);
    if (!is_base_url(url)) {
        send_refused(core, call, REFUSAL_BAD_NAME, "url", 0,
                     "engine.add: '%.*s' is not a base URL such as http://127.0.0.1:8080",
                     SLICE_ARG(in->url));
        return;
    }
    struct engine *engine = find(core, url);
    if (engine && engine->registered) {
        send_done(core, call, 0);
        return;
    }
    if (!engine && core->engine_count >= ENGINES_MAX) {
        send_refused(core, call, REFUSAL_QUEUE_FULL, NULL, 0, "%zu engines are known, no more fit",
                     core->engine_count);
        return;
    }
    engine = engine_intern(core, url, true);
    if (!engine)
        return;
    persist_engine(core, engine, true);
    dispatch_unpark(core, SIZE_MAX);
    send_done(core, call, 1);
}

void handle_engine_remove(struct core *core, const struct call *call)
{
    const struct msg_engine_remove *in = call->in;
    struct engine *engine = find(core, strip_slashes(in->url));
    if (!engine || !engine->registered) {
        send_refused(core, call, REFUSAL_UNKNOWN_ENGINE, "url", 0, "no engine %.*s is registered",
                     SLICE_ARG(in->url));
        return;
    }
    persist_engine(core, engine, false);
    set_registered(core, engine, false);
    forget_unused(core, engine);
    send_done(core, call, 1);
}
