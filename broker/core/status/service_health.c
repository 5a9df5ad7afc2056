/*
 * How the broker is, in one word and in sentences; and what to do about it.
 */
#include "broker/core/status/service_health.h"
#include "broker/core/clients/admission.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/identity.h"
#include "broker/core/needs/missing.h"
#include "broker/core/needs/needs.h"
#include "broker/core/state/state.h"
#include "broker/core/status/stages.h"
#include "broker/core/status/view.h"
#include "broker/core/streams/quotas.h"
#include "broker/core/workers/lost_workers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void say(json_t *sentences, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(json_t *sentences, const char *format, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    json_array_append_new(sentences, json_string(sentence));
}

static bool is_aside(const struct core *core, const struct engine *engine)
{
    return breaker_state(core, &engine->breaker) != BREAKER_CLOSED;
}

static size_t count_blocked(const struct core *core)
{
    return core->queues[PLACE_BLOCKED][STAGE_RUN].count + core->queues[PLACE_BLOCKED][STAGE_EVAL].count;
}

/* A policy that evaluations wait for and no engine is of; NULL: there is none. */
static const struct policy *find_judgeless(const struct core *core)
{
    const struct job *job;
    LIST_EACH(job, &core->queues[PLACE_BLOCKED][STAGE_EVAL].jobs, link)
        if (!job_policy(job)->engines)
            return job_policy(job);
    return NULL;
}

static bool is_silent(const struct core *core, const struct engine *engine)
{
    (void)core;
    return engine_is_silent(engine);
}

/* How many workers say that something is wrong on their nodes; the first of them. */
static size_t count_node_errors(const struct core *core, const struct worker **ret_first)
{
    size_t count = 0;
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        if (!worker->node_error || !*worker->node_error)
            continue;
        if (count++ == 0)
            *ret_first = worker;
    }
    return count;
}

static bool is_other(const struct core *core, const struct engine *engine)
{
    (void)core;
    return engine->is_other;
}

/* Something answers there, and a worker that asked what it is did not find an engine. */
static bool is_unknown(const struct core *core, const struct engine *engine)
{
    (void)core;
    return engine->has_answered && !engine->identity.template[0] && !engine_is_silent(engine);
}

/* How many registered engines are so; the first of them. */
static size_t count_engines(const struct core *core, bool (*is_so)(const struct core *, const struct engine *),
                            const struct engine **ret_first)
{
    size_t count = 0;
    const struct engine *engine;
    LIST_EACH(engine, &core->engines, link) {
        if (!engine->registered || !is_so(core, engine))
            continue;
        if (count++ == 0)
            *ret_first = engine;
    }
    return count;
}

/* How many rollouts of this stage wait for what no worker offers; 0 as well for no need at all. */
static uint64_t count_unoffered(const struct core *core, const struct need *need)
{
    return need && !need_workers(core, need) ? need->waiting + need->queued : 0;
}

static uint64_t count_all_unoffered(const struct core *core)
{
    uint64_t count = 0;
    for (unsigned number = 1; number <= NEEDS_MAX; number++)
        count += count_unoffered(core, core->needs[number]);
    return count;
}

/* ---- health -------------------------------------------------------------------------- */

/* A stage without a worker that can take something: nothing gets through. */
static bool is_down(const struct core *core, enum stage stage, json_t *reasons)
{
    size_t queued = status_waiting(core, stage);
    if (core->slots[stage])
        return false;
    if (queued)
        say(reasons, "no %s worker is ready, and %zu jobs wait for one", stage_wire(stage), queued);
    else
        say(reasons, "no %s worker is ready", stage_wire(stage));
    return true;
}

/* Workers were lost of late, and what they had is not made up for. */
static void note_lost_workers(const struct core *core, enum stage stage, json_t *reasons)
{
    uint64_t before = 0, count = 0;
    const struct lost_worker *lost, *last = NULL;
    for (uint64_t n = 0; (lost = lost_worker_nth(core, n)); n++) {
        if (lost->stage != stage)
            continue;
        last = last ? last : lost;
        before = lost->slots_before > before ? lost->slots_before : before;
        count++;
    }
    if (last && core->slots[stage] < before)
        say(reasons,
            "%" PRIu64 " %s workers were lost, the last %" PRId64 " s ago: %" PRIu64 " slots are left of %" PRIu64,
            count, stage_wire(stage), (core->now_ms - last->at_ms) / 1000, core->slots[stage], before);
}

