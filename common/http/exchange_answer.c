#include "common/http/exchange_answer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/cleanup.h"
#include "common/http/exchange_wait.h"
#include "common/http/head.h"

enum { UNSENT_MAX = 1 << 20 };

bool exchange_is_answered(const struct exchange *exchange) { return exchange->status != 0; }

/* ---- its headers ------------------------------------------------------------------------------------- */

bool exchange_set_header(struct exchange *exchange, const char *name, const char *value)
{
    assert(!exchange_is_answered(exchange));
    const size_t before = exchange->headers.len;
    if (!*name || strpbrk(name, " \t:") || !head_is_text(name) || !head_is_text(value))
        return false;
    if (buffer_append(&exchange->headers, name, strlen(name) + 1) &&
        buffer_append(&exchange->headers, value, strlen(value) + 1))
        return true;
    exchange->headers.len = before;
    return false;
}

static bool has_header(const struct exchange *exchange, const char *name)
{
    const char *at = (const char *)exchange->headers.data, *const end = at ? at + exchange->headers.len : NULL;
    for (; at < end; at += strlen(at) + 1) {
        if (strcasecmp(at, name) == 0)
            return true;
        at += strlen(at) + 1;
    }
    return false;
}

/* What is true of all answers; what does not fit is left out. */
static void begin(struct exchange *exchange, int status, const char *content_type)
{
    assert(!exchange_is_answered(exchange));
    if (content_type && !has_header(exchange, "Content-Type"))
        exchange_set_header(exchange, "Content-Type", content_type);
    if ((status == 503 || status == 429) && !has_header(exchange, "Retry-After"))
        exchange_set_header(exchange, "Retry-After", "2");
    exchange->status = status;
    exchange_wake(exchange);
}

/* ---- a whole answer ------------------------------------------------------------------------------------ */

static ssize_t read_whole(void *arg, uint64_t at, char *into, size_t max)
{
    const struct exchange *exchange = arg;
    const size_t left = exchange->out.len - (size_t)at, len = left < max ? left : max;
    memcpy(into, exchange->out.data + at, len);
    return len > 0 ? (ssize_t)len : EXCHANGE_READ_END;
}

void exchange_answer(struct exchange *exchange, int status, const char *content_type, struct buffer *body)
{
    if (body->failed) {
        buffer_finish(body);
        exchange_refuse(exchange, 500, "out of memory");
        return;
    }
    exchange->out = *body;
    *body = (struct buffer){0};
    exchange->size = exchange->out.len;
    exchange->read = read_whole;
    exchange->read_arg = exchange;
    exchange_recount(exchange);
    begin(exchange, status, content_type);
}

static void append_json(struct buffer *out, const char *text)
{
    buffer_append_str(out, "\"");
    for (const char *c = text; *c; c++)
        if (*c == '"' || *c == '\\')
            buffer_printf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            buffer_printf(out, "\\u%04x", (unsigned char)*c);
        else
            buffer_append(out, c, 1);
    buffer_append_str(out, "\"");
}

static const char *write_detail(const char *words, struct buffer *ret)
{
    buffer_append_str(ret, "{\"detail\":");
    append_json(ret, words);
    buffer_append_str(ret, "}");
    return "application/json";
}

void exchange_refuse(struct exchange *exchange, int status, const char *words)
{
    const struct http_server_plan *plan = &exchange->server->plan;
    AUTO_BUFFER body = {0};
    const char *type = plan->write_error ? plan->write_error(plan->arg, exchange, status, words, &body)
                                         : write_detail(words, &body);
    if (body.failed) { /* without words, then */
        buffer_finish(&body);
        body = (struct buffer){0};
    }
    exchange_answer(exchange, status, type, &body);
}

/* ---- a stream -------------------------------------------------------------------------------------------- */

static ssize_t read_stream(void *arg, uint64_t at, char *into, size_t max)
{
    struct exchange *exchange = arg;
    const size_t left = exchange_unsent(exchange), len = left < max ? left : max;
    (void)at;
    if (len == 0)
        return exchange->is_ended ? EXCHANGE_READ_END : 0;
    memcpy(into, exchange->out.data + exchange->out_at, len);
    exchange->out_at += len;
    if (len == left) { /* a stream that is read to its end takes no memory */
        buffer_finish(&exchange->out);
        exchange->out_at = 0;
        exchange_recount(exchange);
    }
    return (ssize_t)len;
}

void exchange_stream(struct exchange *exchange, int status, const char *content_type)
{
    exchange->size = EXCHANGE_SIZE_UNKNOWN;
    exchange->read = read_stream;
    exchange->read_arg = exchange;
    begin(exchange, status, content_type);
}

size_t exchange_unsent(const struct exchange *exchange) { return exchange->out.len - exchange->out_at; }

static void move_up(struct exchange *exchange)
{
    const size_t left = exchange_unsent(exchange);
    if (exchange->out_at < left)
        return;
    memcpy(exchange->out.data, exchange->out.data + exchange->out_at, left);
    exchange->out.len = left;
    exchange->out_at = 0;
}

/* Who is nearly up to date gets one piece of any size. */
static bool has_room(const struct exchange *exchange, size_t len)
{
    const struct http_server_plan *plan = &exchange->server->plan;
    const size_t max = plan->unsent_max > 0 ? plan->unsent_max : UNSENT_MAX;
    const size_t unsent = exchange_unsent(exchange);
    return !http_server_is_full(exchange->server) && (unsent < max / 4 || (len <= max && unsent <= max - len));
}

bool exchange_send(struct exchange *exchange, struct slice piece)
{
    assert(exchange->read == read_stream && !exchange->is_ended);
    if (exchange->is_dropped || exchange->is_hung_up || !has_room(exchange, piece.len))
        return false;
    if (piece.len == 0)
        return true;
    if (exchange->out_at > 0)
        move_up(exchange);
    if (!buffer_append(&exchange->out, piece.data, piece.len)) {
        exchange->out.failed = false;
        return false;
    }
    exchange_recount(exchange);
    exchange_wake(exchange);
    return true;
}

void exchange_end(struct exchange *exchange)
{
    exchange->is_ended = true;
    exchange_wake(exchange);
}

/* ---- a source ------------------------------------------------------------------------------------------- */

void exchange_source(struct exchange *exchange, int status, const char *content_type, uint64_t size,
                     ssize_t (*read)(void *arg, uint64_t at, char *into, size_t max), void *arg)
{
    exchange->size = size;
    exchange->read = read;
    exchange->read_arg = arg;
    begin(exchange, status, content_type);
}

void exchange_more(struct exchange *exchange) { exchange_wake(exchange); }

/* ---- neither --------------------------------------------------------------------------------------------- */

void exchange_drop(struct exchange *exchange)
{
    exchange->is_dropped = true;
    http_connection_cut(exchange->connection);
    exchange_wake(exchange);
}
