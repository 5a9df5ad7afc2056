#include "broker/io/batch.h"

#include <errno.h>
#include <stdlib.h>

#include "broker/net/zmq_frame.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/net/bundle.h"

/* ---- life ------------------------------------------------------------------------------------ */

struct batch *batch_create(void)
{
    struct batch *batch = calloc(1, sizeof(*batch));
    if (!batch)
        return NULL;
    STAILQ_INIT(&batch->jobs);
    STAILQ_INIT(&batch->answers);
    STAILQ_INIT(&batch->tasks);
    batch->inbound = calloc(2 * INBOUND_MAX, sizeof(*batch->inbound));
    if (!batch->inbound)
        batch_destroy(&batch);
    return batch;
}

void inbound_drop(struct inbound *inbound)
{
    zmq_msg_close(&inbound->from);
    zmq_msg_close(&inbound->body);
}

static void drop_loaded(struct loaded_list *list)
{
    struct loaded *loaded;
    while ((loaded = STAILQ_FIRST(list))) {
        STAILQ_REMOVE_HEAD(list, link);
        zmq_msg_close(&loaded->body);
        free(loaded);
    }
}

static void drop_tasks(struct batch *batch)
{
    struct loaded_task *task;
    while ((task = STAILQ_FIRST(&batch->tasks))) {
        STAILQ_REMOVE_HEAD(&batch->tasks, link);
        buffer_finish(&task->bytes);
        free(task);
    }
}

void batch_clear(struct batch *batch)
{
    drop_tasks(batch);
    effect_list_clear(&batch->effects);
    drop_loaded(&batch->jobs);
    drop_loaded(&batch->answers);
    for (size_t i = 0; i < batch->inbound_count; i++)
        inbound_drop(&batch->inbound[i]);
    batch->inbound_count = batch->inbound_bytes = batch->loads = batch->work = batch->seen = 0;
}

void batch_destroy(struct batch **destroying)
{
    struct batch *batch = take_ptr(destroying);
    if (!batch)
        return;
    batch_clear(batch);
    effect_list_finish(&batch->effects);
    buffer_finish(&batch->out);
    free(batch->inbound);
    free(batch);
}

/* ---- persisting ------------------------------------------------------------------------------ */

static bool is_persist(const struct effect *effect) { return effect->kind <= PERSIST_EPOCH; }

static int persist(struct batch *batch, struct ledger *ledger)
{
    const struct effect_list *effects = &batch->effects;
    int code = 0;
    for (size_t i = 0; code == 0 && i < effects->count; i++) {
        if (!is_persist(&effects->items[i]))
            continue;
        if (!batch->is_writing)
            code = ledger_begin(ledger, &batch->fail);
        batch->is_writing = true;
        if (code == 0)
            code = ledger_apply(ledger, &effects->items[i], &batch->fail);
    }
    return code;
}

/* ---- loading ----------------------------------------------------------------------------------- */

struct loading {
    struct batch *batch;
    struct ledger *ledger;
    struct held_bytes *held;
    size_t effect;                /* the one in hand, its place */
    struct slice task;            /* the newest job.task ... */
    const struct effect *task_of; /* ... and the job that it was made for */
};

static const struct slice no_task = {NULL, 0};

/* Gives the effect in hand the message that was made; `held` NULL: a job's, with the job.task before it. */
static int add_message(struct loading *loading, struct slice task, atomic_size_t *held)
{
    struct batch *batch = loading->batch;
    struct loaded *loaded = malloc(sizeof(*loaded));
    if (!loaded || !zmq_frame_init(&loaded->body, &batch->out, held)) {
        free(loaded);
        return fail_set(&batch->fail, -ENOMEM, "out of memory");
    }
    loaded->effect = loading->effect;
    loaded->task = task;
    STAILQ_INSERT_TAIL(held ? &batch->answers : &batch->jobs, loaded, link);
    return 0;
}

static int add_made(struct loading *loading, atomic_size_t *held) { return add_message(loading, no_task, held); }

/* Makes the trajectory's message. 1: done, 0: it cannot be sent. */
static int encode_trajectory(struct loading *loading, const struct msg_trajectory *message)
{
    struct refusal no;
    buffer_clear(&loading->batch->out);
    if (message_encode(MSG_trajectory, message, &loading->batch->out, &no))
        return 1;
    log_event(LOG_ERROR, "broker.trajectory-unsendable", "stream=%.*s seq=%llu text=\"%s\"", SLICE_ARG(message->stream),
              (unsigned long long)message->seq, no.text);
    return 0;
}

