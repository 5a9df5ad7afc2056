#include "client/gateway/api/native.h"

#include <stdlib.h>

#include "client/gateway/api/asked.h"
#include "client/gateway/api/hub.h"
#include "client/gateway/api/login.h"
#include "client/gateway/api/openapi.h"
#include "client/gateway/api/rollout_events.h"
#include "client/gateway/api/session_calls.h"
#include "client/gateway/api/sessions.h"
#include "client/gateway/api/stream_events.h"
#include "client/gateway/door/engines.h"
#include "client/gateway/outgoing/relay.h"

#define API "/api/v1"
#define ASKS(message_, method_, pattern_, body_, summary_)                                                             \
    {                                                                                                                  \
        .method = method_, .pattern = API pattern_, .run = asked_run, .body = body_, .message = MSG_##message_,        \
        .summary = summary_                                                                                            \
    }
#define SESSION_CALLS "/sessions/{rollout}/{attempt}/{rest}"
#define RUNS(function_, method_, pattern_, body_, access_, summary_)                                                   \
    {                                                                                                                  \
        .method = method_, .pattern = API pattern_, .run = function_, .body = body_, .access = access_,                \
        .message = MESSAGE_COUNT, .summary = summary_                                                                  \
    }

/* Workers will call it. */
static void add_engine(struct http_call *call)
{
    const char *url = json_string_value(json_object_get(call->body, "url"));
    struct fail fail;
    if (url && !engines_allow(call->gateway->settings->engines, url, &fail))
        http_call_refuse(call, fail.code == -EACCES ? 403 : 400, "not-allowed", "url", "%s", fail.text);
    else
        asked_run(call);
}

static void on_engines(struct http_call *call, const struct answer *answer)
{
    json_t *status = json_text_read(answer->as.status.json);
    const json_t *engines = json_object_get(status, "engines");
    struct buffer body = {0};
    buffer_append_str(&body, "{\"engines\":");
    if (engines)
        json_text_append_value(&body, engines);
    buffer_append_str(&body, engines ? "}" : "[]}");
    json_decref(status);
    http_call_answer_json(call, 200, &body);
}

static void list_engines(struct http_call *call)
{
    struct msg_status_get in = {0};
    http_call_ask(call, MSG_status_get, &in, on_engines);
}

