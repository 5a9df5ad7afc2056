/*
 * Policy versions and pauses. A trainer says what an engine serves after it has updated its
 * weights; run workers mark turns with it. So that no call spans two versions, engines are paused
 * meanwhile: workers begin no more calls there, and what is in flight finishes, is aborted and
 * made again, or is held open by the engine.
 *
 * Each change has a number, core->engine_states at that moment. Workers are told of each (lane.engine)
 * and say in their beats which they have taken last; so a pause is complete once every worker that calls engines
 * has taken it and none sees calls in flight. It has a bound and ends by itself then, here and in the
 * workers; on disk is when, so that it does for a broker that was killed meanwhile.
 */
#include "broker/core/engines/versions.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/probes.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdio.h>

/* ---- what workers are told ---------------------------------------------------------- */

static void tell(struct core *core, const struct worker *worker, const struct engine *engine)
{
    bool is_paused = engine_is_paused(engine);
    int64_t left_ms = engine->resume_ms - core->now_ms;
    struct msg_lane_engine in = {.url = engine_url(engine),
                                 .state = engine->state,
                                 .version = slice_from_str(engine->version),
                                 .has_version = engine->version[0],
                                 .number = engine->version_number,
                                 .has_number = engine->version_number > 0,
                                 .calls = slice_from_str(engine->calls),
                                 .has_calls = is_paused,
                                 .resume_ms = left_ms > 0 ? (uint64_t)left_ms : 0,
                                 .has_resume_ms = is_paused,
                                 .credentials = slice_from_str(engine->credentials),
                                 .has_credentials = engine->credentials[0]};
    send_worker(core, worker, MSG_lane_engine, &in);
}

void versions_tell(struct core *core, const struct worker *worker, uint64_t heard)
{
    const struct engine *engine;
    if (worker->calls_engines && heard < core->newest_state)
        LIST_EACH(engine, &core->engines, link)
            if (engine->state > heard)
                tell(core, worker, engine);
}

void versions_changed(struct core *core, struct engine *engine)
{
    const struct worker *worker;
    engine->state = core->newest_state = ++core->engine_states;
    LIST_EACH(worker, &core->workers, link)
        if (worker->calls_engines && !worker->hung)
            tell(core, worker, engine);
}

/* ---- pauses ------------------------------------------------------------------------- */

static void set_paused(struct core *core, struct engine *engine, struct slice calls)
{
    core->paused_count += (size_t)(calls.len > 0) - (size_t)engine_is_paused(engine);
    snprintf(engine->calls, sizeof(engine->calls), "%.*s", SLICE_ARG(calls));
    probes_refresh(core, engine);
}

/* The time of the pause does not count against the deadlines of what runs there. */
static void give_time(struct core *core, const struct engine *engine, int64_t ms)
{
    const struct worker *worker;
    struct job *job;
    LIST_EACH(worker, &core->workers, link) {
        for (struct list *at = worker->jobs.jobs.next; at != &worker->jobs.jobs; at = at->next) {
            job = container_of(at, struct job, link);
            if (job_engine(job) == engine && job->timer.place)
                heap_put(&core->timers, &job->timer, job->timer.key + ms);
        }
    }
}

static void pause_engine(struct core *core, struct engine *engine, const struct msg_policy_pause *in)
{
    bool is_new = !engine_is_paused(engine);
    if (!is_new && slice_is(in->calls, engine->calls))
        return;
    set_paused(core, engine, in->calls);
    if (is_new) {
        engine->resume_ms = core->now_ms + (int64_t)in->bound_ms;
        give_time(core, engine, (int64_t)in->bound_ms);
    }
    engine_persist(core, engine);
    versions_changed(core, engine);
}

static void resume_engine(struct core *core, struct engine *engine)
{
    set_paused(core, engine, slice_of(NULL, 0));
    engine_persist(core, engine);
    versions_changed(core, engine);
    engine_note(core, engine, ENGINE_READY);
}

/* What a pause still waits for: calls in flight, and workers that do not know of it. */
static uint64_t still_to_come(const struct core *core, const struct engine *engine)
{
    const struct worker *worker;
    bool holds = strcmp(engine->calls, "hold") == 0;
    uint64_t count = holds ? 0 : engine->seen.calls;
    LIST_EACH(worker, &core->workers, link)
        count += worker->calls_engines && !worker->hung && worker->heard < engine->state;
    return count;
}

int64_t versions_due(const struct core *core)
{
    const struct engine *engine;
    int64_t due_ms = INT64_MAX;
    if (core->paused_count)
        LIST_EACH(engine, &core->engines, link)
            if (engine_is_paused(engine) && engine->resume_ms < due_ms)
                due_ms = engine->resume_ms;
    return due_ms;
}

void versions_tick(struct core *core)
{
    struct engine *engine;
    if (core->paused_count)
        LIST_EACH(engine, &core->engines, link)
            if (engine_is_paused(engine) && engine->resume_ms <= core->now_ms) {
                core->counters.unresumed++;
                resume_engine(core, engine);
            }
}

/* ---- life --------------------------------------------------------------------------- */

void versions_reset(struct core *core, struct engine *engine)
{
    bool was_said = engine->version[0] || engine_is_paused(engine) || engine->credentials[0];
    engine->credentials[0] = '\0';
    set_paused(core, engine, slice_of(NULL, 0));
    engine->version[0] = '\0';
    engine->version_number = 0;
    if (was_said)
        versions_changed(core, engine);
}

/* If that is what it serves. */
static void note_newest(struct core *core, const struct engine *engine)
{
    if (!engine->version_number || engine->version_number < core->versions)
        return;
    if (engine->version_number > core->versions)
        samplers_note_version(core);
    core->versions = engine->version_number;
    memcpy(core->newest_version, engine->version, sizeof(core->newest_version));
}

