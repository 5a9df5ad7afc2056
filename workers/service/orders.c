#include "workers/service/orders.h"

#include "common/base/log.h"
#include "workers/engines/engine_probe.h"
#include "workers/engines/calls.h"
#include "workers/engines/engines.h"
#include "workers/service/leave.h"
#include "workers/service/live_reports.h"
#include "workers/service/load_reports.h"
#include "workers/service/session_reports.h"
#include "schemas/messages/message_max.h"

enum { LEAVING_MAX = 64 }; /* cancelled jobs that still clean up, beyond as many as there are slots */

static void handle_hello(struct worker *worker, const struct msg_lane_hello *hello)
{
    if (hello->epoch != worker->epoch) {
        log_event(LOG_INFO, "broker.epoch", "epoch=%llu held=%zu", (unsigned long long)hello->epoch,
                  worker->running.live_count + worker->outbox.count);
        worker->epoch = hello->epoch;
        worker->engines_heard = 0;
        worker->beat_wanted = true;
    }
    worker->lane.bundles = hello->has_bundles && hello->bundles;
    engines_tell_again(worker->context.engines);
    worker_report_migrations_again(worker);
    worker_report_sessions_again(worker);
    outbox_resend_all(&worker->outbox);
}

/* NULL when the job was started, else why it was not. */
static const char *take_job(struct worker *worker, const struct ordered_job *ordered)
{
    if (!slice_is(ordered->start->stage, stage_wire(worker->plan.stage)))
        return "another stage";
    if (worker->state != WORKER_WORKING)
        return "draining";
    if (worker->running.live_count >= running_slots(&worker->running, worker->plan.given.slots))
        return "no slot";
    if (worker->running.leaving_count > worker->plan.given.slots + LEAVING_MAX)
        return "cancelled jobs linger";
    if (outbox_is_full(&worker->outbox))
        return "outbox full";
    return running_start(&worker->running, ordered) ? NULL : "out of memory";
}

/* For the jobs that follow in the same message; when out of memory, those are refused. */
static void handle_task(struct worker *worker, const struct msg_job_task *said, struct slice bytes)
{
    shared_task_release(&worker->shared_task);
    worker->shared_task = shared_task_create(said, bytes);
}

static bool check_task(const struct worker *worker, const struct msg_job_start *start, struct refusal *no)
{
    const struct shared_task *shared = worker->shared_task;
    if (start->has_task || (shared && slice_equal(shared->said.group, start->group)))
        return true;
    return refuse(no, REFUSAL_MISSING_FIELD, "task",
                  "job.start: %.*s has no task, and no job.task of %.*s is before it", SLICE_ARG(start->job),
                  SLICE_ARG(start->group));
}

/* What is dropped the broker sees missing in the beat, and gives elsewhere. */
static void handle_start(struct worker *worker, const struct ordered_job *ordered)
{
    const struct msg_job_start *start = ordered->start;
    struct running_job *known = running_find(&worker->running, start->job);
    if (known) {
        known->token = start->token > known->token ? start->token : known->token;
        worker_report_sessions_again(worker);
        return;
    }
    if (outbox_has(&worker->outbox, start->job)) {
        outbox_resend(&worker->outbox, start->job);
        return;
    }
    const char *why = take_job(worker, ordered);
    if (why)
        log_event(LOG_INFO, "job.dropped", "job=%.*s token=%llu why=\"%s\"", SLICE_ARG(start->job),
                  (unsigned long long)start->token, why);
    else
        log_event(LOG_DEBUG, "job.started", "job=%.*s token=%llu", SLICE_ARG(start->job),
                  (unsigned long long)start->token);
}

/* NULL when out of memory. */
static struct engine *find_engine(struct worker *worker, struct slice name)
{
    char url[MESSAGE_MAX(lane_engine, url) + 1];
    snprintf(url, sizeof(url), "%.*s", SLICE_ARG(name));
    return engines_get(worker->context.engines, url);
}

static void handle_cancel(struct worker *worker, const struct msg_job_cancel *cancel)
{
    struct running_job *known = running_find(&worker->running, cancel->job);
    if (known && (cancel->token == 0 || cancel->token >= known->token))
        running_cancel(&worker->running, known);
    outbox_forget(&worker->outbox, cancel->job, cancel->token ? cancel->token : UINT64_MAX);
    worker_stop_when_idle(worker);
}

