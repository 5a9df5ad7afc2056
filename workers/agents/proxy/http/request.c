#include "workers/agents/proxy/http/request.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "workers/agents/proxy/http/server.h"

/* ---- what is said ----------------------------------------------------------------------------------- */

/* Takes the response; NULL: there was no memory for it. */
static enum MHD_Result respond(struct client *client, int status, const char *type, struct MHD_Response *response)
{
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == 503)
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "2");
    const enum MHD_Result done = MHD_queue_response(client->connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return done;
}

static enum MHD_Result say(struct client *client, int status, struct slice json)
{
    return respond(client, status, "application/json",
                   MHD_create_response_from_buffer(json.len, (void *)(uintptr_t)json.data, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result refuse_with(struct client *client, const struct dialect *dialect, enum reply_error error,
                                   const char *words)
{
    AUTO_BUFFER json = {0};
    (dialect ? dialect : &dialect_chat)->write_error(error, words, &json);
    return json.failed ? MHD_NO : say(client, reply_error_status(error), buffer_peek(&json));
}

/* The next bytes of the answer; none yet: the connection sleeps. */
static ssize_t read_answer(void *arg, uint64_t at, char *into, size_t max)
{
    struct client *client = arg;
    const struct call *call = client->call;
    const size_t left = call->out.len - (size_t)at;
    if (left == 0 && call->is_done)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (left == 0)
        return client_suspend(client), 0;
    const size_t len = left < max ? left : max;
    memcpy(into, call->out.data + at, len);
    client->sent = (size_t)at + len;
    connections_note_step(client->connection, false);
    return (ssize_t)len;
}

static enum MHD_Result answer(struct client *client)
{
    struct call *call = client->call;
    const uint64_t size = call->is_done ? call->out.len : MHD_SIZE_UNKNOWN;
    struct MHD_Response *response = MHD_create_response_from_callback(size, LISTENER_HEADER_BYTES / 2, read_answer,
                                                                      client, NULL);
    if (response)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return respond(client, call->status, call->is_events ? "text/event-stream" : "application/json", response);
}

static enum MHD_Result join(struct client *client, struct call *call)
{
    client->call = call;
    call->clients++;
    if (call->status != 0)
        return answer(client);
    client_suspend(client);
    return MHD_YES;
}

/* ---- what is asked ------------------------------------------------------------------------------------ */

static const char *encoding_of(const struct client *client)
{
    return MHD_lookup_connection_value(client->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_ENCODING);
}

static enum MHD_Result refuse_encoding(struct client *client, const struct dialect *dialect, const char *encoding)
{
    char words[160];
    snprintf(words, sizeof(words), "Content-Encoding: %.40s is not read; send the body as gzip, deflate or as it is",
             encoding);
    return refuse_with(client, dialect, REPLY_INVALID, words);
}

static bool make_key(const char *path, struct slice body, char ret[DIGEST_SIZE])
{
    struct digest *digest = digest_begin();
    if (!digest)
        return false;
    digest_add_text(digest, path);
    digest_add(digest, body);
    return digest_end(&digest, ret);
}

/* Its body is now the call's, where it is a new one. */
static void uncount_body(struct client *client) { client->listener->held -= client->body.capacity; }

static enum MHD_Result take_call(struct client *client, struct call *as, const char *path)
{
    const char *why;
    if (!make_key(path, buffer_peek(&client->body), as->key))
        return MHD_NO;
    uncount_body(client);
    struct call *found = server_call(client->server, as, &client->body, &why);
    client->listener->held += client->body.capacity;
    if (found)
        return join(client, found);
    return *why ? refuse_with(client, as->dialect, REPLY_UNAVAILABLE, why) : MHD_NO;
}

/* Why a request is not looked at; no words: it is. */
struct obstacle {
    enum reply_error error;
    const char *words;
};

static struct obstacle find_obstacle(const struct client *client)
{
    if (client->is_one_too_many)
        return (struct obstacle){REPLY_UNAVAILABLE, "too many requests are under way"};
    if (!client->server && client->nobody_words)
        return (struct obstacle){client->nobody, client->nobody_words};
    if (!client->server)
        return (struct obstacle){REPLY_ENDED, "the rollout has ended"};
    if (client->is_too_large)
        return (struct obstacle){REPLY_TOO_LARGE, "the body is larger than 32 MiB"};
    return (struct obstacle){.words = NULL};
}

/* Beside its model. */
static bool has_own_answer(struct client *client, const char *method, const char *path, struct http_answer *ret)
{
    const struct server_plan *plan = server_plan(client->server);
    return plan->answer && plan->answer(plan->arg, method, path, buffer_peek(&client->body), ret);
}

static enum MHD_Result say_own(struct client *client, struct http_answer *own)
{
    const enum MHD_Result done = own->json.failed ? MHD_NO : say(client, own->status, buffer_peek(&own->json));
    buffer_finish(&own->json);
    return done;
}

static enum MHD_Result refuse_obstacle(struct client *client, const char *method, const char *url,
                                       const struct dialect *dialect, const struct obstacle *obstacle)
{
    const struct listener_plan *plan = &client->listener->plan;
    struct http_answer own = {0};
    if (!client->server && plan->answer && plan->answer(plan->arg, method, url, &own))
        return say_own(client, &own);
    return refuse_with(client, dialect, obstacle->error, obstacle->words);
}

static enum MHD_Result ask(struct client *client, const char *method, const char *url)
{
    const char *path = url + client->path_at;
    struct slice model = {0};
    struct call as = {.status = 0};
    struct http_answer own = {0};
    client->is_asked = true;
    connections_note_step(client->connection, false);
    as.dialect = dialect_find(method, path, &as.ask, &as.is_stream, &model);
    const struct obstacle obstacle = find_obstacle(client);
    if (obstacle.words)
        return refuse_obstacle(client, method, url, as.dialect, &obstacle);
    if (!*path || strcmp(path, "/") == 0)
        return say(client, 200, slice_from_str("{\"status\":\"ok\"}"));
    if (!as.dialect && has_own_answer(client, method, path, &own))
        return say_own(client, &own);
    if (!as.dialect)
        return refuse_with(client, NULL, REPLY_UNKNOWN,
                           "there is nothing at this path; a model is at /v1/chat/completions, "
                           "/v1/responses, /v1/messages and /v1beta/models/NAME:generateContent");
    as.coding = coding_of(encoding_of(client));
    if (as.coding == CODING_OTHER)
        return refuse_encoding(client, as.dialect, encoding_of(client));
    snprintf(as.model, sizeof(as.model), "%.*s", SLICE_ARG(model));
    return take_call(client, &as, path);
}

/* ---- a connection's ------------------------------------------------------------------------------------- */

static bool is_body_kept(struct client *client, size_t len)
{
    const struct http_listener *listener = client->listener;
    client->is_too_large = client->is_too_large || client->body.len + len > CALL_BODY_MAX;
    client->is_one_too_many = client->is_one_too_many || listener->held > listener->plan.held_max;
    return client->server && !client->is_too_large && !client->is_one_too_many;
}

/* What is refused in the end is read to its end, so that its client hears why. */
static enum MHD_Result take_body(struct client *client, const char *data, size_t *len)
{
    bool done = true;
    uncount_body(client);
    if (is_body_kept(client, *len))
        done = buffer_append(&client->body, data, *len);
    else
        buffer_finish(&client->body);
    client->listener->held += client->body.capacity;
    *len = 0;
    return done ? MHD_YES : MHD_NO;
}

static struct client *begin(struct http_listener *listener, struct MHD_Connection *connection, const char *url)
{
    struct listener_found found = {.path = url};
    struct client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    listener->plan.find(listener->plan.arg, url, &found);
    client->listener = listener;
    client->connection = connection;
    client->path_at = (size_t)(found.path - url);
    client->nobody = found.error;
    client->nobody_words = found.server ? NULL : found.words;
    client->is_one_too_many = found.server && !server_join(found.server, client);
    return client;
}

enum MHD_Result request_take(void *listener, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *data, size_t *len, void **slot)
{
    struct client *client = *slot;
    (void)version;
    if (!client)
        return (*slot = begin(listener, connection, url)) ? MHD_YES : MHD_NO;
    if (*len > 0)
        return take_body(client, data, len);
    if (!client->is_asked)
        return ask(client, method, url);
    if (client->call->status != 0)
        return answer(client);
    if (client_hung_up(client))
        return MHD_NO;
    client_suspend(client);
    return MHD_YES;
}

void request_end(void *listener, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode code)
{
    struct client *client = take_ptr((struct client **)slot);
    (void)listener;
    (void)code;
    connections_note_step(connection, false);
    if (!client)
        return;
    loop_unwatch(client->listener->loop, &client->hangup);
    uncount_body(client);
    server_part(client);
    buffer_finish(&client->body);
    free(client);
}
