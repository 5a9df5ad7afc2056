#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/schemas/task/task_asserts.h"
#include "tests/schemas/task/task_json_made.h"

/* ---- every row of the table --------------------------------------------------------------- */

/* `value` at a path such as "limits.run_s", or in the first element of a list, as one member. */
static void put_at(struct buffer *out, const char *path, struct slice value)
{
    const char *dot = strchr(path, '.');
    if (strncmp(path, "files[].", 8) == 0)
        buffer_printf(out, "\"files\":[{\"%s\":%.*s}]", path + 8, SLICE_ARG(value));
    else if (strncmp(path, "agent.script[].", 15) == 0)
        buffer_printf(out, "\"agent\":{\"script\":[{\"%s\":%.*s}]}", path + 15, SLICE_ARG(value));
    else if (strncmp(path, "agent.recorded[].", 17) == 0)
        buffer_printf(out, "\"agent\":{\"recorded\":[{\"%s\":%.*s}]}", path + 17, SLICE_ARG(value));
    else if (strncmp(path, "handlers[].", 11) == 0)
        buffer_printf(out, "\"handlers\":[{\"%s\":%.*s}]", path + 11, SLICE_ARG(value));
    else if (strncmp(path, "eval.judge.criteria[].", 22) == 0)
        buffer_printf(out, "\"eval\":{\"judge\":{\"criteria\":[{\"%s\":%.*s}]}}", path + 22, SLICE_ARG(value));
    else if (strncmp(path, "eval.artifacts[].", 17) == 0)
        buffer_printf(out, "\"eval\":{\"artifacts\":[{\"%s\":%.*s}]}", path + 17, SLICE_ARG(value));
    else if (strncmp(path, "eval.collect[].", 15) == 0)
        buffer_printf(out, "\"eval\":{\"collect\":[{\"%s\":%.*s}]}", path + 15, SLICE_ARG(value));
    else if (strncmp(path, "steps[].", 8) == 0) {
        buffer_append_str(out, "\"steps\":[{");
        put_at(out, path + 8, value);
        buffer_append_str(out, "}]");
    } else if (dot) {
        buffer_printf(out, "\"%.*s\":{", (int)(dot - path), path);
        put_at(out, dot + 1, value);
        buffer_append_str(out, "}");
    } else
        buffer_printf(out, "\"%s\":%.*s", path, SLICE_ARG(value));
}

/* Rows that a good task can be given beside its task and prompt. */
static bool stands_alone(const struct task_row *row)
{
    return strncmp(row->path, "messages", 8) != 0 && strcmp(row->path, "prompt") != 0 && strcmp(row->path, "task") != 0;
}

static void assert_row_refused(const struct task_row *row, struct slice value, enum refusal_reason reason)
{
    AUTO_BUFFER json = {0};
    char field[128];
    const char *list = strstr(row->path, "[]");
    snprintf(field, sizeof(field), "%.*s%s%s", list ? (int)(list - row->path) : 127, row->path, list ? "[0]" : "",
             list ? list + 2 : "");
    buffer_append_str(&json, "{\"task\":\"t\",\"prompt\":\"p\",");
    put_at(&json, row->path, value);
    buffer_append_str(&json, "}");
    assert_refused_slice(buffer_peek(&json), reason, field);
}

static void every_row_refuses_another_type(void **state)
{
    (void)state;
    size_t seen = 0;
    for (size_t i = 0; i < task_row_count; i++)
        if (stands_alone(&task_rows[i])) {
            assert_row_refused(&task_rows[i], slice_from_str("null"), REFUSAL_WRONG_TYPE);
            assert_row_refused(&task_rows[i], slice_from_str("true"), REFUSAL_WRONG_TYPE);
            seen++;
        }
    assert_true(seen > 35);
}

