#include "client/gateway/api/stream_events.h"

#include <errno.h>
#include <stdlib.h>

#include "client/gateway/api/native.h"
#include "client/gateway/api/trajectory_json.h"
#include "client/gateway/sse.h"

struct following {
    struct sse sse;
    struct tail_reader reader;
    bool is_summary;
};

static struct slice rendered(struct told *told, bool is_summary, struct refusal *no)
{
    struct buffer *text = is_summary ? &told->summary : &told->whole;
    if (text->len == 0 && !(is_summary ? trajectory_summary : trajectory_json)(told->message, text, no))
        buffer_clear(text);
    return buffer_peek(text);
}

static void on_trajectory(void *arg, struct told *told)
{
    struct following *following = arg;
    struct refusal no = {0};
    const struct slice text = rendered(told, following->is_summary, &no);
    if (text.len > 0) {
        sse_send(&following->sse, "trajectory", told->message->seq, text);
        return;
    }
    struct buffer said = {0};
    json_text_printf(&said, "{\"rollout\":");
    json_text_append(&said, told->message->rollout);
    json_text_printf(&said, ",\"reason\":\"bad-record\",\"text\":%s}", no.text);
    sse_send(&following->sse, "unreadable", told->message->seq, buffer_peek(&said));
    buffer_finish(&said);
}

static void tell_head(struct following *following, const char *event, const struct msg_stream_head *head)
{
    struct buffer said = {0};
    json_text_printf(&said, "{\"first\":%u,\"head\":%u,\"pending\":%u,\"epoch\":%u,\"start_id\":%u}", head->first,
                     head->head, head->pending, head->epoch, head->has_start_id ? head->start_id : 0);
    sse_send_text(&following->sse, event, &said);
}

static void on_head(void *arg, const struct msg_stream_head *head) { tell_head(arg, "head", head); }

static uint64_t on_replaced(void *arg, const struct msg_stream_head *head)
{
    tell_head(arg, "replaced", head);
    return head->first;
}

static void on_failed(void *arg, const struct msg_refused *refused)
{
    struct following *following = arg;
    struct buffer said = {0};
    buffer_append_str(&said, "{\"reason\":");
    json_text_append(&said, refused ? refused->reason : slice_from_str("unknown-key"));
    buffer_append_str(&said, ",\"text\":");
    json_text_append(&said, refused ? refused->text : slice_from_str("the broker does not know the key of this token"));
    buffer_append_str(&said, "}");
    sse_send_text(&following->sse, "failed", &said);
    sse_end(&following->sse);
}

static bool has_room(void *arg) { return sse_has_room(&((struct following *)arg)->sse); }

static void end(struct http_call *call)
{
    struct following *following = call->state;
    tail_leave(&following->reader);
    sse_finish(&following->sse);
    free(following);
}

/* `ret_was_read`: the client had the one before that. */
static bool read_from(struct http_call *call, uint64_t *ret, bool *ret_was_read)
{
    const char *text = exchange_query(call->exchange, "from");
    char *rest = NULL;
    errno = 0;
    *ret = text ? strtoull(text, &rest, 10) : 0;
    if (text && (*text < '0' || *text > '9' || *rest || errno || *ret > INT64_MAX)) {
        http_call_refuse(call, 400, refusal_wire(REFUSAL_WRONG_TYPE), "from",
                         "from must be a trajectory's number, from 1");
        return false;
    }
    uint64_t last;
    if (!sse_last_id(call, 0, &last))
        return false;
    *ret_was_read = last > 0;
    *ret = last ? last + 1 : *ret;
    return true;
}

void stream_events_run(struct http_call *call)
{
    struct native *native = call->kept;
    const char *view = exchange_query(call->exchange, "view");
    char stream[65];
    uint64_t from;
    bool was_read;
    if (!http_call_param(call, "stream", stream, sizeof(stream)) || !read_from(call, &from, &was_read))
        return;
    if (!name_is_valid(slice_from_str(stream))) {
        http_call_refuse(call, 400, refusal_wire(REFUSAL_BAD_NAME), "stream", "a stream's name holds no blanks");
        return;
    }
    if (view && strcmp(view, "summary") != 0 && strcmp(view, "whole") != 0) {
        http_call_refuse(call, 400, refusal_wire(REFUSAL_WRONG_TYPE), "view", "view must be whole or summary");
        return;
    }
    struct following *following = calloc(1, sizeof(*following));
    const struct reader_plan plan = {.took = on_trajectory,
                                     .stands = on_head,
                                     .failed = on_failed,
                                     .has_room = has_room,
                                     .replaced = on_replaced,
                                     .has_read = was_read,
                                     .arg = following};
    if (!following) {
        http_call_refuse_memory(call);
        return;
    }
    following->is_summary = view && strcmp(view, "summary") == 0;
    call->state = following;
    call->end = end;
    sse_begin(&following->sse, call);
    if (!tail_read(native->tails, call->identity, stream, from, &plan, &following->reader))
        exchange_drop(call->exchange);
}
