/* form_world.h - replies read in a format, for tests: with the tools bash, edit, think and submit. */
#ifndef SLUICE_TESTS_WORKERS_AGENTS_FORM_WORLD_H
#define SLUICE_TESTS_WORKERS_AGENTS_FORM_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/formats/tool_format.h"
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Their rows alone: none is opened, so that none needs a sandbox. */
static inline struct toolbox tool_format_box(void)
{
    static const char *const names[] = {"bash", "edit", "think", "submit"};
    struct toolbox box = {0};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_non_null(box.tools[box.count++] = tool_find(names[i]));
    return box;
}

static inline struct tool_reply tool_format_read_it(const char *format, const char *text)
{
    const struct toolbox box = tool_format_box();
    struct tool_reply reply;
    assert_non_null(tool_format_find(format));
    tool_format_read(tool_format_find(format), &box, text, &reply);
    return reply;
}

/* The calls as "name {arguments}\n" each. */
static inline void expect_calls_in(const char *format, const char *text, const char *calls)
{
    struct tool_reply reply = tool_format_read_it(format, text);
    AUTO_BUFFER said = {0};
    buffer_append_str(&said, "");
    for (size_t i = 0; i < reply.count; i++) {
        AUTO_FREE char *arguments = json_dumps(reply.calls[i].arguments, JSON_COMPACT);
        buffer_printf(&said, "%s %s\n", reply.calls[i].name, arguments);
    }
    if (reply.wrong[0] || !slice_is(buffer_peek(&said), calls))
        fail_msg("%s: in\n%s\nare read the calls\n%.*s%s", format, text, SLICE_ARG(buffer_peek(&said)), reply.wrong);
    tool_reply_finish(&reply);
}

static inline void expect_wrong_in(const char *format, const char *text, const char *words)
{
    struct tool_reply reply = tool_format_read_it(format, text);
    if (reply.count != 0 || !strstr(reply.wrong, words) || !strstr(reply.wrong, "othing was run") ||
        !strstr(reply.wrong, "A call looks like this:\n"))
        fail_msg("%s: in\n%s\nare %zu calls, and it is said: '%s', not '%s'", format, text, reply.count, reply.wrong,
                 words);
    tool_reply_finish(&reply);
}

#endif
