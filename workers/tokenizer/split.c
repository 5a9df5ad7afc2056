#define PCRE2_CODE_UNIT_WIDTH 8
#include "workers/tokenizer/split.h"

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>

#include "common/base/cleanup.h"

/* Steps and memory of one match; no pre-tokenizer needs more than a few a character. */
enum { MATCH_STEPS_MAX = 4 << 20, MATCH_DEPTH_MAX = 1000, MATCH_HEAP_KIB = 16 << 10 };

struct split {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

/* What ByteLevel applies by itself. */
static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* ---- one expression ---------------------------------------------------------------------- */

/*
 * The expressions are written for Oniguruma, whose \s is Unicode's White_Space; PCRE2's has U+180E
 * besides. Its && within brackets PCRE2 would take for two characters.
 */
static int translate(const char *pattern, struct buffer *ret, struct fail *fail)
{
    for (const char *at = pattern; *at; at++) {
        if (at[0] == '&' && at[1] == '&')
            return fail_set(fail, -EINVAL, "an expression with && is not known here");
        if (at[0] != '\\' || !at[1])
            buffer_append(ret, at, 1);
        else if (at[1] == 's')
            buffer_append_str(ret, "\\p{wspace}");
        else if (at[1] == 'S')
            buffer_append_str(ret, "\\P{wspace}");
        else
            buffer_append(ret, at, 2);
        at += at[0] == '\\' && at[1];
    }
    return ret->failed ? fail_memory(fail) : 0;
}

static void split_destroy(struct split *split)
{
    if (!split)
        return;
    pcre2_match_context_free(split->limits);
    pcre2_match_data_free(split->match);
    pcre2_code_free(split->code);
    free(split);
}

static int compile(struct split *split, struct slice pattern, uint32_t options, struct fail *fail)
{
    int code;
    size_t at;
    split->code = pcre2_compile(pattern.data, pattern.len, options | PCRE2_UTF, &code, &at, NULL);
    if (!split->code)
        return fail_set(fail, -EINVAL, "an expression is not one: error %d at %zu", code, at);
    pcre2_jit_compile(split->code, PCRE2_JIT_COMPLETE); /* without it, slower */
    split->match = pcre2_match_data_create_from_pattern(split->code, NULL);
    split->limits = pcre2_match_context_create(NULL);
    if (!split->match || !split->limits)
        return fail_memory(fail);
    pcre2_set_match_limit(split->limits, MATCH_STEPS_MAX);
    pcre2_set_depth_limit(split->limits, MATCH_DEPTH_MAX);
    pcre2_set_heap_limit(split->limits, MATCH_HEAP_KIB);
    return 0;
}

static int splits_add(struct splits *splits, const char *pattern, bool is_literal, struct fail *fail)
{
    AUTO_BUFFER translated = {0};
    if (strlen(pattern) > TOKENIZER_PATTERN_MAX || strlen(pattern) == 0)
        return fail_set(fail, -EINVAL, "an expression is empty or longer than %d bytes", TOKENIZER_PATTERN_MAX);
    if (splits->count == TOKENIZER_SPLITS_MAX)
        return fail_set(fail, -EINVAL, "more than %d pre-tokenizers", TOKENIZER_SPLITS_MAX);
    int error = is_literal ? 0 : translate(pattern, &translated, fail);
    if (error < 0)
        return error;
    struct split *split = calloc(1, sizeof(*split));
    if (!split)
        return fail_memory(fail);
    splits->list[splits->count++] = split;
    return compile(split, is_literal ? slice_from_str(pattern) : buffer_peek(&translated),
                   is_literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, fail);
}

/* ---- reading the file's --------------------------------------------------------------------- */

static int read_split(struct splits *splits, const json_t *json, struct fail *fail)
{
    const json_t *pattern = json_object_get(json, "pattern");
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    const char *literal = json_string_value(json_object_get(pattern, "String"));
    const char *behavior = json_string_value(json_object_get(json, "behavior"));
    if (!behavior || strcmp(behavior, "Isolated") != 0 || json_is_true(json_object_get(json, "invert")))
        return fail_set(fail, -EINVAL, "a Split that is not Isolated, or inverted");
    if (!regex && !literal)
        return fail_set(fail, -EINVAL, "a Split without a pattern");
    return splits_add(splits, regex ? regex : literal, !regex, fail);
}

static int read_digits(struct splits *splits, const json_t *json, struct fail *fail)
{
    return splits_add(splits, json_is_true(json_object_get(json, "individual_digits")) ? "\\p{N}" : "\\p{N}+", false,
                      fail);
}

static int read_byte_level(struct splits *splits, const json_t *json, struct fail *fail)
{
    const json_t *use_regex = json_object_get(json, "use_regex");
    if (json_is_true(json_object_get(json, "add_prefix_space")))
        return fail_set(fail, -EINVAL, "a ByteLevel that puts a space in front");
    return json_is_false(use_regex) ? 0 : splits_add(splits, gpt2, false, fail);
}

static int read_sequence(struct splits *splits, const json_t *json, struct fail *fail);

static const struct {
    const char *type;
    int (*read)(struct splits *splits, const json_t *json, struct fail *fail);
} kinds[] = {
    {"Split", read_split}, {"Digits", read_digits}, {"ByteLevel", read_byte_level}, {"Sequence", read_sequence}};

static int read_one(struct splits *splits, const json_t *json, struct fail *fail)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    for (size_t i = 0; type && i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(type, kinds[i].type) == 0)
            return kinds[i].read(splits, json, fail);
    return fail_set(fail, -EINVAL, "the pre-tokenizer %.40s is not known here", type ? type : "?");
}

