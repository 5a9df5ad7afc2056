/* service/sights.c - what the worker tells the broker of engines, before a beat (engine.sight, job.moved). */
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "workers/engines/looking.h"
#include "workers/engines/using.h"
#include "workers/service/worker_inside.h"

static void put_look(struct msg_engine_sight *sight, const struct engine_look *look)
{
    sight->has_answers = true;
    sight->answers = look->answers;
    sight->error = look->answers ? slice_of(NULL, 0) : slice_from_str(look->error);
    sight->has_error = sight->error.len > 0;
    sight->has_cache_permille = look->has_cache;
    sight->cache_permille = look->has_cache ? look->cache_permille : 0;
}

static bool send_sight(struct worker *worker, const struct engine_news *news)
{
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    struct msg_engine_sight sight = {.worker = slice_from_str(worker->id),
                                     .url = slice_from_str(news->url),
                                     .runs = news->use.runs,
                                     .tokens = news->use.tokens,
                                     .calls = news->use.calls};
    sight.template_digest = slice_from_str(news->template_digest);
    sight.has_template_digest = sight.template_digest.len > 0;
    if (sight.has_template_digest)
        sight.tokenizer_digest = slice_from_str(news->tokenizer_digest);
    sight.has_tokenizer_digest = sight.tokenizer_digest.len > 0;
    if (news->look)
        put_look(&sight, news->look);
    if (message_encode(MSG_engine_sight, &sight, &bytes, &no))
        return lane_send_copy(&worker->lane, buffer_peek(&bytes));
    log_event(LOG_WARN, "sight.refused", "url=%s why=\"%s: %s\" action=not-told", news->url, no.field, no.text);
    return true; /* the others' are told */
}

/* One that cannot be told now is told before the next beat. */
void worker_send_sights(struct worker *worker)
{
    struct engine_news news;
    while (engines_tell_next(worker->context.engines, &news)) {
        if (!lane_can_send(&worker->lane) || !send_sight(worker, &news))
            return;
        engines_tell_done(news.engine);
    }
}

static bool send_move(struct worker *worker, const struct running_job *job)
{
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    struct msg_job_moved moved = {.worker = slice_from_str(worker->id),
                                  .job = job->job.start.job,
                                  .token = job->token,
                                  .engine = slice_from_str(engine_url(job->job.move.at))};
    return message_encode(MSG_job_moved, &moved, &bytes, &no) &&
           lane_send_copy(&worker->lane, buffer_peek(&bytes));
}

void worker_tell_move(struct worker *worker, struct running_job *job)
{
    if (job->job.move.is_new && lane_can_send(&worker->lane))
        job->job.move.is_new = !send_move(worker, job);
}

void worker_tell_moves_again(struct worker *worker)
{
    struct running_job *job;
    TAILQ_FOREACH(job, &worker->running.live, links)
    job->job.move.is_new |= job->job.move.at != NULL;
}

void worker_send_moves(struct worker *worker)
{
    struct running_job *job;
    TAILQ_FOREACH(job, &worker->running.live, links)
    worker_tell_move(worker, job);
}
