#include "client/gateway/gym/row_judged.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "client/gateway/bodies/program_tests.h"
#include "client/gateway/json_text.h"
#include "common/base/cleanup.h"

static const struct {
    const char *mode, *extract;
} modes[] = {{"strict_single_letter_boxed", "box"}, {"lenient_boxed", "box"}, {"lenient_answer_colon", "answer"}};

static bool no(struct fail *fail, const char *words)
{
    fail_set(fail, -EINVAL, "%s", words);
    return false;
}

/* The accepted answer as a text, without blanks around it; numbers are written out. */
static json_t *gold_of(const json_t *value)
{
    AUTO_BUFFER text = {0};
    if (json_is_string(value))
        buffer_append(&text, json_string_value(value), json_string_length(value));
    else if (json_is_number(value))
        json_text_append_value(&text, value);
    size_t from = 0, to = text.len;
    while (from < to && isspace(text.data[from]))
        from++;
    while (to > from && isspace(text.data[to - 1]))
        to--;
    return to > from ? json_stringn((const char *)text.data + from, to - from) : NULL;
}

static const char *regex_of(const json_t *row)
{
    return json_string_value(json_object_get(json_object_get(row, "template_metadata"), "output_regex"));
}

/* Where the letter stands; NULL with a sentence. */
static const char *extract_of(const json_t *row, struct fail *fail)
{
    const char *regex = regex_of(row), *mode = json_string_value(json_object_get(row, "grading_mode"));
    if (regex && strstr(regex, "boxed"))
        return "box";
    if (regex && strcasestr(regex, "answer"))
        return "answer";
    if (regex) {
        fail_set(fail, -EINVAL, "template_metadata.output_regex: the answer stands where no extractor looks: %.60s",
                 regex);
        return NULL;
    }
    for (size_t i = 0; mode && i < sizeof(modes) / sizeof(*modes); i++)
        if (strcmp(modes[i].mode, mode) == 0)
            return modes[i].extract;
    if (mode)
        fail_set(fail, -EINVAL, "grading_mode %.60s is not known", mode);
    return mode ? NULL : "auto";
}

static json_t *merged(const json_t *options)
{
    json_t *ret = json_object();
    for (size_t i = 0; i < json_array_size(options); i++)
        if (json_is_object(json_array_get(options, i)))
            json_object_update(ret, json_array_get(options, i));
    return ret;
}

/* Whether an option's text counts as its letter: all are texts, and the row does not ask for the letter alone. */
static bool has_texts(const json_t *row, json_t *options)
{
    const char *letter, *mode = json_string_value(json_object_get(row, "grading_mode"));
    json_t *text;
    if (regex_of(row) || (mode && strcmp(mode, "strict_single_letter_boxed") == 0))
        return false;
    json_object_foreach(options, letter, text)
    {
        const char *words = json_string_value(text);
        if (letter[0] < 'A' || letter[0] > 'Z' || letter[1] || !words || words[strspn(words, " \t\r\n")] == '\0')
            return false;
    }
    return true;
}

static json_t *choice_of(const json_t *row, const json_t *list, const json_t *gold, struct fail *fail)
{
    const char *extract = extract_of(row, fail);
    json_t *options = merged(list), *eval = NULL;
    if (!json_is_array(list))
        no(fail, "options must be a list");
    else if (!json_object_get(options, json_string_value(gold)))
        fail_set(fail, -EINVAL, "expected_answer %.40s is not one of its options", json_string_value(gold));
    else if (extract)
        eval = json_pack("{s:s,s:O}", "kind", "choice", "answer", gold);
    if (eval && has_texts(row, options))
        json_object_set(eval, "options", options);
    if (eval && strcmp(extract, "auto") != 0)
        json_object_set_new(eval, "extract", json_string(extract));
    json_decref(options);
    return eval;
}

bool row_judged(const json_t *row, json_t *task, struct fail *fail)
{
    const json_t *tests = json_object_get(json_object_get(row, "verifier_metadata"), "unit_tests");
    const json_t *options = json_object_get(row, "options"), *expected = json_object_get(row, "expected_answer");
    if (tests && !json_is_null(tests))
        return program_tests_judge(tests, "verifier_metadata.unit_tests", task, fail);
    if (!expected || json_is_null(expected))
        return no(fail, "the row says nothing of how its reply is judged: it has neither task nor "
                        "verifier_metadata.unit_tests nor expected_answer");
    json_t *gold = gold_of(expected);
    if (!gold)
        return no(fail, "expected_answer must be a text or a number");
    const bool is_choice = json_is_array(options) ? json_array_size(options) > 0 : options && !json_is_null(options);
    json_t *eval = is_choice ? choice_of(row, options, gold, fail)
                             : json_pack("{s:s,s:O}", "kind", "math", "answer", gold);
    json_decref(gold);
    return eval && json_object_set_new(task, "eval", eval) == 0;
}
