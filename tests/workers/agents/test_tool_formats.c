/*
 * What models really write, in every form: replies in the documented forms and with the faults that
 * the models are known for, and what is read of them.
 */
#include "tests/workers/agents/form_world.h"
#include "workers/agents/formats/models.h"
#include "workers/tools/arguments.h"
#include "workers/tools/toolbox.h"

struct reply_case {
    const char *format, *text, *calls; /* or words of what is wrong */
};

/* ---- Qwen3-Coder --------------------------------------------------------------------------- */

#define QWEN(inner) "<tool_call>\n" inner "\n</tool_call>"
#define QWEN_LS QWEN("<function=bash>\n<parameter=command>\nls -la\n</parameter>\n</function>")

static const struct reply_case qwen_calls[] = {
    {"qwen-coder", QWEN_LS, "bash {\"command\":\"ls -la\"}\n"},
    {"qwen-coder", "I'll look around first.\n\n" QWEN_LS "\n", "bash {\"command\":\"ls -la\"}\n"},
    /* the first tag forgotten behind a sentence, which this model is known for */
    {"qwen-coder",
     "I'll list the files.\n\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n"
     "</tool_call>",
     "bash {\"command\":\"ls\"}\n"},
    {"qwen-coder", QWEN_LS "\n" QWEN("<function=submit>\n<parameter=answer>\n42\n</parameter>\n</function>"),
     "bash {\"command\":\"ls -la\"}\nsubmit {\"answer\":\"42\"}\n"},
    /* strings byte for byte: blanks, tags, quotes, backslashes, empty lines at both ends */
    {"qwen-coder",
     QWEN("<function=edit>\n<parameter=command>\ncreate\n</parameter>\n<parameter=path>\na.html\n"
          "</parameter>\n<parameter=file_text>\n\n  <p class=\"x\">&amp; \\n</p>\n\t</think> "
          "{\"a\": 1,}\n\n"
          "</parameter>\n</function>"),
     "edit {\"command\":\"create\",\"path\":\"a.html\",\"file_text\":"
     "\"\\n  <p class=\\\"x\\\">&amp; \\\\n</p>\\n\\t</think> {\\\"a\\\": 1,}\\n\"}\n"},
    {"qwen-coder",
     QWEN("<function=edit>\n<parameter=old_str>\n\n</parameter>\n<parameter=new_str>\n\n\n"
          "</parameter>\n</function>"),
     "edit {\"old_str\":\"\",\"new_str\":\"\\n\"}\n"},
    /* types by the schema */
    {"qwen-coder",
     QWEN("<function=bash>\n<parameter=command>\n42\n</parameter>\n<parameter=timeout_s>\n 90 \n"
          "</parameter>\n<parameter=restart>\nTrue\n</parameter>\n<parameter=tty>\nfalse\n</"
          "parameter>\n"
          "</function>"),
     "bash {\"command\":\"42\",\"timeout_s\":90,\"restart\":true,\"tty\":false}\n"},
    {"qwen-coder", QWEN("<function=edit>\n<parameter=view_range>\n[1, -1]\n</parameter>\n</function>"),
     "edit {\"view_range\":[1,-1]}\n"},
    /* what is not of its type stays text, so that the tool can refuse it by name */
    {"qwen-coder",
     QWEN("<function=bash>\n<parameter=timeout_s>\nten\n</parameter>\n<parameter=restart>\nyes\n"
          "</parameter>\n<parameter=nothing>\n7\n</parameter>\n</function>"),
     "bash {\"timeout_s\":\"ten\",\"restart\":\"yes\",\"nothing\":\"7\"}\n"},
    {"qwen-coder", QWEN("<function=dance>\n<parameter=a>\n7\n</parameter>\n</function>"), "dance {\"a\":\"7\"}\n"},
    {"qwen-coder", "<tool_call><function=bash><parameter=command>ls</parameter></function></tool_call>",
     "bash {\"command\":\"ls\"}\n"},
    {"qwen-coder", "<tool_call>\n<function=\"bash\">\n<parameter=\"command\">\nls\n</parameter>\n</function>",
     "bash {\"command\":\"ls\"}\n"},
    {"qwen-coder", QWEN("<function=submit>\n</function>"), "submit {}\n"},
    /* missing ends, at the reply's end */
    {"qwen-coder", "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n",
     "bash {\"command\":\"ls\"}\n"},
    {"qwen-coder", "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</tool_call>",
     "bash {\"command\":\"ls\"}\n"},
    /* thinking */
    {"qwen-coder", "<think>\nMaybe " QWEN_LS "?\n</think>\n\nAll is done.", ""},
    {"qwen-coder", "<think>\nMaybe <function=rm>\n</think>\n\n" QWEN_LS, "bash {\"command\":\"ls -la\"}\n"},
    {"qwen-coder", "Maybe " QWEN_LS "? No.\n</think>\n\nAll is done.", ""},
    {"qwen-coder", "<think>a</think>" QWEN_LS "\n<think>" QWEN_LS "</think>\n" QWEN_LS,
     "bash {\"command\":\"ls -la\"}\nbash {\"command\":\"ls -la\"}\n"},
    {"qwen-coder", "All is done.", ""},
    {"qwen-coder", "", ""},
};

