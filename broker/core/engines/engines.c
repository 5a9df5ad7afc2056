#include "broker/core/state.h"

#include <stdio.h>
#include <stdlib.h>

struct slice engine_url(const struct engine *engine)
{
    return engine ? slice_of(engine->url, engine->url_len) : slice_of(NULL, 0);
}

struct engine *engine_find(const struct core *core, struct slice url)
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
    engine->draining = false;
    engine->runs_max = engine->room = 0;
    engine->has_cache = false;
    engine->overloaded_since_ms = 0;
    engine->identity = (struct identity){0};
    engine->has_answered = false;
    if (!registered)
        engine_set_policy(core, engine, NULL);
    policy_reset(core, engine);
    probes_refresh(core, engine);
}

struct engine *engine_intern(struct core *core, struct slice url)
{
    struct engine *engine = engine_find(core, url);
    if (engine)
        return engine;
    engine = core_alloc(core, 1, sizeof(*engine) + url.len + 1);
    if (!engine)
        return NULL;
    memcpy(engine->url, url.data, url.len);
    engine->url_len = (uint32_t)url.len;
    list_push_back(&core->engines, &engine->link);
    core->engine_count++;
    return engine;
}

bool engine_restore(struct core *core, const struct core_engine *row)
{
    struct engine *engine = engine_intern(core, row->url);
    if (!engine)
        return false;
    set_registered(core, engine, true);
    snprintf(engine->credentials, sizeof(engine->credentials), "%.*s", SLICE_ARG(row->credentials));
    struct policy *policy = policy_intern(core, row->policy);
    if (!policy)
        return false;
    engine_set_policy(core, engine, policy);
    engine->identity = identity_of(row->tokenizer, row->template);
    engine_judge(core, engine);
    engine->runs_max = (uint32_t)row->runs_max;
    engine->draining = row->draining;
    policy_restore(core, engine, row);
    return true;
}

/* An engine that nobody registers and no rollout names is forgotten. */
static void forget_unused(struct core *core, struct engine *engine)
{
    if (engine->registered || engine->refs)
        return;
    breaker_reset(core, &engine->breaker);
    load_forget_engine(core, engine);
    list_remove(&engine->link);
    core->engine_count--;
    free(engine);
}

bool engine_is_paused(const struct engine *engine) { return engine->calls[0] != '\0'; }

bool engine_lets(const struct core *core, const struct engine *engine)
{
    return engine->registered && !engine->draining && !engine_is_paused(engine) &&
           !engine->is_other && !engine_is_unprobed(core, engine) && !engine_is_silent(engine) && breaker_lets(core, &engine->breaker);
}

bool engine_is_ready(const struct core *core, const struct policy *policy)
{
    const struct engine *engine;
    LIST_EACH(engine, &core->engines, link)
        if ((!policy || engine->policy == policy) && engine_lets(core, engine))
            return true;
    return false;
}