static void note_shortages(const struct core *core, json_t *reasons)
{
    const struct engine *first = NULL;
    const struct worker *worker = NULL;
    size_t aside = count_engines(core, is_aside, &first);
    size_t silent = count_engines(core, is_silent, &first);
    size_t failing = count_node_errors(core, &worker);
    size_t others = count_engines(core, is_other, &first);
    const size_t blocked = count_blocked(core);
    const struct policy *judgeless = find_judgeless(core);
    uint64_t unoffered = count_all_unoffered(core);
    if (aside)
        say(reasons, "%zu of %zu engines are set aside after faults in a row", aside, core->engines_registered);
    if (silent)
        say(reasons, "%zu of %zu engines do not answer", silent, core->engines_registered);
    if (failing)
        say(reasons, "%zu of the workers report an error on their nodes, %s among them: %s", failing, worker->host,
            worker->node_error);
    if (others)
        say(reasons, "%zu of %zu engines serve another tokenizer or chat template than their policy", others,
            core->engines_registered);
    if (blocked && !core->engines_registered)
        say(reasons, "%zu jobs wait for an engine, and none is registered", blocked);
    else if (judgeless)
        say(reasons, "evaluations wait for an engine of the policy %s, and none is registered", judgeless->name);
    if (unoffered)
        say(reasons, "%" PRIu64 " rollouts wait for what no worker's handlers offer", unoffered);
    if (core->store.error[0])
        say(reasons, "the store of layers is not tended: %s", core->store.error);
    if (core->is_disk_low)
        say(reasons, "the disk of the broker's data directory is nearly full");
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++)
        if (quota_percent(core, quota) >= ADMISSION_FAIR)
            say(reasons, "%" PRIu64 " %% of the %s", quota_percent(core, quota), quota_filled(quota));
}

const char *status_health(const struct core *core, json_t *reasons)
{
    bool down = false;
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        down |= is_down(core, stage, reasons);
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        note_lost_workers(core, stage, reasons);
    note_shortages(core, reasons);
    return down ? "down" : json_array_size(reasons) ? "degraded" : "healthy";
}

/* ---- advice -------------------------------------------------------------------------- */

static void advise_stage(const struct core *core, json_t *advice, enum stage stage)
{
    struct stage_workers stage_workers = stage_workers_of(core, stage);
    size_t queued = status_waiting(core, stage);
    const char *name = stage_wire(stage);
    if (stage_workers.workers == 0)
        say(advice, "no %s worker is connected%s: sluice worker %s --broker URL", name,
            queued ? ", and jobs wait for one" : "", name);
    else if (stage_workers.slots == 0 && queued)
        say(advice,
            "every %s worker is draining, hung or unreached, and %zu jobs wait: "
            "sluice worker %s --broker URL",
            name, queued, name);
    if (stage_workers.hung)
        say(advice,
            "%" PRIu64 " %s workers send beats but do not get on; their jobs were given "
            "to others: look at their logs and restart them",
            stage_workers.hung, name);
}

static void advise_quota(struct view view, json_t *advice, enum quota quota)
{
    uint64_t percent = view.is_whole ? quota_percent(view.core, quota)
                                     : quota_client_percent(view.core, view.client, quota);
    if (percent >= ADMISSION_FAIR)
        say(advice, "%" PRIu64 " %% of the %s; submits will be refused, queue-full: %s", percent, quota_filled(quota),
            quota_remedy(quota));
    else if (percent >= ADMISSION_WARN)
        say(advice, "%" PRIu64 " %% of the %s", percent, quota_filled(quota));
}

static void advise_silence(const struct core *core, json_t *advice)
{
    const struct engine *first = NULL;
    size_t silent = count_engines(core, is_silent, &first);
    if (silent)
        say(advice, "%zu of %zu engines do not answer, and no rollout goes there until they do: %.200s", silent,
            core->engines_registered, first->probe.error);
}

static void advise_unknown(const struct core *core, json_t *advice)
{
    const struct engine *first = NULL;
    const size_t count = count_engines(core, is_unknown, &first);
    if (count)
        say(advice,
            "%zu of %zu engines answer, but as none that is known here: sluice engine check %.200s says what it lacks",
            count, core->engines_registered, first->url);
}

static void advise_others(const struct core *core, json_t *advice)
{
    const struct engine *first = NULL;
    size_t count = count_engines(core, is_other, &first);
    if (!count)
        return;
    struct core_text text;
    struct slice why = engine_difference(&text, first);
    say(advice,
        "%zu of %zu engines get no rollouts, %.100s among them: %.*s: remove it, have it serve "
        "what the "
        "policy's others do, or say that it is another's: sluice engine add URL --policy NAME "
        "(docs/engines.md)",
        count, core->engines_registered, first->url, SLICE_ARG(why));
}

static void advise_breakers(const struct core *core, json_t *advice)
{
    const struct engine *first = NULL;
    size_t engines_open = count_engines(core, is_aside, &first), images_open = 0, at = 0;
    for (const struct image *image; (image = table_next(&core->images, &at));)
        images_open += breaker_state(core, &image->breaker) != BREAKER_CLOSED;
    if (engines_open)
        say(advice,
            "%zu of %zu engines are set aside after faults in a row, %s among them, and "
            "%zu jobs wait; each is tried again by itself: look at their logs",
            engines_open, core->engines_registered, first->url, count_blocked(core));
    if (images_open)
        say(advice,
            "%zu images are set aside after faults in a row, and %zu groups wait for "
            "them; each is tried again by itself: see \"images\"",
            images_open, core->images_waiting);
}

