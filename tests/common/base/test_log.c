/* A line an event, as text and as JSON, whatever others put into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/log_json.h"

static int ends[2], stderr_before = -1;
static char said[16384];

static int set_up(void **state)
{
    (void)state;
    unsetenv("SLUICE_LOG");
    unsetenv("SLUICE_LOG_FORMAT");
    stderr_before = dup(STDERR_FILENO);
    return pipe2(ends, O_NONBLOCK) == 0 && dup2(ends[1], STDERR_FILENO) >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    dup2(stderr_before, STDERR_FILENO);
    close(stderr_before);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* What was written since; one line, which is taken off. */
static const char *read_line(void)
{
    const ssize_t got = read(ends[0], said, sizeof(said) - 1);
    assert_true(got > 0 && said[got - 1] == '\n');
    said[got - 1] = '\0';
    assert_null(strchr(said, '\n'));
    return said;
}

static json_t *read_object(void)
{
    json_error_t error;
    json_t *object = json_loads(read_line(), JSON_REJECT_DUPLICATES, &error);
    if (!object)
        fail_msg("%s: %s", error.text, said);
    return object;
}

static void expect(const json_t *object, const char *name, const char *value)
{
    const char *is = json_string_value(json_object_get(object, name));
    if (!is || strcmp(is, value) != 0)
        fail_msg("%s is '%s', not '%s': %s", name, is ? is : "absent", value, said);
}

static void an_event_is_a_line_of_text(void **state)
{
    (void)state;
    log_open("worker", LOG_INFO, LOG_TEXT);
    log_event(LOG_DEBUG, "job.ended", "job=%s", "x");
    log_event(LOG_WARN, "job.overdue", "job=%s why=\"%s\"", "run:g/0", "a\nb\x1b[31m\xff");
    assert_string_equal(strchr(read_line(), 'Z'), "Z worker warn job.overdue job=run:g/0 why=\"a?b?[31m?\"");
}

static void as_json_it_is_an_object_of_strings(void **state)
{
    (void)state;
    log_open("worker", LOG_INFO, LOG_JSON);
    log_event(LOG_DEBUG, "job.ended", "job=%s", "x");
    log_event(LOG_ERROR, "job.lost", "job=%s ms=%d%s why=\"%s\" action=given-up", "run:g/0", 12, " cancelled=1",
              "out of memory");
    json_t *object = read_object();
    expect(object, "level", "error");
    expect(object, "program", "worker");
    expect(object, "id", "job.lost");
    expect(object, "job", "run:g/0");
    expect(object, "ms", "12");
    expect(object, "cancelled", "1");
    expect(object, "why", "out of memory");
    expect(object, "action", "given-up");
    assert_int_equal(json_object_size(object), 9);
    assert_int_equal(strlen(json_string_value(json_object_get(object, "time"))), strlen("2026-11-21T04:00:00.000Z"));
    json_decref(object);
}

/* Nothing of it becomes a pair, or ends the line. */
static void what_others_say_stays_within_its_value(void **state)
{
    (void)state;
    static const char *const texts[] = {"\" action=forgiven level=debug x=\"",
                                        "a\\b\"c\n{\"id\":\"forged\"}",
                                        "\xff\xfe\x1e\x1f\x7f",
                                        "=",
                                        "",
                                        " a=b ",
                                        "caf\xc3\xa9 \xf0\x9f\x8c\x8a \xe2\x80\xae",
                                        "\x1e"
                                        "00000000\x1f"
                                        "level=debug"};
    static const char *const values[] = {"\" action=forgiven level=debug x=\"",
                                         "a\\b\"c\n{\"id\":\"forged\"}",
                                         "\xef\xbf\xbd\xef\xbf\xbd\x1e\x1f\x7f",
                                         "=",
                                         "",
                                         " a=b ",
                                         "caf\xc3\xa9 \xf0\x9f\x8c\x8a \xe2\x80\xae",
                                         "\x1e"
                                         "00000000\x1f"
                                         "level=debug"};
    log_open("worker", LOG_INFO, LOG_JSON);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        log_event(LOG_WARN, "job.failed", "why=\"%s\" action=tries-again", texts[i]);
        json_t *object = read_object();
        for (const char *at = said; *at; at++)
            assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
        assert_null(strstr(said, "\xe2\x80\xae")); /* turns the direction of writing around */
        expect(object, "why", values[i]);
        expect(object, "action", "tries-again");
        expect(object, "level", "warn");
        assert_int_equal(json_object_size(object), 6);
        json_decref(object);
    }
}

