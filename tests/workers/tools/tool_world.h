/* tool_world.h - calls of tools in tests: JSON with ' for ", and what they answer. */
#ifndef SLUICE_TESTS_WORKERS_TOOLS_TOOL_WORLD_H
#define SLUICE_TESTS_WORKERS_TOOLS_TOOL_WORLD_H

#include "tests/workers/sandbox/sandbox_fixture.h"

#include <jansson.h>

#include "common/base/cleanup.h"
#include "workers/tools/tool.h"
#include "workers/tools/toolbox.h"

static const struct task_limits limits = {.command_s = 20, .output_bytes = 4096};

static inline json_t *json_of(const char *text)
{
    AUTO_FREE char *json = strdup(text);
    for (char *at = json; *at; at++)
        if (*at == '\'')
            *at = '"';
    json_error_t error;
    json_t *value = json_loads(json, JSON_DECODE_ANY, &error);
    if (!value)
        fail_msg("%s: %s", json, error.text);
    return value;
}

static inline struct tool_result call(struct toolbox *box, const char *name, const char *arguments)
{
    struct tool_result result;
    struct fail fail = {0};
    json_t *json = json_of(arguments);
    if (toolbox_call(box, name, json, &result, &fail) < 0)
        fail_msg("%s %s: %s", name, arguments, fail.text);
    json_decref(json);
    assert_int_equal(result.text[result.len], '\0');
    return result;
}

static inline void expect_call(struct toolbox *box, const char *name, const char *arguments, bool is_error,
                               const char *text)
{
    struct tool_result result = call(box, name, arguments);
    if (strcmp(result.text, text) != 0 || result.is_error != is_error)
        fail_msg("%s %s: %s%s", name, arguments, result.is_error ? "refused: " : "", result.text);
    assert_int_equal(result.len, strlen(text));
    tool_result_finish(&result);
}

/* The words are in the answer. */
static inline void expect_words(struct toolbox *box, const char *name, const char *arguments, bool is_error,
                                const char *words)
{
    struct tool_result result = call(box, name, arguments);
    if (!strstr(result.text, words) || result.is_error != is_error)
        fail_msg("%s %s: %s%s", name, arguments, result.is_error ? "refused: " : "", result.text);
    tool_result_finish(&result);
}

/* A sandbox and a toolbox with these tools; ended by a NULL. */
static inline struct toolbox open_tools(const struct sandbox_plan *plan, const char *const names[])
{
    struct toolbox box = {.sandbox = open_sandbox(plan), .limits = &limits};
    for (; *names; names++)
        assert_int_equal(toolbox_add(&box, *names, NULL), 0);
    return box;
}

static inline void close_tools(struct toolbox *box)
{
    toolbox_close(box);
    sandbox_close(&box->sandbox);
}

#endif
