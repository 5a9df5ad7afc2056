#include "client/gateway/api/sessions.h"

#include <stdlib.h>

#include "client/gateway/api/asked.h"
#include "client/gateway/api/message_json.h"
#include "client/gateway/api/names.h"
#include "client/gateway/api/session_calls.h"
#include "client/gateway/bodies/task_part.h"
#include "client/gateway/http_call.h"
#include "common/base/cleanup.h"

enum { SESSION_WAIT_MS = 8000 };

struct opening {
    char rollout[160];
};

static void end(struct http_call *call) { free(call->state); }

/* `url` is here, since who asks by HTTP need not reach the worker, whose own is `worker_url`. */
static void answer_state(struct http_call *call, int status, const struct msg_session_state *told)
{
    struct msg_session_state state = *told;
    struct buffer body = {0};
    AUTO_BUFFER url = {0};
    if (state.has_url) {
        session_calls_append_url(call, state.rollout, state.attempt, &url);
        state.url = buffer_peek(&url);
    }
    buffer_append_str(&body, "{");
    message_append_members(message_get(MSG_session_state), &state, &body);
    if (state.has_url) {
        buffer_append_str(&body, ",\"worker_url\":");
        json_text_append(&body, told->url);
    }
    buffer_append_str(&body, "}");
    http_call_answer_json(call, status, &body);
}

static void on_state(struct http_call *call, const struct answer *answer)
{
    answer_state(call, answer->as.session_state.has_url ? 201 : 202, &answer->as.session_state);
}

static void on_known_state(struct http_call *call, const struct answer *answer)
{
    answer_state(call, 200, &answer->as.session_state);
}

void session_state_run(struct http_call *call) { asked_run_with(call, on_known_state); }

static void on_accepted(struct http_call *call, const struct answer *answer)
{
    struct opening *opening = call->state;
    (void)answer;
    struct msg_session_get in = {
        .rollout = slice_from_str(opening->rollout), .wait_ms = SESSION_WAIT_MS, .has_wait_ms = true};
    http_call_ask(call, MSG_session_get, &in, on_state);
}

/* agent.kind and eval.kind, where the task does not say them, as client.session() sets them. */
static void complete_task(json_t *task)
{
    static const char *const kinds[][2] = {{"agent", "session"}, {"eval", "posted"}};
    if (!json_is_object(task))
        return; /* it is refused as what it is */
    for (size_t i = 0; i < 2; i++) {
        json_t *part = task_part(task, kinds[i][0]);
        if (part && !json_object_get(part, "kind"))
            json_object_set_new(part, "kind", json_string(kinds[i][1]));
    }
}

/* Any other kind is no session, and would run all the same. */
static bool is_of_session(const json_t *task)
{
    const json_t *kind = json_object_get(json_object_get(task, "agent"), "kind");
    return !json_is_string(kind) || strcmp(json_string_value(kind), "session") == 0;
}

void session_open_run(struct http_call *call)
{
    const struct message *message = message_get(MSG_group_submit);
    struct msg_group_submit in = {.samples = 1, .has_samples = true};
    struct kept_texts kept = {0};
    struct refusal no;
    struct opening *opening = call->state = calloc(1, sizeof(*opening));
    call->end = end;
    complete_task(json_object_get(call->body, "task"));
    if (!opening || !message_from_json(message, call->body, &kept, &in, &no) ||
        (!in.has_group && !(in.has_group = names_make("session", &kept, &in.group)))) {
        http_call_refuse(call, opening ? 400 : 503, opening ? refusal_wire(no.reason) : "queue-full",
                         opening ? no.field : "", "%s", opening ? no.text : "out of memory");
    } else if (!is_of_session(json_object_get(call->body, "task"))) {
        http_call_refuse(call, 400, refusal_wire(REFUSAL_BAD_TASK), "task.agent.kind",
                         "a session's task has the agent.kind session, or none");
    } else if (in.samples != 1) {
        http_call_refuse(call, 400, refusal_wire(REFUSAL_TOO_LARGE), "samples", "a session is a group of one");
    } else {
        if (!in.has_stream)
            in.stream = slice_from_str("sessions");
        snprintf(opening->rollout, sizeof(opening->rollout), "%.*s/0", SLICE_ARG(in.group));
        http_call_ask(call, MSG_group_submit, &in, on_accepted);
    }
    kept_texts_finish(&kept);
}
