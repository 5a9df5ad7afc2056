/* A tokenizer read from a tokenizer.json: what it makes of text, and which files are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "tests/workers/tokenizer/tokenizer_file.h"

/* ---- encoding ------------------------------------------------------------------------------ */

static struct tokenizer *make(const struct file_parts *parts)
{
    struct tokenizer *tokenizer = NULL;
    struct fail fail = {0};
    AUTO_FREE char *json = file_write(parts);
    if (tokenizer_parse(slice_from_str(json), &tokenizer, &fail) < 0)
        fail_msg("%s", fail.text);
    return tokenizer;
}

/* The ids of a text as words: "a", "bc", with the name of an added one in brackets. */
static void assert_encodes(struct tokenizer *tokenizer, struct slice text, bool specials, const char *expected)
{
    struct tokens ids = {0};
    struct fail fail = {0};
    AUTO_BUFFER words = {0}, whole = {0};
    assert_int_equal(tokenizer_encode(tokenizer, text, specials, &ids, &fail), 0);
    for (size_t i = 0; i < ids.count; i++) {
        const struct tokens one = {.ids = &ids.ids[i], .count = 1};
        buffer_append_str(&words, i ? "|" : "");
        assert_true(tokenizer_decode(tokenizer, &one, &words));
    }
    assert_true(tokenizer_decode(tokenizer, &ids, &whole));
    assert_true(slice_equal(buffer_peek(&whole), text)); /* there and back again */
    AUTO_FREE char *found = buffer_take_str(&words);
    assert_string_equal(found, expected);
    tokens_finish(&ids);
}

static void expect(const struct file_parts *parts, const char *text, const char *expected)
{
    struct tokenizer *tokenizer = make(parts);
    assert_encodes(tokenizer, slice_from_str(text), true, expected);
    tokenizer_destroy(&tokenizer);
}

static void the_merge_of_the_lowest_rank_comes_first_and_of_equals_the_leftmost(void **state)
{
    (void)state;
    const char *const tokens[] = {"ab", "bc", "abc", "aa", "aaaa", NULL};
    const char *const bc_first[] = {"b c", "a b", "a bc", "a a", "aa aa", NULL};
    const struct file_parts parts = {.tokens = tokens, .merges = bc_first};
    expect(&parts, "abc", "abc");
    expect(&parts, "ababcab", "ab|abc|ab");
    expect(&parts, "aaa", "aa|a");
    expect(&parts, "aaaaaaa", "aaaa|aa|a");
    const char *const ab_first[] = {"a b", "b c", NULL};
    expect(&(struct file_parts){.tokens = tokens, .merges = ab_first}, "abc", "ab|c");
}

static void a_long_piece_is_merged_as_a_short_one(void **state)
{
    (void)state;
    const char *const tokens[] = {"aa", "aaaa", NULL}, *const merges[] = {"a a", "aa aa", NULL};
    struct tokenizer *tokenizer = make(&(struct file_parts){.tokens = tokens, .merges = merges});
    static char text[100001];
    memset(text, 'a', sizeof(text) - 1);
    struct tokens ids = {0};
    struct fail fail = {0};
    assert_int_equal(tokenizer_encode(tokenizer, slice_from_str(text), true, &ids, &fail), 0);
    assert_int_equal(ids.count, 25000);
    tokens_finish(&ids);
    tokenizer_destroy(&tokenizer);
}

static void a_piece_that_is_a_token_ignores_merges_where_the_file_says_so(void **state)
{
    (void)state;
    const char *const tokens[] = {"abc", "bc", NULL}, *const merges[] = {"b c", NULL};
    expect(&(struct file_parts){.tokens = tokens, .merges = merges}, "abc", "a|bc");
    expect(&(struct file_parts){.tokens = tokens, .merges = merges, .ignore_merges = true}, "abc", "abc");
}

static void text_is_split_as_the_pre_tokenizers_say(void **state)
{
    (void)state;
    const char *const tokens[] = {"aa", "11", NULL}, *const merges[] = {"a a", "1 1", NULL};
    struct file_parts parts = {.tokens = tokens, .merges = merges, .pre = PRE_GPT2};
    expect(&parts, "aa11 a", "aa|11| |a");
    parts.pre = PRE_DIGITS;
    expect(&parts, "aa11", "aa|1|1");
    parts.pre = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"String\":"
                "\"a\"},\"behavior\":\"Isolated\",\"invert\":false}," PRE_NONE "]}";
    expect(&parts, "aa11", "a|a|11");
    parts.pre = PRE_SPLIT("\\\\s+(?!\\\\S)|\\\\s+|\\\\S");
    expect(&parts, "aa  11", "a|a| | |1|1");
}