static void put_measure(struct buffer *out, const struct task_row *row, double n)
{
    bool is_number = row->type == TASK_UINT || row->type == TASK_INT || row->type == TASK_REAL;
    bool is_list = row->type == TASK_FILES || row->type == TASK_EVAL_FILES || row->type == TASK_SETUP ||
                   row->type == TASK_TOOLS || row->type == TASK_TRAIN || row->type == TASK_SCRIPT ||
                   row->type == TASK_RECORDED || row->type == TASK_GRANTS || row->type == TASK_INIT_GRANTS ||
                   row->type == TASK_BUILD_GRANTS || row->type == TASK_EVAL_GRANTS || row->type == TASK_STATUSES ||
                   row->type == TASK_HANDLERS || row->type == TASK_ANSWERS || row->type == TASK_FAIL_TO_PASS ||
                   row->type == TASK_PASS_TO_PASS || row->type == TASK_PROTECTED || row->type == TASK_HIDDEN ||
                   row->type == TASK_JUDGE_FILES || row->type == TASK_CRITERIA || row->type == TASK_CHOICES ||
                   row->type == TASK_SOLUTION_FILES || row->type == TASK_SOLUTION_COMMANDS || row->type == TASK_STEPS ||
                   row->type == TASK_FILE_LIST || row->type == TASK_COMMANDS || row->type == TASK_ARTIFACTS ||
                   row->type == TASK_EXCLUDE || row->type == TASK_COLLECT;
    if (row->type == TASK_VARIABLES || row->type == TASK_EXPECTED_TESTS || row->type == TASK_REWARDS ||
        row->type == TASK_OPTIONS) {
        buffer_append_str(out, "{");
        for (double k = 0; k < n; k++)
            buffer_printf(out, "%s\"A%.0f\":\"\"", k ? "," : "", k);
        buffer_append_str(out, "}");
        return;
    }
    buffer_append_str(out, is_number ? "" : is_list ? "[" : "\"");
    if (is_number)
        buffer_printf(out, "%.15g", n);
    for (double k = 0; k < n && !is_number; k++)
        buffer_append_str(out, !is_list ? "a" : k ? ",7" : "7");
    buffer_append_str(out, is_number ? "" : is_list ? "]" : "\"");
}

static void every_row_refuses_what_is_beyond_its_bounds(void **state)
{
    (void)state;
    size_t seen = 0;
    for (size_t i = 0; i < task_row_count; i++) {
        const struct task_row *row = &task_rows[i];
        AUTO_BUFFER large = {0}, small = {0};
        if (!stands_alone(row) || row->words || row->max == 0 || row->type == TASK_TESTS)
            continue;
        put_measure(&large, row, row->max + 1);
        if (large.len < TASK_BYTES_MAX / 2) {
            assert_row_refused(row, buffer_peek(&large), REFUSAL_TOO_LARGE);
            seen++;
        }
        if (row->type != TASK_UINT && row->min <= 0 && row->type != TASK_INT && row->type != TASK_REAL)
            continue;
        put_measure(&small, row, row->min - 1);
        assert_row_refused(row, buffer_peek(&small), REFUSAL_TOO_SMALL);
        seen++;
    }
    assert_true(seen > 40);
}

static void every_number_has_a_default_within_its_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < task_row_count; i++) {
        const struct task_row *row = &task_rows[i];
        if (row->type != TASK_UINT && row->type != TASK_INT && row->type != TASK_REAL)
            continue;
        assert_non_null(row->default_value);
        double value = strtod(row->default_value, NULL);
        assert_true(value >= row->min && value <= row->max);
    }
}

static void every_word_has_a_default_that_is_among_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < task_row_count; i++) {
        const struct task_row *row = &task_rows[i];
        if (row->type != TASK_WORD || !row->default_value)
            continue;
        const char *found = strstr(row->words, row->default_value);
        size_t len = strlen(row->default_value);
        assert_non_null(found);
        assert_true((found == row->words || found[-1] == '|') && (found[len] == '|' || found[len] == '\0'));
    }
}

/* ---- JSON at fault -------------------------------------------------------------------------- */

