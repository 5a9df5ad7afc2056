/*
 * Migration: a rollout keeps its engine, whose cache holds its context, for as long as that is of use. Once an
 * engine says that its cache is at the top, holds far more than the mean, and both for overload_ms, the
 * cache is of no use any more: one rollout at a time is told to go on elsewhere from its next turn on
 * (job.migrate), the one handed out last, whose context costs least to read again. It goes to the engine
 * that holds least, below the mean and with room. Its worker says where it is then (job.migrated): it stays
 * where the other serves something else. A rollout is told once in a run, so that none goes to and fro.
 */
#include "broker/core/workers/migration.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/placing.h"
#include "broker/core/queue/failures.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/workers/worker_ids.h"

/* ---- who is overloaded, and who could take something ------------------------------- */

struct loads {
    uint64_t typical;
    uint64_t mean; /* of the engines that take runs */
};

/* Of a policy's engines. */
static struct loads loads_of(const struct core *core, const struct policy *policy)
{
    const struct engine *engine;
    struct loads loads = {.typical = placing_typical(core)};
    double sum = 0;
    size_t count = 0;
    LIST_EACH(engine, &core->engines, link)
        if (engine->policy == policy && engine_lets(core, engine)) {
            sum += (double)placing_load(engine, loads.typical);
            count++;
        }
    loads.mean = count ? (uint64_t)(sum / (double)count) : 0;
    return loads;
}

static bool is_above(const struct engine *engine, const struct loads *loads)
{
    return placing_load(engine, loads->typical) > loads->mean + loads->mean / 100 * OVERLOAD_PERCENT;
}

static bool may_take(const struct core *core, const struct engine *engine)
{
    bool is_full = engine->has_cache && engine->cache_permille >= ROOM_FULL_PERMILLE;
    return engine_lets(core, engine) && !engine->breaker.wait_ms && !is_full && engine->live < engine_limit(engine);
}

/* The engine that holds least, below the mean; or NULL. */
static struct engine *find_target(const struct core *core, const struct policy *policy, const struct loads *loads)
{
    struct engine *engine, *best = NULL;
    uint64_t least = loads->mean;
    LIST_EACH(engine, &core->engines, link) {
        uint64_t load = placing_load(engine, loads->typical);
        if (engine->policy != policy || load >= least || !may_take(core, engine))
            continue;
        best = engine;
        least = load;
    }
    return best;
}

/* ---- what goes --------------------------------------------------------------------- */

/* The rollout handed out last of those that run there and were not told to migrate yet. */
static struct job *find_migratable(const struct core *core, const struct engine *engine)
{
    const struct worker *worker;
    struct job *job, *newest = NULL;
    LIST_EACH(worker, &core->workers, link)
        for (struct list *at = worker->jobs.jobs.next; at != &worker->jobs.jobs; at = at->next) {
            job = container_of(at, struct job, link);
            if (job->stage == STAGE_RUN && job_rollout(job)->engine == engine &&
                !job_rollout(job)->was_told_to_migrate && (!newest || job->course->token > newest->course->token))
                newest = job;
        }
    return newest;
}

static void tell_to_migrate(struct core *core, struct job *job, const struct engine *to)
{
    struct msg_job_migrate in = {.job = job_name(core, job), .token = job->course->token, .engine = engine_url(to)};
    job_rollout(job)->was_told_to_migrate = true;
    send_worker(core, job->course->worker, MSG_job_migrate, &in);
}

/* Whether it has been overloaded for long enough by now. */
static bool is_due(struct core *core, struct engine *engine, const struct loads *loads)
{
    if (!is_above(engine, loads)) {
        engine->overloaded_since_ms = 0;
        return false;
    }
    if (!engine->overloaded_since_ms)
        engine->overloaded_since_ms = core->now_ms;
    return core->now_ms - engine->overloaded_since_ms >= core->settings.overload_ms;
}

void migration_judge(struct core *core, struct engine *engine)
{
    if (!core->settings.overload_ms || engine->cache_permille < OVERLOAD_PERMILLE) {
        engine->overloaded_since_ms = 0;
        return;
    }
    struct loads loads = loads_of(core, engine->policy);
    struct engine *to = is_due(core, engine, &loads) ? find_target(core, engine->policy, &loads) : NULL;
    struct job *job = to ? find_migratable(core, engine) : NULL;
    if (!job)
        return;
    tell_to_migrate(core, job, to);
    engine->overloaded_since_ms = core->now_ms; /* the next: when that one has gone, or has not for as long again */
}

/* ---- job.migrated --------------------------------------------------------------------- */

/* The load of a lease goes with it; NULL: to an engine that is not known any more. */
static void migrate(struct core *core, struct job *job, struct engine *to)
{
    struct rollout *rollout = job_rollout(job);
    breaker_leave(core, job_breaker(job), job);
    struct engine *from = rollout->engine;
    if (from) {
        from->live--;
        engine_note(core, from, ENGINE_CAPACITY);
    }
    if (to)
        to->live++;
    job_set_engine(core, job, to);
    job_give_pause(core, job);
    core->counters.migrated++;
}

void handle_job_migrated(struct core *core, const struct call *call)
{
    const struct msg_job_migrated *in = call->in;
    struct job *job = job_find(core, in->job);
    struct engine *to = engine_find(core, in->engine);
    struct worker *worker;
    if (!worker_speaks(core, call, in->worker, &worker) || !job || job->stage != STAGE_RUN ||
        job->place != PLACE_LEASED || job->course->token != in->token || job->course->worker != worker)
        return; /* it has ended, or is another's by now */
    struct engine *from = job_rollout(job)->engine;
    if (from) /* it stayed: others may have to, too */
        from->overloaded_since_ms = to == from ? core->now_ms : core->now_ms - core->settings.overload_ms;
    if (to != from)
        migrate(core, job, to); /* an engine that nobody names any more is gone behind this */
    if (to && to->is_other && to->policy == job->group->work->policy)
        job_evict(core, job);
}
