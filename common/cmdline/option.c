#include "common/cmdline/option.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dashed(char c) { return c == '_' ? '-' : c; }

void option_name(const struct option *option, char ret[OPTION_NAME_SIZE])
{
    size_t len = 0;
    for (; option->name[len] && len < OPTION_NAME_SIZE - 1; len++)
        ret[len] = dashed(option->name[len]);
    ret[len] = '\0';
}

static bool is_called(const char *own, const char *name, size_t name_len)
{
    for (size_t i = 0; i < name_len; i++)
        if (dashed(own[i]) != name[i])
            return false;
    return own[name_len] == '\0';
}

bool option_is(const struct option *option, const char *name, size_t name_len)
{
    return is_called(option->name, name, name_len) || (option->old_name && is_called(option->old_name, name, name_len));
}

/* ---- values ------------------------------------------------------------------------------- */

static bool is_numeric(const struct option *option)
{
    return option->kind == OPTION_NUMBER || option->kind == OPTION_DURATION || option->kind == OPTION_SIZE ||
           option->kind == OPTION_WORD;
}

static void *field_of(const struct option *option, void *into) { return (char *)into + option->offset; }

void option_preset(const struct option *option, void *into)
{
    if (is_numeric(option))
        *(uint64_t *)field_of(option, into) = option->preset;
    else if (option->kind == OPTION_REAL)
        *(double *)field_of(option, into) = option->real;
    else if (option->kind == OPTION_TEXT)
        *(const char **)field_of(option, into) = option->text;
    else if (option->kind == OPTION_FLAG)
        *(bool *)field_of(option, into) = false;
    else
        ((struct texts *)field_of(option, into))->count = 0;
}

/* The word at that place of "full|process|none"; "" if there are not so many. */
static const char *word_at(const char *words, uint64_t place, size_t *ret_len)
{
    for (; place && *words; place--) {
        words += strcspn(words, "|");
        words += *words == '|';
    }
    *ret_len = strcspn(words, "|");
    return words;
}

static bool parse_word(const char *words, const char *text, uint64_t *ret)
{
    size_t len;
    const char *word;
    for (*ret = 0; *(word = word_at(words, *ret, &len)); ++*ret)
        if (strlen(text) == len && strncmp(text, word, len) == 0)
            return true;
    return false;
}

static bool parse_number(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return !errno && !*end && text[0] >= '0' && text[0] <= '9';
}

static bool parse_real(const struct option *option, const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return end != text && !*end && isfinite(*ret) && *ret >= (double)option->min &&
           (!option->max || *ret <= (double)option->max);
}

static bool parse(const struct option *option, const char *text, uint64_t *ret)
{
    switch (option->kind) {
    case OPTION_DURATION: return duration_parse(text, ret);
    case OPTION_SIZE: return size_parse(text, ret);
    case OPTION_WORD: return parse_word(option->value, text, ret);
    default: return parse_number(text, ret);
    }
}

void option_format(const struct option *option, uint64_t number, char *ret, size_t size)
{
    size_t len;
    const char *word;
    switch (option->kind) {
    case OPTION_DURATION: duration_format(number, ret, size); return;
    case OPTION_SIZE: size_format(number, ret, size); return;
    case OPTION_WORD:
        word = word_at(option->value, number, &len);
        snprintf(ret, size, "%.*s", (int)len, word);
        return;
    default: snprintf(ret, size, "%llu", (unsigned long long)number);
    }
}

static int refuse(const struct option *option, const char *text, struct fail *fail)
{
    static const char *const nouns[] = {
        [OPTION_NUMBER] = "number", [OPTION_DURATION] = "time", [OPTION_SIZE] = "size", [OPTION_REAL] = "number"};
    static const char *const examples[] = {[OPTION_NUMBER] = "",
                                           [OPTION_DURATION] = ", such as 90s or 1h30m",
                                           [OPTION_SIZE] = ", such as 512MiB or 8GiB",
                                           [OPTION_REAL] = ""};
    char name[OPTION_NAME_SIZE], min[40], max[40];
    option_name(option, name);
    if (option->kind == OPTION_WORD)
        return fail_set(fail, -EINVAL, "--%s wants %s, not '%.200s'", name, option->value, text);
    option_format(option, option->min, min, sizeof(min));
    option_format(option, option->max, max, sizeof(max));
    if ((option->kind == OPTION_NUMBER && option->max >= INT64_MAX) || (option->kind == OPTION_REAL && !option->max))
        return fail_set(fail, -EINVAL, "--%s wants a number from %s on, not '%.200s'", name, min, text);
    return fail_set(fail, -EINVAL, "--%s wants a %s from %s to %s%s, not '%.200s'", name, nouns[option->kind], min, max,
                    examples[option->kind], text);
}

static int set_number(const struct option *option, void *field, const char *text, struct fail *fail)
{
    uint64_t number;
    if (!parse(option, text, &number))
        return refuse(option, text, fail);
    if (option->kind != OPTION_WORD && (number < option->min || number > option->max))
        return refuse(option, text, fail);
    *(uint64_t *)field = number;
    return 0;
}

static int add_text(const struct option *option, struct texts *texts, const char *text, struct fail *fail)
{
    char name[OPTION_NAME_SIZE];
    option_name(option, name);
    if (texts->count == TEXTS_MAX)
        return fail_set(fail, -EINVAL, "--%s may be given %d times", name, TEXTS_MAX);
    texts->items[texts->count++] = text;
    return 0;
}

int option_set(const struct option *option, void *into, const char *text, struct fail *fail)
{
    void *field = field_of(option, into);
    switch (option->kind) {
    case OPTION_FLAG: *(bool *)field = true; return 0;
    case OPTION_TEXT: *(const char **)field = text; return 0;
    case OPTION_LIST: return add_text(option, field, text, fail);
    case OPTION_REAL: return parse_real(option, text, field) ? 0 : refuse(option, text, fail);
    default: return set_number(option, field, text, fail);
    }
}
