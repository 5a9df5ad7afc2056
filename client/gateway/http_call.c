#include "client/gateway/http_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/gateway/broker/refused_text.h"
#include "client/gateway/json_asked.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

/* ---- answers --------------------------------------------------------------------------------------- */

void http_call_answer(struct http_call *call, int status, const char *content_type, struct buffer *body)
{
    if (!exchange_is_answered(call->exchange)) {
        if (call->identity) /* what one may see is kept for nobody else, nor by whom it passes through */
            exchange_set_header(call->exchange, "Cache-Control", "no-store");
        exchange_answer(call->exchange, status, content_type, body);
    }
    buffer_finish(body);
}

void http_call_answer_json(struct http_call *call, int status, struct buffer *body)
{
    http_call_answer(call, status, "application/json", body);
}

static void write_trouble(struct http_call *call, const struct trouble *trouble)
{
    struct buffer body = {0};
    const char *type = call->family ? call->family->write_trouble(trouble, &body) : route_write_detail(trouble, &body);
    http_call_answer(call, trouble->status, type, &body);
}

void http_call_refuse(struct http_call *call, int status, const char *reason, const char *field, const char *format,
                      ...)
{
    char words[2304];
    va_list args;
    if (exchange_is_answered(call->exchange))
        return; /* a stream, such as of events, whose owner says how it ends */
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    if (status == 401)
        exchange_set_header(call->exchange, "WWW-Authenticate", "Bearer");
    write_trouble(call, &(struct trouble){.status = status, .reason = reason, .field = field, .words = words});
}

static const struct {
    enum refusal_reason reason;
    int status;
} statuses[] = {
    {REFUSAL_GROUP_EXISTS, 409},   {REFUSAL_UNKNOWN_GROUP, 404},   {REFUSAL_UNKNOWN_ROLLOUT, 404},
    {REFUSAL_NO_SESSION, 404},     {REFUSAL_UNKNOWN_STREAM, 404},  {REFUSAL_UNKNOWN_ENGINE, 404},
    {REFUSAL_UNKNOWN_WORKER, 404}, {REFUSAL_NO_ENGINE, 503},       {REFUSAL_QUEUE_FULL, 429},
    {REFUSAL_FORGOTTEN, 410},      {REFUSAL_NOT_ALLOWED, 403},     {REFUSAL_DISK_LOW, 503},
    {REFUSAL_BACKUP_FAILED, 500},  {REFUSAL_UNKNOWN_MESSAGE, 501},
};

int http_call_status_of(struct slice reason)
{
    if (slice_is(reason, HTTP_CALL_LEDGER_REPLACED))
        return 503;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++)
        if (slice_is(reason, refusal_wire(statuses[i].reason)))
            return statuses[i].status;
    return 400;
}

void http_call_refuse_as(struct http_call *call, const struct msg_refused *refused)
{
    const struct refused_text text = refused_text(refused);
    char seconds[24];
    if (refused->has_retry_after_ms && !exchange_is_answered(call->exchange)) {
        snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)(refused->retry_after_ms + 999) / 1000);
        exchange_set_header(call->exchange, "Retry-After", seconds);
    }
    http_call_refuse(call, http_call_status_of(refused->reason), text.reason, text.field, "%s", text.words);
}

void http_call_refuse_memory(struct http_call *call)
{
    http_call_refuse(call, 503, refusal_wire(REFUSAL_QUEUE_FULL), "", "out of memory");
}

void http_call_refuse_silence(struct http_call *call)
{
    struct caller *caller = call->identity->caller;
    if (call->identity != identities_own(call->gateway->identities) && caller_refused(caller))
        http_call_refuse(call, 401, "unknown-key", "", "the broker does not know the key of this token");
    else
        http_call_refuse(call, 503, "broker-away", "", "%s", caller_trouble(caller));
}

/* ---- asking the broker --------------------------------------------------------------------------------- */

static void on_answer(void *arg, const struct answer *answer)
{
    struct http_call *call = arg;
    if (!answer)
        http_call_refuse_silence(call);
    else if (answer->id == MSG_refused && !call->takes_refusals)
        http_call_refuse_as(call, &answer->as.refused);
    else
        call->answered(call, answer);
}

void http_call_ask(struct http_call *call, enum message_id id, void *in,
                   void (*answered)(struct http_call *, const struct answer *))
{
    struct caller *caller = call->identity->caller;
    const struct message *message = message_get(id);
    struct refusal no;
    const uint64_t tag = caller_next_tag(caller);
    for (size_t i = 0; i < message->field_count; i++)
        if (strcmp(message->fields[i].name, "tag") == 0)
            memcpy((char *)in + message->fields[i].offset, &tag, sizeof(tag));
    call->answered = answered;
    call->ask.answered = on_answer;
    call->ask.arg = call;
    if (!caller_ask(caller, &call->ask, id, in, tag, HTTP_CALL_WAIT_MS, &no))
        http_call_refuse(call, 400, refusal_wire(no.reason), no.field, "%s", no.text);
}

/* ---- from its head to its end ------------------------------------------------------------------------------ */

struct slice http_call_part(const struct http_call *call, const char *name)
{
    for (size_t i = 0; i < call->params.count; i++)
        if (slice_is(call->params.of[i].name, name))
            return call->params.of[i].value;
    return slice_of("", 0);
}

bool http_call_param(struct http_call *call, const char *name, char *ret, size_t size)
{
    const struct slice value = http_call_part(call, name);
    if (value.len > 0 && value.len < size) {
        memcpy(ret, value.data, value.len);
        ret[value.len] = '\0';
        return true;
    }
    http_call_refuse(call, 400, refusal_wire(REFUSAL_TOO_LARGE), name, "%s in the path is too long", name);
    return false;
}

struct http_call *http_call_begin(struct gateway *gateway, struct exchange *exchange)
{
    struct http_call *call = calloc(1, sizeof(*call));
    struct buffer nothing = {0};
    if (!call) {
        exchange_answer(exchange, 503, NULL, &nothing);
        return NULL;
    }
    *call = (struct http_call){.gateway = gateway, .exchange = exchange, .began_us = clock_us()};
    exchange_set_user(exchange, call);
    return call;
}

static bool read_object(struct http_call *call)
{
    const struct slice body = exchange_body(call->exchange);
    json_error_t error;
    if (body.len == 0 && call->route->body == ROUTE_MAY_OBJECT)
        return true;
    call->body = json_asked_read(body, JSON_REJECT_DUPLICATES, &error);
    if (!call->body)
        http_call_refuse(call, 400, refusal_wire(REFUSAL_MALFORMED), "",
                         "the body cannot be read as JSON: %s (line %d, column %d)", error.text, error.line,
                         error.column);
    else if (!json_is_object(call->body))
        http_call_refuse(call, 400, refusal_wire(REFUSAL_WRONG_TYPE), "", "the body must be a JSON object");
    return json_is_object(call->body);
}

void http_call_run(struct http_call *call)
{
    const enum route_body body = call->route->body;
    if ((body == ROUTE_OBJECT || body == ROUTE_MAY_OBJECT) && !read_object(call))
        return;
    if (body != ROUTE_RAW) {
        struct buffer read = exchange_take_body(call->exchange); /* of 2,000 that wait none is needed any more */
        buffer_finish(&read);
    }
    call->route->run(call);
}

void http_call_finish(struct http_call *call)
{
    if (!call)
        return;
    caller_forget(&call->ask);
    if (call->end)
        call->end(call);
    if (call->identity)
        identities_give_back(call->gateway->identities, call->identity);
    json_decref(call->body);
    free(call);
}