static const struct reply_case qwen_wrongs[] = {
    {"qwen-coder", QWEN("{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}"),
     "line 2, column 1: <function=NAME> is expected behind <tool_call>, not {\"name\""},
    {"qwen-coder", QWEN("<function=bash>\n<parameter=command>\nls\n</function>"),
     "line 5, column 1: </parameter> is expected: command is not closed"},
    {"qwen-coder",
     QWEN("<function=edit>\n<parameter=command>\nview\n<parameter=path>\na\n</parameter>\n</"
          "function>"),
     "line 5, column 1: </parameter> is expected: command is not closed"},
    {"qwen-coder", QWEN("<function=bash>\n<parameter=command>\nls\n</parameter>\nrm\n</function>"),
     "line 6, column 1: <parameter=NAME> or </function> is expected, not rm"},
    {"qwen-coder", QWEN("<function=bash>\n{\"command\": \"ls\"}\n</function>"),
     "line 3, column 1: <parameter=NAME> or </function> is expected, not {"},
    {"qwen-coder", QWEN("<function=bash\n<parameter=command>\nls\n</parameter>\n</function>"),
     "line 2, column 11: '>' is expected behind <function=NAME"},
    {"qwen-coder", QWEN("<function=bash>\n<parameter=command=ls</parameter>\n</function>"),
     "line 3, column 12: '>' is expected behind <parameter=NAME"},
    {"qwen-coder", QWEN("<function=>\n</function>"), "a name of 1 to 64 characters"},
    {"qwen-coder",
     QWEN("<function=bash>\n<parameter=command>\na\n</parameter>\n<parameter=command>\nb\n</"
          "parameter>\n"
          "</function>"),
     "the parameter command is given twice"},
    {"qwen-coder", "<tool_call>", "not the end of the reply"},
    {"qwen-coder", QWEN_LS "<tool_call>\n<function=bash>\n<parameter=command>\nls", "Call 2"},
    {"qwen-coder", "<think>\n" QWEN_LS, "ends within <think>"},
    {"qwen-coder", "<|python_tag|>{\"name\": \"bash\", \"parameters\": {}}", "form that is not read here"},
};

/* ---- Llama 3 ------------------------------------------------------------------------------- */

#define LLAMA_LS "{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}}"

