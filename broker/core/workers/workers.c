/*
 * Workers: the beat is hello, heartbeat and reconciliation in one. Every beat is
 * held against what the core believes, job by job, in both directions.
 */
#include "broker/core/workers/workers.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/probes.h"
#include "broker/core/engines/load_sums.h"
#include "broker/core/engines/versions.h"
#include "broker/core/needs/offers.h"
#include "broker/core/queue/failures.h"
#include "broker/core/queue/fencing_tokens.h"
#include "broker/core/queue/free_workers.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/workers/drain.h"
#include "broker/core/workers/lost_workers.h"
#include "broker/core/workers/worker_ids.h"

#include <stdlib.h>

/* ---- lanes ------------------------------------------------------------------------- */

/* Of jobs that a worker holds and should not; what works on them are no more than its slots. */
static uint64_t cancels_max(uint64_t slots)
{
    return slots < BEAT_CANCELS_MAX - BEAT_CANCELS_SPARE ? slots + BEAT_CANCELS_SPARE : BEAT_CANCELS_MAX;
}

/*
 * Messages that may rightly wait for a worker to read them: what as many beats cause as may come while
 * its lane connects, and some; what its slots' jobs do; the acknowledgements of results under way.
 */
static uint64_t lane_limit(uint64_t slots)
{
    enum { BEATS = 16, PER_SLOT = 4, RESULTS = 4096, HELLO_AND_DRAIN = 2 };
    uint64_t per_beat = 2 * cancels_max(slots) + ENGINES_MAX + PROBES_A_BEAT + HELLO_AND_DRAIN;
    return BEATS * per_beat + PER_SLOT * slots + RESULTS;
}

static bool set_text(struct core *core, char **field, struct slice text)
{
    if (slice_equal(slice_from_str(*field), text))
        return false;
    free(*field);
    *field = core_strdup(core, text);
    return true;
}

static void say_hello(struct core *core, const struct worker *worker)
{
    struct msg_lane_hello hello = {.epoch = core->epoch, .has_bundles = worker->bundles, .bundles = true};
    send_worker(core, worker, MSG_lane_hello, &hello);
}

/* Or says why not: who has no lane is shown so, and gets no jobs. */
static void open_lane(struct core *core, struct worker *worker, const struct call *call)
{
    const struct caller *caller = call->caller;
    const struct msg_worker_beat *in = call->in;
    struct slice id = effect_copy(core, worker_id(worker));
    set_text(core, &worker->unreached, caller->lane_refused);
    worker->is_refused = caller->lane_refused.len > 0;
    if (worker->is_refused) {
        struct slice why = effect_copy(core, caller->lane_refused);
        struct effect *refused = effect_push(core, LANE_REFUSED);
        refused->worker = id;
        refused->detail = why;
        return;
    }
    struct slice endpoint = effect_copy(core, slice_from_str(worker->lane));
    struct slice peer = effect_copy(core, caller->peer);
    struct effect *open = effect_push(core, LANE_OPEN);
    core->lane_changes++;
    open->worker = id;
    open->peer = peer;
    open->endpoint = endpoint;
    open->stage = worker->stage;
    open->limit = lane_limit(in->slots);
    open->bundles = worker->bundles = in->has_bundles && in->bundles;
    worker->shares_tasks = worker->bundles && in->has_shares_tasks && in->shares_tasks;
    if (caller->lane_connects)
        set_text(core, &worker->unreached, slice_from_str("the broker connects to its lane"));
    else
        say_hello(core, worker);
}

static void close_lane(struct core *core, const struct worker *worker)
{
    struct slice id = effect_copy(core, worker_id(worker));
    effect_push(core, LANE_CLOSE)->worker = id;
    core->lane_changes++;
}

/* ---- coming and going -------------------------------------------------------------- */

static struct worker *add_worker(struct core *core, const struct call *call, enum stage stage)
{
    const struct msg_worker_beat *in = call->in;
    if (core->workers_by_id.count >= WORKERS_MAX) {
        core->counters.mistakes++;
        return NULL;
    }
    struct worker *worker = core_alloc(core, 1, sizeof(*worker) + in->worker.len + 1);
    if (!worker)
        return NULL;
    memcpy(worker->id, in->worker.data, in->worker.len);
    worker->id_len = (uint32_t)in->worker.len;
    worker->stage = stage;
    worker->progress = in->progress;
    worker->progress_ms = core->now_ms;
    list_init(&worker->jobs.jobs);
    list_init(&worker->link);
    set_text(core, &worker->lane, in->lane);
    set_text(core, &worker->key, call->caller->name);
    if (!table_put(&core->workers_by_id, worker_id(worker), worker)) {
        core->failed = true;
        free(worker->lane);
        free(worker->key);
        free(worker);
        return NULL;
    }
    core->counters.registered++;
    open_lane(core, worker, call);
    return worker;
}