static void json_that_is_not_a_good_object_is_refused(void **state)
{
    (void)state;
    assert_refused("", REFUSAL_MALFORMED, "");
    assert_refused("{", REFUSAL_MALFORMED, "");
    assert_refused("7", REFUSAL_MALFORMED, "");
    assert_refused("[]", REFUSAL_WRONG_TYPE, "");
    assert_refused("{\"task\":\"t\",\"prompt\":\"p\"} x", REFUSAL_MALFORMED, "");
    assert_refused("{\"task\":\"t\",\"task\":\"t\"}", REFUSAL_DUPLICATE_FIELD, "");
    assert_refused("{\"task\":\"t\",\"metadata\":{\"a\":1,\"a\":2}}", REFUSAL_DUPLICATE_FIELD, "");
    assert_refused("{\"task\":\"\xff\"}", REFUSAL_NOT_UTF8, "");
    assert_refused("{\"task\":\"t\\u0000\"}", REFUSAL_NOT_UTF8, "");
    assert_refused("{\"a\\u0000\":1}", REFUSAL_NOT_UTF8, "");
    assert_refused("{\"samples\":99999999999999999999}", REFUSAL_TOO_LARGE, "");
    assert_refused("{\"sampling\":{\"top_p\":1e999}}", REFUSAL_TOO_LARGE, "");
    assert_refused("{\"sampling\":{\"top_p\":NaN}}", REFUSAL_MALFORMED, "");
}

static void a_nested_bomb_is_refused(void **state)
{
    (void)state;
    AUTO_BUFFER json = {0};
    buffer_append_str(&json, "{\"task\":\"t\",\"prompt\":\"p\",\"metadata\":");
    for (size_t i = 0; i < 500000; i++)
        buffer_append_str(&json, "[");
    assert_refused_slice(buffer_peek(&json), REFUSAL_TOO_LARGE, "");
}

static void a_task_over_a_mebibyte_is_refused_unread(void **state)
{
    (void)state;
    AUTO_FREE uint8_t *bytes = malloc(TASK_BYTES_MAX + 1);
    assert_non_null(bytes);
    memset(bytes, '[', TASK_BYTES_MAX + 1);
    assert_refused_slice(slice_of(bytes, TASK_BYTES_MAX + 1), REFUSAL_TOO_LARGE, "");
}

static const char full[] = "{\"task\":\"t\",\"prompt\":\"p\",\"files\":[{\"path\":\"a\",\"base64\":\"AP8Q\"}],"
                           "\"setup\":[\"ls\"],\"eval\":{\"kind\":\"math\",\"answer\":\"2\"},"
                           "\"limits\":{\"run_s\":9},\"metadata\":{\"x\":[1,2.5,\"\\u00e9\"]}}";

static void every_truncation_is_refused(void **state)
{
    (void)state;
    AUTO_TASK task = parse(full);
    assert_non_null(task);
    for (size_t len = 0; len < sizeof(full) - 1; len++) {
        AUTO_FREE char *cut = malloc(len + 1);
        assert_non_null(cut);
        memcpy(cut, full, len);
        assert_refused_slice(slice_of(cut, len), REFUSAL_MALFORMED, "");
    }
}

static void any_one_byte_damaged_is_refused_or_read(void **state)
{
    (void)state;
    char bytes[sizeof(full)];
    size_t refused = 0;
    memcpy(bytes, full, sizeof(full));
    for (size_t at = 0; at < sizeof(full) - 1; at++)
        for (unsigned flip = 1; flip < 256; flip++) {
            struct refusal no = {0};
            bytes[at] = (char)(full[at] ^ (int)flip);
            AUTO_TASK task = task_parse(slice_of(bytes, sizeof(full) - 1), &no);
            assert_true(!task == (no.reason != REFUSAL_NONE));
            refused += !task;
            bytes[at] = full[at];
        }
    assert_true(refused > 10000);
}

/* ---- read without jansson ------------------------------------------------------------------- */

/* True when it was read; then jansson reads the same. */
static bool is_read_alike(struct slice text)
{
    json_t *ours = json_made(text);
    json_t *theirs = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    bool is_read = ours != NULL, is_same = !is_read || json_equal(ours, theirs);
    json_decref(ours);
    json_decref(theirs);
    assert_true(is_same);
    return is_read;
}