void versions_restore(struct core *core, struct engine *engine, const struct core_engine *row)
{
    int64_t left_ms = (int64_t)row->paused_until_ms - core_clock_ms(core);
    snprintf(engine->version, sizeof(engine->version), "%.*s", SLICE_ARG(row->version));
    if (engine->version[0]) /* without a number: said before versions had one */
        engine->version_number = row->version_number ? row->version_number : 1;
    note_newest(core, engine);
    set_paused(core, engine, row->calls);
    engine->resume_ms = core->now_ms + (left_ms < 0              ? 0
                                        : left_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS
                                                                 : left_ms); /* the clock may have been stepped */
    if (engine->version[0] || engine_is_paused(engine) || engine->credentials[0])
        versions_changed(core, engine);
}

/* ---- policy.set, policy.pause, policy.resume ----------------------------------------- */

struct target {
    const struct call *call;
    struct slice url;
    bool has_url;
};

/* Calls `act` for the engine that is meant, or for all; adds up. False if it was refused. */
static bool each_engine(struct core *core, const struct target *target,
                        uint64_t (*act)(struct core *core, struct engine *engine, const void *in), uint64_t *ret_sum)
{
    struct engine *engine = NULL;
    *ret_sum = 0;
    if (target->has_url) {
        engine = engine_get(core, target->call, target->url, "engine");
        *ret_sum = engine ? act(core, engine, target->call->in) : 0;
        return engine != NULL;
    }
    if (core->engines_registered == 0) {
        send_refused(core, target->call, REFUSAL_UNKNOWN_ENGINE, NULL, 0, "no engine is registered");
        return false;
    }
    LIST_EACH(engine, &core->engines, link)
        *ret_sum += engine->registered ? act(core, engine, target->call->in) : 0;
    return true;
}

/* Of a name that an engine serves, or that is the newest, that one's; else one more than any before. */
static uint64_t number_of(const struct core *core, struct slice version)
{
    const struct engine *engine;
    if (slice_is(version, core->newest_version))
        return core->versions;
    LIST_EACH(engine, &core->engines, link)
        if (engine->version_number && slice_is(version, engine->version))
            return engine->version_number;
    return core->versions + 1;
}

static uint64_t act_set(struct core *core, struct engine *engine, const void *message)
{
    const struct msg_policy_set *in = message;
    if (slice_is(in->version, engine->version))
        return 1;
    engine->version_number = number_of(core, in->version);
    snprintf(engine->version, sizeof(engine->version), "%.*s", SLICE_ARG(in->version));
    note_newest(core, engine);
    engine_persist(core, engine);
    versions_changed(core, engine);
    return 1;
}

static uint64_t act_pause(struct core *core, struct engine *engine, const void *message)
{
    pause_engine(core, engine, message);
    return still_to_come(core, engine);
}

static uint64_t act_resume(struct core *core, struct engine *engine, const void *message)
{
    (void)message;
    if (!engine_is_paused(engine))
        return 0;
    resume_engine(core, engine);
    return 1;
}

void handle_policy_set(struct core *core, const struct call *call)
{
    const struct msg_policy_set *in = call->in;
    uint64_t sum;
    if (!name_is_valid(in->version))
        send_refused(core, call, REFUSAL_BAD_NAME, "version", 0,
                     "policy.set: '%.*s' has a '/', a blank or a control character", SLICE_ARG(in->version));
    else if (each_engine(core, &(struct target){call, in->engine, in->has_engine}, act_set, &sum))
        send_done(core, call, sum);
}

#define X(name, text) ", " text
static const char calls_words[] = CALLS(X); /* ", finish, abort, hold" */
#undef X

static bool is_calls(struct slice word)
{
#define X(name, text)                                                                                                  \
    if (slice_is(word, text))                                                                                          \
        return true;
    CALLS(X)
#undef X
    return false;
}

void handle_policy_pause(struct core *core, const struct call *call)
{
    const struct msg_policy_pause *in = call->in;
    uint64_t sum;
    if (!is_calls(in->calls))
        send_refused(core, call, REFUSAL_BAD_NAME, "calls", 0, "policy.pause: '%.*s' is not one of %s",
                     SLICE_ARG(in->calls), calls_words + 2);
    else if (each_engine(core, &(struct target){call, in->engine, in->has_engine}, act_pause, &sum))
        send_done(core, call, sum);
}

void handle_policy_resume(struct core *core, const struct call *call)
{
    const struct msg_policy_resume *in = call->in;
    uint64_t sum;
    if (each_engine(core, &(struct target){call, in->engine, in->has_engine}, act_resume, &sum))
        send_done(core, call, sum);
}

const char *versions_check(const struct core *core)
{
    const struct engine *engine;
    size_t paused = 0;
    LIST_EACH(engine, &core->engines, link) {
        paused += engine_is_paused(engine);
        if (engine_is_paused(engine) && !engine->registered)
            return "an engine is paused that is not registered";
        if (engine_is_paused(engine) && engine->resume_ms > core->now_ms + PAUSE_MAX_MS)
            return "a pause lasts longer than it may";
        if (engine->state > core->newest_state || core->newest_state > core->engine_states)
            return "an engine's state is one that is still to come";
        if ((engine->version[0] || engine->credentials[0]) && engine->registered && !engine->state)
            return "workers are never told of a version, or of credentials";
        if (engine->credentials[0] && !engine->registered)
            return "an engine has credentials that is not registered";
        if (engine->version_number > core->versions || (engine->version_number && !engine->version[0]))
            return "a version has the number of one that is still to come, or no name";
    }
    return paused == core->paused_count ? NULL : "the paused engines are counted wrong";
}