void worker_destroy(struct core *core, struct worker *worker)
{
    if (core->reserved[worker->stage] == worker)
        core->reserved[worker->stage] = NULL;
    core->slots[worker->stage] -= worker->counted;
    heap_remove(&core->free[worker->stage], &worker->free);
    list_remove(&worker->link);
    free(worker->lane);
    free(worker->key);
    free(worker->host);
    free(worker->unreached);
    free(worker->sandbox);
    free(worker->sandbox_why);
    free(worker->kernel);
    free(worker->node_error);
    offers_leave(core, worker);
    free(worker->offered);
    free(worker->offers_error);
    load_forget_worker(worker);
    free(worker);
}

static void forget(struct core *core, struct worker *worker)
{
    table_take(&core->workers_by_id, worker_id(worker));
    worker_destroy(core, worker);
}

/* Its jobs back to the front of their queues, in the order they were in. */
static void take_jobs(struct core *core, struct worker *worker)
{
    bool alone = worker->jobs.count == 1 && worker->isolated;
    while (!list_is_empty(&worker->jobs.jobs)) {
        struct job *job = container_of(worker->jobs.jobs.prev, struct job, link);
        job_lose_worker(core, job, worker_id(worker), alone);
    }
}

static void worker_lose(struct core *core, struct worker *worker, enum loss_why why)
{
    if (!worker->hung) {
        core->counters.lost++;
        lost_worker_note(core, worker, why);
        close_lane(core, worker);
        worker->hung = true; /* nothing more is sent there */
        take_jobs(core, worker);
    }
    forget(core, worker);
}

/* Its beats come but its work does not get on: lost, and remembered until it does. */
static void set_hung(struct core *core, struct worker *worker)
{
    core->counters.lost++;
    lost_worker_note(core, worker, LOSS_NO_PROGRESS);
    close_lane(core, worker);
    free(worker->unreached);
    worker->unreached = NULL;
    worker->hung = true;
    take_jobs(core, worker);
    worker_refresh(core, worker);
}

void workers_tick(struct core *core)
{
    while (!list_is_empty(&core->workers)) {
        struct worker *oldest = container_of(core->workers.next, struct worker, link);
        if (core->now_ms - oldest->beat_ms < core->settings.beat_timeout_ms)
            return;
        worker_lose(core, oldest, LOSS_NO_BEAT);
    }
}

/* ---- reconciliation ---------------------------------------------------------------- */

/* It runs on an engine whose results its group does not take. */
static bool runs_elsewhere(const struct job *job, uint64_t token)
{
    const struct engine *engine = job->course->token == token ? job_engine(job) : NULL;
    return engine && engine->is_other && engine->policy == job_policy(job);
}

/* Whether the job may become this worker's because it says that it holds it. */
static bool is_adoptable(const struct job *job, const struct worker *worker, uint64_t token)
{
    const struct fencing_token *issued = fencing_token_find(job, token, worker_key(worker), worker_id(worker));
    bool waits = job->place == PLACE_ORPHAN || job->place == PLACE_QUEUED || job->place == PLACE_ISOLATED ||
                 job->place == PLACE_BLOCKED || job->place == PLACE_UNOFFERED;
    return waits && issued && !issued->is_fenced && !runs_elsewhere(job, token);
}

static void adopt(struct core *core, struct worker *worker, struct job *job, uint64_t token)
{
    if (job->course->token != token) /* which engine that dispatch had is not known */
        job_set_engine(core, job, NULL);
    if (job->course->attempt == 0)
        job_course(job)->attempt = 1;
    core->counters.adopted++;
    job_lease(core, job, worker, token);
    if (job->course->tokens && job->course->tokens->token != token)
        fencing_token_persist(core, job);
}

/* Not wanted from this worker: it may be at work, or keep a result. It lets go of either. */
static void disown(struct core *core, const struct worker *worker, const struct job_ref *held, bool is_known)
{
    if (is_known) { /* still to be done, and perhaps next by this worker: it has let go of this one by then */
        send_cancel(core, worker, held->job, held->token);
        return;
    }
    const struct msg_result_ack ack = {.job = held->job, .token = held->token};
    promise_cancel(core, worker, held->job, held->token);
    if (held->token)
        promise_worker(core, worker, MSG_result_ack, &ack);
}

/* One job that the worker says it holds. True if it was disowned; one that `may_disown` spared is listed again. */
static bool reconcile_held(struct core *core, struct worker *worker, const struct job_ref *held, bool may_disown)
{
    struct job *job = job_find(core, held->job);
    if (job && job->course->worker == worker && job->course->token == held->token) {
        job_course(job)->seen = worker->beat;
        return false;
    }
    if (job && is_adoptable(job, worker, held->token)) {
        /* A full worker may still keep results: they come by themselves. */
        if (job->stage == worker->stage && worker->jobs.count < worker->slots) {
            adopt(core, worker, job, held->token);
            job_course(job)->seen = worker->beat;
        }
        return false;
    }
    if (may_disown)
        disown(core, worker, held, job != NULL);
    return may_disown;
}

