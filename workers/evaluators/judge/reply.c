#include "workers/evaluators/judge/reply.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/text.h"

enum { SHOWN_MAX = 60, LEVELS_MAX = 2 };

/* ---- where the verdict stands --------------------------------------------------------------------- */

static bool is_all_of(struct slice text, const char *characters)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '\0' || !strchr(characters, text.data[i]))
            return false;
    return true;
}

static struct slice without_front(struct slice text, const char *characters)
{
    size_t at = 0;
    while (at < text.len && text.data[at] && strchr(characters, text.data[at]))
        at++;
    return slice_of(text.data + at, text.len - at);
}

/* The object behind the label, or NULL with why not; the caller owns it. */
static json_t *find_verdict(struct slice reply, const char *verdict_mark, struct fail *fail)
{
    char label[32];
    json_error_t error;
    snprintf(label, sizeof(label), "VERDICT-%s", verdict_mark);
    struct slice rest = text_behind_last(reply, "</think>");
    if (!text_find_last(rest, label)) {
        fail_set(fail, -EBADMSG, "it has no line with the verdict");
        return NULL;
    }
    rest = without_front(text_behind_last(rest, label), " \t\r\n:*`");
    json_t *object = text_is_shallow(rest, LEVELS_MAX)
                         ? json_loadb((const char *)rest.data, rest.len,
                                      JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error)
                         : NULL;
    const bool is_last = json_is_object(object) && error.position >= 0 && (size_t)error.position <= rest.len &&
                         is_all_of(slice_of(rest.data + error.position, rest.len - (size_t)error.position),
                                   " \t\r\n*`");
    if (is_last)
        return object;
    fail_set(fail, -EBADMSG,
             json_is_object(object) ? "something stands behind its verdict" : "no JSON object follows its label");
    json_decref(object);
    return NULL;
}

/* ---- answers ------------------------------------------------------------------------------------------ */

/* Decimal digits and no words: not "inf", not hexadecimal. */
static bool read_number(const json_t *answer, double *ret)
{
    if (json_is_number(answer)) {
        *ret = json_number_value(answer);
        return true;
    }
    const char *text = json_string_value(answer);
    char *end;
    if (!text || !*text || strspn(text, "0123456789+-.eE") != strlen(text))
        return false;
    *ret = strtod(text, &end);
    return *end == '\0';
}

static bool read_choice(const struct task_criterion *criterion, const json_t *answer, double *ret)
{
    static const char *const usual[] = {"no", "yes"};
    const size_t count = criterion->choice_count ? criterion->choice_count : 2;
    char number[32];
    const char *text = json_string_value(answer);
    if (json_is_boolean(answer) && criterion->choice_count == 0)
        text = usual[json_is_true(answer)];
    if (json_is_integer(answer)) {
        snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(answer));
        text = number;
    }
    for (size_t i = 0; text && i < count; i++)
        if (strcasecmp(text, criterion->choice_count ? criterion->choices[i] : usual[i]) == 0) {
            *ret = (double)i / (double)(count - 1);
            return true;
        }
    return false;
}

static bool read_answer(const struct task_criterion *criterion, const json_t *answer, double *ret)
{
    if (strcmp(criterion->need, "optional") == 0 && json_is_string(answer) &&
        strcasecmp(json_string_value(answer), "n/a") == 0) {
        *ret = NAN;
        return true;
    }
    if (!task_criterion_is_number(criterion))
        return read_choice(criterion, answer, ret);
    double number;
    if (!read_number(answer, &number) || !(number >= criterion->min && number <= criterion->max))
        return false;
    *ret = (number - criterion->min) / (criterion->max - criterion->min);
    return true;
}

static int refuse_answer(const struct task_criterion *criterion, const json_t *answer, struct fail *fail)
{
    char *text = answer ? json_dumps(answer, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    const struct slice shown = text_cut(text ? text : "", SHOWN_MAX);
    fail_set(fail, -EBADMSG, answer ? "%s cannot be answered by %.*s" : "%s is not answered", criterion->name,
             SLICE_ARG(shown));
    free(text);
    return fail->code;
}

int judge_reply_read(struct slice reply, const char *verdict_mark, struct judge_criteria criteria, double *values,
                     struct fail *fail)
{
    json_t *object = find_verdict(reply, verdict_mark, fail);
    if (!object)
        return fail->code;
    int code = 0;
    for (size_t i = 0; i < criteria.count && code == 0; i++) {
        const json_t *answer = json_object_get(object, criteria.list[i].name);
        if (!answer || !read_answer(&criteria.list[i], answer, &values[i]))
            code = refuse_answer(&criteria.list[i], answer, fail);
    }
    if (code == 0 && json_object_size(object) != criteria.count)
        code = fail_set(fail, -EBADMSG, "its verdict has names that are not a criterion's");
    json_decref(object);
    return code;
}
