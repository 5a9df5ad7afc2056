/* Trees of JSON: what jansson reads they read, with the same values; what it refuses they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "common/json/json_doc.h"
#include "common/json/json_doc_look.h"

static void assert_same(const struct json_doc *doc, const struct json_doc_node *node, const json_t *json);

static void assert_same_object(const struct json_doc *doc, const struct json_doc_node *node, const json_t *json)
{
    const char *name;
    json_t *value;
    assert_int_equal(node->count, json_object_size(json));
    json_object_foreach((json_t *)json, name, value) assert_same(doc, json_doc_get(doc, node, name), value);
}

static void assert_same(const struct json_doc *doc, const struct json_doc_node *node, const json_t *json)
{
    double number;
    assert_non_null(node);
    switch (json_typeof(json)) {
    case JSON_OBJECT: assert_same_object(doc, node, json); break;
    case JSON_ARRAY:
        assert_int_equal(json_doc_count(node), json_array_size(json));
        for (uint32_t i = 0; i < node->count; i++)
            assert_same(doc, json_doc_at(doc, node, i), json_array_get(json, i));
        assert_null(json_doc_at(doc, node, node->count));
        break;
    case JSON_STRING: {
        AUTO_BUFFER text = {0};
        assert_true(json_doc_string(doc, node, &text));
        assert_int_equal(text.len, json_string_length(json));
        assert_memory_equal(text.data ? text.data : (uint8_t *)"", json_string_value(json), text.len);
        break;
    }
    case JSON_INTEGER:
    case JSON_REAL:
        assert_true(json_doc_number(node, &number));
        assert_true(number == json_number_value(json));
        break;
    default:
        assert_int_equal(node->kind, json_is_null(json)   ? JSON_DOC_NULL
                                     : json_is_true(json) ? JSON_DOC_TRUE
                                                          : JSON_DOC_FALSE);
    }
}

static void assert_agrees(const char *text)
{
    struct json_doc doc;
    struct fail fail = {0};
    json_t *json = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    int error = json_doc_parse(slice_from_str(text), &doc, &fail);
    if ((error == 0) != (json != NULL))
        fail_msg("%.80s: %s", text, error ? fail.text : "jansson refuses it");
    if (json)
        assert_same(&doc, json_doc_root(&doc), json);
    else
        assert_true(error == -EPROTO && fail.text[0]);
    json_doc_finish(&doc);
    json_decref(json);
}

static void what_jansson_reads_is_read_alike(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "null",
        "true",
        "false",
        "\"\"",
        "0",
        "-0",
        "-1",
        "12345678901234567",
        "0.1",
        "-0.3468863368034363",
        "1e-7",
        "1E+2",
        "-5.113287925720215e-05",
        "1.5e300",
        "123456789.123456789123456789",
        "0.000000000000000000000001",
        "9007199254740993.0",
        " [ 1 , 2 , { \"a\" : [ ] , \"b\" : null } ] ",
        "{\"a\":{\"b\":{\"c\":[1,[2,[3]]]}},\"d\":\"x\"}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u4e2d\\ud83d\\ude00 \\u0000 caf\xc3\xa9\"",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_agrees(texts[i]);
}

static void what_is_no_json_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",      " ",     "{",       "}",         "[",           "]",        "[1,]",
                                        "[,1]",  "[1 2]", "{\"a\"}", "{\"a\":}",  "{\"a\":1,}",  "{a:1}",    "{1:2}",
                                        "\"",    "\"\\",  "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"a\nb\"", "01",
                                        "-",     "1.",    ".5",      "1e",        "1e+",         "+1",       "nul",
                                        "truex", "1 1",   "NaN",     "Infinity",  "[1]]",        "1e999"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_agrees(texts[i]);
}

/* At any depth, among few or many, also where one is written with an escape. */
static void a_name_twice_in_one_object_is_refused(void **state)
{
    (void)state;
    static const char *const twice[] = {"{\"a\":1,\"a\":1}", "[[{\"x\":{\"b\":1,\"a\":2,\"b\":null}}]]",
                                        "{\"\":1,\"\":2}", "{\"tokens\":[1],\"tok\\u0065ns\":[2]}",
                                        "{\"\\u0061\":1,\"b\":{},\"\\u0061\":2}"};
    static const char *const once[] = {"{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1}}", "[{\"a\":1},{\"a\":1}]",
                                       "{\"a\":1,\"A\":1,\"a \":1}", "{\"\\u0061\":1,\"\\u0062\":1,\"c\":1}",
                                       "{\"a\":\"a\"}"};
    for (size_t i = 0; i < sizeof(twice) / sizeof(*twice); i++) {
        struct json_doc doc;
        struct fail fail = {0};
        assert_agrees(twice[i]);
        assert_int_equal(json_doc_parse(slice_from_str(twice[i]), &doc, &fail), -EPROTO);
        assert_non_null(strstr(fail.text, "gives a key twice"));
        json_doc_finish(&doc);
        assert_int_equal(json_doc_parse(slice_from_str(once[i]), &doc, &fail), 0);
        json_doc_finish(&doc);
    }
}

