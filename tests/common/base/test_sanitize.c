/* What of others' text reaches a terminal or a log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "common/base/sanitize.h"

static const struct {
    const char *name, *given, *shown;
} texts[] = {
    {"plain", "a b ~", "a b ~"},
    {"letters", "\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80 \xd7\x90", "\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80 \xd7\x90"},
    {"joined emoji", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac"},
    {"first above C1", "\xc2\xa0", "\xc2\xa0"},
    {"clear screen", "\x1b[2J", "?[2J"},
    {"clipboard", "\x1b]52;c;eA==\x07", "?]52;c;eA==?"},
    {"title", "\x1b]0;root\x1b\\", "?]0;root?\\"},
    {"carriage return, backspace, DEL", "a\rb\bc\x7f", "a?b?c?"},
    {"CSI as a character",
     "\xc2\x9b"
     "2J",
     "?2J"},
    {"CSI as a byte",
     "\x9b"
     "2J",
     "?2J"},
    {"last of C1", "\xc2\x9f", "?"},
    {"overrides",
     "a\xe2\x80\xae"
     "b\xe2\x80\xac",
     "a?b?"},
    {"isolates",
     "\xe2\x81\xa6"
     "a\xe2\x81\xa9",
     "?a?"},
    {"marks", "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "???"},
    {"ends of lines",
     "a\xe2\x80\xa8"
     "b\xe2\x80\xa9",
     "a?b?"},
    {"cut in two", "a\xe2\x80", "a??"},
    {"overlong escape", "\xc0\x9b[2J", "??[2J"},
    {"surrogate", "\xed\xa0\x80", "???"},
};

static void what_steers_is_shown_as_a_question_mark(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        char *text = strdup(texts[i].given);
        size_t len = sanitize(text, strlen(text), false);
        if (len != strlen(texts[i].shown) || memcmp(text, texts[i].shown, len) != 0)
            fail_msg("%s: '%.*s'", texts[i].name, (int)len, text);
        free(text);
    }
    char lines[] = "a\tb\nc\r", zero[] = {'a', 0, 'b'};
    assert_int_equal(sanitize(lines, 6, true), 6);
    assert_string_equal(lines, "a\tb\nc?");
    assert_int_equal(sanitize(lines, 6, false), 6);
    assert_string_equal(lines, "a?b?c?");
    assert_int_equal(sanitize(zero, 3, true), 3);
    assert_memory_equal(zero, "a?b", 3);
}

/* For every character there is: no byte is left that a terminal of any kind takes for a control. */
static void no_character_at_all_becomes_a_control(void **state)
{
    (void)state;
    for (uint32_t c = 1; c < 0x110000; c++) {
        const char bytes[4] = {(char)(c < 0x80      ? c
                                      : c < 0x800   ? 0xc0 | c >> 6
                                      : c < 0x10000 ? 0xe0 | c >> 12
                                                    : 0xf0 | c >> 18),
                               (char)(0x80 | (c < 0x800     ? c
                                              : c < 0x10000 ? c >> 6
                                                            : c >> 12) %
                                                 64),
                               (char)(0x80 | (c < 0x10000 ? c : c >> 6) % 64), (char)(0x80 | c % 64)};
        const size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        char text[4];
        memcpy(text, bytes, 4);
        const size_t len = sanitize(text, size, false);
        const bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        assert_true(!is_control || (len == 1 && *text == '?'));
        assert_true(c < 0xa0 || len == size || (size_t)(text[0] == '?') == 1);
    }
}

/* What the function prints to stderr. */
static const char *caught(void (*function)(void))
{
    static char text[8192];
    int saved = dup(STDERR_FILENO), ends[2];
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    function();
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t len = read(ends[0], text, sizeof(text) - 1);
    close(ends[0]);
    assert_true(len >= 0);
    text[len] = '\0';
    return text;
}

static void log_attack(void)
{
    log_event(LOG_WARN, "lane.malformed", "why=\"%s\"",
              "\x1b[2J\n2026-11-21T04:00:00.000Z broker info all.well\t\xc2\x9b\x9b\xe2\x80\xae");
}

static void log_much(void)
{
    char text[4000];
    memset(text, 0x1b, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_event(LOG_WARN, "lane.malformed", "why=\"%s\"", text);
}

static void a_log_line_is_one_line_and_steers_nothing(void **state)
{
    (void)state;
    const char *line = caught(log_attack);
    assert_non_null(
        strstr(line, " warn lane.malformed why=\"?[2J?2026-11-21T04:00:00.000Z broker info all.well????\"\n"));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    line = caught(log_much);
    assert_in_range(strlen(line), 2000, 2047);
    assert_null(strchr(line, 0x1b));
    assert_string_equal(line + strlen(line) - 3, "\?\?\n");
}

static void print_attack(void)
{
    sanitize_print(stderr, "%s|%.3s\n", "a\x1b[31m\n", "b\xe2\x80\xae");
    fflush(stderr);
}

static void printing_keeps_lines_and_nothing_else(void **state)
{
    (void)state;
    assert_string_equal(caught(print_attack), "a?[31m\n|b??\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_steers_is_shown_as_a_question_mark),
        cmocka_unit_test(no_character_at_all_becomes_a_control),
        cmocka_unit_test(a_log_line_is_one_line_and_steers_nothing),
        cmocka_unit_test(printing_keeps_lines_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