static void matches_and_what_is_between_them_are_merged_by_themselves(void **state)
{
    (void)state;
    const char *const bare[] = {"xx", NULL}, *const merges[] = {"x x", NULL};
    struct file_parts parts = {.tokens = bare, .merges = merges, .pre = PRE_SPLIT("x\\\\s")};
    expect(&parts, "xxx x", "xx|x| |x");
    expect(&parts, "xx\n", "x|x|\n");
    parts.pre = PRE_SPLIT("x\\\\S");
    expect(&parts, "xxxx", "xx|xx");
}

static void added_tokens_are_found_first_and_the_longest_wins(void **state)
{
    (void)state;
    const char *const bare[] = {NULL};
    struct tokenizer *tokenizer = make(&(struct file_parts){
        .tokens = bare,
        .merges = bare,
        .added = ADDED("300", "<e>", "true") "," ADDED("301", "<e>>", "true") "," ADDED("302", "<t>", "false")});
    const struct slice text = slice_from_str("a<e>b<e>><t><");
    assert_encodes(tokenizer, text, true, "a|<e>|b|<e>>|<t>|<");
    /* as text, but for those that are not special */
    assert_encodes(tokenizer, text, false, "a|<|e|>|b|<|e|>|>|<t>|<");
    tokenizer_destroy(&tokenizer);
}

static void every_byte_of_every_character_comes_back(void **state)
{
    (void)state;
    const char *const bare[] = {NULL};
    struct tokenizer *tokenizer = make(&(struct file_parts){.tokens = bare, .merges = bare, .pre = PRE_GPT2});
    const char *const texts[] = {"", "\x01 \x7f", "caf\u00e9", "\u4e2d", "\U0001f600", "\u00ad\u0142"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct tokens ids = {0};
        struct fail fail = {0};
        AUTO_BUFFER back = {0};
        assert_int_equal(tokenizer_encode(tokenizer, slice_from_str(texts[i]), true, &ids, &fail), 0);
        assert_int_equal(ids.count, strlen(texts[i]));
        assert_true(tokenizer_decode(tokenizer, &ids, &back));
        assert_true(slice_is(buffer_peek(&back), texts[i]));
        tokens_finish(&ids);
    }
    tokenizer_destroy(&tokenizer);
}

/* ---- what is left to the engine ---------------------------------------------------------------- */

static void assert_not_done(struct tokenizer *tokenizer, struct slice text, const char *words)
{
    struct fail fail = {0};
    struct tokens ids = {0};
    assert_true(tokens_append(&ids, &(uint32_t){7}, 1));
    assert_int_equal(tokenizer_encode(tokenizer, text, false, &ids, &fail), -ENOTSUP);
    assert_int_equal(ids.count, 1); /* as it was */
    if (!strstr(fail.text, words))
        fail_msg("'%s' does not say '%s'", fail.text, words);
    tokens_finish(&ids);
}

static void texts_that_cannot_be_done_exactly_are_left_to_the_engine(void **state)
{
    (void)state;
    const char *const bare[] = {NULL};
    struct tokenizer *tokenizer = make(
        &(struct file_parts){.tokens = bare, .merges = bare, .normalizer = "{\"type\":\"NFC\"}"});
    assert_not_done(tokenizer, slice_from_str("e\u0301"), "normalized");
    assert_not_done(tokenizer, slice_from_str("\u212b"), "normalized");
    assert_not_done(tokenizer, slice_from_str("\xff"), "not UTF-8");
    AUTO_FREE char *big = calloc(1, TOKENIZER_TEXT_MAX + 2);
    memset(big, 'x', TOKENIZER_TEXT_MAX + 1);
    assert_not_done(tokenizer, slice_from_str(big), "more than");
    struct tokens ids = {0};
    struct fail fail = {0};
    assert_int_equal(tokenizer_encode(tokenizer, slice_from_str("caf\u00e9 \u4e2d\U0001f600"), false, &ids, &fail), 0);
    tokens_finish(&ids);
    tokenizer_destroy(&tokenizer);
}

static void an_expression_that_takes_too_long_is_given_up(void **state)
{
    (void)state;
    const char *const bare[] = {NULL};
    struct tokenizer *tokenizer = make(
        &(struct file_parts){.tokens = bare, .merges = bare, .pre = PRE_SPLIT("(a+)+b|(a|aa)+c")});
    assert_not_done(tokenizer, slice_from_str("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaad"),
                    "beyond limits");
    tokenizer_destroy(&tokenizer);
}

/* ---- files that are refused -------------------------------------------------------------------- */