/* Of so many names one is the same as another, or none is. */
static void among_any_number_of_names_one_twice_is_found(void **state)
{
    (void)state;
    for (int count = 2; count < 400; count += 1 + count / 8)
        for (int same = 0; same <= count; same += count / 2) {
            AUTO_BUFFER text = {0};
            buffer_append_str(&text, "{");
            for (int i = 0; i < count; i++)
                buffer_printf(&text, "%s\"name %d\":%d", i ? "," : "", i == same ? 1 : i, i);
            buffer_append_str(&text, "}");
            AUTO_FREE char *json = buffer_take_str(&text);
            assert_agrees(json);
        }
}

/* A text that is dense with names is read in time that grows as it does. */
static void a_million_bytes_of_names_are_read_at_once(void **state)
{
    (void)state;
    AUTO_BUFFER text = {0};
    struct json_doc doc;
    struct fail fail = {0};
    buffer_append_str(&text, "{\"\":0");
    for (int i = 0; text.len < 1 << 20; i++)
        buffer_printf(&text, ",\"%x\":0", i);
    buffer_append_str(&text, "}");
    const clock_t start = clock();
    assert_int_equal(json_doc_parse(buffer_peek(&text), &doc, &fail), 0);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 2); /* 130,000 squared would be minutes */
    assert_true(json_doc_root(&doc)->count > 100000);
    json_doc_finish(&doc);
}

/* Every number of a trajectory's precision, to the last bit as strtod has it. */
static void numbers_are_what_strtod_makes_of_them(void **state)
{
    (void)state;
    static const char *const formats[] = {"%.17g", "%.9g", "%.6f", "%.16f", "%.3e"};
    srand(11);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        double value = -(double)rand() / RAND_MAX * pow(10, rand() % 12 - 8), got;
        struct json_doc doc;
        struct fail fail = {0};
        snprintf(text, sizeof(text), formats[i % 5], value);
        assert_int_equal(json_doc_parse(slice_from_str(text), &doc, &fail), 0);
        assert_true(json_doc_number(json_doc_root(&doc), &got));
        if (got != strtod(text, NULL))
            fail_msg("%s is read as %.17g", text, got);
        json_doc_finish(&doc);
    }
}

static void lone_surrogates_become_replacements(void **state)
{
    (void)state;
    AUTO_BUFFER text = {0};
    struct json_doc doc;
    struct fail fail = {0};
    assert_int_equal(json_doc_parse(slice_from_str("\"a\\ud83d\\u0041 \\ude00\\ud83d\""), &doc, &fail), 0);
    assert_true(json_doc_string(&doc, json_doc_root(&doc), &text));
    assert_true(slice_is(buffer_peek(&text), "a\xef\xbf\xbd"
                                             "A \xef\xbf\xbd\xef\xbf\xbd"));
    json_doc_finish(&doc);
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    char text[2 * JSON_DOC_LEVELS_MAX + 3];
    struct json_doc doc;
    struct fail fail = {0};
    for (int levels = JSON_DOC_LEVELS_MAX; levels <= JSON_DOC_LEVELS_MAX + 1; levels++) {
        memset(text, '[', (size_t)levels);
        memset(text + levels, ']', (size_t)levels);
        text[2 * levels] = '\0';
        assert_int_equal(json_doc_parse(slice_from_str(text), &doc, &fail), levels > JSON_DOC_LEVELS_MAX ? -EPROTO : 0);
        json_doc_finish(&doc);
    }
}

