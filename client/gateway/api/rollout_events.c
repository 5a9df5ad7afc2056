#include "client/gateway/api/rollout_events.h"

#include <stdlib.h>

#include "client/gateway/sse.h"
#include "client/lib/live/watching.h"
#include "common/base/clock.h"

enum { STEP_MS = 250 };

/* One who looks; libsluice's own books say what to ask, and what was missed. */
struct viewing {
    struct http_call *call;
    struct sse sse; /* begins with the first answer, so that a refusal is an answer of its own */
    bool is_begun, is_refused;
    struct watching watching;
    struct watch *watch; /* NULL: it has ended */
    struct caller_ask ask;
    struct loop_timer *step;
};

static void end(struct http_call *call)
{
    struct viewing *viewing = call->state;
    caller_forget(&viewing->ask);
    loop_cancel(call->gateway->loop, &viewing->step);
    if (viewing->is_begun)
        sse_finish(&viewing->sse);
    watching_finish(&viewing->watching);
    free(viewing);
}

static void tell_batches(struct viewing *viewing)
{
    for (const char *batch; (batch = watching_take(&viewing->watching));) {
        sse_send(&viewing->sse, "live", 0, slice_from_str(batch));
        viewing->watch = viewing->watching.first;
    }
    if (!viewing->watch)
        sse_end(&viewing->sse);
}

static void refuse_viewing(struct viewing *viewing, const struct answer *answer)
{
    struct buffer said = {0};
    viewing->is_refused = true;
    caller_forget(&viewing->ask);
    if (!viewing->is_begun && answer) {
        http_call_refuse_as(viewing->call, &answer->as.refused);
    } else if (!viewing->is_begun) {
        http_call_refuse_silence(viewing->call);
    } else {
        buffer_append_str(&said, "{\"text\":");
        json_text_append(&said, answer ? answer->as.refused.text
                                       : slice_from_str(caller_trouble(viewing->call->identity->caller)));
        buffer_append_str(&said, "}");
        sse_send_text(&viewing->sse, "failed", &said);
        sse_end(&viewing->sse);
    }
}

static void on_answer(void *arg, const struct answer *answer)
{
    struct viewing *viewing = arg;
    if (!answer || answer->id == MSG_refused) {
        refuse_viewing(viewing, answer);
        return;
    }
    if (!viewing->is_begun)
        sse_begin(&viewing->sse, viewing->call);
    viewing->is_begun = true;
    watching_hear(&viewing->watching, answer, clock_ms());
    tell_batches(viewing);
}

static void ask(struct viewing *viewing)
{
    struct refusal no;
    const struct msg_rollout_watch in = watching_message(viewing->watch);
    caller_forget(&viewing->ask);
    viewing->ask.answered = on_answer;
    viewing->ask.arg = viewing;
    if (caller_watch(viewing->call->identity->caller, &viewing->ask, MSG_rollout_watch, &in, in.tag, &no))
        watching_note_asked(viewing->watch, clock_ms());
    else if (!viewing->is_begun)
        http_call_refuse(viewing->call, 400, refusal_wire(no.reason), no.field, "%s", no.text);
}

static void on_step(void *arg)
{
    struct viewing *viewing = arg;
    viewing->step = loop_after(viewing->call->gateway->loop, STEP_MS, on_step, viewing);
    if (!viewing->watch || viewing->is_refused)
        return;
    if (!viewing->is_begun && clock_ms() - viewing->watch->unheard_ms > HTTP_CALL_WAIT_MS)
        refuse_viewing(viewing, NULL);
    else if (viewing->watch->ask_ms <= clock_ms())
        ask(viewing);
}

void rollout_events_run(struct http_call *call)
{
    char rollout[160];
    if (!http_call_param(call, "rollout", rollout, sizeof(rollout)))
        return;
    struct viewing *viewing = calloc(1, sizeof(*viewing));
    if (viewing)
        viewing->watch = watching_add(&viewing->watching, rollout);
    if (!viewing || !viewing->watch) {
        free(viewing);
        http_call_refuse_memory(call);
        return;
    }
    viewing->call = call;
    call->state = viewing;
    call->end = end;
    viewing->watch->tag = caller_next_tag(call->identity->caller);
    viewing->watch->wants_anew = true;
    viewing->step = loop_after(call->gateway->loop, STEP_MS, on_step, viewing);
    ask(viewing);
}