uint64_t engine_limit(const struct engine *engine)
{
    uint64_t set = engine->runs_max ? engine->runs_max : UINT64_MAX;
    uint64_t room = engine->room ? engine->room : UINT64_MAX;
    return set < room ? set : room;
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

/* ---- engine.add, engine.remove, engine.drain --------------------------------------- */

void engine_persist(struct core *core, const struct engine *engine)
{
    struct slice url = effect_copy(core, engine_url(engine));
    struct slice version = effect_copy(core, slice_from_str(engine->version));
    struct slice calls = effect_copy(core, slice_from_str(engine->calls));
    struct slice credentials = effect_copy(core, slice_from_str(engine->credentials));
    struct slice policy = effect_copy(core, slice_from_str(engine->policy ? engine->policy->name : ""));
    struct slice tokenizer = effect_copy(core, slice_from_str(engine->identity.tokenizer));
    struct slice template = effect_copy(core, slice_from_str(engine->identity.template));
    struct effect *persist = effect_push(core, PERSIST_ENGINE);
    int64_t left_ms = engine->resume_ms - core->now_ms;
    persist->engine = url;
    persist->present = engine->registered;
    persist->row = (struct core_engine){
        .url = url, .runs_max = engine->runs_max, .draining = engine->draining,
        .version = version, .version_number = engine->version_number, .calls = calls,
        .credentials = credentials, .policy = policy, .tokenizer = tokenizer, .template = template,
        .paused_until_ms = calls.len ? (uint64_t)(core_clock_ms(core) + left_ms) : 0};
}

/* Registers it, takes it back, or changes what was said of it; false: it is all that already. */
static bool change(struct core *core, struct engine *engine, const struct msg_engine_add *in,
                   const char *credentials)
{
    uint32_t runs_max = in->has_runs_max ? (uint32_t)in->runs_max : engine->runs_max;
    bool is_told_anew = credentials[0] && strcmp(credentials, engine->credentials) != 0;
    struct policy *policy = engine->policy && !in->has_policy ? engine->policy : policy_intern(core, in->policy);
    if (!policy || (engine->registered && !engine->draining && runs_max == engine->runs_max && !is_told_anew &&
                    policy == engine->policy))
        return false;
    if (!engine->registered)
        set_registered(core, engine, true);
    if (policy != engine->policy) {
        engine_set_policy(core, engine, policy);
        engine_judge(core, engine);
    }
    engine->runs_max = runs_max;
    engine->draining = false;
    if (is_told_anew) {
        memcpy(engine->credentials, credentials, strlen(credentials) + 1);
        policy_changed(core, engine); /* before any run is sent there */
    }
    engine_persist(core, engine);
    dispatch_unblock(core, SIZE_MAX);
    return true;
}

void handle_engine_add(struct core *core, const struct call *call)
{
    const struct msg_engine_add *in = call->in;
    struct url url;
    struct fail why;
    if (url_parse(in->url, &url, &why) < 0) {
        send_refused(core, call, REFUSAL_BAD_NAME, "url", 0,
                     "engine.add: '%.*s' is not a base URL such as http://127.0.0.1:8080: %s",
                     SLICE_ARG(url_shown(in->url)), why.text);
        return;
    }
    if (in->has_policy && !name_is_valid(in->policy)) {
        send_refused(core, call, REFUSAL_BAD_NAME, "policy", 0,
                     "engine.add: '%.*s' has a '/', a blank or a control character", SLICE_ARG(in->policy));
        return;
    }
    if (!policy_find(core, in->policy) && !policies_have_room(core)) {
        send_refused(core, call, REFUSAL_QUEUE_FULL, "policy", 0, "no more policies fit");
        return;
    }
    struct slice base = slice_from_str(url.base);
    struct engine *engine = engine_find(core, base);
    if (!engine && core->engine_count >= ENGINES_MAX) {
        send_refused(core, call, REFUSAL_QUEUE_FULL, NULL, 0, "%zu engines are known, no more fit",
                     core->engine_count);
        return;
    }
    engine = engine ? engine : engine_intern(core, base);
    if (engine)
        send_done(core, call, change(core, engine, in, url.credentials));
}

struct engine *engine_get(struct core *core, const struct call *call, struct slice text,
                          const char *field)
{
    struct url url;
    bool is_url = url_parse(text, &url, NULL) == 0;
    struct engine *engine = engine_find(core, is_url ? slice_from_str(url.base) : text);
    if (engine && engine->registered)
        return engine;
    send_refused(core, call, REFUSAL_UNKNOWN_ENGINE, field, 0, "no engine %.*s is registered",
                 SLICE_ARG(url_shown(text)));
    return NULL;
}

void handle_engine_remove(struct core *core, const struct call *call)
{
    const struct msg_engine_remove *in = call->in;
    struct engine *engine = engine_get(core, call, in->url, "url");
    if (!engine)
        return;
    set_registered(core, engine, false);
    engine_persist(core, engine);
    forget_unused(core, engine);
    send_done(core, call, 1);
}

void handle_engine_drain(struct core *core, const struct call *call)
{
    const struct msg_engine_drain *in = call->in;
    struct engine *engine = engine_get(core, call, in->url, "url");
    if (!engine)
        return;
    if (!engine->draining) {
        engine->draining = true;
        engine_persist(core, engine);
    }
    send_done(core, call, engine->live);
}