/* Cut anywhere, or with any byte replaced: refused or read, never beyond the text. */
static void no_damage_reads_beyond_the_text(void **state)
{
    (void)state;
    static const char whole[] = "{\"choices\":[{\"token_ids\":[1,2],\"logprobs\":{\"content\":"
                                "[{\"logprob\":-1.5e-3,\"x\":\"\\ud83d\\ude00\"},null]}}]}";
    for (size_t len = 0; len < sizeof(whole) - 1; len++)
        for (int how = 0; how < 6; how++) {
            AUTO_FREE char *exact = malloc(len + 1);
            struct json_doc doc;
            struct fail fail = {0};
            memcpy(exact, whole, len);
            exact[len] = "\0\"\\[}9"[how];
            if (json_doc_parse(slice_of(exact, len + (how > 0)), &doc, &fail) == 0) {
                AUTO_BUFFER text = {0};
                json_doc_get(&doc, json_doc_root(&doc), "choices");
                for (size_t i = 0; i < doc.count; i++)
                    json_doc_string(&doc, &doc.nodes[i], &text);
            }
            json_doc_finish(&doc);
        }
}

/* Where strings are passed many bytes at a time, what ends one is found wherever it stands, as is what is not ASCII. */
static void every_byte_of_a_long_string_counts(void **state)
{
    (void)state;
    enum { LEN = 100 };
    char text[LEN + 5];
    for (size_t len = 1; len <= LEN; len++)
        for (size_t at = 0; at < len; at++)
            for (unsigned byte = 0; byte < 256; byte += byte < ' ' ? 31 : 1) {
                struct json_doc doc;
                memset(text, 'x', sizeof(text));
                text[0] = '[', text[1] = '"', text[len + 2] = '"', text[len + 3] = ']';
                text[2 + at] = (char)byte;
                const struct slice whole = slice_of(text, len + 4);
                const bool is_read = json_doc_parse(whole, &doc, NULL) == 0;
                assert_true(is_read == (byte >= ' ' && byte != '"' && byte != '\\'));
                assert_true(!is_read || (doc.nodes[1].len == len && doc.nodes[1].is_ascii == (byte < 0x80)));
                assert_true(!is_read || slice_equal(json_doc_raw(&doc, &doc.nodes[0]), slice_of(text + 1, len + 2)));
                assert_true(utf8_is_valid(slice_of(text + 2, len)) == (byte > 0 && byte < 0x80));
                json_doc_finish(&doc);
            }
}

static void every_character_of_a_long_text_counts(void **state)
{
    (void)state;
    static const char *const good[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}, *const bad[] = {
                                                                                            "\xc3(", "\xe2\x82",
                                                                                            "\xed\xa0\x80", "\xc0\x80",
                                                                                            "\xf8\x88\x80\x80"};
    for (size_t before = 0; before < 70; before++)
        for (size_t i = 0; i < 8; i++) {
            AUTO_BUFFER text = {0};
            for (size_t k = 0; k < before; k++)
                buffer_append_str(&text, k % 40 == 39 ? "\xc3\xa9" : "x");
            buffer_append_str(&text, i < 3 ? good[i] : bad[i - 3]);
            buffer_append_str(&text, "0123456789 0123456789 0123456789 0123456789");
            assert_true(utf8_is_valid(buffer_peek(&text)) == (i < 3));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_jansson_reads_is_read_alike),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(a_name_twice_in_one_object_is_refused),
        cmocka_unit_test(among_any_number_of_names_one_twice_is_found),
        cmocka_unit_test(a_million_bytes_of_names_are_read_at_once),
        cmocka_unit_test(numbers_are_what_strtod_makes_of_them),
        cmocka_unit_test(lone_surrogates_become_replacements),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(every_byte_of_a_long_string_counts),
        cmocka_unit_test(every_character_of_a_long_text_counts),
        cmocka_unit_test(no_damage_reads_beyond_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
