#include "broker/core/status/rollout_why.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/placing.h"
#include "broker/core/needs/missing.h"
#include "broker/core/needs/needs.h"
#include "broker/core/queue/history.h"
#include "broker/core/queue/job_progress.h"
#include "broker/core/state/state.h"
#include "broker/core/status/stages.h"
#include "common/base/text.h"

#include <stdarg.h>
#include <stdio.h>

static void say(struct why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct why *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof(why->text), format, args);
    va_end(args);
    text_repair(why->text);
}

static int64_t seconds_to(const struct core *core, int64_t due_ms)
{
    return due_ms > core->now_ms ? (due_ms - core->now_ms + 999) / 1000 : 0;
}

/* ---- what waits for an engine ---------------------------------------------------------------------- */

static void say_engine(const struct core *core, const struct engine *engine, struct why *why)
{
    const struct breaker *breaker = &engine->breaker;
    if (breaker_state(core, breaker) == BREAKER_OPEN)
        say(why, "the engine %.256s is failing, and is tried again in %lld s: %s", engine->url,
            (long long)seconds_to(core, breaker->due_ms), breaker->why);
    else if (breaker_state(core, breaker) == BREAKER_TRIAL)
        say(why, "the engine %.256s was failing, and one job tries it: %s", engine->url, breaker->why);
    else if (engine_is_silent(engine))
        say(why, "the engine %.256s does not answer: %s", engine->url, engine->probe.error);
    else if (engine_is_paused(engine))
        say(why, "the engine %.256s is paused for %lld s at the most", engine->url,
            (long long)seconds_to(core, engine->resume_ms));
    else if (engine->draining)
        say(why, "the engine %.256s is draining: sluice engine add takes it back", engine->url);
    else if (engine->is_other)
        say(why, "the engine %.256s serves something else than its policy", engine->url);
    else if (!engine->has_answered)
        say(why, "the engine %.256s has not answered yet", engine->url);
    else
        say(why, "the engine %.256s has as many rollouts as it takes", engine->url);
}

static void say_blocked_by_engines(const struct core *core, const struct job *job, struct why *why)
{
    const struct policy *policy = job_policy(job);
    const bool is_usual = !policy || strcmp(policy->name, "default") == 0;
    const struct engine *engine, *first = NULL;
    uint64_t count = 0;
    LIST_EACH(engine, &core->engines, link)
        if (engine->registered && engine->policy == policy) {
            first = first ? first : engine;
            count++;
        }
    if (!first) {
        say(why, "no engine is registered%s%.64s: sluice engine add URL%s%.64s", policy ? " for the policy " : "",
            policy ? policy->name : "", is_usual ? "" : " --policy ", is_usual ? "" : policy->name);
        return;
    }
    say_engine(core, first, why);
    const size_t len = strlen(why->text);
    if (count > 1 && len < WHY_MAX)
        snprintf(why->text + len, sizeof(why->text) - len, "; nor does any of the %llu others take it",
                 (unsigned long long)count - 1);
}

/* ---- every place ------------------------------------------------------------------------------- */

static void say_blocked(const struct core *core, const struct job *job, struct why *why)
{
    const struct image *image = job->group->work->image;
    if (job->stage != STAGE_INIT)
        say_blocked_by_engines(core, job, why);
    else if (image)
        say(why, "its image %.256s is set aside, and is tried again in %lld s: %s", image->name,
            (long long)seconds_to(core, image->breaker.due_ms), image->breaker.why);
}

static void say_queued(const struct core *core, const struct job *job, struct why *why)
{
    const char *stage = stage_wire((enum stage)job->stage);
    const struct policy *policy = job_policy(job);
    const struct need *need = job_need(core, job);
    struct missing missing;
    const uint64_t slots = core->slots[job->stage];
    if (slots == 0 && stage_workers_of(core, (enum stage)job->stage).workers == 0)
        say(why, "no %s worker is connected: sluice worker %s --broker URL", stage, stage);
    else if (slots == 0)
        say(why, "every %s worker is draining, hung or unreached: `sluice status` says why", stage);
    else if (need && missing_of(core, need, &missing).len)
        say(why, "it waits for %s", missing.text);
    else if (policy && !placing_has_room(core, policy))
        say_blocked_by_engines(core, job, why);
    else if (job->place == PLACE_ISOLATED)
        say(why, "it waits to run alone on an idle %s worker, as two workers were lost with it", stage);
    else
        say(why, "all %llu slots of %s workers are taken, or it is others' turn", (unsigned long long)slots, stage);
}

static void say_unoffered(const struct core *core, const struct need *need, struct why *why)
{
    struct missing missing;
    if (missing_of(core, need, &missing).len) {
        say(why, "it waits for %s", missing.text);
        return;
    }
    char needed[256];
    need_print(need, needed, sizeof(needed));
    say(why, "none of the %llu %s workers that offer %s has a free slot", (unsigned long long)need_workers(core, need),
        stage_wire(need->stage), needed);
}

static void say_place(const struct core *core, const struct job *job, struct why *why)
{
    const struct job_progress *progress = job_progress_find(core, job);
    switch ((enum place)job->place) {
    case PLACE_LEASED: say(why, "%s", progress ? progress->why : ""); break;
    case PLACE_BLOCKED: say_blocked(core, job, why); break;
    case PLACE_UNOFFERED: say_unoffered(core, job_need(core, job), why); break;
    case PLACE_DELAYED:
        say(why, "it failed, and is tried again in %lld s", (long long)seconds_to(core, job->timer.key));
        break;
    case PLACE_ORPHAN: say(why, "the broker was started again, and its worker may still have it"); break;
    case PLACE_HELD: say(why, "the sampler of its stream holds it until more groups are wanted"); break;
    case PLACE_QUEUED:
    case PLACE_ISOLATED: say_queued(core, job, why); break;
    default: break;
    }
}

/* The newest line of what went wrong, without its time ("+12 s "). */
static struct slice last_failure(const struct job *job)
{
    const struct job_failures *failures = job_failures(job);
    size_t from = failures->len;
    while (from > 0 && failures->history[from - 1] != '\n')
        from--;
    struct slice line = slice_of(failures->history + from, failures->len - from);
    const uint8_t *time = line.len && line.data[0] == '+' ? memmem(line.data, line.len, " s ", 3) : NULL;
    return time ? slice_of(time + 3, line.len - (size_t)(time + 3 - line.data)) : line;
}

struct slice rollout_why(const struct core *core, const struct job *job, struct why *why)
{
    why->text[0] = '\0';
    say_place(core, job, why);
    const struct slice failure = last_failure(job);
    const size_t len = strlen(why->text);
    if (failure.len && len < WHY_MAX)
        snprintf(why->text + len, sizeof(why->text) - len, "%sbefore: %.*s", len ? "; " : "", SLICE_ARG(failure));
    text_repair(why->text);
    return slice_from_str(why->text);
}
