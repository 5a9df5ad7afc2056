/* What a harness says in the words that its model reads, and what the model says as the harness is told it. */
#include "tests/workers/agents/proxy/said_world.h"

#include "workers/agents/proxy/offered.h"
#include "workers/agents/proxy/words.h"

static struct tool_telling telling_of(const char *form, bool is_framed)
{
    return (struct tool_telling){.format = tool_format_find(form), .is_framed = is_framed};
}

static void assert_says(const char *what, const struct buffer *said, const char *expected)
{
    if (!slice_is(buffer_peek(said), expected))
        fail_msg("%s: said is\n%.*s\nnot\n%s", what, SLICE_ARG(buffer_peek(said)), expected);
}

/* ---- a whole conversation ------------------------------------------------------------------------- */

static const struct {
    const char *what, *form;
    bool is_framed;
    struct line lines[LINES_MAX];
    const char *told; /* each message as "[role]content" */
} conversations[] = {
    {"a question", "hermes", false, {{SAID_USER, "hi"}}, "[user]hi"},
    {"system messages at the beginning are one",
     "hermes",
     false,
     {{SAID_SYSTEM, "Be brief."}, {SAID_SYSTEM, ""}, {SAID_SYSTEM, "Be kind."}, {SAID_USER, "hi"}},
     "[system]Be brief.\n\nBe kind.[user]hi"},
    {"one in the middle is the user's",
     "hermes",
     false,
     {{SAID_USER, "hi"},
      {SAID_SYSTEM, "It is late."},
      {SAID_USER, "well?"},
      {SAID_ASSISTANT, "yes"},
      {SAID_SYSTEM, "x"}},
     "[user]hi\n\nIt is late.\n\nwell?[assistant]yes[user]x"},
    {"a call is said as the model writes it, and its result by the form",
     "hermes",
     false,
     {{SAID_USER, "go"}, {SAID_ASSISTANT, "I look.", "{\"command\": \"ls\"}"}, {SAID_TOOL, "a\n"}},
     "[user]go[assistant]I look.\n" CALL("{\"command\": \"ls\"}") "[user]<tool_response>\na\n</tool_response>"},
    {"a call alone has no line before it",
     "hermes",
     false,
     {{SAID_USER, "go"}, {SAID_ASSISTANT, "", "{}"}},
     "[user]go[assistant]" CALL("{}")},
    {"arguments that were no JSON are told as they came",
     "hermes",
     false,
     {{SAID_USER, "go"}, {SAID_ASSISTANT, "", "{broken"}},
     "[user]go[assistant]" CALL("\"{broken\"")},
    {"two replies in a row stay two",
     "hermes",
     false,
     {{SAID_USER, "go"}, {SAID_ASSISTANT, "one"}, {SAID_ASSISTANT, "two"}},
     "[user]go[assistant]one[assistant]two"},
    {"results in a row, and the user's words behind them, are one turn of the user's",
     "hermes",
     false,
     {{SAID_ASSISTANT, "", "{}"}, {SAID_TOOL, "a"}, {SAID_TOOL, "b"}, {SAID_USER, "go on"}},
     "[assistant]" CALL(
         "{}") "[user]<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response>\n\ngo on"},
    {"where the template frames results each is a turn of the tool's, without the last line's end",
     "hermes",
     true,
     {{SAID_ASSISTANT, "", "{}"}, {SAID_TOOL, "a\n"}, {SAID_TOOL, "b\n\n"}, {SAID_USER, "go on"}},
     "[assistant]" CALL("{}") "[tool]a[tool]b\n[user]go on"},
    {"another form's words", "llama", false, {{SAID_TOOL, "a"}}, "[user]Result of bash:\na\n"},
};

