#include "workers/agents/proxy/http/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "common/http/exchange.h"
#include "common/http/exchange_answer.h"
#include "workers/agents/proxy/http/server.h"

/* ---- what is said ----------------------------------------------------------------------------------- */

static void refuse_with(struct exchange *exchange, enum reply_error error, const char *words)
{
    exchange_refuse(exchange, reply_error_status(error), words);
}

/* Of those that have this status the first; what else the HTTP server refuses is invalid. */
static enum reply_error error_of(int status)
{
    for (enum reply_error error = REPLY_INVALID; error <= REPLY_BROKEN; error++)
        if (reply_error_status(error) == status)
            return error;
    return REPLY_INVALID;
}

const char *request_write_error(void *listener, struct exchange *exchange, int status, const char *words,
                                struct buffer *ret)
{
    const struct client *client = exchange_user(exchange);
    const char *path = client ? client->path : exchange_path(exchange);
    enum dialect_ask ask;
    bool is_stream;
    struct slice model;
    (void)listener;
    const struct dialect *dialect = dialect_find(exchange_method(exchange), path, &ask, &is_stream, &model);
    (dialect ? dialect : &dialect_chat)->write_error(error_of(status), words, ret);
    return "application/json";
}

static void say_own(struct exchange *exchange, struct http_answer *own)
{
    exchange_answer(exchange, own->status, "application/json", &own->json);
}

/* ---- what is asked ------------------------------------------------------------------------------------ */

static bool make_key(const char *path, struct slice body, char ret[DIGEST_SIZE])
{
    struct digest *digest = digest_begin();
    if (!digest)
        return false;
    digest_add_text(digest, path);
    digest_add(digest, body);
    return digest_end(&digest, ret);
}

static void join(struct client *client, struct call *call)
{
    client->call = call;
    call->clients++;
    client_go_on(client);
}

/* Its body is the call's, where it is a new one. */
static void take_call(struct client *client, struct call *as)
{
    const char *why = "";
    struct call *found = NULL;
    AUTO_BUFFER body = exchange_take_body(client->exchange);
    if (make_key(client->path, buffer_peek(&body), as->key))
        found = server_call(client->server, as, &body, &why);
    if (found)
        join(client, found);
    else if (*why)
        refuse_with(client->exchange, REPLY_UNAVAILABLE, why);
    else
        exchange_drop(client->exchange);
}

/* Beside its model. */
static bool has_own_answer(struct client *client, const char *method, struct http_answer *ret)
{
    const struct server_plan *plan = server_plan(client->server);
    return plan->answer && plan->answer(plan->arg, method, client->path, exchange_body(client->exchange), ret);
}

static void ask(struct client *client)
{
    struct exchange *exchange = client->exchange;
    const char *method = exchange_method(exchange), *path = client->path;
    struct slice model = {0};
    struct call as = {.status = 0};
    struct http_answer own = {0};
    if (!*path || strcmp(path, "/") == 0) {
        buffer_append_str(&own.json, "{\"status\":\"ok\"}");
        own.status = 200;
        say_own(exchange, &own);
        return;
    }
    as.dialect = dialect_find(method, path, &as.ask, &as.is_stream, &model);
    if (as.dialect) {
        snprintf(as.model, sizeof(as.model), "%.*s", SLICE_ARG(model));
        take_call(client, &as);
    } else if (has_own_answer(client, method, &own)) {
        say_own(exchange, &own);
    } else {
        refuse_with(exchange, REPLY_UNKNOWN,
                    "there is nothing at this path; a model is at /v1/chat/completions, "
                    "/v1/responses, /v1/messages and /v1beta/models/NAME:generateContent");
    }
}

void request_asked(void *listener, struct exchange *exchange)
{
    struct client *client = exchange_user(exchange);
    (void)listener;
    if (client->server)
        ask(client);
    else
        refuse_with(exchange, REPLY_ENDED, "the rollout has ended");
}

/* ---- whom it is for -------------------------------------------------------------------------------------- */

static void refuse_nobodys(struct http_listener *listener, struct exchange *exchange,
                           const struct listener_found *found)
{
    const struct listener_plan *plan = &listener->plan;
    struct http_answer own = {0};
    if (plan->answer && plan->answer(plan->arg, exchange_method(exchange), exchange_path(exchange), &own))
        say_own(exchange, &own);
    else
        refuse_with(exchange, found->words ? found->error : REPLY_ENDED,
                    found->words ? found->words : "the rollout has ended");
}

void request_heard(void *arg, struct exchange *exchange)
{
    struct http_listener *listener = arg;
    struct listener_found found = {.path = exchange_path(exchange)};
    struct client *client = calloc(1, sizeof(*client));
    if (!client) {
        exchange_drop(exchange);
        return;
    }
    listener->plan.find(listener->plan.arg, exchange_path(exchange), &found);
    *client = (struct client){.listener = listener, .exchange = exchange, .path = found.path};
    exchange_set_user(exchange, client);
    if (!found.server)
        refuse_nobodys(listener, exchange, &found);
    else if (!server_join(found.server, client))
        refuse_with(exchange, REPLY_UNAVAILABLE, "too many requests are under way");
}

void request_gone(void *listener, struct exchange *exchange, bool is_whole)
{
    struct client *client = exchange_user(exchange);
    (void)listener;
    (void)is_whole;
    if (client)
        server_part(client);
    free(client);
}
