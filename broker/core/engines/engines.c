#include "broker/core/engines/engines.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/identity.h"
#include "broker/core/engines/load_sums.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdio.h>
#include <stdlib.h>

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
    list_init(&engine->noted);
    list_push_back(&core->engines, &engine->link);
    core->engine_count++;
    return engine;
}

void engine_forget_unused(struct core *core, struct engine *engine)
{
    if (engine->registered || engine->refs)
        return;
    breaker_reset(core, &engine->breaker);
    load_forget_engine(core, engine);
    list_remove(&engine->link);
    list_remove(&engine->noted);
    core->engine_count--;
    free(engine);
}

bool engine_lets(const struct core *core, const struct engine *engine)
{
    return engine->registered && !engine->draining && !engine_is_paused(engine) && !engine->is_other &&
           !engine_is_unprobed(core, engine) && !engine_is_silent(engine) && breaker_lets(core, &engine->breaker);
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

static void name_engine(struct core *core, struct engine **named, struct engine *engine)
{
    struct engine *old = *named;
    if (engine)
        engine->refs++;
    *named = engine;
    if (old) {
        old->refs--;
        engine_forget_unused(core, old);
    }
}

void job_set_engine(struct core *core, struct job *job, struct engine *engine)
{
    struct judging *judging = job->group->work->judging;
    if (job->stage == STAGE_RUN)
        name_engine(core, &job_rollout(job)->engine, engine);
    else if (job->stage == STAGE_EVAL && judging)
        name_engine(core, &judging->engines[job->sample], engine);
}

void rollout_leave_engines(struct core *core, struct rollout *rollout)
{
    struct judging *judging = rollout->job.group->work->judging;
    name_engine(core, &rollout->engine, NULL);
    if (judging)
        name_engine(core, &judging->engines[rollout->job.sample], NULL);
}

/* ---- for those who change one ------------------------------------------------------- */

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
    persist->row = (struct core_engine){.url = url,
                                        .runs_max = engine->runs_max,
                                        .draining = engine->draining,
                                        .version = version,
                                        .version_number = engine->version_number,
                                        .calls = calls,
                                        .credentials = credentials,
                                        .policy = policy,
                                        .tokenizer = tokenizer,
                                        .template = template,
                                        .paused_until_ms = calls.len ? (uint64_t)(core_clock_ms(core) + left_ms) : 0};
}

struct engine *engine_get(struct core *core, const struct call *call, struct slice text, const char *field)
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