static void reconcile(struct core *core, struct worker *worker, const struct msg_worker_beat *in)
{
    size_t at = 0;
    uint64_t disowned = 0, most = cancels_max(worker->slots);
    struct job_ref held;
    while (jobs_next(&in->jobs, &at, &held))
        disowned += held.job.len && held.job.len <= JOB_NAME_MAX &&
                    reconcile_held(core, worker, &held, disowned < most);
    struct job *job;
    LIST_EACH(job, &worker->jobs.jobs, link)
        if (job->course->seen != worker->beat && core->now_ms - job->since_ms > core->settings.hold_grace_ms) {
            job_withdraw(core, job);
            job_go_missing(core, job);
        }
}

/* ---- worker.beat ------------------------------------------------------------------- */

/* Whether its working thread has stood still too long, for the second beat in a row. */
static bool stands_still(struct core *core, struct worker *worker, uint64_t progress)
{
    if (progress != worker->progress) {
        worker->progress = progress;
        worker->progress_ms = core->now_ms;
        worker->stalled = false;
        return false;
    }
    if (core->now_ms - worker->progress_ms < core->settings.beat_timeout_ms)
        return false;
    bool again = worker->stalled;
    worker->stalled = true;
    return again;
}

static void note_beat(struct core *core, struct worker *worker, const struct msg_worker_beat *in)
{
    worker->beat++;
    worker->beat_ms = core->now_ms;
    list_remove(&worker->link);
    list_push_back(&core->workers, &worker->link);
    worker->slots = (uint32_t)(in->slots > worker->jobs.count ? in->slots : worker->jobs.count);
    worker->draining = in->draining || worker->drain.told;
    set_text(core, &worker->host, in->host);
    set_text(core, &worker->sandbox, in->sandbox);
    set_text(core, &worker->sandbox_why, in->sandbox_why);
    set_text(core, &worker->kernel, in->kernel);
    set_text(core, &worker->node_error, in->node_error);
    worker->sandboxes = (uint32_t)in->sandboxes;
    worker->calls_engines = worker->stage == STAGE_RUN || (worker->stage == STAGE_EVAL && in->has_engines);
    offers_say(core, worker, in->offers);
}

/* The worker of this beat, registered if it is not known (any more); NULL if it cannot be, or is another key's. */
static struct worker *worker_register(struct core *core, const struct call *call, enum stage stage)
{
    const struct msg_worker_beat *in = call->in;
    struct worker *worker;
    if (!worker_speaks(core, call, in->worker, &worker))
        return NULL;
    struct drain drain = worker ? worker->drain : (struct drain){0};
    if (worker && (worker->stage != stage || (worker->hung && worker->progress != in->progress))) {
        worker_lose(core, worker, LOSS_OTHER_STAGE);
        worker = NULL;
    }
    if (!worker) {
        worker = add_worker(core, call, stage);
        if (worker)
            worker->drain = drain;
        return worker;
    }
    if (worker->hung)
        return worker;
    bool has_moved = set_text(core, &worker->lane, in->lane);
    if (has_moved || (worker->is_refused && !call->caller->lane_refused.len)) {
        close_lane(core, worker);
        open_lane(core, worker, call);
    } else if (in->epoch != core->epoch) {
        say_hello(core, worker);
    }
    return worker;
}

void handle_worker_beat(struct core *core, const struct call *call)
{
    const struct msg_worker_beat *in = call->in;
    enum stage stage;
    core->counters.beats++;
    if (!stage_parse(in->stage, &stage)) {
        core->counters.mistakes++;
        return;
    }
    struct worker *worker = worker_register(core, call, stage);
    if (!worker)
        return;
    note_beat(core, worker, in);
    if (worker->hung)
        return;
    if (worker->drain.told && !in->draining) /* it may not have heard */
        send_drain(core, worker);
    if (stands_still(core, worker, in->progress)) {
        set_hung(core, worker);
        return;
    }
    worker->heard = in->has_engines && in->engines <= core->engine_states ? in->engines : 0;
    versions_tell(core, worker, worker->heard);
    probes_ask(core, worker);
    reconcile(core, worker, in);
    worker_refresh(core, worker);
}

bool worker_lane_broke(struct core *core, struct worker *worker)
{
    if (!worker || worker->hung)
        return false;
    const bool has_left = worker->draining && worker->jobs.count == 0;
    if (has_left) {
        close_lane(core, worker);
        forget(core, worker);
    } else {
        worker_lose(core, worker, LOSS_LANE_BROKE);
    }
    return !has_left;
}

void worker_lane_waits(struct core *core, struct worker *worker, struct slice why)
{
    if (!worker || worker->hung)
        return;
    bool waited = worker->unreached != NULL;
    free(worker->unreached);
    worker->unreached = why.len ? core_strdup(core, why) : NULL;
    if (waited && !worker->unreached) {
        say_hello(core, worker);
        versions_tell(core, worker, 0);
    }
    worker_refresh(core, worker);
}
