/* said_world.h - requests of a harness in a few words, for tests. */
#ifndef SLUICE_TESTS_WORKERS_AGENTS_PROXY_SAID_WORLD_H
#define SLUICE_TESTS_WORKERS_AGENTS_PROXY_SAID_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/said.h"

#ifndef COUNT
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#endif
#define CALL(arguments) "<tool_call>\n{\"name\": \"bash\", \"arguments\": " arguments "}\n</tool_call>"

enum { LINES_MAX = 8 };

/* A message of a harness's; one without a text ends the list. */
struct line {
    enum said_role role;
    const char *text;
    const char *arguments; /* assistant: of a call of bash; one that is no JSON is its text */
    bool is_error;
};

static inline void say_call(struct said *said, const char *arguments)
{
    struct said_call *call = said_add_call(said);
    assert_non_null(call);
    call->name = strdup("bash");
    call->arguments = json_loads(arguments, 0, NULL);
    call->text = call->arguments ? NULL : strdup(arguments);
}

static inline struct said *say_line(struct said_request *request, const struct line *line)
{
    struct said *said = said_add(request, line->role);
    assert_non_null(said);
    said->text = strdup(line->text);
    said->name = line->role == SAID_TOOL ? strdup("bash") : NULL;
    said->is_error = line->is_error;
    if (line->arguments)
        say_call(said, line->arguments);
    return said;
}

static inline void make_request(const struct line *lines, struct said_request *ret)
{
    *ret = (struct said_request){0};
    for (size_t i = 0; i < LINES_MAX && lines[i].text; i++)
        say_line(ret, &lines[i]);
}

static inline void offer_bash(struct said_request *request)
{
    struct said_tool *tool = said_add_tool(request);
    assert_non_null(tool);
    tool->name = strdup("bash");
    tool->doc = strdup("Runs it.");
    tool->parameters = json_pack("{s:s, s:{s:{s:s}}}", "type", "object", "properties", "command", "type", "string");
}

#endif
