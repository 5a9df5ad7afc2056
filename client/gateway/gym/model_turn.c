#include "client/gateway/gym/model_turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/gym/gym_kept.h"
#include "client/gateway/gym/reply.h"
#include "client/gateway/gym/row.h"
#include "client/gateway/gym/waiting.h"
#include "client/gateway/outgoing/outgoing.h"
#include "client/gateway/record/main_trace.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { TURN_MS = 600000, END_MS = 10000, OPEN_MS = 60000, ASK_MS = 5000, AGAIN_MS = 100 };

struct model_turn {
    struct waiting waiting;
    struct reply reply;
    struct outgoing_post post;
    struct loop_timer *again;
    int64_t opens_ms; /* until when its session must be open */
    char url[640];
    char why[1025]; /* it is not open yet */
    json_t *response;
    bool is_answered;
};

bool model_turn_is_asked(const json_t *params)
{
    const json_t *tools = json_object_get(params, "tools"), *input = json_object_get(params, "input");
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (json_is_object(json_object_get(json_array_get(tools, i), "parameters")))
            return true;
    for (size_t i = 0; i < json_array_size(input); i++) {
        const char *type = json_string_value(json_object_get(json_array_get(input, i), "type"));
        if (type && strncmp(type, "function_call", strlen("function_call")) == 0)
            return true;
    }
    return false;
}

static void end(struct http_call *call)
{
    struct model_turn *turn = call->state;
    outgoing_forget(&turn->post);
    loop_cancel(call->gateway->loop, &turn->again);
    if (!call->is_delivered || !turn->response) /* nobody takes it over: its turn is sampled for this call */
        run_leave(&turn->waiting.wait, true);
    waiting_end(&turn->waiting);
    gym_reply_finish(&turn->reply);
    json_decref(turn->response);
    free(turn);
}

static void refuse_turn(struct model_turn *turn, int status, const char *code, const char *words)
{
    if (!turn->is_answered)
        reply_refuse(&turn->reply, status, code, words);
    turn->is_answered = true;
}

static void on_failed(struct http_call *call, const char *reason, const char *words)
{
    refuse_turn(call->state, http_call_status_of(slice_from_str(reason)), reason, words);
}

/* ---- its response, with its tokens ----------------------------------------------------------------------- */

static void append_output(struct model_turn *turn, const struct sluice_trajectory *t, struct buffer *out)
{
    const json_t *output = json_object_get(turn->response, "output");
    const struct sluice_trace *trace = turn->reply.with_tokens ? main_trace(t) : NULL;
    const struct sluice_turn *sampled = trace ? trace_last_sampled(trace) : NULL;
    const size_t count = json_array_size(output);
    buffer_append_str(out, "[");
    for (size_t i = 0; i < count; i++) {
        AUTO_BUFFER item = {0};
        json_text_append_value(&item, json_array_get(output, i));
        if (i + 1 == count && sampled && item.len > 0 && !item.failed) {
            item.len--; /* its last brace */
            response_append_tokens(trace, sampled, &item);
            buffer_append_str(&item, "}");
        }
        buffer_append_str(out, i > 0 ? "," : "");
        buffer_append(out, item.data, item.len);
        reply_item(&turn->reply, i, buffer_peek(&item));
    }
    buffer_append_str(out, "]");
}

static void on_ended(struct http_call *call, const struct sluice_trajectory *t)
{
    struct model_turn *turn = call->state;
    struct buffer body = {0};
    const char *name, *joint = "{";
    json_t *value;
    if (!turn->response) {
        refuse_turn(turn, 503, t->outcome, t->detail);
        return;
    }
    json_object_foreach(turn->response, name, value)
    {
        buffer_append_str(&body, joint);
        json_text_append(&body, slice_from_str(name));
        buffer_append_str(&body, ":");
        if (strcmp(name, "output") == 0)
            append_output(turn, t, &body);
        else
            json_text_append_value(&body, value);
        joint = ",";
    }
    buffer_append_str(&body, "}");
    turn->is_answered = true;
    reply_whole(&turn->reply, &body);
}

/* ---- the session --------------------------------------------------------------------------------------------- */