static const struct reply_case llama_calls[] = {
    {"llama", LLAMA_LS, "bash {\"command\":\"ls\"}\n"},
    {"llama", "<|python_tag|>" LLAMA_LS, "bash {\"command\":\"ls\"}\n"},
    {"llama", "<|python_tag|>" LLAMA_LS "<|eom_id|>", "bash {\"command\":\"ls\"}\n"},
    {"llama", "{\"type\": \"function\", \"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}}",
     "bash {\"command\":\"ls\"}\n"},
    {"llama", "<|python_tag|>" LLAMA_LS "; {\"name\": \"submit\", \"parameters\": {}}",
     "bash {\"command\":\"ls\"}\nsubmit {}\n"},
    {"llama", LLAMA_LS "\n{\"name\": \"think\", \"arguments\": {\"thought\": \"; {\"}}",
     "bash {\"command\":\"ls\"}\nthink {\"thought\":\"; {\"}\n"},
    {"llama", "[" LLAMA_LS ", " LLAMA_LS "]", ""},
    {"llama", "<|python_tag|>[" LLAMA_LS ", " LLAMA_LS "]", "bash {\"command\":\"ls\"}\nbash {\"command\":\"ls\"}\n"},
    {"llama", "Let me look:\n\n" LLAMA_LS "\n\nI wait for the output.", "bash {\"command\":\"ls\"}\n"},
    {"llama", "Here it is:\n```json\n" LLAMA_LS "\n```\n", "bash {\"command\":\"ls\"}\n"},
    {"llama", "{\"name\": \"bash\",\n \"parameters\": \"{\\\"command\\\": \\\"ls\\\"}\"}",
     "bash {\"command\":\"ls\"}\n"},
    {"llama", "It is\n```json\n{\"name\": \"Ada\", \"age\": 36}\n```", ""},
    {"llama", "The call would be " LLAMA_LS " then.", ""},
    {"llama", "{\"result\": 3}", ""},
    {"llama", "All is done.", ""},
};

static const struct reply_case llama_wrongs[] = {
    {"llama", "<|python_tag|>brave_search.call(query=\"weather\")",
     "line 1, column 15: JSON is expected behind <|python_tag|>, not brave_search.call("},
    {"llama", "<|python_tag|>", "not the end of the reply"},
    {"llama", "{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\",}}", "no comma stands before"},
    {"llama", "{\"name\": \"bash\", \"parameters\": {'command': 'ls'}}", "in double quotes"},
    {"llama", "{'name': 'bash', 'parameters': {'command': 'ls'}}", "in double quotes"},
    {"llama", "Look:\n{'name': 'bash', 'parameters': {'command': 'ls'}}", "in double quotes"},
    {"llama", "{'type': 'function', 'name': 'bash', 'parameters': {'command': 'ls'}}", "in double quotes"},
    {"llama", "{\"name\": \"bash\", \"parameters\": {\"restart\": True}}", "true, false and null"},
    {"llama", "{\"name\": \"bash\", \"parameters\": {\"command\": \"a\nb\"}}", "a line break is \\n"},
    {"llama", "{\"name\": \"bash\", \"parameters\": {\"command\": \"a\tb\"}}", "a tab is \\t"},
    {"llama", "{\"name\": \"bash\", \"parameters\": {\"command\": \"\\d\"}}", "a backslash in a string is"},
    {"llama", "{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}", "before its last bracket"},
    {"llama", "Look:\n{\"name\": \"bash\", \"parameters\": {\"command\": ls}}", "line 2, column 44"},
    {"llama", "<function=bash>{\"command\": \"ls\"}</function>", "form that is not read here"},
};

/* ---- OpenHands ----------------------------------------------------------------------------- */

static const struct reply_case openhands_calls[] = {
    {"openhands", "Let me look:\n<function=bash>\n<parameter=command>pwd && ls</parameter>\n</function>",
     "bash {\"command\":\"pwd && ls\"}\n"},
    {"openhands",
     "<function=bash>\n<parameter=command>\npython3 app.py > log 2>&1 "
     "&\n</parameter>\n</function>\n",
     "bash {\"command\":\"python3 app.py > log 2>&1 &\"}\n"},
    {"openhands",
     "<function=edit>\n<parameter=command>str_replace</parameter>\n<parameter=path>/w/a.py</"
     "parameter>\n"
     "<parameter=old_str>return 1\n</parameter>\n<parameter=new_str>\n    return "
     "'<td>'\n\n</parameter>\n"
     "<parameter=insert_line>3</parameter>\n</function>",
     "edit {\"command\":\"str_replace\",\"path\":\"/w/a.py\",\"old_str\":\"return "
     "1\\n\",\"new_str\":\"    "
     "return '<td>'\\n\",\"insert_line\":3}\n"},
    /* cut off by a stop string, anywhere in it */
    {"openhands", "<function=bash>\n<parameter=command>ls</parameter>\n</function", "bash {\"command\":\"ls\"}\n"},
    {"openhands", "<function=bash>\n<parameter=command>ls</parameter>\n</", "bash {\"command\":\"ls\"}\n"},
    {"openhands", "<function=bash>\n<parameter=command>ls</parameter>\n", "bash {\"command\":\"ls\"}\n"},
    /* reading stops at the end of the first, whatever is made up behind it */
    {"openhands",
     "<function=bash>\n<parameter=command>ls</parameter>\n</function>\n\nEXECUTION RESULT of "
     "[bash]:\na.py\n"
     "<function=bash>\n<parameter=command>rm a.py</parameter>\n</function>",
     "bash {\"command\":\"ls\"}\n"},
    {"openhands", "<think>\n<function=rm>\n</function>\n</think>\nThe answer is 4.", ""},
    {"openhands", "The answer is 4.", ""},
};

