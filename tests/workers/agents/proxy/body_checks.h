/*
 * body_checks.h - whatever a body is, what is read of it is whole, or is refused with words; and bodies are mutated by
 * the tree, so that what comes out is still JSON.
 */
#ifndef SLUICE_TESTS_WORKERS_AGENTS_PROXY_BODY_CHECKS_H
#define SLUICE_TESTS_WORKERS_AGENTS_PROXY_BODY_CHECKS_H

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/base/prng.h"
#include "common/base/text.h"
#include "common/base/utf8.h"
#include "tests/fuzz.h"
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

/* ---- mutation ---------------------------------------------------------------------------------- */

/* A value of any kind. */
static inline json_t *any_value(uint64_t *chance)
{
    static const char *const values[] = {"null",
                                         "true",
                                         "7",
                                         "-1",
                                         "1e300",
                                         "\"\"",
                                         "\"a\\u0000\\nb\"",
                                         "[]",
                                         "{}",
                                         "[[]]",
                                         "{\"type\":\"text\",\"text\":\"x\"}",
                                         "[{\"type\":\"text\",\"text\":\"x\"}]",
                                         "\"assistant\"",
                                         "\"user\"",
                                         "\"tool\"",
                                         "\"model\"",
                                         "\"function_call\"",
                                         "\"reasoning\"",
                                         "\"tool_result\"",
                                         "\"namespace\"",
                                         "\"{\\\"a\\\":1}\""};
    return json_loads(values[prng_next(chance) % (sizeof(values) / sizeof(*values))], JSON_DECODE_ANY | JSON_ALLOW_NUL,
                      NULL);
}

static inline json_t *mutate_list(json_t *list, uint64_t *chance)
{
    const size_t count = json_array_size(list), at = count ? prng_next(chance) % count : 0;
    switch (prng_next(chance) % 4) {
    case 0: json_array_remove(list, at); break;
    case 1: json_array_insert_new(list, at, any_value(chance)); break;
    case 2: json_array_append_new(list, json_deep_copy(json_array_get(list, at))); break;
    default:
        json_array_insert_new(list, at, json_deep_copy(json_array_get(list, prng_next(chance) % (count + 1))));
        break;
    }
    return list;
}

/* The value, changed somewhere; takes it. */
static inline json_t *mutate_value(json_t *value, uint64_t *chance)
{
    const size_t count = json_is_object(value) ? json_object_size(value) : json_array_size(value);
    if (count == 0 || prng_next(chance) % 12 == 0) {
        json_decref(value);
        return any_value(chance);
    }
    if (json_is_array(value)) {
        const size_t at = prng_next(chance) % count;
        if (prng_next(chance) % 6 == 0)
            return mutate_list(value, chance);
        json_array_set_new(value, at, mutate_value(json_deep_copy(json_array_get(value, at)), chance));
        return value;
    }
    void *iter = json_object_iter(value);
    for (size_t at = prng_next(chance) % count; at > 0; at--)
        iter = json_object_iter_next(value, iter);
    char key[256];
    snprintf(key, sizeof(key), "%s", json_object_iter_key(iter));
    if (prng_next(chance) % 10 == 0)
        json_object_del(value, key);
    else
        json_object_set_new(value, key, mutate_value(json_deep_copy(json_object_get(value, key)), chance));
    return value;
}

#endif
