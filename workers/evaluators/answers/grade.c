#include "workers/evaluators/answers/grade.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/evaluators/math/answer.h"

enum { SHOWN_MAX = 120 };

static bool find_word(const char *const *words, size_t count, const char *word, size_t *ret)
{
    for (*ret = 0; *ret < count; ++*ret)
        if (strcmp(words[*ret], word) == 0)
            return true;
    return false;
}

bool grade_kind_parse(const char *word, enum grade_kind *ret)
{
    static const char *const words[] = {"math", "choice", "exact"};
    size_t at;
    bool good = find_word(words, 3, word, &at);
    *ret = good ? (enum grade_kind)at : GRADE_MATH;
    return good;
}

bool normalize_parse(const char *word, enum normalize *ret)
{
    static const char *const words[] = {"none", "blanks", "case", "punctuation"};
    size_t at;
    bool good = find_word(words, 4, word, &at);
    *ret = good ? (enum normalize)at : NORMALIZE_NONE;
    return good;
}

void grade_finish(struct grade *grade)
{
    free(grade->answer);
    *grade = (struct grade){0};
}

/* ---- finding the answer ---------------------------------------------------------------------------- */

static enum extract settle(const struct grade_options *options, struct slice text)
{
    if (options->extract != EXTRACT_AUTO)
        return options->extract;
    if (extract_has_box(text))
        return EXTRACT_BOX;
    if (options->kind != GRADE_CHOICE && extract_has_hashes(text))
        return EXTRACT_HASHES;
    if (extract_has_answer(text))
        return EXTRACT_ANSWER;
    return options->kind == GRADE_CHOICE ? EXTRACT_LETTER : options->kind == GRADE_EXACT ? EXTRACT_ALL : EXTRACT_BOX;
}

/* A trailing full stop is the sentence's. */
static struct slice without_stop(struct slice text)
{
    bool stops = text.len > 1 && text.data[text.len - 1] == '.';
    return stops ? text_trim(slice_of(text.data, text.len - 1)) : text;
}

static bool find_answer(const struct grade_options *options, struct slice text, struct buffer *ret,
                        const char **ret_why)
{
    struct slice said;
    *ret_why = "the thinking is never closed, and nothing follows it";
    if (!extract_after_thinking(text, &said))
        return false;
    *ret_why = "the answer is too long to be looked at";
    if (said.len > EXTRACT_BYTES_MAX)
        said = slice_of(said.data + said.len - EXTRACT_BYTES_MAX, EXTRACT_BYTES_MAX);
    return extract_answer(said, settle(options, said), ret, ret_why) && !ret->failed;
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

static void say(struct grade *grade, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct grade *grade, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(grade->why, sizeof(grade->why), format, args);
    va_end(args);
    text_sanitize(grade->why);
}

static const char *math_words(enum math_verdict verdict)
{
    switch (verdict) {
    case MATH_EQUAL: return "equals";
    case MATH_UNFINISHED: return "has the value, but not in the form, of";
    case MATH_NOT_UNDERSTOOD: return "is not understood, and is not the text";
    case MATH_TOO_LONG: return "is too much to compare with";
    default: return "does not equal";
    }
}

static const char *compare_choice(const struct choice_options *options, struct slice wanted, struct slice given,
                                  bool *ret_right)
{
    struct slice unused;
    uint32_t letters;
    const enum choice_how how = choice_read(given, options, &letters);
    *ret_right = letters != 0 && letters == choice_letters(wanted, &unused);
    switch (how) {
    case CHOICE_SHARED_TEXT: return "is the text of several options, and so is not";
    case CHOICE_MISMATCH: return "has a letter and the text of another option, and so is not";
    case CHOICE_SEVERAL: return "is several options with their texts, and so is not";
    case CHOICE_BY_TEXT: return *ret_right ? "is the text of" : "is not the text of";
    default: return *ret_right ? "is" : "is not";
    }
}

static const char *compare(const struct grade_options *options, struct slice wanted, struct slice given,
                           bool *ret_right)
{
    struct math_options math = {options->relative, options->absolute};
    enum math_verdict verdict;
    switch (options->kind) {
    case GRADE_CHOICE: return compare_choice(&options->options, wanted, given, ret_right);
    case GRADE_EXACT: *ret_right = texts_equal(wanted, given, options->normalize); return *ret_right ? "is" : "is not";
    default:
        verdict = math_compare(wanted, given, &math);
        *ret_right = verdict == MATH_EQUAL;
        return math_words(verdict);
    }
}

static struct slice accepted_text(const char *accepted, enum grade_kind kind, struct buffer *box)
{
    const char *unused;
    struct slice text = slice_from_str(accepted);
    buffer_clear(box);
    if (kind != GRADE_EXACT && extract_has_box(text) && extract_answer(text, EXTRACT_BOX, box, &unused))
        return buffer_peek(box);
    return text;
}

/* NULL, or why it is no accepted answer of a choice. */
static const char *refuse_letters(const struct grade_options *options, struct slice accepted)
{
    struct slice unused;
    uint32_t letters = choice_letters(accepted, &unused);
    if (!letters)
        return "an accepted answer is neither the letter of a choice nor several";
    return choice_is_known(&options->options, letters) ? NULL
                                                       : "an accepted answer is a letter that none of the options has";
}

const char *grade_refuse(const struct grade_options *options, const char *const *accepted, size_t count)
{
    AUTO_BUFFER box = {0};
    const char *why = count > 0 ? NULL : "no accepted answer";
    for (size_t i = 0; i < count && !why && options->kind == GRADE_CHOICE; i++)
        why = refuse_letters(options, accepted_text(accepted[i], options->kind, &box));
    return why;
}

void grade_text(const struct grade_options *options, struct slice text, const char *const *accepted, size_t count,
                struct grade *ret)
{
    AUTO_BUFFER found = {0};
    AUTO_BUFFER box = {0};
    const char *why;
    *ret = (struct grade){0};
    if (!find_answer(options, text, &found, &why)) {
        say(ret, "%s", why);
        return;
    }
    struct slice given = buffer_peek(&found);
    if (options->kind == GRADE_MATH)
        given = without_stop(given);
    for (size_t i = 0; i < count && !ret->is_right; i++) {
        struct slice wanted = accepted_text(accepted[i], options->kind, &box);
        const char *words = compare(options, wanted, given, &ret->is_right);
        if (i == 0 || ret->is_right)
            say(ret, "%.*s %s %.*s%s", SLICE_ARG(text_cut_slice(given, SHOWN_MAX)), words,
                SLICE_ARG(text_cut_slice(wanted, SHOWN_MAX)),
                count > 1 && !ret->is_right ? ", or any other accepted" : "");
    }
    ret->answer = strndup((const char *)given.data, given.len);
    if (ret->answer)
        text_repair(ret->answer);
}
