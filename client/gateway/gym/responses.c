#include "client/gateway/gym/responses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/gym/response.h"
#include "client/gateway/gym/row.h"
#include "client/gateway/gym/waiting.h"
#include "client/gateway/sse.h"
#include "common/base/cleanup.h"

#define CAPTURE "/training-token-capture/"

struct asking {
    struct waiting waiting;
    json_t *params;
    bool with_tokens, is_stream;
    uint64_t number; /* of the stream's next event */
    struct sse sse;
};

static void end(struct http_call *call)
{
    struct asking *asking = call->state;
    waiting_end(&asking->waiting);
    sse_finish(&asking->sse);
    json_decref(asking->params);
    free(asking);
}

/* ---- errors, as OpenAI's API has them ------------------------------------------------------------------ */

static void refuse_responses(struct http_call *call, int status, const char *code, const char *words)
{
    struct asking *asking = call->state;
    struct buffer body = {0};
    const char *type = status < 500 ? "invalid_request_error" : "server_error";
    if (asking && asking->is_stream) {
        json_text_printf(&body, "{\"type\":\"error\",\"code\":%s,\"message\":%s,\"param\":null,\"sequence_number\":%u}",
                         code, words, asking->number++);
        sse_send_text(&asking->sse, "error", &body);
        sse_end(&asking->sse);
        return;
    }
    json_text_printf(&body, "{\"error\":{\"message\":%s,\"type\":%s,\"param\":null,\"code\":%s}}", words, type, code);
    http_call_answer_json(call, status, &body);
}

static void on_failed(struct http_call *call, const char *reason, const char *field, const char *words)
{
    char said[2400];
    snprintf(said, sizeof(said), "%s%s%s", field, *field ? ": " : "", words);
    refuse_responses(call, http_call_status_of(slice_from_str(reason)), reason, said);
}

/* ---- streams --------------------------------------------------------------------------------------------- */

static void send(struct asking *asking, const char *event, const char *rest, struct slice value)
{
    struct buffer data = {0};
    json_text_printf(&data, "{\"type\":%s,\"sequence_number\":%u", event, asking->number++);
    buffer_append_str(&data, rest);
    buffer_append(&data, value.data, value.len);
    buffer_append_str(&data, "}");
    sse_send_text(&asking->sse, event, &data);
}

static void send_item(void *arg, size_t index, struct slice item)
{
    char rest[64];
    snprintf(rest, sizeof(rest), ",\"output_index\":%zu,\"item\":", index);
    send(arg, "response.output_item.added", rest, item);
    send(arg, "response.output_item.done", rest, item);
}

static void begin_stream(struct http_call *call)
{
    struct asking *asking = call->state;
    const struct response_asked asked = {.tools = json_object_get(asking->params, "tools"),
                                         .model = json_string_value(json_object_get(asking->params, "model"))};
    AUTO_BUFFER empty = {0};
    sse_begin(&asking->sse, call);
    response_append(NULL, &asked, &empty);
    send(asking, "response.created", ",\"response\":", buffer_peek(&empty));
}

/* ---- its end ------------------------------------------------------------------------------------------------ */

static void on_ended(struct http_call *call, const struct sluice_trajectory *trajectory)
{
    struct asking *asking = call->state;
    const struct response_asked asked = {.tools = json_object_get(asking->params, "tools"),
                                         .model = json_string_value(json_object_get(asking->params, "model")),
                                         .with_tokens = asking->with_tokens};
    struct buffer body = {0};
    if (!response_has_tokens(trajectory)) {
        refuse_responses(call, strcmp(trajectory->outcome, "task") == 0 ? 400 : 503, trajectory->outcome,
                         trajectory->detail);
        return;
    }
    response_append(trajectory, &asked, &body);
    if (asking->is_stream) {
        response_each(trajectory, asking->with_tokens, send_item, asking);
        send(asking, "response.completed", ",\"response\":", buffer_peek(&body));
        sse_end(&asking->sse);
        buffer_finish(&body);
    } else if (body.failed) {
        buffer_finish(&body);
        refuse_responses(call, 503, "queue-full", "out of memory");
    } else {
        http_call_answer_json(call, 200, &body);
    }
}

/* ---- its beginning ------------------------------------------------------------------------------------------- */

static void append_id(const struct http_call *call, struct buffer *out)
{
    buffer_append_str(out, "responses ");
    for (size_t i = 0; i < call->params.count; i++)
        buffer_append(out, call->params.of[i].value.data, call->params.of[i].value.len);
}

void responses_run(struct http_call *call)
{
    struct fail why;
    json_t *task = row_request_task(call->body, "responses", &why);
    if (!task) {
        refuse_responses(call, 400, "invalid_request", why.text);
        return;
    }
    struct asking *asking = call->state = calloc(1, sizeof(*asking));
    if (!asking) {
        json_decref(task);
        refuse_responses(call, 503, "queue-full", "out of memory");
        return;
    }
    call->end = end;
    asking->params = take_ptr(&call->body);
    asking->with_tokens = strstr(exchange_path(call->exchange), CAPTURE) != NULL;
    asking->waiting = (struct waiting){.call = call, .ended = on_ended, .failed = on_failed};
    json_text_append_value(&asking->waiting.task, task);
    json_decref(task);
    append_id(call, &asking->waiting.id);
    if (json_is_true(json_object_get(asking->params, "stream"))) {
        asking->is_stream = true;
        begin_stream(call);
    }
    waiting_begin(&asking->waiting, call, call->kept);
}