static const struct route routes[] = {
    ASKS(group_submit, "POST", "/groups", ROUTE_OBJECT, "Ask for the rollouts of one task."),
    ASKS(rollout_cancel, "DELETE", "/groups/{group}", ROUTE_NO_BODY, "Cancel a group."),
    ASKS(rollout_list, "GET", "/rollouts", ROUTE_NO_BODY, "List rollouts."),
    ASKS(rollout_get, "GET", "/rollouts/{rollout}", ROUTE_NO_BODY, "A rollout's trajectory, or its state."),
    ASKS(rollout_cancel, "DELETE", "/rollouts/{rollout}", ROUTE_NO_BODY, "Cancel a rollout."),
    RUNS(rollout_events_run, "GET", "/rollouts/{rollout}/events", ROUTE_NO_BODY, ROUTE_KEYED,
         "Watch a rollout while it works, as server-sent events."),
    RUNS(stream_events_run, "GET", "/streams/{stream}/events", ROUTE_NO_BODY, ROUTE_KEYED,
         "A stream's trajectories in order, as server-sent events."),
    ASKS(stream_ack, "POST", "/streams/{stream}/ack", ROUTE_OBJECT, "Let trajectories up to a number be forgotten."),
    ASKS(stream_renew, "POST", "/streams/{stream}/renew", ROUTE_NO_BODY, "Renew the leases of a stream's groups."),
    ASKS(rollout_cancel, "DELETE", "/streams/{stream}", ROUTE_NO_BODY, "Cancel all rollouts of a stream."),
    RUNS(list_engines, "GET", "/engines", ROUTE_NO_BODY, ROUTE_KEYED, "The engines that are registered."),
    {.method = "POST",
     .pattern = API "/engines",
     .run = add_engine,
     .body = ROUTE_OBJECT,
     .message = MSG_engine_add,
     .summary = "Register an engine."},
    ASKS(engine_remove, "DELETE", "/engines", ROUTE_NO_BODY, "Remove an engine."),
    ASKS(engine_drain, "POST", "/engines/drain", ROUTE_OBJECT, "Place no more rollouts on an engine."),
    ASKS(policy_set, "POST", "/policy/version", ROUTE_OBJECT, "Set the version of the policy that engines serve."),
    ASKS(policy_pause, "POST", "/policy/pause", ROUTE_OBJECT, "Start no more calls of engines."),
    ASKS(policy_resume, "POST", "/policy/resume", ROUTE_MAY_OBJECT, "End a pause."),
    ASKS(sampler_open, "POST", "/samplers/{stream}", ROUTE_OBJECT, "Attach a sampler to a stream."),
    ASKS(sampler_get, "GET", "/samplers/{stream}", ROUTE_NO_BODY, "Where a sampler stands."),
    ASKS(sampler_next, "POST", "/samplers/{stream}/next", ROUTE_OBJECT, "Ask for a batch."),
    ASKS(sampler_close, "DELETE", "/samplers/{stream}", ROUTE_NO_BODY, "End a sampler."),
    RUNS(session_open_run, "POST", "/sessions", ROUTE_OBJECT, ROUTE_KEYED,
         "Open a session: a rollout whose loop is yours."),
    {.method = "GET",
     .pattern = API "/sessions/{rollout}",
     .run = session_state_run,
     .body = ROUTE_NO_BODY,
     .message = MSG_session_get,
     .summary = "Where a session is spoken to."},
    RUNS(session_call_run, "GET", SESSION_CALLS, ROUTE_NO_BODY, ROUTE_KEYED, "Ask a session which models there are."),
    RUNS(session_call_run, "POST", SESSION_CALLS, ROUTE_RAW, ROUTE_KEYED, "Speak to a session, or end it."),
    ASKS(worker_drain, "POST", "/workers/drain", ROUTE_OBJECT, "Drain a worker, or all of a host."),
    ASKS(ledger_backup, "POST", "/backups", ROUTE_OBJECT, "Copy the ledger."),
    ASKS(status_get, "GET", "/status", ROUTE_NO_BODY, "The service's state."),
    RUNS(hub_run, "GET", "/live", ROUTE_NO_BODY, ROUTE_KEYED, "What the page shows, as server-sent events."),
    RUNS(login_run, "POST", "/login", ROUTE_OBJECT, ROUTE_OPEN, "Keep a token in a cookie, for the page."),
    RUNS(logout_run, "POST", "/logout", ROUTE_NO_BODY, ROUTE_OPEN, "Forget the cookie."),
    RUNS(me_run, "GET", "/me", ROUTE_NO_BODY, ROUTE_OPEN, "Who asks, and whether a token is needed."),
    RUNS(openapi_run, "GET", "/openapi.json", ROUTE_NO_BODY, ROUTE_OPEN, "This description."),
};

static const char *write_trouble(const struct trouble *trouble, struct buffer *ret)
{
    json_text_printf(ret, "{\"error\":{\"reason\":%s,\"field\":%s,\"text\":%s}}", trouble->reason, trouble->field,
                     trouble->words);
    return "application/json";
}

static void close_native(struct gateway *gateway, void *kept)
{
    struct native *native = kept;
    (void)gateway;
    if (native->hubs)
        hubs_close(&native->hubs);
    if (native->tails)
        tails_close(&native->tails);
    relays_close(&native->relays);
    free(native);
}

static bool open_native(struct gateway *gateway, void **ret)
{
    struct native *native = calloc(1, sizeof(*native));
    if (!native)
        return false;
    native->tails = tails_open(gateway->loop);
    native->hubs = native->tails ? hubs_open(gateway, native->tails) : NULL;
    native->relays = native->hubs ? relays_open(gateway->loop) : NULL;
    *ret = native;
    if (native->relays)
        return true;
    close_native(gateway, native);
    return false;
}

const struct route_family native_family = {.name = "native",
                                           .routes = routes,
                                           .count = sizeof(routes) / sizeof(*routes),
                                           .write_trouble = write_trouble,
                                           .open = open_native,
                                           .close = close_native};
