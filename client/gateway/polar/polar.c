#include "client/gateway/polar/polar.h"

#include "client/gateway/polar/asking.h"
#include "client/gateway/polar/book.h"
#include "client/gateway/polar/events.h"
#include "client/gateway/polar/nodes.h"
#include "client/gateway/polar/submit.h"
#include "client/gateway/polar/task_calls.h"

static void run_events(struct http_call *call)
{
    struct polar_of *of = book_of(call->kept, call->identity);
    if (!of || !events_begin(of, call))
        http_call_refuse_memory(call);
}

static const struct route routes[] = {
    ROUTE("POST", "/rollout/task/submit", submit_run, ROUTE_KEYED, ROUTE_OBJECT),
    ROUTE("GET", "/rollout/task/{task_id}", task_get, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("DELETE", "/rollout/task/{task_id}", task_delete, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("GET", "/rollout/status", task_overview, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("GET", "/tasks", task_list, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("GET", "/tasks/{task_id}/sessions", task_sessions, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("GET", "/events", run_events, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("GET", "/nodes", nodes_list, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("GET", "/health", nodes_health, ROUTE_OPEN, ROUTE_NO_BODY),
};

static bool open_polar(struct gateway *gateway, void **ret)
{
    struct book *book;
    if (!book_open(gateway, &book))
        return false;
    *ret = book;
    return true;
}

static void close_polar(struct gateway *gateway, void *kept)
{
    struct book *book = kept;
    (void)gateway;
    book_close(&book);
}

const struct route_family polar_family = {.name = "polar",
                                          .routes = routes,
                                          .count = sizeof(routes) / sizeof(*routes),
                                          .write_trouble = route_write_detail,
                                          .open = open_polar,
                                          .close = close_polar};