static const struct reply_case openhands_wrongs[] = {
    {"openhands", "<function=bash>\n<parameter=command=ls</parameter>\n</function>", "'>' is expected"},
    {"openhands", "<function=bash>\n<parameter=command>ls\n</function>", "command is not closed"},
    {"openhands", "<function=bash>ls</function>", "line 1, column 16: <parameter=NAME> or </function>"},
    {"openhands", "<tool_call>\n{\"name\": \"bash\"}\n</tool_call>", "form that is not read here"},
};

/* ---- Hermes: what the tests of this form alone do not have ------------------------------------ */

#define HERMES(json) "<tool_call>\n" json "\n</tool_call>"

static const struct reply_case hermes_calls[] = {
    {"hermes", HERMES("{\"name\": \"think\", \"arguments\": {\"thought\": \"a </tool_call> <tool_call> b\"}}"),
     "think {\"thought\":\"a </tool_call> <tool_call> b\"}\n"},
    {"hermes", HERMES("{\"name\": \"think\", \"arguments\": {\"thought\": \"\\n<think>\\n</think>\"}}"),
     "think {\"thought\":\"\\n<think>\\n</think>\"}\n"},
    {"hermes", "I think in <think> tags, like </think>.\n" HERMES("{\"name\": \"submit\"}"), "submit {}\n"},
};

static const struct reply_case hermes_wrongs[] = {
    {"hermes", HERMES("{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\",},}"),
     "line 2, column 48: string or '}' expected near '}'; no comma stands before a closing "
     "bracket"},
    {"hermes", HERMES("{'name': 'bash', 'arguments': {}}"), "line 2, column 2"},
    {"hermes", HERMES("{\"name\": \"bash\", \"arguments\": {}} and more"), "</tool_call> is expected"},
    {"hermes", HERMES("<function=bash>\n</function>"), "Call 1"},
    {"hermes", "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>", "not read here"},
    {"hermes", "<think>\n" HERMES("{\"name\": \"bash\"}"), "ends within <think>"},
};

static void expect_all(const struct reply_case *cases, size_t count,
                       void (*expect)(const char *, const char *, const char *))
{
    for (size_t i = 0; i < count; i++)
        expect(cases[i].format, cases[i].text, cases[i].calls);
}

static void calls_are_read_as_the_models_write_them(void **state)
{
    (void)state;
    expect_all(qwen_calls, COUNT(qwen_calls), expect_calls_in);
    expect_all(llama_calls, COUNT(llama_calls), expect_calls_in);
    expect_all(openhands_calls, COUNT(openhands_calls), expect_calls_in);
    expect_all(hermes_calls, COUNT(hermes_calls), expect_calls_in);
}

static void what_cannot_be_read_is_told_with_its_place_and_an_example(void **state)
{
    (void)state;
    expect_all(qwen_wrongs, COUNT(qwen_wrongs), expect_wrong_in);
    expect_all(llama_wrongs, COUNT(llama_wrongs), expect_wrong_in);
    expect_all(openhands_wrongs, COUNT(openhands_wrongs), expect_wrong_in);
    expect_all(hermes_wrongs, COUNT(hermes_wrongs), expect_wrong_in);
}