static void what_is_common_is_read_without_jansson(void **state)
{
    (void)state;
    static const char *const common[] = {
        full,
        "{}",
        " [ ] ",
        "\t{ \"a\" : [ 1 , -0 , 0, 2.5e-3, 123456789012345678, -1.5e16 ] ,\n\"\":{} }\r\n",
        "[true,false,null,\"\",\"0123456\",\"01234567\",\"012345678\","
        "\"\xc3\xa9\xf0\x9f\x98\x80\"]",
        "[\"\\n\\t\\\"\\\\\\/\\b\\f\\r\",\"01234567\\n01234567\\u00e9\\ud83d\\ude00x\",\"\\\\u\"]",
        "{\"t\\u0061sk\":1,\"\\n\\uD83D\\uDE00\":2}",
        "[9223372036854775807,-9223372036854775808,1234567890123456789]",
    };
    for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
        assert_true(is_read_alike(slice_from_str(common[i])));
    assert_false(is_read_alike(slice_from_str("[1e300]"))); /* as if it were a whole number that does not fit */
}

static int read_up_to(struct slice json, size_t values_max)
{
    struct json_doc doc;
    const int code = task_json_read(json, values_max, &doc);
    json_doc_finish(&doc);
    return code;
}

static void what_jansson_refuses_is_not_read_without_it(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "7",
        "\"a\"",
        "{",
        "[1",
        "[1,]",
        "[,1]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "[1 2]",
        "[] x",
        "[\"a",
        "[\"\\",
        "[\"\\u",
        "[\"\\x\"]",
        "[\"\\ud800\"]",
        "[\"\\udc00\"]",
        "[\"\\ud800\\u0041\"]",
        "[\"\\ud800\\n56789\"]",
        "[\"\\ud800\\ud800\"]",
        "{\"\\u0000\":1}",
        "{\"a\":1,\"\\u0061\":1}",
        "[9223372036854775808]",
        "[-9223372036854775809]",
        "[\"\\u0000\"]",
        "[\"\x1f\"]",
        "[\"0123456\x1f\"]",
        "[\"\xff\"]",
        "[\"\xed\xa0\x80\"]",
        "{\"\xff\":1}",
        "{\"a\":1,\"a\":1}",
        "[01]",
        "[-]",
        "[+1]",
        "[1.]",
        "[.5]",
        "[1e]",
        "[1-2]",
        "[1e999]",
        "[99999999999999999999]",
        "[NaN]",
        "[tru]",
        "[truefalse]",
        "[nul",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(read_up_to(slice_from_str(wrong[i]), TASK_VALUES_MAX), -EPROTO);
    assert_int_equal(read_up_to(slice_of("[\"a\0b\"]", 7), TASK_VALUES_MAX), -EPROTO);
}

static void values_and_names_are_counted_and_bounded(void **state)
{
    (void)state;
    struct slice eight = slice_from_str("{\"a\":[1,\"{,:[\",[]],\"b\":{}}"); /* marks in a text are none */
    assert_int_equal(read_up_to(eight, 8), 0);
    assert_int_equal(read_up_to(eight, 7), -E2BIG);
}

static void names_and_texts_mean_what_their_escapes_say(void **state)
{
    (void)state;
    AUTO_TASK task = parse(
        "{\"t\\u0061sk\":\"t\",\"prompt\":\"a\\n\\u00e9\\ud83d\\ude00\\\\\",\"env\":{\"\\u0041\":\"\\/\"}}");
    assert_non_null(task);
    assert_string_equal(task->messages[0].content, "a\n\xc3\xa9\xf0\x9f\x98\x80\\");
    assert_string_equal(task->env.each[0], "A=/");
}

static void numbers_of_an_uncommon_form_are_read_as_they_are(void **state)
{
    (void)state;
    AUTO_TASK task = parse(
        "{\"task\":\"t\",\"prompt\":\"p\",\"metadata\":{\"x\":1e300},\"sampling\":{\"top_p\":0.50000000000000000000000"
        "00000000000000000000000000000000000000000000000001},\"limits\":{\"run_s\":9}}");
    assert_non_null(task);
    assert_true(task->sampling.top_p == 0.5 && task->limits.run_s == 9);
}