/* For who asked for it. 1: done, 0: it is not there (any more), negative: the ledger failed. */
static int make_trajectory(struct loading *loading, struct slice stream, uint64_t seq, uint64_t tag)
{
    struct msg_trajectory message;
    int code = ledger_load_trajectory(loading->ledger, stream, seq, &message, &loading->batch->fail);
    if (code)
        return code == -ENOENT ? 0 : code;
    message.has_tag = true;
    message.tag = tag;
    return encode_trajectory(loading, &message);
}

static int load_refusal(struct loading *loading, const struct effect *effect, enum refusal_reason reason,
                        const char *text)
{
    struct refusal no;
    struct msg_refused refused = {.tag = effect->tag,
                                  .request = slice_from_str(message_get(MSG_rollout_get)->wire),
                                  .reason = slice_from_str(refusal_wire(reason)),
                                  .text = slice_from_str(text),
                                  .has_retry_after_ms = reason == REFUSAL_QUEUE_FULL,
                                  .retry_after_ms = 1000};
    buffer_clear(&loading->batch->out);
    if (!message_encode(MSG_refused, &refused, &loading->batch->out, &no))
        return fail_set(&loading->batch->fail, -ENOMEM, "%s", no.text);
    return add_made(loading, &loading->held->front);
}

static int load_trajectory(struct loading *loading, const struct effect *effect)
{
    if (atomic_load(&loading->held->front) > FRONT_HELD_MAX)
        return load_refusal(loading, effect, REFUSAL_QUEUE_FULL,
                            "clients have asked for more than they read; try again later");
    int code = make_trajectory(loading, effect->stream, effect->seq, effect->tag);
    if (code == 0)
        return load_refusal(loading, effect, REFUSAL_FORGOTTEN,
                            "the trajectory was acknowledged and is no longer kept");
    return code < 0 ? code : add_made(loading, &loading->held->front);
}

/* What clients have asked for and do not read ends a range early: they ask again from there. */
static int load_range(struct loading *loading, const struct effect *effect)
{
    size_t bytes = 0;
    for (uint64_t i = 0; i < effect->limit && bytes <= RANGE_BYTES_MAX; i++) {
        if (atomic_load(&loading->held->front) > FRONT_HELD_MAX)
            break;
        int code = make_trajectory(loading, effect->stream, effect->seq + i, effect->tag);
        if (code < 0)
            return code;
        bytes += i == 0 ? 0 : loading->batch->out.len;
        if (code == 0 || bytes > RANGE_BYTES_MAX)
            break;
        code = add_made(loading, &loading->held->front);
        if (code)
            return code;
    }
    return 0;
}

static int load_list(struct loading *loading, const struct effect *effect)
{
    buffer_clear(&loading->batch->out);
    int code = batch_list(loading->ledger, effect, &loading->batch->out, &loading->batch->fail);
    return code ? code : add_made(loading, &loading->held->front);
}

/* Beyond what subscribers may leave unread, the next head tells them that there is more to fetch. */
static int load_published(struct loading *loading, const struct effect *effect)
{
    if (atomic_load(&loading->held->feed) > FEED_HELD_MAX)
        return 0;
    struct msg_trajectory message;
    int code = ledger_load_published(loading->ledger, effect, &message, &loading->batch->fail);
    if (code)
        return code == -ENOENT ? 0 : code;
    return encode_trajectory(loading, &message) ? add_made(loading, &loading->held->feed) : 0;
}

/* ---- jobs ---- */

static bool may_share(const struct effect *job, const struct effect *other)
{
    return other && job->shares_tasks && other->shares_tasks && job->stage == other->stage &&
           slice_equal(job->group, other->group);
}

/* The next job of the batch after the one in hand; NULL: none. */
static const struct effect *next_job(const struct loading *loading)
{
    const struct effect_list *effects = &loading->batch->effects;
    for (size_t i = loading->effect + 1; i < effects->count; i++)
        if (effects->items[i].kind == LANE_JOB)
            return &effects->items[i];
    return NULL;
}

