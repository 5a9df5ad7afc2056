#include "workers/service/session_reports.h"

#include <stdio.h>

#include "common/base/cleanup.h"
#include "schemas/messages/message_max.h"
#include "workers/agents/sessions/sessions.h"
#include "workers/handlers/handlers.h"

enum { REMINDER_BEATS = 30, OFFERS_BYTES = MESSAGE_MAX(worker_beat, offers) };

static void session_opened(void *arg)
{
    struct worker *worker = arg;
    worker->sessions_wanted = true;
}

int worker_take_sessions(struct worker *worker, struct fail *fail)
{
    const struct worker_options *given = &worker->plan.given;
    const struct sessions_plan sessions = {.address = given->sessions,
                                           .url = given->sessions_url,
                                           .slots = given->slots,
                                           .changed = session_opened,
                                           .arg = worker};
    if (!given->sessions)
        return 0;
    worker->context.sessions = sessions_create(worker->context.loop, &sessions, fail);
    return worker->context.sessions ? 0 : fail->code;
}

struct slice worker_say_offers(struct worker *worker)
{
    const char *handlers = handlers_offers(worker->context.handlers);
    if (!worker->context.sessions || strlen(handlers) + sizeof(" " SESSIONS_OFFER) > OFFERS_BYTES)
        return slice_from_str(handlers);
    snprintf(worker->offers, sizeof(worker->offers), "%s%s%s", SESSIONS_OFFER, *handlers ? " " : "", handlers);
    return slice_from_str(worker->offers);
}

static bool send_session(struct worker *worker, const struct running_job *job)
{
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    struct msg_session_open open = {.worker = slice_from_str(worker->id),
                                    .job = job->job.start.job,
                                    .token = job->token,
                                    .url = slice_from_str(job->job.session.url)};
    return message_encode(MSG_session_open, &open, &bytes, &no) && lane_send_copy(&worker->lane, buffer_peek(&bytes));
}

void worker_send_sessions(struct worker *worker)
{
    struct running_job *job;
    if (!worker->sessions_wanted || worker->beat_wanted)
        return;
    TAILQ_FOREACH(job, &worker->running.live, links)
    {
        if (!job->job.session.is_new)
            continue;
        if (!lane_can_send(&worker->lane) || !send_session(worker, job))
            return;
        job->job.session.is_new = false;
    }
    worker->sessions_wanted = false;
}

void worker_report_sessions_again(struct worker *worker)
{
    struct running_job *job;
    TAILQ_FOREACH(job, &worker->running.live, links)
    {
        job->job.session.is_new |= job->job.session.url[0] != '\0';
        worker->sessions_wanted |= job->job.session.is_new;
    }
}

void worker_remind_of_sessions(struct worker *worker)
{
    if (++worker->beats % REMINDER_BEATS == 0)
        worker_report_sessions_again(worker);
}