static void a_conversation_is_told_as_a_template_takes_it(void **state)
{
    (void)state;
    const struct toolbox box = {0};
    for (size_t i = 0; i < COUNT(conversations); i++) {
        AUTO_BUFFER told = {0};
        struct said_request request;
        struct words words;
        const struct tool_telling telling = telling_of(conversations[i].form, conversations[i].is_framed);
        make_request(conversations[i].lines, &request);
        assert_true(words_make(&request, &telling, &box, &words));
        for (size_t k = 0; k < words.count; k++)
            buffer_printf(&told, "[%s]%s", words.messages[k].role, words.messages[k].content);
        assert_says(conversations[i].what, &told, conversations[i].told);
        words_finish(&words);
        said_request_finish(&request);
    }
}

static void the_tools_stand_at_the_end_of_the_system_message(void **state)
{
    (void)state;
    static const char schema[] = "{\"type\": \"object\", \"properties\": {\"command\": {\"type\": \"string\"}}}";
    static const struct line with[LINES_MAX] = {{SAID_SYSTEM, "Be brief."}, {SAID_USER, "hi"}},
                             without[LINES_MAX] = {{SAID_USER, "hi"}};
    const struct tool_telling telling = telling_of("hermes", false);
    json_t *parameters = json_loads(schema, 0, NULL);
    const struct said_tool tool = {.name = (char *)"bash", .doc = (char *)"Runs it.", .parameters = parameters};
    struct offered *offered = offered_create(&tool, 1);
    const struct line *const cases[] = {with, without};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct said_request request;
        struct words words;
        make_request(cases[i], &request);
        assert_true(words_make(&request, &telling, &offered->box, &words));
        assert_int_equal(words.count, 2);
        assert_string_equal(words.messages[0].role, "system");
        const char *content = words.messages[0].content;
        assert_memory_equal(content, i == 0 ? "Be brief.\n\n# Tools" : "# Tools\n\nYou may", i == 0 ? 18 : 16);
        assert_non_null(strstr(content, "\"description\": \"Runs it.\""));
        words_finish(&words);
        said_request_finish(&request);
    }
    offered_destroy(&offered);
    json_decref(parameters);
}

/* ---- what follows a turn ----------------------------------------------------------------------------- */

static const struct {
    const char *what;
    bool is_framed;
    struct line lines[LINES_MAX];
    enum tell_role role;
    const char *told; /* each content behind a bar */
} tellings[] = {
    {"the user's words", true, {{SAID_USER, "go on"}}, TELL_USER, "|go on"},
    {"a result in the user's turn", false, {{SAID_TOOL, "a"}}, TELL_USER, "|<tool_response>\na\n</tool_response>"},
    {"a result in a turn of its own", true, {{SAID_TOOL, "a\n"}}, TELL_TOOL, "|a"},
    {"each in its own", true, {{SAID_TOOL, "a"}, {SAID_TOOL, "b"}}, TELL_TOOL, "|a|b"},
    {"with the user's words none has one of its own",
     true,
     {{SAID_TOOL, "a"}, {SAID_USER, "and?"}},
     TELL_USER,
     "|<tool_response>\na\n</tool_response>\n\nand?"},
    {"system words are the user's", true, {{SAID_SYSTEM, "late"}, {SAID_USER, "go"}}, TELL_USER, "|late\n\ngo"},
};

static void what_is_new_is_told_in_turns_of_one_role(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(tellings); i++) {
        AUTO_BUFFER all = {0};
        struct said_request request;
        struct told told;
        const struct tool_telling telling = telling_of("hermes", tellings[i].is_framed);
        make_request(tellings[i].lines, &request);
        assert_true(told_make(request.messages, request.count, &telling, &told));
        assert_int_equal(told.role, tellings[i].role);
        for (size_t k = 0; k < told.count; k++)
            buffer_printf(&all, "|%.*s", SLICE_ARG(told.contents[k]));
        assert_says(tellings[i].what, &all, tellings[i].told);
        told_finish(&told);
        said_request_finish(&request);
    }
}

/* ---- a reply ------------------------------------------------------------------------------------------ */

