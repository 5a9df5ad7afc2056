/* form_world.h - replies read in a form, for tests: with the tools bash, edit, think and submit. */
#ifndef SLUICE_TESTS_WORKERS_AGENTS_FORM_WORLD_H
#define SLUICE_TESTS_WORKERS_AGENTS_FORM_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/formats/form.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Their rows alone: none is opened, so that none needs a sandbox. */
static inline struct toolbox form_box(void)
{
    static const char *const names[] = {"bash", "edit", "think", "submit"};
    struct toolbox box = {0};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_non_null(box.tools[box.count++] = tool_find(names[i]));
    return box;
}

static inline struct form_reply form_read_it(const char *form, const char *text)
{
    const struct toolbox box = form_box();
    struct form_reply reply;
    assert_non_null(form_find(form));
    form_read(form_find(form), &box, text, &reply);
    return reply;
}

/* The calls as "name {arguments}\n" each. */
static inline void expect_calls_in(const char *form, const char *text, const char *calls)
{
    struct form_reply reply = form_read_it(form, text);
    AUTO_BUFFER said = {0};
    buffer_append_str(&said, "");
    for (size_t i = 0; i < reply.count; i++) {
        AUTO_FREE char *arguments = json_dumps(reply.calls[i].arguments, JSON_COMPACT);
        buffer_printf(&said, "%s %s\n", reply.calls[i].name, arguments);
    }
    if (reply.wrong[0] || !slice_is(buffer_peek(&said), calls))
        fail_msg("%s: in\n%s\nare read the calls\n%.*s%s", form, text, SLICE_ARG(buffer_peek(&said)),
                 reply.wrong);
    form_reply_finish(&reply);
}

static inline void expect_wrong_in(const char *form, const char *text, const char *words)
{
    struct form_reply reply = form_read_it(form, text);
    if (reply.count != 0 || !strstr(reply.wrong, words) || !strstr(reply.wrong, "othing was run") ||
        !strstr(reply.wrong, "A call looks like this:\n"))
        fail_msg("%s: in\n%s\nare %zu calls, and it is said: '%s', not '%s'", form, text,
                 reply.count, reply.wrong, words);
    form_reply_finish(&reply);
}

#endif