static void more_levels_than_a_workers_stack_has_room_for_are_refused(void **state)
{
    (void)state;
    AUTO_BUFFER json = {0};
    for (int levels = TASK_LEVELS_MAX - 2; levels <= TASK_LEVELS_MAX; levels++) { /* two more around it */
        buffer_clear(&json);
        buffer_append_str(&json, "{\"task\":\"t\",\"prompt\":\"p\",\"metadata\":{\"a\":");
        for (int i = 0; i < levels; i++)
            buffer_append_str(&json, "[");
        buffer_append_str(&json, "1");
        for (int i = 0; i < levels; i++)
            buffer_append_str(&json, "]");
        buffer_append_str(&json, "}}");
        if (levels > TASK_LEVELS_MAX - 2) {
            assert_refused_slice(buffer_peek(&json), REFUSAL_TOO_LARGE, "");
            continue;
        }
        struct refusal no = {0};
        AUTO_TASK task = task_parse(buffer_peek(&json), &no);
        assert_non_null(task);
    }
}

static void a_damaged_byte_is_read_as_jansson_does_or_left_to_it(void **state)
{
    (void)state;
    char bytes[sizeof(full)];
    size_t count = 0;
    memcpy(bytes, full, sizeof(full));
    for (size_t at = 0; at < sizeof(full) - 1; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            bytes[at] = (char)byte;
            count += is_read_alike(slice_of(bytes, sizeof(full) - 1));
        }
        bytes[at] = full[at];
    }
    assert_true(count > 1000);
}

static void base64_is_read_only_as_the_standard_writes_it(void **state)
{
    (void)state;
    static const struct {
        const char *text, *content;
    } rows[] = {
        {"", ""},           {"Zg==", "f"},        {"Zm8=", "fo"},
        {"Zm9v", "foo"},    {"Zm9vYg==", "foob"}, {"+/+/", "\xfb\xff\xbf"},
        {"Zg=", NULL},      {"Zg", NULL},         {"Z===", NULL},
        {"====", NULL},     {"Zh==", NULL},       {"Zm9=", NULL},
        {"Zg==Zg==", NULL}, {"Zm 9", NULL},       {"Zm-_", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUFFER member = {0};
        buffer_printf(&member, "\"files\":[{\"path\":\"a\",\"base64\":\"%s\"}]", rows[i].text);
        assert_true(buffer_append(&member, "", 1));
        if (!rows[i].content) {
            assert_member_refused((const char *)member.data, REFUSAL_BAD_TASK, "files[0].base64");
            continue;
        }
        AUTO_TASK task = parse_member((const char *)member.data);
        assert_true(slice_is(slice_of(task->files[0].content, task->files[0].content_len), rows[i].content));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_refuses_another_type),
        cmocka_unit_test(every_row_refuses_what_is_beyond_its_bounds),
        cmocka_unit_test(every_number_has_a_default_within_its_bounds),
        cmocka_unit_test(every_word_has_a_default_that_is_among_them),
        cmocka_unit_test(json_that_is_not_a_good_object_is_refused),
        cmocka_unit_test(a_nested_bomb_is_refused),
        cmocka_unit_test(a_task_over_a_mebibyte_is_refused_unread),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(any_one_byte_damaged_is_refused_or_read),
        cmocka_unit_test(what_is_common_is_read_without_jansson),
        cmocka_unit_test(what_jansson_refuses_is_not_read_without_it),
        cmocka_unit_test(values_and_names_are_counted_and_bounded),
        cmocka_unit_test(names_and_texts_mean_what_their_escapes_say),
        cmocka_unit_test(numbers_of_an_uncommon_form_are_read_as_they_are),
        cmocka_unit_test(more_levels_than_a_workers_stack_has_room_for_are_refused),
        cmocka_unit_test(a_damaged_byte_is_read_as_jansson_does_or_left_to_it),
        cmocka_unit_test(base64_is_read_only_as_the_standard_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
