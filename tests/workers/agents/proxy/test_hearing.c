/*
 * A reply that is told while it is sampled: whatever it says, in whatever pieces, what was told is the beginning of
 * what it is found to say in the end; and it is told as soon as that is certain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/workers/agents/form_world.h"
#include "workers/agents/proxy/hearing.h"
#include "workers/agents/proxy/words.h"

/* ---- what was told --------------------------------------------------------------------------------- */

struct told_so_far {
    struct hearing hearing;
    struct buffer thinking, text;
};

static void begin(struct told_so_far *told, const struct tool_format *format, bool is_opened)
{
    *told = (struct told_so_far){0};
    hearing_begin(&told->hearing, format, is_opened);
    buffer_append_str(&told->thinking, "");
}

static void take(struct told_so_far *told, const char *piece, size_t len)
{
    struct hearing_news news;
    assert_true(hearing_take(&told->hearing, slice_of(piece, len), &news));
    assert_true(news.thinking.len == 0 || told->text.len == 0);
    buffer_append(&told->thinking, news.thinking.data, news.thinking.len);
    buffer_append(&told->text, news.text.data, news.text.len);
    if (news.text.len > 0)
        assert_true(slice_equal(hearing_thinking(&told->hearing), buffer_peek(&told->thinking)) ||
                    hearing_thinking(&told->hearing).len == told->thinking.len);
}

static void finish(struct told_so_far *told)
{
    hearing_finish(&told->hearing);
    buffer_finish(&told->thinking);
    buffer_finish(&told->text);
}

/* ---- the beginning of what is found in the end ------------------------------------------------------- */

static bool begins(const char *whole, const struct buffer *told)
{
    return told->len <= strlen(whole ? whole : "") && (told->len == 0 || memcmp(whole, told->data, told->len) == 0);
}

static size_t character_at(const char *text)
{
    size_t len = 1;
    while ((text[len] & 0xc0) == 0x80)
        len++;
    return len;
}

/* Where a piece ends: of `step` characters, or, of step 0, at `cut` and at the end. */
static size_t piece_end(const char *text, size_t at, size_t step, size_t cut)
{
    if (step == 0)
        return at < cut ? cut : strlen(text);
    for (; step > 0 && text[at]; step--)
        at += character_at(text + at);
    return at;
}

static void assert_told(const char *text, const struct tool_format *format, bool is_opened, bool is_cut, size_t step,
                        size_t cut)
{
    static const struct toolbox none = {0};
    const struct toolbox tools = tool_format_box();
    struct told_so_far told;
    struct heard heard;
    begin(&told, format, is_opened);
    for (size_t at = 0, end; text[at]; at = end) {
        end = piece_end(text, at, step, cut);
        take(&told, text + at, end - at);
    }
    const struct tool_format *any = format ? format : tool_format_at(0);
    assert_true(heard_make(text, is_opened, is_cut, any, format ? &tools : &none, &heard));
    if (!begins(heard.thinking, &told.thinking) || !begins(heard.text, &told.text))
        fail_msg("%s, opened %d, cut %d, pieces of %zu: of\n%s\nwas told (%.*s) '%.*s', and it is (%s) '%s'",
                 format ? format->name : "no tools", is_opened, is_cut, step, text,
                 SLICE_ARG(buffer_peek(&told.thinking)), SLICE_ARG(buffer_peek(&told.text)),
                 heard.thinking ? heard.thinking : "none", heard.text);
    heard_finish(&heard);
    finish(&told);
}

static void assert_told_in_all_ways(const char *text, bool at_each_cut)
{
    for (size_t f = 0; f == 0 || tool_format_at(f - 1); f++)
        for (unsigned way = 0; way < 4; way++) {
            const struct tool_format *format = f ? tool_format_at(f - 1) : NULL;
            for (size_t step = 1; step < 6; step += 2)
                assert_told(text, format, way & 1, way & 2, step, 0);
            for (size_t cut = character_at(text); at_each_cut && text[cut]; cut += character_at(text + cut))
                assert_told(text, format, way & 1, way & 2, 0, cut);
        }
}

/* ---- replies ------------------------------------------------------------------------------------------ */

#define JSON_CALL "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}"
#define XML_CALL "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>"

static const char *const replies[] = {
    "Hello, world.\n",
    "  \n blanks  \n\n at both ends \n ",
    "l\xc3\xb6\xc3\xb6k \xf0\x9f\x8c\x8d <",
    "<think>\nhm\n</think>\n\nThought.",
    "<think></think>nothing",
    "<think>never closed <tool_call>\n" JSON_CALL "\n</tool_call>",
    "hm\n</think>\n\nThought.\n<tool_call>\n" JSON_CALL "\n</tool_call>",
    "a </think> b",
    "<thin air>",
    "Let me look.\n<tool_call>\n" JSON_CALL "\n</tool_call>\nAnd more.",
    "<tool_call>\n" JSON_CALL "\n</tool_call>",
    "<tool_call>\n{\"name\": \"bash\", broken\n</tool_call>",
    "Say <tool_call> and go on",
    "Let me look.\n" JSON_CALL,
    "Let me look: " JSON_CALL,
    JSON_CALL,
    JSON_CALL ";\n" JSON_CALL,
    "```json\n" JSON_CALL "\n```",
    "```python\nprint({})\n```\nis it.",
    "<think>x</think>\n```\n" JSON_CALL "\n```",
    "Words\n{\"type\": \"function\", \"name\": \"bash\", \"parameters\": {}}",
    "{\"names\": 1}\n{'name': 2}\n {  \"type\" : \"object\"}",
    "Look.\n<tool_call>\n" XML_CALL "\n</tool_call>",
    "Look.\n" XML_CALL "\nMore.",
    "Look. <function = bash> <function=",
    "<|python_tag|>" JSON_CALL,
    "Look. <|python_tag|>" JSON_CALL " and",
    "Look.\n<think>\n<tool_call>\n</think>\n<tool_call>\n" JSON_CALL "\n</tool_call>",
    "<|python",
};

