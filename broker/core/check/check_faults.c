/* The invariants of failures, breakers, images, deadlines, leases and early cancels. */
#include "broker/core/check/check_faults.h"
#include "broker/core/clients/early_cancel.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/images.h"
#include "broker/core/queue/history.h"
#include "broker/core/state/state.h"

typedef const char *verdict; /* NULL, or what is broken */

struct tally {
    size_t expiries, breakers;
    uint64_t with_image; /* live groups */
};

/* ---- failures and deadlines -------------------------------------------------------- */

static verdict check_failures(const struct core *core, const struct job *job, bool is_over)
{
    const struct job_failures *failures = job_failures(job);
    if (is_over)
        return job->course->failures ? "a stage is over and its failures are still known" : NULL;
    if (failures->infras >= core->settings.infra_budget || failures->tasks >= core->settings.task_budget ||
        failures->blames >= core->settings.blame_budget)
        return "a job goes on that has used up a budget";
    if (failures->blames > failures->deaths || failures->len > HISTORY_MAX)
        return "a job's failures are out of bounds";
    return NULL;
}

static verdict check_work(const struct core *core, const struct group *group)
{
    const struct group_work *work = group->work;
    int64_t lease_ms = group->stream->renewed_ms + work->lease_ms;
    verdict bad = check_failures(core, &work->init, work->init_done);
    if (work->image && table_find(&core->images, image_name(work->image)) != work->image)
        return "a group has an image that is not known";
    if (!work->expiry.place)
        return "a live group has no deadline";
    if (work->expiry.key > work->ends_ms || work->ends_ms > core->now_ms + work->total_ms)
        return "a group's deadline is beyond its total time";
    if (work->lease_ms && work->expiry.key > lease_ms)
        return "a group's deadline is beyond its lease";
    for (uint32_t k = 0; !bad && work->rollouts && k < group->samples; k++)
        bad = check_failures(core, &work->rollouts[k].job, work->rollouts[k].ended);
    return bad;
}

static verdict check_groups(const struct core *core, struct tally *tally)
{
    size_t at = 0;
    for (const struct group *group; (group = table_next(&core->groups, &at));) {
        verdict bad = group->work ? check_work(core, group) : NULL;
        if (bad)
            return bad;
        tally->expiries += group->work != NULL;
        tally->with_image += group->work && group->work->image;
    }
    return tally->expiries == core->expiries.count && heap_is_sound(&core->expiries)
               ? NULL
               : "the deadlines are not those of the live groups";
}

static verdict check_leases(const struct core *core)
{
    const struct stream *stream;
    LIST_EACH(stream, &core->streams, link) {
        uint64_t under_lease = 0;
        for (const struct list *at = stream->live.next; at != &stream->live; at = at->next) {
            const struct group_work *work = container_of(at, const struct group, live)->work;
            under_lease += work->lease_ms ? work->live : 0;
        }
        if (under_lease != stream->under_lease)
            return "a stream's rollouts under a lease are counted wrong";
    }
    return NULL;
}

/* ---- breakers ---------------------------------------------------------------------- */

static verdict check_breaker(const struct core *core, const struct breaker *breaker, bool is_idle, struct tally *tally)
{
    bool is_armed = breaker->timer.place != 0;
    tally->breakers += is_armed;
    if (!breaker->wait_ms)
        return breaker->trial || is_armed || breaker->faults >= core->settings.breaker_faults
                   ? "a closed breaker has a trial or a timer, or should be open"
                   : NULL;
    if (breaker->trial)
        return is_armed || breaker->trial->place != PLACE_LEASED || job_breaker((struct job *)breaker->trial) != breaker
                   ? "a breaker's trial is not under way"
                   : NULL;
    return is_armed || is_idle ? NULL : "nothing will try what is set aside";
}

/* Whether a blocked job could go there. */
static bool is_waited_for(const struct core *core, const struct engine *engine)
{
    const struct job *job;
    if (engine->policy->is_waited && engine->live >= engine_limit(engine))
        return false;
    for (enum stage stage = STAGE_RUN; stage < STAGE_COUNT; stage++)
        LIST_EACH(job, &core->queues[PLACE_BLOCKED][stage].jobs, link)
            if (job_policy(job) == engine->policy)
                return true;
    return false;
}

static verdict check_engines(const struct core *core, struct tally *tally)
{
    const struct engine *engine;
    size_t blocked = core->queues[PLACE_BLOCKED][STAGE_RUN].count + core->queues[PLACE_BLOCKED][STAGE_EVAL].count;
    LIST_EACH(engine, &core->engines, link) {
        verdict bad = check_breaker(core, &engine->breaker, false, tally);
        if (bad)
            return bad;
        if (blocked && engine_lets(core, engine) && !engine->breaker.wait_ms && is_waited_for(core, engine))
            return "jobs wait for an engine and there is one";
    }
    return NULL;
}

static verdict check_image(const struct image *image)
{
    size_t count = 0;
    const struct job *job;
    LIST_EACH(job, &image->waiting.jobs, link) {
        if (job->place != PLACE_BLOCKED || job->stage != STAGE_INIT || job->group->work->image != image)
            return "a job waits for another image than its own";
        count++;
    }
    if (count != image->waiting.count || (count && !image->breaker.wait_ms))
        return "jobs wait for an image that works, or are counted wrong";
    if (list_is_empty(&image->idle) != (image->groups > 0))
        return "an image is idle that groups have, or is not and none has";
    return image->groups || image->breaker.faults ? NULL : "an image is kept for nothing";
}

static verdict check_images(const struct core *core, struct tally *tally, size_t *ret_waiting)
{
    size_t at = 0;
    uint64_t groups = 0;
    for (const struct image *image; (image = table_next(&core->images, &at));) {
        verdict bad = check_image(image);
        if (!bad)
            bad = check_breaker(core, &image->breaker, !image->waiting.count, tally);
        if (bad)
            return bad;
        *ret_waiting += image->waiting.count;
        groups += image->groups;
    }
    if (groups != tally->with_image)
        return "the images' groups are counted wrong";
    return core->images.count > IMAGES_MAX ? "too many images are known" : NULL;
}

const char *check_faults(const struct core *core, size_t blocked_inits)
{
    struct tally tally = {0};
    size_t waiting = 0;
    verdict bad = check_groups(core, &tally);
    if (!bad)
        bad = check_leases(core);
    if (!bad)
        bad = check_engines(core, &tally);
    if (!bad)
        bad = check_images(core, &tally, &waiting);
    if (bad)
        return bad;
    if (waiting != blocked_inits || waiting != core->images_waiting)
        return "the init jobs that wait for images are counted wrong";
    if (tally.breakers != core->breakers.count || !heap_is_sound(&core->breakers))
        return "the breakers' timers are not those of the open ones";
    return early_cancels_are_counted(core) ? NULL : "the early cancels are counted wrong";
}
