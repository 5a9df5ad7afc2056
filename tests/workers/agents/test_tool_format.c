/* The forms in which models call functions: what a reply is read as, and what the prompt shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/formats/tool_format.h"
#include "workers/tools/toolbox.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define LS "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}"
#define TAGGED(json) "<tool_call>\n" json "\n</tool_call>"

static struct tool_reply read_it(const char *text)
{
    static const struct toolbox none;
    struct tool_reply reply;
    tool_format_read(tool_format_find("hermes"), &none, text, &reply);
    return reply;
}

static void expect_calls(const char *text, const char *const calls[], size_t count)
{
    struct tool_reply reply = read_it(text);
    if (reply.wrong[0] || reply.count != count)
        fail_msg("%s: %zu calls, %s", text, reply.count, reply.wrong);
    for (size_t i = 0; i < count; i++) {
        AUTO_FREE char *arguments = json_dumps(reply.calls[i].arguments, JSON_COMPACT);
        AUTO_BUFFER call = {0};
        buffer_printf(&call, "%s %s", reply.calls[i].name, arguments);
        if (!slice_is(buffer_peek(&call), calls[i]))
            fail_msg("%s: call %zu is %s %s", text, i, reply.calls[i].name, arguments);
    }
    tool_reply_finish(&reply);
}

static void calls_are_found_in_whatever_stands_around_them(void **state)
{
    (void)state;
    static const char *const one[] = {"bash {\"command\":\"ls\"}"};
    static const char *const texts[] = {
        TAGGED(LS),
        "I will look.\n" TAGGED(LS) "\nThen we see.",
        "<tool_call>" LS "</tool_call>",
        "<tool_call>\n```json\n" LS "\n```\n</tool_call>",
        "<tool_call>\n" LS,
        "<tool_call>\n" LS "\n",
        "<think>" TAGGED("{\"name\": \"rm\"}") "</think>\n" TAGGED(LS),
        TAGGED("{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}}"),
        TAGGED("{\"name\": \"bash\", \"arguments\": \"{\\\"command\\\": \\\"ls\\\"}\"}"),
        TAGGED("{\"id\": 1, \"arguments\": {\"command\": \"ls\"}, \"name\": \"bash\"}"),
        TAGGED("[" LS "]"),
        LS,
        "\n" LS "\n",
        "```json\n" LS "\n```",
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        expect_calls(texts[i], one, 1);
}

static void several_calls_keep_their_order(void **state)
{
    (void)state;
    static const char *const calls[] = {"a {}", "b {\"x\":[1,{\"y\":null}]}", "a {}"};
    static const char *const texts[] = {
        TAGGED("{\"name\": \"a\"}") TAGGED("{\"name\": \"b\", \"arguments\": {\"x\": [1, {\"y\": "
                                           "null}]}}") TAGGED("{\"name\": \"a\", \"arguments\": {}}"),
        "<tool_call>{\"name\": \"a\", \"arguments\": null}\n{\"name\": \"b\", \"arguments\": "
        "{\"x\": "
        "[1, {\"y\": null}]}}<tool_call>{\"name\": \"a\"}",
        "{\"name\": \"a\"}\n\n{\"name\": \"b\", \"arguments\": {\"x\": [1, {\"y\": null}]}}\n"
        "{\"name\": \"a\"}",
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        expect_calls(texts[i], calls, 3);
}

static void text_without_calls_is_no_error(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "All is done.",
                                        "{\"result\": 3}",
                                        "[1, 2]",
                                        "{",
                                        "```",
                                        "The tag is </tool_call>.",
                                        "<think>" TAGGED(LS) "</think>Done.",
                                        "Call {\"name\": \"bash\"} next."};
    for (size_t i = 0; i < COUNT(texts); i++)
        expect_calls(texts[i], NULL, 0);
}

static void what_cannot_be_read_is_told_and_nothing_of_it_is_a_call(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {TAGGED("{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}"), "Call 1"},
        {TAGGED(LS) TAGGED("{'name': 'bash'}"), "Call 2 of that reply cannot be read, at line 4, column 2: "},
        {TAGGED("ls"), "Call 1"},
        {TAGGED(""), "there is nothing within <tool_call>"},
        {"<tool_call>", "there is nothing within <tool_call>"},
        {TAGGED("{\"arguments\": {}}"), "it is not an object with a \"name\""},
        {TAGGED("{\"name\": 7}"), "it is not an object with a \"name\""},
        {TAGGED("[7]"), "it is not an object with a \"name\""},
        {TAGGED("{\"name\": \"bash\", \"arguments\": [\"ls\"]}"), "the arguments of \"bash\" are not an object"},
        {TAGGED("{\"name\": \"bash\", \"arguments\": \"ls\"}"), "the arguments of \"bash\" are not an object"},
        {TAGGED(LS "}"), "Call 2"},
        {TAGGED("{\"name\": \"bash\", \"name\": \"edit\"}"), "duplicate"},
        {TAGGED("{\"name\": \"bash\", \"arguments\": {\"command\": \"a\nb\"}}"), "within a string a line break is \\n"},
        {TAGGED("{\"name\": \"bash\", \"arguments\": {\"command\": \"\\u0000\"}}"), "Call 1"},
        {"{\"name\": \"bash\", \"arguments\": {\"command\"", "Call 1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct tool_reply reply = read_it(rows[i].text);
        if (reply.count != 0 || !strstr(reply.wrong, rows[i].words) || !strstr(reply.wrong, "Nothing was run"))
            fail_msg("%s: %zu calls, '%s'", rows[i].text, reply.count, reply.wrong);
    }
}

static void nesting_is_limited_before_it_is_read(void **state)
{
    (void)state;
    for (int levels = FORM_DEPTH_MAX - 1; levels <= 200000; levels += levels < 40 ? 1 : 50000) {
        AUTO_BUFFER text = {0};
        buffer_append_str(&text, "<tool_call>{\"name\": \"a\", \"arguments\": {\"x\": ");
        for (int i = 2; i < levels; i++)
            buffer_append_str(&text, "[");
        for (int i = 2; i < levels; i++)
            buffer_append_str(&text, "]");
        buffer_append_str(&text, "}}</tool_call>");
        AUTO_FREE char *it = buffer_take_str(&text);
        struct tool_reply reply = read_it(it);
        assert_int_equal(reply.count, levels <= FORM_DEPTH_MAX);
        assert_int_equal(strstr(reply.wrong, "more than 32 levels") != NULL, levels > FORM_DEPTH_MAX);
        tool_reply_finish(&reply);
    }
    AUTO_BUFFER open = {0};
    buffer_append_str(&open, "<tool_call>");
    for (int i = 0; i < 200000; i++)
        buffer_append_str(&open, "[");
    AUTO_FREE char *it = buffer_take_str(&open);
    struct tool_reply reply = read_it(it);
    assert_non_null(strstr(reply.wrong, "more than 32 levels"));
}

static void more_calls_than_a_turn_may_make_are_refused_together(void **state)
{
    (void)state;
    for (size_t count = FORM_CALLS_MAX; count <= FORM_CALLS_MAX + 1; count++) {
        AUTO_BUFFER text = {0};
        for (size_t i = 0; i < count; i++)
            buffer_append_str(&text, TAGGED(LS));
        AUTO_FREE char *it = buffer_take_str(&text);
        struct tool_reply reply = read_it(it);
        assert_int_equal(reply.count, count <= FORM_CALLS_MAX ? count : 0);
        assert_int_equal(strstr(reply.wrong, "more than 16 calls") != NULL, count > FORM_CALLS_MAX);
        tool_reply_finish(&reply);
    }
}

static void the_prompt_shows_every_tools_schema_on_a_line(void **state)
{
    (void)state;
    struct toolbox box = {0};
    AUTO_BUFFER out = {0};
    assert_int_equal(toolbox_add(&box, "think", NULL), 0);
    assert_int_equal(toolbox_add(&box, "submit", NULL), 0);
    assert_true(tool_format_find("hermes")->describe(&box, &out));
    AUTO_FREE char *text = buffer_take_str(&out);
    const char *tools = strstr(text, "<tools>\n{\"type\": \"function\", \"function\": {\"name\": \"think\"");
    assert_non_null(tools);
    assert_non_null(strstr(tools, "\n{\"type\": \"function\", \"function\": {\"name\": \"submit\""));
    assert_non_null(strstr(tools, "}\n</tools>\n"));
    assert_non_null(strstr(tools, "<tool_call>\n{\"name\": <function-name>"));
}

static void results_are_told_one_after_the_other(void **state)
{
    (void)state;
    AUTO_BUFFER out = {0};
    char first[] = "one\n", second[] = "two";
    tool_format_find("hermes")->tell("bash", &(struct tool_result){.text = first, .len = 4}, &out);
    tool_format_find("hermes")->tell("bash", &(struct tool_result){.text = second, .len = 3}, &out);
    assert_true(slice_is(buffer_peek(&out), "<tool_response>\none\n</tool_response>\n"
                                            "<tool_response>\ntwo\n</tool_response>"));
}

static void an_unknown_form_is_not_found(void **state)
{
    (void)state;
    assert_null(tool_format_find("dance"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_found_in_whatever_stands_around_them),
        cmocka_unit_test(several_calls_keep_their_order),
        cmocka_unit_test(text_without_calls_is_no_error),
        cmocka_unit_test(what_cannot_be_read_is_told_and_nothing_of_it_is_a_call),
        cmocka_unit_test(nesting_is_limited_before_it_is_read),
        cmocka_unit_test(more_calls_than_a_turn_may_make_are_refused_together),
        cmocka_unit_test(the_prompt_shows_every_tools_schema_on_a_line),
        cmocka_unit_test(results_are_told_one_after_the_other),
        cmocka_unit_test(an_unknown_form_is_not_found),
    };
    return cmocka_run_group_tests_name("form", tests, NULL, NULL);
}