/* Names have none; what has, has pairs behind it only where they are named as pairs are. */
static void a_value_without_quotes_may_hold_blanks(void **state)
{
    (void)state;
    static const char *const texts[] = {"a b", "   E   M= = \xd3= \xe5=", "", "x level=debug", "x= y=z"};
    static const char *const jobs[] = {"a b", "   E", "", "x", "x="};
    log_open("worker", LOG_INFO, LOG_JSON);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        log_event(LOG_WARN, "job.failed", "job=%s action=lost", texts[i]);
        json_t *object = read_object();
        expect(object, "job", jobs[i]);
        expect(object, "action", "lost");
        expect(object, "level", "warn");
        json_decref(object);
    }
}

static void what_is_too_long_is_cut_and_the_object_is_whole(void **state)
{
    (void)state;
    char *text = malloc(100001);
    assert_non_null(text);
    memset(text, '"', 100000); /* each takes two bytes */
    text[100000] = '\0';
    log_open("worker", LOG_INFO, LOG_JSON);
    log_event(LOG_WARN, "job.failed", "why=\"%s\" action=lost", text);
    json_t *object = read_object();
    assert_true(strlen(json_string_value(json_object_get(object, "why"))) > 1000);
    json_decref(object);
    memset(text, 1, 100000); /* and these six */
    log_event(LOG_WARN, "job.failed", "n=1 why=\"%s\"", text);
    object = read_object();
    assert_true(strlen(said) < LOG_JSON_LINE_SIZE);
    expect(object, "n", "1");
    json_decref(object);
    memset(text, 'x', 100000);
    for (int len = 1980; len < 2060; len++) { /* cut in and around what comes behind it */
        log_event(LOG_WARN, "job.failed", "why=\"he said \"%.*s\" and left\" action=lost", len, text);
        object = read_object();
        const char *why = json_string_value(json_object_get(object, "why"));
        assert_true(strlen(why) == strspn(why, "he said\"x andlft"));
        assert_true(strncmp(why, "he said \"xxx", 12) == 0 && json_object_size(object) <= 6);
        json_decref(object);
    }
    for (int i = 0; i < 99999; i += 4)
        memcpy(text + i, "\xf0\x9f\x8c\x8a", 4);
    log_event(LOG_WARN, "job.failed", "why=\"%s\"", text); /* cut within a character */
    json_decref(read_object());
    free(text);
}

static void the_environment_overrides_the_command_line(void **state)
{
    (void)state;
    setenv("SLUICE_LOG_FORMAT", "json", 1);
    setenv("SLUICE_LOG", "warn", 1);
    log_open("broker", LOG_DEBUG, LOG_TEXT);
    log_event(LOG_INFO, "broker.started", "epoch=%d", 1);
    log_event(LOG_WARN, "broker.plaintext", "%s=%s range=%d", "front", "1", 7); /* whose name is filled in */
    json_t *object = read_object();
    expect(object, "front", "1");
    expect(object, "range", "7");
    json_decref(object);
    setenv("SLUICE_LOG_FORMAT", "xml", 1); /* is none */
    log_open("broker", LOG_DEBUG, LOG_TEXT);
    log_event(LOG_WARN, "broker.plaintext", "bind=%s", "x");
    assert_non_null(strstr(read_line(), " broker warn broker.plaintext bind=x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_event_is_a_line_of_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(as_json_it_is_an_object_of_strings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_others_say_stays_within_its_value, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_value_without_quotes_may_hold_blanks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_too_long_is_cut_and_the_object_is_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_environment_overrides_the_command_line, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
