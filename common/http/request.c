#include "common/http/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/http/exchange_wait.h"
#include "common/http/head.h"
#include "common/http/response.h"

enum { FORGOTTEN_BODIES = 8 }; /* how many times body_max is read of a body that was refused */

static const struct http_server_plan *plan_of(const struct exchange *exchange) { return &exchange->server->plan; }

/* ---- the head ------------------------------------------------------------------------------------------ */

static void refuse_too_large(struct exchange *exchange)
{
    char words[80];
    const size_t max = plan_of(exchange)->body_max;
    if (max >= 1 << 20)
        snprintf(words, sizeof(words), "the body is larger than %zu MiB", max >> 20);
    else
        snprintf(words, sizeof(words), "the body is larger than %zu bytes", max);
    exchange_refuse(exchange, 413, words);
}

static void refuse_coding(struct exchange *exchange)
{
    char words[160];
    snprintf(words, sizeof(words), "Content-Encoding: %.40s is not read; send the body as gzip, deflate or as it is",
             exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_ENCODING));
    exchange_refuse(exchange, 400, words);
}

static void refuse_full(struct exchange *exchange)
{
    exchange_refuse(exchange, 503, "too many bytes of requests are under way");
}

/* What the server has against a body of that size, whose owner takes it. */
static void check_body(struct exchange *exchange, uint64_t size)
{
    if (exchange_header_count(exchange, MHD_HTTP_HEADER_CONTENT_ENCODING) > 1)
        exchange->coding = CODING_OTHER;
    if (exchange->coding == CODING_OTHER)
        refuse_coding(exchange);
    else if (size != UINT64_MAX && size > plan_of(exchange)->body_max)
        refuse_too_large(exchange);
    else if (size > 0 && http_server_is_full(exchange->server))
        refuse_full(exchange);
}

/*
 * Where the next request begins is not sure, the client waits for leave to send what is not wanted, or sends more than
 * anybody would read.
 */
static bool must_end_now(const struct exchange *exchange, uint64_t size)
{
    return exchange->is_last || (size > 0 && head_expects(exchange)) ||
           (size != UINT64_MAX && size / FORGOTTEN_BODIES > plan_of(exchange)->body_max);
}

static enum MHD_Result hear(struct exchange *exchange, const char *method, const char *version)
{
    const struct http_server_plan *plan = plan_of(exchange);
    exchange->is_heard = true;
    exchange->is_old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
    /* One that is longer is no method that anybody knows, nor is what is left of it. */
    snprintf(exchange->method, sizeof(exchange->method), "%s",
             strlen(method) < sizeof(exchange->method) ? method : "?");
    const char *fault = head_check(exchange, method);
    const uint64_t size = fault ? 0 : head_body_size(exchange);
    exchange->is_last = fault != NULL;
    exchange->coding = coding_of(exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_ENCODING));
    if (fault)
        exchange_refuse(exchange, 400, fault);
    else if (plan->heard)
        plan->heard(plan->arg, exchange);
    if (!exchange_is_answered(exchange))
        check_body(exchange, size);
    if (exchange->is_dropped)
        return MHD_NO;
    if (!exchange_is_answered(exchange) || !must_end_now(exchange, size))
        return MHD_YES;
    exchange->is_last = true;
    return response_queue(exchange) ? MHD_YES : MHD_NO;
}

/* ---- the body ------------------------------------------------------------------------------------------ */

static void forget_body(struct exchange *exchange)
{
    buffer_finish(&exchange->body);
    exchange_recount(exchange);
}

/* What is refused in the end is read to its end, so that its client hears why; but not for ever. */
static enum MHD_Result pass_over(struct exchange *exchange, size_t len)
{
    exchange->forgotten += len;
    return exchange->forgotten / FORGOTTEN_BODIES > plan_of(exchange)->body_max ? MHD_NO : MHD_YES;
}

enum { BODY_STEP = 64 << 10 }; /* bytes that show that a client goes on; less would let it trickle */