static void on_end(void *arg, int status, const char *why, struct slice body)
{
    (void)arg; /* that it has ended comes by its trajectory, or by its silence */
    (void)status;
    (void)why;
    (void)body;
}

static void post(struct model_turn *turn, const char *path, struct buffer *body, int64_t wait_ms,
                 void (*ended)(void *, int, const char *, struct slice))
{
    char url[700];
    snprintf(url, sizeof(url), "%s%s", turn->url, path);
    const struct outgoing_plan plan = {
        .url = url, .wait_ms = wait_ms, .keeps_answer = true, .ended = ended, .arg = turn};
    if (!outgoing_post(((struct gym *)turn->reply.call->kept)->outgoing, &plan, body, &turn->post)) {
        buffer_finish(body);
        refuse_turn(turn, 503, "queue-full", "too much is under way");
    }
}

static void on_turn(void *arg, int status, const char *why, struct slice body)
{
    struct model_turn *turn = arg;
    struct buffer empty = {0};
    json_t *answer = json_text_read(body);
    const char *words = json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
    if (status == 200 && json_is_object(answer)) {
        turn->response = answer;
        buffer_append_str(&empty, "{}");
        post(turn, "/end", &empty, END_MS, on_end);
        return;
    }
    refuse_turn(turn, status >= 400 && status < 500 ? status : 503, "turn",
                words  ? words
                : *why ? why
                       : "no turn was sampled");
    json_decref(answer);
}

static void ask_turn(struct model_turn *turn)
{
    struct buffer body = {0};
    json_t *params = json_copy(turn->reply.params);
    json_object_del(params, "stream");
    json_text_append_value(&body, params);
    json_decref(params);
    post(turn, "/v1/responses", &body, TURN_MS, on_turn);
}

static void open_session(void *arg);

static void on_state(struct http_call *call, const struct answer *answer)
{
    struct model_turn *turn = call->state;
    const struct msg_session_state *state = &answer->as.session_state;
    if (turn->is_answered)
        return;
    if (answer->id == MSG_session_state && state->has_url) {
        snprintf(turn->url, sizeof(turn->url), "%.*s", SLICE_ARG(state->url));
        ask_turn(turn);
        return;
    }
    if (answer->id == MSG_session_state && state->has_why)
        snprintf(turn->why, sizeof(turn->why), "%.*s", SLICE_ARG(state->why));
    if (clock_ms() > turn->opens_ms)
        refuse_turn(turn, 503, "no-session", turn->why[0] ? turn->why : "no run worker takes sessions (--sessions)");
    else
        turn->again = loop_after(call->gateway->loop, AGAIN_MS, open_session, turn);
}

static void open_session(void *arg)
{
    struct model_turn *turn = arg;
    struct http_call *call = turn->reply.call;
    const char *group = run_name(&turn->waiting.wait);
    char rollout[160];
    turn->again = NULL;
    if (turn->is_answered)
        return;
    if (!*group) { /* its submit is tried again */
        turn->again = loop_after(call->gateway->loop, AGAIN_MS, open_session, turn);
        return;
    }
    snprintf(rollout, sizeof(rollout), "%s/0", group);
    struct msg_session_get in = {.rollout = slice_from_str(rollout), .wait_ms = ASK_MS, .has_wait_ms = true};
    call->takes_refusals = true;
    http_call_ask(call, MSG_session_get, &in, on_state);
}

void model_turn_run(struct http_call *call)
{
    struct fail why;
    json_t *task = row_session_task(call->body, &why);
    struct model_turn *turn = task ? calloc(1, sizeof(*turn)) : NULL;
    if (!turn) {
        json_decref(task);
        reply_refuse_call(call, task ? 503 : 400, task ? "queue-full" : "invalid_request",
                          task ? "out of memory" : why.text);
        return;
    }
    call->state = turn;
    call->end = end;
    turn->opens_ms = clock_ms() + OPEN_MS;
    turn->waiting = (struct waiting){.call = call, .ended = on_ended, .failed = on_failed, .is_own = true};
    json_text_append_value(&turn->waiting.task, task);
    json_decref(task);
    reply_begin(&turn->reply, call);
    waiting_begin(&turn->waiting, call, ((struct gym *)call->kept)->runs);
    open_session(turn);
}