/* Most often one of two versions: there is no word for that in what the older one can read. */
static void advise_versions(const struct core *core, json_t *advice)
{
    if (!core->unread.count || core->now_ms - core->unread.at_ms > core->settings.lost_shown_ms)
        return;
    say(advice,
        "%" PRIu64 " messages of workers could not be read, the last %" PRId64 " s ago%s%s: %s. "
        "A worker that is newer than its broker says what that does not know: upgrade the broker "
        "first, then "
        "workers",
        core->unread.count, (core->now_ms - core->unread.at_ms) / 1000, core->unread.from[0] ? " of " : "",
        core->unread.from, core->unread.why);
}

/* Those whose lanes lead nowhere yet. */
static void advise_unreached(const struct core *core, json_t *advice)
{
    const struct worker *worker, *first = NULL;
    size_t count = 0;
    LIST_EACH(worker, &core->workers, link) {
        if (!worker->unreached)
            continue;
        first = first ? first : worker;
        count++;
    }
    if (first)
        say(advice,
            "%zu workers are given no jobs as the broker does not reach them, %s on %s among "
            "them: %s",
            count, first->id, first->host, first->unreached);
}

/* Those that would have better sandboxes if their nodes allowed it. */
static void advise_sandboxes(const struct core *core, json_t *advice)
{
    const struct worker *worker, *first = NULL;
    size_t count = 0;
    LIST_EACH(worker, &core->workers, link) {
        if (!worker->sandbox_why || !*worker->sandbox_why)
            continue;
        first = first ? first : worker;
        count++;
    }
    if (first)
        say(advice,
            "%zu workers have sandboxes of a weaker tier or none, %s on %s among them, with "
            "%s: %s: run sluice doctor there",
            count, first->id, first->host, first->sandbox ? first->sandbox : "none", first->sandbox_why);
}

static void advise_needs(const struct core *core, json_t *advice)
{
    enum { SAID_MAX = 20 };
    struct missing missing;
    size_t said = 0;
    for (unsigned number = 1; number <= NEEDS_MAX && said < SAID_MAX; number++) {
        const uint64_t count = count_unoffered(core, core->needs[number]);
        if (!count)
            continue;
        const struct slice what = missing_of(core, core->needs[number], &missing);
        say(advice, "%" PRIu64 " rollout%s for %.*s", count, count == 1 ? " waits" : "s wait", SLICE_ARG(what));
        said++;
    }
}

/* What its operator should know: it runs handlers, and some of what they offer counts for nothing. */
static void advise_offers(const struct core *core, json_t *advice)
{
    const struct worker *worker, *first = NULL;
    size_t count = 0;
    LIST_EACH(worker, &core->workers, link) {
        if (!worker->offers_error)
            continue;
        first = first ? first : worker;
        count++;
    }
    if (first)
        say(advice, "%zu workers offer what is not taken, %s on %s among them: %s", count, first->id, first->host,
            first->offers_error);
}

static void advise_node_error(const struct core *core, json_t *advice)
{
    const struct worker *first = NULL;
    if (count_node_errors(core, &first))
        say(advice, "%s on %s says: %s: see who does that there, and its log", first->id, first->host,
            first->node_error);
}

static void advise_engines(const struct core *core, json_t *advice)
{
    const struct policy *judgeless = find_judgeless(core);
    if (count_blocked(core) && !core->engines_registered)
        say(advice, "%zu jobs need an engine and none is registered: sluice engine add URL", count_blocked(core));
    if (judgeless)
        say(advice,
            "evaluations need an engine of the policy %s and none is registered: sluice engine add URL --policy %s",
            judgeless->name, judgeless->name);
}

json_t *status_advice(struct view view)
{
    const struct core *core = view.core;
    json_t *advice = json_array();
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++)
        advise_quota(view, advice, quota);
    if (core->is_disk_low)
        say(advice, "the disk of the broker's data directory is nearly full, and submits are "
                    "refused, disk-low: make room there, or acknowledge trajectories");
    if (!view.is_whole)
        return advice;
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        advise_stage(core, advice, stage);
    advise_needs(core, advice);
    advise_offers(core, advice);
    advise_engines(core, advice);
    advise_breakers(core, advice);
    advise_silence(core, advice);
    advise_unknown(core, advice);
    advise_others(core, advice);
    advise_unreached(core, advice);
    advise_versions(core, advice);
    advise_sandboxes(core, advice);
    advise_node_error(core, advice);
    return advice;
}