static enum MHD_Result take_body(struct exchange *exchange, const char *data, size_t len)
{
    if (exchange_is_answered(exchange))
        return pass_over(exchange, len);
    if (exchange->body.len + len > plan_of(exchange)->body_max)
        refuse_too_large(exchange);
    else if (http_server_is_full(exchange->server))
        refuse_full(exchange);
    else if (!buffer_append(&exchange->body, data, len))
        exchange_refuse(exchange, 500, "out of memory");
    if (exchange_is_answered(exchange))
        forget_body(exchange);
    else if (exchange->body.len / BODY_STEP != (exchange->body.len - len) / BODY_STEP)
        http_connections_step(&exchange->server->connections, exchange->connection, false);
    exchange_recount(exchange);
    return MHD_YES;
}

static void decode_body(struct exchange *exchange)
{
    struct fail fail = {0};
    const int error = coding_undo(exchange->coding, &exchange->body, plan_of(exchange)->body_max, &fail);
    if (error < 0) {
        forget_body(exchange);
        exchange_refuse(exchange, error == -E2BIG ? 413 : error == -ENOMEM ? 500 : 400, fail.text);
    }
    exchange_recount(exchange);
}

/* ---- the answer ------------------------------------------------------------------------------------------ */

static enum MHD_Result go_on(struct exchange *exchange)
{
    if (exchange->is_dropped)
        return MHD_NO;
    if (exchange_is_answered(exchange))
        return response_queue(exchange) ? MHD_YES : MHD_NO;
    if (exchange->is_hung_up)
        return MHD_NO;
    exchange_sleep(exchange);
    return MHD_YES;
}

static enum MHD_Result ask(struct exchange *exchange)
{
    const struct http_server_plan *plan = plan_of(exchange);
    bool is_last;
    const char *fault = head_check_trailer(exchange, &is_last);
    exchange->is_asked = true;
    exchange->is_last = is_last;
    http_connections_step(&exchange->server->connections, exchange->connection, false);
    if (!exchange_is_answered(exchange) && fault)
        exchange_refuse(exchange, 400, fault);
    if (!exchange_is_answered(exchange) && exchange->coding != CODING_NONE)
        decode_body(exchange);
    if (!exchange_is_answered(exchange))
        plan->asked(plan->arg, exchange);
    return go_on(exchange);
}

/* ---- MHD's callbacks --------------------------------------------------------------------------------------- */

/*
 * MHD would keep a record of each part of it. Where these have no room it answers, and then spins until the connection
 * is closed: it waits for the rest of a head that it has thrown away. The text is this request's alone.
 */
static void hide_query(char *target)
{
    char *query = strchr(target, '?');
    if (query && query[1])
        query[1] = '\0';
}

void *request_begin(void *daemon, const char *target, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    (void)daemon;
    struct exchange *exchange = info && info->socket_context ? exchange_create(info->socket_context, target) : NULL;
    hide_query((char *)(uintptr_t)target);
    return exchange;
}

enum MHD_Result request_take(void *daemon, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *data, size_t *len, void **slot)
{
    struct exchange *exchange = *slot;
    (void)daemon;
    (void)connection;
    (void)url;
    if (!exchange)
        return MHD_NO;
    if (!exchange->is_heard)
        return hear(exchange, method, version);
    if (*len > 0) {
        const size_t taken = *len;
        *len = 0;
        return take_body(exchange, data, taken);
    }
    return exchange->is_asked ? go_on(exchange) : ask(exchange);
}

void request_end(void *daemon, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode code)
{
    struct exchange *exchange = take_ptr((struct exchange **)slot);
    (void)daemon;
    (void)connection;
    if (!exchange)
        return;
    const struct http_server_plan *plan = plan_of(exchange);
    http_connections_step(&exchange->server->connections, exchange->connection, false);
    exchange_stop_watching(exchange);
    if (exchange->is_heard && plan->gone)
        plan->gone(plan->arg, exchange,
                   exchange->is_queued && (code == MHD_REQUEST_TERMINATED_COMPLETED_OK || exchange->is_all_read));
    exchange_destroy(exchange);
}
