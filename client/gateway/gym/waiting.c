#include "client/gateway/gym/waiting.h"

#include "client/gateway/broker/refused_text.h"
#include "client/lib/stream/trajectory_view.h"
#include "common/base/cleanup.h"

enum { AGAIN_MS = 1000, AGAIN_MAX_MS = 60000 };

/* The words begin with the field that they are of. */
static void fail(struct waiting *waiting, const char *reason, const char *field, const char *words)
{
    AUTO_BUFFER whole = {0};
    buffer_printf(&whole, "%s%s%s", field, *field ? ": " : "", words);
    buffer_append(&whole, "", 1);
    waiting->failed(waiting->call, reason, whole.failed ? words : (const char *)whole.data);
}

static void on_ended(void *arg, const struct msg_trajectory *trajectory)
{
    struct waiting *waiting = arg;
    struct trajectory_view view = {0};
    struct refusal no;
    if (trajectory_view_read(&view, trajectory, &no))
        waiting->ended(waiting->call, &view.out);
    else
        fail(waiting, "bad-record", no.field, no.text);
    trajectory_view_finish(&view);
}

static void begin(void *arg);

static void try_again(struct waiting *waiting, uint64_t after_ms)
{
    if (after_ms < AGAIN_MS)
        after_ms = AGAIN_MS;
    if (after_ms > AGAIN_MAX_MS)
        after_ms = AGAIN_MAX_MS;
    waiting->again = loop_after(waiting->call->gateway->loop, (int64_t)after_ms, begin, waiting);
    if (!waiting->again)
        fail(waiting, "queue-full", "", "out of memory");
}

static void on_failed(void *arg, const struct msg_refused *refused)
{
    struct waiting *waiting = arg;
    const bool is_unknown = !refused && caller_refused(waiting->call->identity->caller);
    if (is_unknown && exchange_is_answered(waiting->call->exchange)) {
        fail(waiting, "unknown-key", "", "the broker does not know the key of this token");
    } else if (is_unknown) {
        http_call_refuse_silence(waiting->call);
    } else if (!refused || refused->has_retry_after_ms) {
        try_again(waiting, refused ? refused->retry_after_ms : 0);
    } else {
        const struct refused_text text = refused_text(refused);
        fail(waiting, text.reason, text.field, text.words);
    }
}

static void begin(void *arg)
{
    struct waiting *waiting = arg;
    waiting->again = NULL;
    waiting->wait.ended = on_ended;
    waiting->wait.failed = on_failed;
    waiting->wait.arg = waiting;
    const struct run_plan plan = {.identity = waiting->call->identity,
                                  .prefix = "gym",
                                  .id = buffer_peek(&waiting->id),
                                  .content = buffer_peek(&waiting->task),
                                  .task = buffer_peek(&waiting->task),
                                  .takes_over = !waiting->is_own};
    if (!run_begin(waiting->runs, &plan, &waiting->wait))
        try_again(waiting, AGAIN_MS);
}

void waiting_begin(struct waiting *waiting, struct http_call *call, struct runs *runs)
{
    waiting->call = call;
    waiting->runs = runs;
    if (waiting->id.failed || waiting->task.failed)
        fail(waiting, "queue-full", "", "out of memory");
    else
        begin(waiting);
}

void waiting_end(struct waiting *waiting)
{
    loop_cancel(waiting->call->gateway->loop, &waiting->again);
    if (waiting->call->is_delivered)
        run_had(&waiting->wait);
    else
        run_leave(&waiting->wait, false);
    buffer_finish(&waiting->id);
    buffer_finish(&waiting->task);
}
