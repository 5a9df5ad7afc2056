#include "client/gateway/gym/reply.h"

#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"

#define CAPTURE "/training-token-capture/"

struct response_asked reply_asked(const struct reply *reply)
{
    return (struct response_asked){.tools = json_object_get(reply->params, "tools"),
                                   .model = json_string_value(json_object_get(reply->params, "model")),
                                   .with_tokens = reply->with_tokens};
}

/* ---- errors, as OpenAI's API has them ------------------------------------------------------------------ */

void reply_refuse_call(struct http_call *call, int status, const char *code, const char *words)
{
    struct buffer body = {0};
    const char *type = status < 500 ? "invalid_request_error" : "server_error";
    json_text_printf(&body, "{\"error\":{\"message\":%s,\"type\":%s,\"param\":null,\"code\":%s}}", words, type, code);
    http_call_answer_json(call, status, &body);
}

void reply_refuse(struct reply *reply, int status, const char *code, const char *words)
{
    struct buffer body = {0};
    if (!reply->is_stream) {
        reply_refuse_call(reply->call, status, code, words);
        return;
    }
    json_text_printf(&body, "{\"type\":\"error\",\"code\":%s,\"message\":%s,\"param\":null,\"sequence_number\":%u}",
                     code, words, reply->number++);
    sse_send_text(&reply->sse, "error", &body);
    sse_end(&reply->sse);
}

/* ---- streams --------------------------------------------------------------------------------------------- */

static void append(struct reply *reply, const char *event, const char *rest, struct slice value)
{
    AUTO_BUFFER data = {0};
    json_text_printf(&data, "{\"type\":%s,\"sequence_number\":%u", event, reply->number++);
    buffer_append_str(&data, rest);
    buffer_append(&data, value.data, value.len);
    buffer_append_str(&data, "}");
    reply->events.failed |= data.failed;
    sse_append(&reply->events, event, 0, buffer_peek(&data));
}

void reply_item(struct reply *reply, size_t index, struct slice item)
{
    char rest[64];
    if (!reply->is_stream)
        return;
    snprintf(rest, sizeof(rest), ",\"output_index\":%zu,\"item\":", index);
    append(reply, "response.output_item.added", rest, item);
    append(reply, "response.output_item.done", rest, item);
}

static void begin_stream(struct reply *reply)
{
    const struct response_asked asked = reply_asked(reply);
    AUTO_BUFFER empty = {0};
    reply->is_stream = true;
    sse_begin(&reply->sse, reply->call);
    response_append(NULL, &asked, &empty);
    append(reply, "response.created", ",\"response\":", buffer_peek(&empty));
    sse_send_all(&reply->sse, &reply->events);
}

/* ---- from its beginning to its end --------------------------------------------------------------------------- */

void reply_begin(struct reply *reply, struct http_call *call)
{
    reply->call = call;
    reply->params = take_ptr(&call->body);
    reply->with_tokens = strstr(exchange_path(call->exchange), CAPTURE) != NULL;
    if (json_is_true(json_object_get(reply->params, "stream")))
        begin_stream(reply);
}

void reply_whole(struct reply *reply, struct buffer *response)
{
    if (reply->is_stream && !response->failed)
        append(reply, "response.completed", ",\"response\":", buffer_peek(response));
    if (response->failed || reply->events.failed) {
        reply_refuse(reply, 503, "queue-full", "out of memory");
    } else if (reply->is_stream) {
        sse_send_all(&reply->sse, &reply->events);
        sse_end(&reply->sse);
    } else {
        http_call_answer_json(reply->call, 200, response);
    }
    buffer_finish(response);
}

void gym_reply_finish(struct reply *reply)
{
    sse_finish(&reply->sse);
    buffer_finish(&reply->events);
    json_decref(reply->params);
}