static void handle_migrate(struct worker *worker, const struct msg_job_migrate *migrate)
{
    struct running_job *known = running_find(&worker->running, migrate->job);
    if (known && known->token == migrate->token)
        known->job.migration.to = find_engine(worker, migrate->engine);
}

static void handle_ack(struct worker *worker, const struct msg_result_ack *ack)
{
    outbox_forget(&worker->outbox, ack->job, ack->token);
    if (worker->said_full && !outbox_is_full(&worker->outbox))
        worker->beat_wanted = !(worker->said_full = false);
    worker_stop_when_idle(worker);
}

static void handle_drain(struct worker *worker, const struct msg_lane_drain *drain)
{
    worker_drain(worker, drain->has_grace_s ? (int64_t)drain->grace_s * 1000 : (int64_t)worker->plan.given.grace_ms,
                 "told by the broker");
}

static void handle_engine(struct worker *worker, const struct msg_lane_engine *told)
{
    struct engine *engine = find_engine(worker, told->url);
    char credentials[MESSAGE_MAX(lane_engine, credentials) + 1];
    snprintf(credentials, sizeof(credentials), "%.*s", SLICE_ARG(told->credentials));
    if (!engine || !engine_set_credentials(engine, credentials))
        return; /* out of memory: the beat says that it was not taken */
    engine_told(engine, told->version, told->number, told->calls, (int64_t)told->resume_ms);
    if (told->state > worker->engines_heard)
        worker->engines_heard = told->state;
    worker->beat_wanted = true;
}

static void handle_probe(struct worker *worker, const struct msg_engine_probe *probe)
{
    struct engine *engine = find_engine(worker, probe->url);
    if (engine)
        engine_probe_start(engine); /* if not, another worker is asked in its time */
}

/* What is for a lane; what comes most is looked for first. */
static bool peek_for_lane(struct slice bytes, enum message_id *ret, struct refusal *no)
{
    static const enum message_id of_lanes[] = {MSG_job_start,    MSG_result_ack, MSG_job_task,   MSG_lane_engine,
                                               MSG_engine_probe, MSG_job_cancel, MSG_lane_watch, MSG_job_migrate,
                                               MSG_lane_hello,   MSG_lane_drain};
    for (size_t i = 0; i < sizeof(of_lanes) / sizeof(*of_lanes); i++)
        if (message_is(of_lanes[i], bytes)) {
            *ret = of_lanes[i];
            return true;
        }
    return message_peek(bytes, ret, no) &&
           refuse(no, REFUSAL_UNKNOWN_MESSAGE, NULL, "%s is not for a lane", message_get(*ret)->wire);
}

bool worker_obey(struct worker *worker, struct slice bytes, zmq_msg_t *frame, struct refusal *no)
{
    union any_message message;
    enum message_id id;
    if (!peek_for_lane(bytes, &id, no) || !message_decode(id, bytes, &message, no))
        return false;
    if (id == MSG_lane_hello)
        handle_hello(worker, &message.lane_hello);
    else if (id == MSG_lane_engine)
        handle_engine(worker, &message.lane_engine);
    else if (id == MSG_engine_probe)
        handle_probe(worker, &message.engine_probe);
    else if (id == MSG_lane_drain)
        handle_drain(worker, &message.lane_drain);
    else if (id == MSG_job_task)
        handle_task(worker, &message.job_task, bytes);
    else if (id == MSG_job_start && !check_task(worker, &message.job_start, no))
        return false;
    else if (id == MSG_job_start)
        handle_start(worker, &(struct ordered_job){&message.job_start, bytes, frame, worker->shared_task});
    else if (id == MSG_job_cancel)
        handle_cancel(worker, &message.job_cancel);
    else if (id == MSG_lane_watch)
        worker_watch_job(worker, &message.lane_watch);
    else if (id == MSG_job_migrate)
        handle_migrate(worker, &message.job_migrate);
    else
        handle_ack(worker, &message.result_ack);
    return true;
}
