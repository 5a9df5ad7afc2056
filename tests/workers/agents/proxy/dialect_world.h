/* dialect_world.h - requests as text, for tables: what of a body became messages and tools. */
#ifndef SLUICE_TESTS_WORKERS_AGENTS_PROXY_DIALECT_WORLD_H
#define SLUICE_TESTS_WORKERS_AGENTS_PROXY_DIALECT_WORLD_H

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "tests/workers/agents/proxy/dialect_names.h"
#include "workers/agents/proxy/dialects/dialects.h"

/* Line ends within a text are "\n", so that a message is a line. */
static inline void put_words(struct buffer *out, const char *before, const char *text, const char *after)
{
    if (!text)
        return;
    buffer_append_str(out, before);
    for (; *text; text++)
        buffer_append(out, *text == '\n' ? "\\n" : text, *text == '\n' ? 2 : 1);
    buffer_append_str(out, after);
}

static inline void put_json_words(struct buffer *out, const char *before, const json_t *json)
{
    AUTO_FREE char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    put_words(out, before, text, "");
}

static inline void put_call_line(struct buffer *out, const struct said_call *call)
{
    buffer_printf(out, "  call %s %s", call->id, call->name);
    put_json_words(out, " ", call->arguments);
    put_words(out, " as text ", call->text, "");
    buffer_append_str(out, "\n");
}

static inline void put_message(struct buffer *out, const struct said *said)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    buffer_append_str(out, roles[said->role]);
    put_words(out, " ", said->call_id, "");
    put_words(out, " ", said->name, "");
    buffer_append_str(out, said->is_error ? " error" : "");
    put_words(out, " <", said->handle, ">");
    put_words(out, " (", said->thinking, ")");
    put_words(out, ": ", said->text, "\n");
    for (size_t i = 0; i < said->call_count; i++)
        put_call_line(out, &said->calls[i]);
}

/* The caller's. */
static inline char *request_text(const struct said_request *request)
{
    struct buffer out = {0};
    buffer_printf(&out, "model %s%s%s", request->model ? request->model : "-", request->is_stream ? ", stream" : "",
                  request->wants_usage ? ", usage" : "");
    if (request->max_tokens)
        buffer_printf(&out, ", %llu tokens", (unsigned long long)request->max_tokens);
    buffer_append_str(&out, "\n");
    for (size_t i = 0; i < request->count; i++)
        put_message(&out, &request->messages[i]);
    for (size_t i = 0; i < request->tool_count; i++) {
        put_words(&out, "tool of ", request->tools[i].name, "");
        put_words(&out, ": ", request->tools[i].doc, "");
        put_json_words(&out, " ", request->tools[i].parameters);
        buffer_append_str(&out, "\n");
    }
    return buffer_take_str(&out);
}

/* What a body comes to, or "refused: " and why; the caller's. */
static inline char *body_as_text(const struct dialect *dialect, const json_t *body)
{
    struct said_request request = {0};
    struct fail fail = {0};
    const int error = dialect->read(body, &request, &fail);
    assert_true(error == 0 || (error == -EINVAL && fail.code == -EINVAL));
    char *text = NULL;
    if (error)
        assert_true(asprintf(&text, "refused: %s\n", fail.text) > 0);
    else
        text = request_text(&request);
    said_request_finish(&request);
    return text;
}

static inline json_t *parse_json(const char *text, size_t len)
{
    json_error_t error;
    json_t *json = json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    if (!json)
        fail_msg("line %d: %s: %.*s", error.line, error.text, (int)len, text);
    return json;
}

/* A file beside the tests; the caller's. */
static inline char *read_table(const char *name)
{
    char path[4096];
    struct buffer text = {0};
    snprintf(path, sizeof(path), "%s/tests/workers/agents/proxy/%s", getenv("SLUICE_SOURCE_DIR"), name);
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int c; (c = getc(file)) != EOF;)
        buffer_append(&text, &(char){(char)c}, 1);
    return buffer_take_str(&text);
}

static inline char *read_requests(const char *dialect)
{
    char file[64];
    snprintf(file, sizeof(file), "requests_%s.txt", dialect);
    return read_table(file);
}

/* The next whole body of a table of requests behind `at`; NULL: there is none. */
static inline json_t *next_body(const char **at)
{
    while ((*at = strstr(*at, "== ")) && strncmp(*at, "== and ", 7) == 0)
        *at += 3;
    if (!*at)
        return NULL;
    const char *text = strchr(*at, '\n') + 1, *end = strstr(text, "\n--\n");
    *at = end;
    return parse_json(text, (size_t)(end - text));
}

#endif