static const struct {
    const char *what, *form, *said;
    enum { WHOLE, CUT, OPENED } kind; /* OPENED: the prompt began its thinking */
    const char *thinking, *text;      /* NULL: none */
    size_t calls;
} replies[] = {
    {"words", "hermes", "  It is there.\n", WHOLE, NULL, "It is there.", 0},
    {"nothing", "hermes", "", WHOLE, NULL, "", 0},
    {"thinking before words", "hermes", "<think>\nhm\n</think>\n\nYes.", WHOLE, "hm", "Yes.", 0},
    {"thinking that the prompt began", "hermes", "hm\n</think>\nYes.", OPENED, "hm", "Yes.", 0},
    {"thinking alone", "hermes", "<think>hm</think>", WHOLE, "hm", "", 0},
    {"thinking that never ends", "hermes", "<think>\nhm", CUT, "hm", "", 0},
    {"words before a call", "hermes", "I look.\n" CALL("{\"command\": \"ls\"}"), WHOLE, NULL, "I look.", 1},
    {"thinking, words and two calls", "hermes", "<think>a</think>b" CALL("{}") "\n" CALL("{}"), WHOLE, "a", "b", 2},
    {"a call that was cut is no call", "hermes", CALL("{}"), CUT, NULL, CALL("{}"), 0},
    {"a call that cannot be read is words", "hermes", "x <tool_call>{bad</tool_call>", WHOLE, NULL,
     "x <tool_call>{bad</tool_call>", 0},
    {"a call in a thought is a thought", "hermes", "<think>" CALL("{}") "</think>No.", WHOLE, CALL("{}"), "No.", 0},
    {"the end of a thought that nobody began", "hermes", "hm\n</think>\nYes.", WHOLE, NULL, "hm\n</think>\nYes.", 0},
    {"words before a call without a tag", "llama", "I look.\n{\"name\": \"bash\", \"parameters\": {}}", WHOLE, NULL,
     "I look.", 1},
    {"a call without a tag", "llama", "{\"name\": \"bash\", \"parameters\": {}}", WHOLE, NULL, "", 1},
};

static void a_reply_is_thinking_words_and_calls_and_no_text_stands_in_two(void **state)
{
    (void)state;
    json_t *parameters = json_loads("{\"type\": \"object\"}", 0, NULL);
    const struct said_tool tool = {.name = (char *)"bash", .doc = (char *)"", .parameters = parameters};
    struct offered *offered = offered_create(&tool, 1);
    for (size_t i = 0; i < COUNT(replies); i++) {
        struct heard heard;
        assert_true(heard_make(replies[i].said, replies[i].kind == OPENED, replies[i].kind == CUT,
                               tool_format_find(replies[i].form), &offered->box, &heard));
        if (heard.reply.count != replies[i].calls || strcmp(heard.text, replies[i].text) != 0 ||
            strcmp(heard.thinking ? heard.thinking : "none", replies[i].thinking ? replies[i].thinking : "none") != 0)
            fail_msg("%s: thinking '%s', text '%s', %zu calls", replies[i].what, heard.thinking, heard.text,
                     heard.reply.count);
        heard_finish(&heard);
    }
    offered_destroy(&offered);
    json_decref(parameters);
}

static void without_tools_on_offer_nothing_is_a_call(void **state)
{
    (void)state;
    struct heard heard;
    const struct toolbox box = {0};
    assert_true(heard_make(CALL("{}"), false, false, tool_format_find("hermes"), &box, &heard));
    assert_int_equal(heard.reply.count, 0);
    assert_string_equal(heard.text, CALL("{}"));
    heard_finish(&heard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversation_is_told_as_a_template_takes_it),
        cmocka_unit_test(the_tools_stand_at_the_end_of_the_system_message),
        cmocka_unit_test(what_is_new_is_told_in_turns_of_one_role),
        cmocka_unit_test(a_reply_is_thinking_words_and_calls_and_no_text_stands_in_two),
        cmocka_unit_test(without_tools_on_offer_nothing_is_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
