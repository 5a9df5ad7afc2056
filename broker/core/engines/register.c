/* engine.add, engine.remove, engine.drain: which engines are registered. */
#include "broker/core/engines/register.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/probes.h"
#include "broker/core/engines/identity.h"
#include "broker/core/engines/policies.h"
#include "broker/core/engines/versions.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdio.h>
#include <string.h>

#include "schemas/messages/message_max.h"

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
    versions_reset(core, engine);
    probes_refresh(core, engine);
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
    versions_restore(core, engine, row);
    return true;
}

/* Registers it, takes it back, or changes what was said of it; false: it is all that already. */
static bool change(struct core *core, struct engine *engine, const struct msg_engine_add *in, const char *credentials)
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
        versions_changed(core, engine); /* before any run is sent there */
    }
    engine_persist(core, engine);
    engine_note(core, engine, ENGINE_READY);
    return true;
}

/* Registered, changed or moved; says so. */
static void add(struct core *core, const struct call *call, struct engine *engine, const char *credentials)
{
    char was[MESSAGE_MAX(done, moved_from) + 1] = "";
    if (engine->policy)
        snprintf(was, sizeof(was), "%s", engine->policy->name);
    struct msg_done done = {.tag = call->tag, .count = change(core, engine, call->in, credentials)};
    done.has_moved_from = was[0] && engine->policy && strcmp(was, engine->policy->name) != 0;
    done.moved_from = slice_from_str(was);
    send_client(core, call->client, MSG_done, &done);
}

void handle_engine_add(struct core *core, const struct call *call)
{
    const struct msg_engine_add *in = call->in;
    struct url url;
    struct fail why;
    if (url_parse(in->url, &url, &why) < 0) {
        send_refused(core, call, REFUSAL_BAD_NAME, "url", 0, "'%.*s' is not a base URL such as http://gpu1:8000: %s",
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
        send_refused(core, call, REFUSAL_QUEUE_FULL, NULL, 0, "%zu engines are known, no more fit", core->engine_count);
        return;
    }
    engine = engine ? engine : engine_intern(core, base);
    if (engine)
        add(core, call, engine, url.credentials);
}

void handle_engine_remove(struct core *core, const struct call *call)
{
    const struct msg_engine_remove *in = call->in;
    struct engine *engine = engine_get(core, call, in->url, "url");
    if (!engine)
        return;
    set_registered(core, engine, false);
    engine_persist(core, engine);
    engine_forget_unused(core, engine);
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
