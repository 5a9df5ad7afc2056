#include "workers/agents/proxy/http/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workers/agents/proxy/dialects/json_body.h"

static void answer(struct call *call, int status)
{
    call->status = status;
    call->is_done = true;
}

static void refuse_with(struct call *call, enum reply_error error, const char *words)
{
    if (call->is_events)
        call->dialect->stream_error(&call->stream, error, words, &call->out);
    else
        call->dialect->write_error(error, words, &call->out);
    answer(call, call->is_events ? 200 : reply_error_status(error));
}

/* A stream has one id from its beginning on, whatever is known of its turn by then. */
static void begin_events(struct call *call, const struct reply *known)
{
    call->is_events = true;
    call->status = 200;
    proxy_mint("turn_", call->id);
    call->told = *known;
    call->told.id = call->id;
    call->told.model = call->asked_model;
    call->dialect->stream_begin(&call->stream, &call->told, &call->out);
}

static void on_heard(void *arg, const struct reply *reply, struct slice thinking, struct slice text)
{
    struct call *call = arg;
    if (!call->is_events)
        begin_events(call, reply);
    const int64_t created = call->told.created;
    call->told = *reply;
    call->told.id = call->id;
    call->told.model = call->asked_model;
    call->told.created = created;
    if (thinking.len > 0)
        call->dialect->stream_thinking(&call->stream, &call->told, thinking, &call->out);
    if (text.len > 0)
        call->dialect->stream_text(&call->stream, &call->told, text, &call->out);
    call->more(call->more_arg);
}

bool call_keep_alive(struct call *call)
{
    if (call->is_done || !call->is_stream)
        return false;
    if (call->is_events)
        return buffer_append_str(&call->out, call->dialect->keep_alive);
    const struct reply nothing = {.created = time(NULL)};
    begin_events(call, &nothing);
    return true;
}

/* ---- what was asked ------------------------------------------------------------------------------- */

static void tell_turn(struct call *call, const struct said_request *request, struct proxy_turn *turn)
{
    turn->reply.model = call->asked_model;
    if (!call->is_stream) {
        call->dialect->write(&turn->reply, &call->out);
    } else {
        if (!call->is_events)
            begin_events(call, &turn->reply);
        turn->reply.id = call->id; /* as its beginning said */
        turn->reply.created = call->told.created;
        call->dialect->stream_end(&call->stream, &turn->reply, request->wants_usage, &call->out);
    }
    answer(call, 200);
}

static void take_turn(struct call *call, struct said_request *request)
{
    struct proxy_turn turn = {0};
    struct fail fail = {0};
    enum reply_error why = REPLY_BROKEN;
    const struct proxy_listener listener = {.heard = on_heard, .arg = call};
    if (proxy_take_turn(call->proxy, request, call->is_stream ? &listener : NULL, &turn, &why, &fail)) {
        call->node = turn.node;
        tell_turn(call, request, &turn);
    } else {
        refuse_with(call, why, fail.text);
    }
    proxy_turn_finish(&turn);
}

static void count_tokens(struct call *call, struct said_request *request)
{
    uint64_t tokens;
    struct fail fail = {0};
    enum reply_error why = REPLY_BROKEN;
    if (!proxy_count_tokens(call->proxy, request, &tokens, &why, &fail)) {
        refuse_with(call, why, fail.text);
        return;
    }
    call->dialect->write_count(tokens, &call->out);
    answer(call, 200);
}

static void list_models(struct call *call)
{
    struct engine_about about = {0};
    engine_recall(call->proxy->model.run->engine, &about);
    dialect_write_models(about.model, call->proxy->model.context_tokens, time(NULL), &call->out);
    answer(call, 200);
}

static void serve(struct call *call, struct said_request *request, const json_t *json)
{
    struct fail fail = {0};
    if (call->dialect->read(json, request, &fail) < 0) {
        refuse_with(call, REPLY_INVALID, fail.text);
        return;
    }
    call->is_stream = call->is_stream || request->is_stream;
    snprintf(call->asked_model, sizeof(call->asked_model), "%s", request->model ? request->model : call->model);
    if (call->ask == ASK_COUNT_TOKENS)
        count_tokens(call, request);
    else
        take_turn(call, request);
}

/* The body is not needed from then on. */
static json_t *parse_body(struct call *call, struct fail *fail)
{
    json_t *json = json_body_parse(buffer_peek(&call->body), fail);
    buffer_finish(&call->body);
    return json;
}

void call_work(struct call *call, void (*more)(void *arg), void *arg)
{
    struct said_request request = {0};
    struct fail fail = {0};
    json_t *json = NULL;
    call->more = more;
    call->more_arg = arg;
    if (call->ask == ASK_MODELS)
        list_models(call);
    else if (!(json = parse_body(call, &fail)))
        refuse_with(call, fail.code == -ENOMEM ? REPLY_BROKEN : REPLY_INVALID, fail.text);
    if (json)
        serve(call, &request, json);
    json_decref(json);
    said_request_finish(&request);
    more(arg);
}

void call_finish(struct call *call)
{
    buffer_finish(&call->body);
    buffer_finish(&call->out);
}