/* Whether its task comes before it: as those of a group are handed out together, the job beside it tells. */
static bool is_shared(const struct loading *loading, const struct effect *effect, const struct msg_job_start *message)
{
    enum { OWN_MAX = BUNDLED_MAX / 2 }; /* bytes that are its alone: a job with more goes alone */
    return message->answer.len + message->record.len + message->run_layer.len <= OWN_MAX &&
           (may_share(effect, loading->task_of) || may_share(effect, next_job(loading)));
}

/* The job.task of that job, which the batch has; empty: there is none, and the job has all itself. */
static struct slice make_task(struct loading *loading, const struct effect *effect, const struct msg_job_start *job)
{
    const struct msg_job_task message = {.group = job->group,
                                         .task = job->task,
                                         .init_layer_digest = job->init_layer_digest,
                                         .has_init_layer_digest = job->has_init_layer_digest,
                                         .init_layer = job->init_layer,
                                         .has_init_layer = job->has_init_layer};
    struct refusal no;
    if (may_share(effect, loading->task_of))
        return loading->task;
    struct loaded_task *task = calloc(1, sizeof(*task));
    if (!task)
        return no_task;
    STAILQ_INSERT_TAIL(&loading->batch->tasks, task, link);
    if (!message_encode(MSG_job_task, &message, &task->bytes, &no))
        return no_task;
    loading->task_of = effect;
    return loading->task = buffer_peek(&task->bytes);
}

static void leave_task_out(struct msg_job_start *message)
{
    message->has_task = message->has_init_layer = message->has_init_layer_digest = false;
}

static int load_job(struct loading *loading, const struct effect *effect)
{
    struct msg_job_start message;
    struct refusal no;
    struct fail *fail = &loading->batch->fail;
    int code = ledger_load_job(loading->ledger, effect, &message, fail);
    if (code == -ENOENT) { /* what it needs has gone since, in the same batch: it was taken from its worker again */
        log_event(LOG_INFO, "broker.job-gone", "job=%.*s text=\"%s\"", SLICE_ARG(effect->job), fail->text);
        *fail = (struct fail){0};
        return 0;
    }
    if (code)
        return code;
    const struct slice task = is_shared(loading, effect, &message) ? make_task(loading, effect, &message) : no_task;
    if (task.len)
        leave_task_out(&message);
    buffer_clear(&loading->batch->out);
    if (message_encode(MSG_job_start, &message, &loading->batch->out, &no))
        return add_message(loading, task, NULL);
    log_event(LOG_ERROR, "broker.job-unsendable", "job=%.*s text=\"%s\" action=handed-out-again",
              SLICE_ARG(effect->job), no.text);
    return 0;
}

static int (*const loaders[BACK_UP + 1])(struct loading *, const struct effect *) = {
    [SEND_TRAJECTORY] = load_trajectory,   [SEND_LIST] = load_list, [SEND_RANGE] = load_range,
    [PUBLISH_TRAJECTORY] = load_published, [LANE_JOB] = load_job,
};

static int load(struct batch *batch, struct ledger *ledger, struct held_bytes *held)
{
    struct loading loading = {.batch = batch, .ledger = ledger, .held = held};
    int code = 0;
    for (; code == 0 && loading.effect < batch->effects.count; loading.effect++) {
        const struct effect *effect = &batch->effects.items[loading.effect];
        if (!loaders[effect->kind])
            continue;
        if (!batch->is_writing && !batch->is_reading)
            code = ledger_read_begin(ledger, &batch->fail);
        batch->is_reading = true;
        if (code == 0)
            code = loaders[effect->kind](&loading, effect);
    }
    return code;
}

/* ---- both ---------------------------------------------------------------------------------------- */

size_t batch_count_work(struct batch *batch, struct effects effects)
{
    for (; batch->seen < effects.count; batch->seen++) {
        const struct effect *effect = &effects.items[batch->seen];
        batch->work += is_persist(effect) || loaders[effect->kind];
    }
    return batch->work;
}

void batch_do(struct batch *batch, struct ledger *ledger, struct held_bytes *held)
{
    batch->is_writing = batch->is_reading = false;
    batch->code = persist(batch, ledger);
    if (batch->code == 0)
        batch->code = load(batch, ledger, held);
}

void batch_commit(struct batch *batch, struct ledger *ledger)
{
    if (batch->code == 0 && batch->is_writing)
        batch->code = ledger_commit(ledger, &batch->fail);
    else if (batch->code == 0 && batch->is_reading)
        batch->code = ledger_read_end(ledger, &batch->fail);
    batch->commit = ledger_committed(ledger);
}
