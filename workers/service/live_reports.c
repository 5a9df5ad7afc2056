#include "workers/service/live_reports.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/loop/loop_now.h"
#include "workers/live/live.h"
#include "workers/service/worker_inside.h"

/* ---- messages that are counted until libzmq lets go of them ------------------------------- */

struct flight {
    atomic_size_t *bytes; /* of all */
    size_t len;
    struct buffer encoded;
};

static void flight_ended(void *data, void *hint)
{
    struct flight *flight = hint;
    (void)data;
    atomic_fetch_sub(flight->bytes, flight->len);
    buffer_finish(&flight->encoded);
    free(flight);
}

/* Takes the bytes. */
static void send_bytes(struct worker *worker, struct buffer *encoded)
{
    struct flight *flight = malloc(sizeof(*flight));
    zmq_msg_t message;
    if (!flight)
        return;
    *flight = (struct flight){.bytes = &worker->live_bytes, .len = encoded->len, .encoded = *encoded};
    *encoded = (struct buffer){0};
    atomic_fetch_add(flight->bytes, flight->len);
    if (zmq_msg_init_data(&message, flight->encoded.data, flight->len, flight_ended, flight) < 0)
        flight_ended(NULL, flight);
    else
        lane_send(&worker->lane, &message);
}

static void send_batch(struct worker *worker, const struct running_job *job, struct live_batch *batch)
{
    AUTO_BUFFER encoded = {0};
    struct refusal no;
    const struct msg_rollout_live live = {.worker = slice_from_str(worker->id),
                                          .job = job->job.start.job,
                                          .token = job->token,
                                          .number = batch->number,
                                          .count = batch->count,
                                          .events = buffer_peek(&batch->json)};
    if (message_encode(MSG_rollout_live, &live, &encoded, &no))
        send_bytes(worker, &encoded);
    live_batch_destroy(batch);
}

/* ---- ten times a second ---------------------------------------------------------------------- */

static bool has_room(struct worker *worker, size_t most)
{
    return atomic_load(&worker->live_bytes) < most && lane_can_send(&worker->lane);
}

/* Whether it is still watched. */
static bool tell(struct worker *worker, struct running_job *job, int64_t now_ms)
{
    if (!job->activity.live)
        return false;
    if (now_ms >= job->activity.live->until_ms) {
        live_end(&job->activity);
        return false;
    }
    struct live_batch *batch = TAILQ_EMPTY(&worker->outbox.unsent) && has_room(worker, LIVE_FLIGHT_BYTES)
                                   ? live_take(&job->activity, now_ms)
                                   : NULL;
    if (batch)
        send_batch(worker, job, batch);
    return true;
}

static void tell_all(void *arg)
{
    struct worker *worker = arg;
    const int64_t now_ms = loop_now_ms();
    struct running_job *job;
    bool is_any = false;
    worker->live_timer = NULL;
    TAILQ_FOREACH(job, &worker->running.live, links)
    is_any |= tell(worker, job, now_ms);
    if (is_any)
        worker->live_timer = loop_after(worker->context.loop, LIVE_PERIOD_MS, tell_all, worker);
}

void worker_watch_job(struct worker *worker, const struct msg_lane_watch *watch)
{
    struct running_job *job = running_find(&worker->running, watch->job);
    const int64_t now_ms = loop_now_ms();
    if (!job || job->token != watch->token ||
        !live_watch(&job->activity, now_ms + (int64_t)watch->watch_ms, watch->has_anew && watch->anew, now_ms))
        return;
    if (!worker->live_timer)
        worker->live_timer = loop_after(worker->context.loop, 0, tell_all, worker);
}

void worker_tell_last(struct worker *worker, struct running_job *ended)
{
    const int64_t now_ms = loop_now_ms();
    struct live_batch *batch;
    if (!ended->activity.live)
        return;
    while (has_room(worker, LIVE_LAST_BYTES) && (batch = live_take(&ended->activity, now_ms)))
        send_batch(worker, ended, batch);
    batch = live_take_last(&ended->activity, now_ms, outcome_wire(ended->job.result.outcome), ended->job.result.detail);
    if (batch)
        send_batch(worker, ended, batch);
    live_end(&ended->activity);
}