/* Not nested: its elements are not sequences. */
static int read_sequence(struct splits *splits, const json_t *json, struct fail *fail)
{
    const json_t *list = json_object_get(json, "pretokenizers");
    if (!json_is_array(list) || json_array_size(list) > TOKENIZER_SPLITS_MAX)
        return fail_set(fail, -EINVAL, "a Sequence without pretokenizers, or of more than %d", TOKENIZER_SPLITS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *element = json_array_get(list, i);
        const char *type = json_string_value(json_object_get(element, "type"));
        if (type && strcmp(type, "Sequence") == 0)
            return fail_set(fail, -EINVAL, "a Sequence within a Sequence");
        int error = read_one(splits, element, fail);
        if (error < 0)
            return error;
    }
    return 0;
}

static bool has_byte_level(const json_t *json)
{
    const json_t *list = json_object_get(json, "pretokenizers");
    const char *type = json_string_value(json_object_get(json, "type"));
    for (size_t i = 0; i < json_array_size(list); i++)
        if (has_byte_level(json_array_get(list, i)))
            return true;
    return type && strcmp(type, "ByteLevel") == 0;
}

int splits_read(struct splits *splits, const json_t *pre_tokenizer, struct fail *fail)
{
    int error = read_one(splits, pre_tokenizer, fail);
    if (error == 0 && !has_byte_level(pre_tokenizer))
        error = fail_set(fail, -EINVAL, "there is no ByteLevel among the pre-tokenizers");
    return error;
}

void splits_finish(struct splits *splits)
{
    while (splits->count > 0)
        split_destroy(splits->list[--splits->count]);
}

/* ---- splitting ----------------------------------------------------------------------------- */

struct cutting {
    const struct splits *splits;
    int (*take)(void *arg, struct slice piece);
    void *arg;
};

static int cut_from(const struct cutting *cutting, size_t level, struct slice text);

/* Finds the next match that is not empty from `at` on. 0, -ENOENT or -ENOTSUP. */
static int find_match(const struct split *split, struct slice text, size_t at, size_t *start, size_t *end)
{
    int found = pcre2_match(split->code, text.data, text.len, at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, split->match,
                            split->limits);
    const size_t *range = pcre2_get_ovector_pointer(split->match);
    if (found == PCRE2_ERROR_NOMATCH)
        return -ENOENT;
    if (found < 0 || range[0] < at || range[1] <= range[0]) /* \K can turn them round */
        return -ENOTSUP;
    *start = range[0];
    *end = range[1];
    return 0;
}

static int cut_level(const struct cutting *cutting, size_t level, struct slice text)
{
    size_t at = 0, start, end;
    int code = 0;
    while (code == 0 && at < text.len) {
        code = find_match(cutting->splits->list[level], text, at, &start, &end);
        if (code == -ENOENT)
            return cut_from(cutting, level + 1, slice_of(text.data + at, text.len - at));
        if (code == 0 && start > at)
            code = cut_from(cutting, level + 1, slice_of(text.data + at, start - at));
        if (code == 0)
            code = cut_from(cutting, level + 1, slice_of(text.data + start, end - start));
        at = end;
    }
    return code;
}

static int cut_from(const struct cutting *cutting, size_t level, struct slice text)
{
    return level == cutting->splits->count ? cutting->take(cutting->arg, text) : cut_level(cutting, level, text);
}

int splits_run(const struct splits *splits, struct slice text, int (*take)(void *arg, struct slice piece), void *arg)
{
    const struct cutting cutting = {splits, take, arg};
    return text.len > 0 ? cut_from(&cutting, 0, text) : 0;
}
