/* body_checks.h - whatever a body is, what is read of it is whole, or is refused with words. */
#ifndef SLUICE_TESTS_WORKERS_AGENTS_PROXY_BODY_CHECKS_H
#define SLUICE_TESTS_WORKERS_AGENTS_PROXY_BODY_CHECKS_H

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"
#include "tests/fuzz_json.h"
#include "tests/workers/agents/proxy/dialect_names.h"
#include "workers/agents/proxy/dialects/dialects.h"

/* ---- what holds -------------------------------------------------------------------------------- */

static inline bool is_text(const char *text) { return text && utf8_is_valid(slice_from_str(text)); }

static inline void check_said(const struct said *said)
{
    must(is_text(said->text) && (!said->thinking || is_text(said->thinking)) &&
         (!said->handle || is_text(said->handle)));
    must(said->call_count <= SAID_CALLS_MAX && (said->role == SAID_ASSISTANT || said->call_count == 0));
    must((said->role == SAID_TOOL) == (said->call_id != NULL));
    must((!said->call_id || is_text(said->call_id)) && (!said->name || is_text(said->name)));
    for (size_t i = 0; i < said->call_count; i++) {
        const struct said_call *call = &said->calls[i];
        must(is_text(call->id) && is_text(call->name) && call->name[0]);
        must(call->arguments ? json_is_object(call->arguments) && !call->text : is_text(call->text));
    }
}

static inline void check_request(const struct said_request *request)
{
    must((!request->model || is_text(request->model)) && request->count > 0 && request->count <= SAID_MESSAGES_MAX);
    must(request->tool_count <= SAID_TOOLS_MAX);
    for (size_t i = 0; i < request->count; i++)
        check_said(&request->messages[i]);
    for (size_t i = 0; i < request->tool_count; i++)
        must(is_text(request->tools[i].name) && is_text(request->tools[i].doc) &&
             json_is_object(request->tools[i].parameters));
}

/* Each line of data that is told is JSON. */
static inline void check_told(struct buffer *out)
{
    char *text = buffer_take_str(out), *rest;
    must(text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *json = strncmp(line, "data: {", 7) == 0 ? json_loads(line + 6, JSON_ALLOW_NUL, NULL) : NULL;
        must(json || strncmp(line, "event: ", 7) == 0 || strcmp(line, "data: [DONE]") == 0);
        json_decref(json);
    }
    free(text);
}

/* A turn of the history told anew, in every dialect. */
static inline void tell(const struct said *said, const char *model)
{
    struct reply_call calls[SAID_CALLS_MAX];
    struct reply reply = {.id = "t",
                          .model = model,
                          .handle = said->handle,
                          .text = said->text,
                          .thinking = said->thinking,
                          .calls = calls,
                          .call_count = said->call_count};
    for (size_t i = 0; i < said->call_count; i++)
        calls[i] = (struct reply_call){said->calls[i].id, said->calls[i].name, said->calls[i].arguments};
    for (size_t i = 0; i < DIALECT_NAMES; i++) {
        struct buffer out = {0};
        struct reply_stream stream = {0};
        const struct dialect *dialect = dialect_named(dialect_names[i]);
        dialect->stream_begin(&stream, &reply, &out);
        dialect->stream_text(&stream, &reply, text_cut(reply.text, 5), &out);
        dialect->stream_end(&stream, &reply, true, &out);
        check_told(&out);
    }
}

static inline void check_body(const struct dialect *dialect, const json_t *body)
{
    struct said_request request = {0};
    struct fail fail = {0};
    const int error = dialect->read(body, &request, &fail);
    must(error == 0 || (error == -EINVAL && fail.code == error && fail.text[0]));
    must(is_text(fail.text) && !strchr(fail.text, '\n'));
    if (error == 0) {
        check_request(&request);
        for (size_t i = 0; i < request.count; i++)
            if (request.messages[i].role == SAID_ASSISTANT) {
                tell(&request.messages[i], request.model);
                break;
            }
    }
    said_request_finish(&request);
}

#endif