static void what_is_told_is_the_beginning_of_what_is_found_in_the_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(replies); i++)
        assert_told_in_all_ways(replies[i], true);
}

/* Parts of replies in any order. */
static void so_it_is_of_replies_at_random(void **state)
{
    (void)state;
    static const char *const parts[] = {"<think>",
                                        "</think>",
                                        "\n",
                                        " ",
                                        "word",
                                        "<tool_call>",
                                        "</tool_call>",
                                        JSON_CALL,
                                        XML_CALL,
                                        "<function=bash>",
                                        "{",
                                        "}",
                                        "\"name\"",
                                        "\"type\": \"function\"",
                                        "```",
                                        "```json\n",
                                        "<|python_tag|>",
                                        "\xc3\xb6",
                                        "<",
                                        "\t",
                                        ";",
                                        "{\"name\": \"bash\", \"parameters\": {}}",
                                        "'name'",
                                        "{ ",
                                        "</function>"};
    unsigned seed = 7;
    for (unsigned walk = 0; walk < 3000; walk++) {
        char text[1024] = "";
        seed = seed * 1103515245 + 12345;
        for (unsigned i = 1 + (seed >> 16) % 9; i > 0; i--) {
            seed = seed * 1103515245 + 12345;
            strcat(text, parts[(seed >> 16) % COUNT(parts)]);
        }
        assert_told_in_all_ways(text, false);
    }
}

/* ---- as soon as it is certain ---------------------------------------------------------------------------- */

static void what_is_certain_is_told_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *format, *said, *thinking, *text;
        bool is_opened;
    } rows[] = {
        {"hermes", "Hel", "", "Hel"},
        {"hermes", "Hello  \n", "", "Hello"},
        {"hermes", "a < b", "", "a < b"},
        {"hermes", "a <tool", "", "a"},
        {"hermes", "a <tools", "", "a <tools"},
        {"hermes", "a\n{\"na", "", "a"},
        {"hermes", "a\n{\"nas", "", "a\n{\"nas"},
        {"hermes", "see {\"name\": 1", "", "see {\"name\": 1"},
        {"hermes", "```python\nx", "", "```python\nx"},
        {"hermes", "<thi", "", ""},
        {"hermes", "<think>\nI shoul", "I shoul", ""},
        {"hermes", "<think>a </thin", "a", ""},
        {"hermes", "<think>a </think>\n\nSo", "a", "So"},
        {"hermes", "I shoul", "I shoul", "", true},
        {"hermes", "a\n</think>\n\nSo", "a", "So", true},
        {"qwen-coder", "a <function", "", "a"},
        {"qwen-coder", "a {\"name\": ", "", "a {\"name\":"},
        {"openhands", "a <tool_call> b", "", "a <tool_call> b"},
        {"llama", "a <|python_tag|>{", "", "a"},
        {NULL, "a <tool_call>", "", "a <tool_call>"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct told_so_far told;
        begin(&told, rows[i].format ? tool_format_find(rows[i].format) : NULL, rows[i].is_opened);
        take(&told, rows[i].said, strlen(rows[i].said));
        if (!slice_is(buffer_peek(&told.thinking), rows[i].thinking) ||
            !slice_is(buffer_peek(&told.text), rows[i].text))
            fail_msg("%s: of '%s' was told (%.*s) '%.*s'", rows[i].format, rows[i].said,
                     SLICE_ARG(buffer_peek(&told.thinking)), SLICE_ARG(buffer_peek(&told.text)));
        finish(&told);
    }
}

/* A reply of blanks alone, of brackets or of tags that never end. */
static void odd_replies_cost_no_more_than_their_length(void **state)
{
    (void)state;
    static const char *const parts[] = {"\n", "{ ", "{\n", "<", "<think>", "`", "</think>", "<tool_call"};
    for (size_t i = 0; i < COUNT(parts); i++)
        for (size_t f = 0; tool_format_at(f); f++) {
            struct told_so_far told;
            begin(&told, tool_format_at(f), f % 2);
            for (size_t k = 0; k < 20000; k++)
                take(&told, parts[i], strlen(parts[i]));
            finish(&told);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_the_beginning_of_what_is_found_in_the_end),
        cmocka_unit_test(so_it_is_of_replies_at_random),
        cmocka_unit_test(what_is_certain_is_told_at_once),
        cmocka_unit_test(odd_replies_cost_no_more_than_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