static void assert_refused(const char *json, const char *words)
{
    struct tokenizer *tokenizer = NULL;
    struct fail fail = {0};
    assert_int_equal(tokenizer_parse(slice_from_str(json), &tokenizer, &fail), -EINVAL);
    assert_null(tokenizer);
    if (!strstr(fail.text, words))
        fail_msg("'%s' does not say '%s'", fail.text, words);
}

static void what_is_not_known_here_is_refused_by_name(void **state)
{
    (void)state;
    const char *const bare[] = {NULL}, *const ab[] = {"ab", NULL}, *const no_token[] = {"a z", NULL},
                      *const one[] = {"ab", NULL};
    const struct {
        struct file_parts parts;
        const char *words;
    } cases[] = {
        {{.model = "\"type\":\"Unigram\","}, "Unigram, not BPE"},
        {{.model = "\"dropout\":0.1,"}, "dropout"},
        {{.model = "\"byte_fallback\":true,"}, "byte_fallback"},
        {{.model = "\"end_of_word_suffix\":\"</w>\","}, "end_of_word_suffix"},
        {{.normalizer = "{\"type\":\"NFKC\"}"}, "NFKC, not NFC"},
        {{.normalizer = "{\"type\":\"Sequence\",\"normalizers\":[]}"}, "Sequence, not NFC"},
        {{.pre = "{\"type\":\"Metaspace\"}"}, "Metaspace is not known"},
        {{.pre = "null"}, "is not known"},
        {{.pre = "{\"type\":\"Digits\"}"}, "no ByteLevel"},
        {{.pre = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}"}, "space in front"},
        {{.pre = PRE_SPLIT("(")}, "not one: error"},
        {{.pre = PRE_SPLIT("[a&&b]")}, "&&"},
        {{.pre = "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Removed\"}"}, "not Isolated"},
        {{.tokens = ab, .merges = no_token}, "tokens that there are not"},
        {{.tokens = ab, .merges = one}, "not one of two tokens"},
        {{.added = ADDED("1048576", "<e>", "true")}, "no id below"},
        {{.added = ADDED("-1", "<e>", "true")}, "no id below"},
        {{.added = ADDED("300", "<e>", "true") "," ADDED("300", "<f>", "true")}, "is there twice"},
        {{.added = "{\"id\":300,\"content\":\"<e>\",\"lstrip\":true}"}, "has lstrip"},
        {{.added = ADDED("300", "", "true")}, "no content"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct file_parts parts = cases[i].parts;
        parts.tokens = parts.tokens ? parts.tokens : bare;
        parts.merges = parts.merges ? parts.merges : bare;
        AUTO_FREE char *json = file_write(&parts);
        assert_refused(json, cases[i].words);
    }
}

static void what_is_no_tokenizer_at_all_is_refused(void **state)
{
    (void)state;
    assert_refused("", "not JSON");
    assert_refused("[]", "no vocab");
    assert_refused("{\"model\":{\"vocab\":{\"a\":1,\"a\":2}}}", "not JSON");
    assert_refused("{\"model\":{\"vocab\":[],\"merges\":{}}}", "no vocab");
    assert_refused("[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "levels");
    assert_refused("{\"model\":{\"vocab\":{\"a\":\"1\"},\"merges\":[]},\"pre_tokenizer\":" PRE_NONE "}", "has no id");
    assert_refused("{\"model\":{\"vocab\":{\"a b\":1},\"merges\":[]},\"pre_tokenizer\":" PRE_NONE "}",
                   "not written byte by byte");
    assert_refused("{\"model\":{\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]},\"pre_tokenizer\":" PRE_NONE "}",
                   "is there twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_merge_of_the_lowest_rank_comes_first_and_of_equals_the_leftmost),
        cmocka_unit_test(a_long_piece_is_merged_as_a_short_one),
        cmocka_unit_test(a_piece_that_is_a_token_ignores_merges_where_the_file_says_so),
        cmocka_unit_test(text_is_split_as_the_pre_tokenizers_say),
        cmocka_unit_test(matches_and_what_is_between_them_are_merged_by_themselves),
        cmocka_unit_test(added_tokens_are_found_first_and_the_longest_wins),
        cmocka_unit_test(every_byte_of_every_character_comes_back),
        cmocka_unit_test(texts_that_cannot_be_done_exactly_are_left_to_the_engine),
        cmocka_unit_test(an_expression_that_takes_too_long_is_given_up),
        cmocka_unit_test(what_is_not_known_here_is_refused_by_name),
        cmocka_unit_test(what_is_no_tokenizer_at_all_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