static void an_unclosed_call_is_marked_so_that_a_cut_one_is_not_made(void **state)
{
    (void)state;
    static const struct {
        const char *format, *text;
        bool is_open;
    } rows[] = {
        {"qwen-coder", QWEN_LS, false},
        {"qwen-coder", "<function=bash>\n<parameter=command>\nls\n</parameter>\n", true},
        {"qwen-coder", "<function=bash>\n", true},
        {"openhands", "<function=bash>\n<parameter=command>ls</parameter>\n</func", true},
        {"openhands", "<function=bash>\n<parameter=command>ls</parameter>\n</function>", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct tool_reply reply = tool_format_read_it(rows[i].format, rows[i].text);
        assert_int_equal(reply.count, 1);
        assert_int_equal(reply.is_open, rows[i].is_open);
        tool_reply_finish(&reply);
    }
}

static void a_second_call_where_only_one_is_read_is_noted(void **state)
{
    (void)state;
    struct tool_reply one = tool_format_read_it("openhands", openhands_calls[0].text);
    struct tool_reply two = tool_format_read_it("openhands", openhands_calls[6].text);
    assert_null(one.note);
    assert_non_null(strstr(two.note, "Only the first call"));
    tool_reply_finish(&one);
    tool_reply_finish(&two);
}

/* ---- every form ----------------------------------------------------------------------------- */

static const char *const said[] = {
    "{\"command\": \"ls\"}",
    "{}",
    "{\"command\": \"\", \"path\": \"\\n\", \"file_text\": \"\\n\\n a\\n\\tb\\n\"}",
    "{\"path\": \"true\", \"insert_line\": 12, \"view_range\": [1, -1]}",
    "{\"file_text\": \"<p>&lt;\\\\n\\\"'\\n```\\n{\\\"name\\\": 1}\\u00e9\"}",
};

static void what_a_form_says_it_reads_as_the_same(void **state)
{
    (void)state;
    for (size_t f = 0; tool_format_at(f); f++)
        for (size_t i = 0; i < COUNT(said); i++) {
            AUTO_BUFFER out = {0}, expected = {0};
            json_t *arguments = json_loads(said[i], 0, NULL);
            AUTO_FREE char *compact = json_dumps(arguments, JSON_COMPACT);
            buffer_printf(&expected, "edit %s\n", compact);
            tool_format_at(f)->say("edit", arguments, &out);
            AUTO_FREE char *text = buffer_take_str(&out), *calls = buffer_take_str(&expected);
            expect_calls_in(tool_format_at(f)->name, text, calls);
            json_decref(arguments);
        }
}

static void the_example_of_each_tool_is_read_as_a_call_that_fits_it(void **state)
{
    (void)state;
    const struct toolbox box = tool_format_box();
    char wrong[512];
    for (size_t f = 0; tool_format_at(f); f++)
        for (size_t i = 0; i < box.count; i++) {
            AUTO_BUFFER out = {0};
            assert_true(tool_format_example(tool_format_at(f), box.tools[i], &out));
            AUTO_FREE char *text = buffer_take_str(&out);
            struct tool_reply reply = tool_format_read_it(tool_format_at(f)->name, text);
            assert_int_equal(reply.count, 1);
            assert_string_equal(reply.calls[0].name, box.tools[i]->name);
            assert_true(tool_check(box.tools[i], reply.calls[0].arguments, wrong, sizeof(wrong)));
            tool_reply_finish(&reply);
        }
}

static void the_prompt_shows_every_tool_argument_and_the_form(void **state)
{
    (void)state;
    const struct toolbox box = tool_format_box();
    for (size_t f = 0; tool_format_at(f); f++) {
        AUTO_BUFFER out = {0};
        assert_true(tool_format_at(f)->describe(&box, &out));
        AUTO_FREE char *text = buffer_take_str(&out);
        for (size_t i = 0; i < box.count; i++) {
            assert_non_null(strstr(text, box.tools[i]->doc));
            for (const struct tool_argument *at = box.tools[i]->arguments; at->name; at++)
                assert_non_null(strstr(text, at->doc));
        }
        assert_non_null(strstr(text, strcmp(tool_format_at(f)->name, "llama") == 0 ? "\"parameters\": {"
                                                                                   : tool_format_at(f)->marker));
    }
}

static void results_are_told_in_the_words_of_the_form(void **state)
{
    (void)state;
    static const struct {
        const char *format, *told;
    } rows[] = {
        {"hermes", "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"},
        {"qwen-coder", "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"},
        {"llama", "Result of bash:\none\n\nResult of edit:\ntwo\n"},
        {"openhands", "EXECUTION RESULT of [bash]:\none\n\nEXECUTION RESULT of [edit]:\ntwo"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO_BUFFER out = {0};
        char first[] = "one\n", second[] = "two";
        const struct tool_format *format = tool_format_find(rows[i].format);
        format->tell("bash", &(struct tool_result){.text = first, .len = 4}, &out);
        format->tell("edit", &(struct tool_result){.text = second, .len = 3}, &out);
        if (!slice_is(buffer_peek(&out), rows[i].told))
            fail_msg("%s: '%.*s'", rows[i].format, SLICE_ARG(buffer_peek(&out)));
    }
}

static void a_models_name_says_its_form(void **state)
{
    (void)state;
    static const struct {
        const char *model, *format;
    } rows[] = {
        {"Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen-coder"},
        {"qwen3_coder_next-Q4_K_M.gguf", "qwen-coder"},
        {"Qwen3.5-35B-A3B", "qwen-coder"},
        {"NVIDIA-Nemotron-3-Nano-30B-A3B", "qwen-coder"},
        {"Qwen3-8B", "hermes"},
        {"Qwen3-5B-thing", "hermes"},
        {"Qwen2.5-Coder-7B-Instruct", "hermes"},
        {"NousResearch/Hermes-3-Llama-3.1-8B", "hermes"},
        {"Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "llama"},
        {"llama3.2", "llama"},
        {"CodeLlama-34b-Instruct", "hermes"},
        {"Llama-30B", "hermes"},
        {"all-hands/openhands-lm-32b-v0.1", "openhands"},
        {"SmolLM2-135M-Instruct", "hermes"},
        {"", "hermes"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(tool_format_of_model(rows[i].model)->name, rows[i].format) != 0)
            fail_msg("%s: %s", rows[i].model, tool_format_of_model(rows[i].model)->name);
}

/* The sanitizers' strstr measures all of its text each time: there the replies are short. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HOSTILE_BYTES = 1 << 14 };
#else
enum { HOSTILE_BYTES = 1 << 20 };
#endif

/* Bytes that make a reader look far ahead again and again, if it does: then this never ends. */
static void hostile_replies_cost_no_more_than_their_length(void **state)
{
    (void)state;
    static const char *const parts[] = {"<think>",
                                        "<think></think>\n",
                                        "{\"name\"",
                                        "{\"name\" \"\n",
                                        "<tool_call>",
                                        "<function=",
                                        "x{",
                                        "\n\n   ",
                                        "</think>",
                                        "<parameter=a>",
                                        "\n<parameter=a>1</parameter>",
                                        "<|python_tag|>",
                                        "<function=a>\n</function>",
                                        "\n{\"name\": {}}\n"};
    for (size_t i = 0; i < COUNT(parts); i++) {
        AUTO_BUFFER text = {0};
        buffer_append_str(&text, "<function=a>");
        for (size_t k = 0; k < HOSTILE_BYTES / strlen(parts[i]); k++)
            buffer_append_str(&text, parts[i]);
        AUTO_FREE char *it = buffer_take_str(&text);
        for (size_t f = 0; tool_format_at(f); f++) {
            struct tool_reply reply = tool_format_read_it(tool_format_at(f)->name, it);
            tool_reply_finish(&reply);
            reply = tool_format_read_it(tool_format_at(f)->name, it + strlen("<function=a>"));
            tool_reply_finish(&reply);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_read_as_the_models_write_them),
        cmocka_unit_test(what_cannot_be_read_is_told_with_its_place_and_an_example),
        cmocka_unit_test(an_unclosed_call_is_marked_so_that_a_cut_one_is_not_made),
        cmocka_unit_test(a_second_call_where_only_one_is_read_is_noted),
        cmocka_unit_test(what_a_form_says_it_reads_as_the_same),
        cmocka_unit_test(the_example_of_each_tool_is_read_as_a_call_that_fits_it),
        cmocka_unit_test(the_prompt_shows_every_tool_argument_and_the_form),
        cmocka_unit_test(results_are_told_in_the_words_of_the_form),
        cmocka_unit_test(a_models_name_says_its_form),
        cmocka_unit_test(hostile_replies_cost_no_more_than_their_length),
    };
    return cmocka_run_group_tests_name("forms", tests, NULL, NULL);
}
