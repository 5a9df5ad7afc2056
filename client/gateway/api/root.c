#include "client/gateway/api/root.h"

#include <string.h>

#include "client/gateway/api/metrics.h"
#include "client/gateway/http_call.h"
#include "client/gateway/page/page.h"

static void answer_ok(struct http_call *call)
{
    struct buffer body = {0};
    buffer_append_str(&body, "{\"status\":\"ok\"}");
    http_call_answer_json(call, 200, &body);
}

static void answer_page(struct http_call *call)
{
    const struct slice page = page_html();
    struct buffer body = {0};
    buffer_append(&body, page.data, page.len);
    exchange_set_header(call->exchange, "Content-Security-Policy", page_policy());
    exchange_set_header(call->exchange, "Cache-Control", "no-cache");
    http_call_answer(call, 200, "text/html; charset=utf-8", &body);
}

/* A browser is shown the page; programs ask whether anybody is there. */
static void answer_root(struct http_call *call)
{
    const char *accept = exchange_header(call->exchange, "Accept");
    exchange_set_header(call->exchange, "Vary", "Accept");
    if (accept && strstr(accept, "text/html"))
        answer_page(call);
    else
        answer_ok(call);
}

static void on_ready(struct http_call *call, const struct answer *answer)
{
    (void)answer;
    answer_ok(call);
}

/* The broker answers the gateway itself. */
static void run_ready(struct http_call *call)
{
    struct msg_status_get in = {0};
    call->identity = identities_own(call->gateway->identities);
    call->identity->uses++;
    http_call_ask(call, MSG_status_get, &in, on_ready);
}

static const struct route routes[] = {
    ROUTE("GET", "/", answer_root, ROUTE_OPEN, ROUTE_NO_BODY),
    ROUTE("GET", "/healthz", answer_ok, ROUTE_OPEN, ROUTE_NO_BODY),
    ROUTE("GET", "/metrics", metrics_run, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("GET", "/readyz", run_ready, ROUTE_OPEN, ROUTE_NO_BODY),
};

const struct route_family root_family = {
    .name = "root", .routes = routes, .count = sizeof(routes) / sizeof(*routes), .write_trouble = route_write_detail};
