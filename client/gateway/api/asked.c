#include "client/gateway/api/asked.h"

#include "client/gateway/api/message_json.h"
#include "client/gateway/api/names.h"
#include "client/gateway/api/trajectory_json.h"

/* ---- what is asked ----------------------------------------------------------------------------------- */

static bool read_params(struct http_call *call, const struct message *message, struct kept_texts *kept, void *out,
                        struct refusal *no)
{
    for (size_t i = 0; i < call->params.count; i++) {
        char name[64], value[512];
        snprintf(name, sizeof(name), "%.*s", SLICE_ARG(call->params.of[i].name));
        if (call->params.of[i].value.len >= sizeof(value))
            return refuse(no, REFUSAL_TOO_LARGE, name, "%s in the path is too long", name);
        snprintf(value, sizeof(value), "%.*s", SLICE_ARG(call->params.of[i].value));
        if (!message_field_from_text(message, name, value, kept, out, no))
            return false;
    }
    return true;
}

/* Beside a body the query says nothing: whoever looked at the body alone would have looked at something else. */
static bool read_query(struct http_call *call, const struct message *message, struct kept_texts *kept, void *out,
                       struct refusal *no)
{
    for (size_t i = 0; i < message->field_count; i++) {
        const char *name = message->fields[i].name, *value = exchange_query(call->exchange, name);
        if (value && call->body)
            return refuse(no, REFUSAL_UNKNOWN_FIELD, name, "%s belongs in the body, not in the query", name);
        if (value && !message_field_from_text(message, name, value, kept, out, no))
            return false;
    }
    return true;
}

/* What a message wants and a request may leave out. */
static void preset(const struct message *message, void *out)
{
    struct msg_group_submit *submit = out;
    if (message == message_get(MSG_group_submit)) {
        submit->samples = 1;
        submit->has_samples = true;
    } else if (message == message_get(MSG_rollout_list))
        ((struct msg_rollout_list *)out)->has_ended = true;
}

static bool complete(const struct message *message, struct kept_texts *kept, void *out, struct refusal *no)
{
    struct msg_group_submit *submit = out;
    if (message == message_get(MSG_group_submit) && !submit->has_group) {
        submit->has_group = names_make("group", kept, &submit->group);
        if (!submit->has_group)
            return refuse(no, REFUSAL_QUEUE_FULL, "group", "out of memory");
    }
    return message_is_complete(message, out, no);
}

static bool read_message(struct http_call *call, const struct message *message, struct kept_texts *kept, void *out,
                         struct refusal *no)
{
    preset(message, out);
    return (!call->body || message_from_json(message, call->body, kept, out, no)) &&
           read_query(call, message, kept, out, no) && read_params(call, message, kept, out, no) &&
           complete(message, kept, out, no);
}

/* ---- what is answered -------------------------------------------------------------------------------- */

/* Of a message whose one field beside its tag, or one among its names, is the whole as JSON. */
static bool whole_of(const struct answer *answer, struct slice *ret)
{
    switch (answer->id) {
    case MSG_status: *ret = answer->as.status.json; return true;
    case MSG_rollouts: *ret = answer->as.rollouts.json; return true;
    case MSG_sampler_state: *ret = answer->as.sampler_state.json; return true;
    case MSG_sampler_batch: *ret = answer->as.sampler_batch.json; return true;
    default: return false;
    }
}

static void answer_trajectory(struct http_call *call, const struct answer *answer)
{
    struct buffer body = {0};
    struct refusal no;
    if (trajectory_json(&answer->as.trajectory, &body, &no)) {
        http_call_answer_json(call, 200, &body);
        return;
    }
    buffer_finish(&body);
    http_call_refuse(call, 500, "bad-record", no.field, "%s", no.text);
}

static int status_of(const struct answer *answer)
{
    return answer->id == MSG_group_accepted && !answer->as.group_accepted.known ? 201
           : answer->id == MSG_sampler_waits                                    ? 202
                                                                                : 200;
}

static void asked_answer(struct http_call *call, const struct answer *answer)
{
    struct buffer body = {0};
    struct slice whole;
    if (answer->id == MSG_trajectory) {
        answer_trajectory(call, answer);
        return;
    }
    if (whole_of(answer, &whole)) {
        buffer_append(&body, whole.data, whole.len);
    } else {
        buffer_append_str(&body, "{");
        message_append_members(message_get(answer->id), &answer->as, &body);
        buffer_append_str(&body, "}");
    }
    http_call_answer_json(call, status_of(answer), &body);
}

void asked_run_with(struct http_call *call, void (*answered)(struct http_call *call, const struct answer *answer))
{
    const struct message *message = message_get(call->route->message);
    union any_message in;
    struct kept_texts kept = {0};
    struct refusal no;
    memset(&in, 0, sizeof(in));
    if (read_message(call, message, &kept, &in, &no))
        http_call_ask(call, call->route->message, &in, answered);
    else
        http_call_refuse(call, 400, refusal_wire(no.reason), no.field, "%s", no.text);
    kept_texts_finish(&kept);
}

void asked_run(struct http_call *call) { asked_run_with(call, asked_answer); }
