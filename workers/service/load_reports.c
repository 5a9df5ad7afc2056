/*
 * service/load_reports.c - what the worker tells the broker before a beat, beside it: of engines (engine.load), of jobs
 * that migrated (job.migrated), of how far jobs have come (job.progress).
 */
#include "workers/service/load_reports.h"

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "workers/engines/engine_probe.h"
#include "workers/engines/engines.h"
#include "workers/service/worker_inside.h"

static void put_probe(struct msg_engine_load *load, const struct engine_probe *probe)
{
    load->has_answers = true;
    load->answers = probe->answers;
    load->error = probe->answers ? slice_of(NULL, 0) : slice_from_str(probe->error);
    load->has_error = load->error.len > 0;
    load->has_cache_permille = probe->has_cache;
    load->cache_permille = probe->has_cache ? probe->cache_permille : 0;
}

static bool send_load(struct worker *worker, const struct engine_news *news)
{
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    struct msg_engine_load load = {.worker = slice_from_str(worker->id),
                                   .url = slice_from_str(news->url),
                                   .runs = news->use.runs,
                                   .tokens = news->use.tokens,
                                   .calls = news->use.calls};
    load.template_digest = slice_from_str(news->template_digest);
    load.has_template_digest = load.template_digest.len > 0;
    if (load.has_template_digest)
        load.tokenizer_digest = slice_from_str(news->tokenizer_digest);
    load.has_tokenizer_digest = load.tokenizer_digest.len > 0;
    if (news->probe)
        put_probe(&load, news->probe);
    if (message_encode(MSG_engine_load, &load, &bytes, &no))
        return lane_send_copy(&worker->lane, buffer_peek(&bytes));
    log_event(LOG_WARN, "engine-load.refused", "url=%s why=\"%s: %s\" action=not-told", news->url, no.field, no.text);
    return true; /* the others' are told */
}

/* One that cannot be told now is told before the next beat. */
void worker_send_loads(struct worker *worker)
{
    struct engine_news news;
    while (engines_tell_next(worker->context.engines, &news)) {
        if (!lane_can_send(&worker->lane) || !send_load(worker, &news))
            return;
        engines_tell_done(news.engine);
    }
}

static bool send_migrated(struct worker *worker, const struct running_job *job)
{
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    struct msg_job_migrated migrated = {.worker = slice_from_str(worker->id),
                                        .job = job->job.start.job,
                                        .token = job->token,
                                        .engine = slice_from_str(engine_base_url(job->job.migration.at))};
    return message_encode(MSG_job_migrated, &migrated, &bytes, &no) &&
           lane_send_copy(&worker->lane, buffer_peek(&bytes));
}

void worker_report_migration(struct worker *worker, struct running_job *job)
{
    if (job->job.migration.is_new && lane_can_send(&worker->lane))
        job->job.migration.is_new = !send_migrated(worker, job);
}

void worker_report_migrations_again(struct worker *worker)
{
    struct running_job *job;
    TAILQ_FOREACH(job, &worker->running.live, links)
    {
        job->job.migration.is_new |= job->job.migration.at != NULL;
        job->told_changes = 0;
    }
}

void worker_send_migrations(struct worker *worker)
{
    struct running_job *job;
    TAILQ_FOREACH(job, &worker->running.live, links)
    worker_report_migration(worker, job);
}

/* ---- how far jobs have come ------------------------------------------------------------------ */

/* Up to `room` of those with news, the longest untold first: who waits for something, or the others. */
static size_t find_news(const struct worker *worker, bool waits, struct running_job **ret, size_t room)
{
    size_t count = 0;
    struct running_job *job;
    TAILQ_FOREACH(job, &worker->running.live, links)
    {
        if (count == room)
            break;
        if (job->activity.changes != job->told_changes && (job->activity.why[0] != '\0') == waits)
            ret[count++] = job;
    }
    return count;
}

static bool send_progress(struct worker *worker, const struct running_job *job)
{
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    const struct activity *activity = &job->activity;
    struct msg_job_progress progress = {.worker = slice_from_str(worker->id),
                                        .job = job->job.start.job,
                                        .token = job->token,
                                        .turn = activity->turn,
                                        .tool = slice_from_str(activity->tool),
                                        .has_tool = activity->tool[0] != '\0',
                                        .why = slice_from_str(activity->why),
                                        .has_why = activity->why[0] != '\0'};
    return message_encode(MSG_job_progress, &progress, &bytes, &no) &&
           lane_send_copy(&worker->lane, buffer_peek(&bytes));
}

void worker_send_progress(struct worker *worker)
{
    struct running_job *jobs[PROGRESS_A_BEAT];
    size_t count = find_news(worker, true, jobs, PROGRESS_A_BEAT);
    count += find_news(worker, false, jobs + count, PROGRESS_A_BEAT - count);
    for (size_t i = 0; i < count && lane_can_send(&worker->lane); i++) {
        jobs[i]->told_changes = jobs[i]->activity.changes;
        send_progress(worker, jobs[i]);
        TAILQ_REMOVE(&worker->running.live, jobs[i], links);
        TAILQ_INSERT_TAIL(&worker->running.live, jobs[i], links);
    }
}
