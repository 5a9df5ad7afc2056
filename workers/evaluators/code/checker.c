#include "workers/evaluators/code/checker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 64, EXPONENT_MAX = 6, LEVELS_MAX = 64 };

static const char *const words[] = {[CHECKER_LINES] = "lines",
                                    [CHECKER_EXACT] = "exact",
                                    [CHECKER_WORDS] = "words",
                                    [CHECKER_FLOATS] = "floats",
                                    [CHECKER_PROGRAM] = "program"};

enum checker checker_find(const char *word)
{
    for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(words[i], word) == 0)
            return (enum checker)i;
    return CHECKER_LINES;
}

/* ---- numbers ---------------------------------------------------------------------------------- */

/* A decimal number: digits, a point, an exponent, and nothing else. */
static bool read_number(struct slice word, double *ret)
{
    char text[NUMBER_MAX + 1], *end;
    if (word.len == 0 || word.len > NUMBER_MAX)
        return false;
    memcpy(text, word.data, word.len);
    text[word.len] = '\0';
    if (strspn(text, "0123456789+-.eE") != word.len)
        return false;
    *ret = strtod(text, &end);
    return *end == '\0' && isfinite(*ret);
}

static bool is_near(double expected, double given, double tolerance)
{
    const double difference = fabs(expected - given);
    return difference <= tolerance || difference <= tolerance * fabs(expected);
}

/* A decimal number exactly: 0.digits times ten to the power of `exponent`; without digits it is zero. */
struct decimal {
    bool is_negative;
    char digits[NUMBER_MAX]; /* neither the first nor the last is 0 */
    size_t count;
    long exponent;
};

static bool read_digits(const char **at, struct decimal *ret)
{
    bool has_point = false, has_digit = false;
    for (; (**at >= '0' && **at <= '9') || (**at == '.' && !has_point); ++*at) {
        if (**at == '.') {
            has_point = true;
            continue;
        }
        has_digit = true;
        if (**at != '0' || ret->count > 0)
            ret->digits[ret->count++] = **at;
        if (!has_point && ret->count > 0)
            ret->exponent++;
        else if (has_point && ret->count == 0)
            ret->exponent--;
    }
    return has_digit;
}

static bool read_decimal(struct slice word, struct decimal *ret)
{
    char text[NUMBER_MAX + 1];
    const char *at = text;
    *ret = (struct decimal){0};
    if (word.len == 0 || word.len > NUMBER_MAX)
        return false;
    memcpy(text, word.data, word.len);
    text[word.len] = '\0';
    ret->is_negative = *at == '-';
    at += *at == '-' || *at == '+';
    if (!read_digits(&at, ret))
        return false;
    if (*at == 'e' || *at == 'E') {
        char *end;
        if (strspn(at + 1, "0123456789+-") != strlen(at + 1) || strlen(at + 1) > EXPONENT_MAX)
            return false;
        ret->exponent += strtol(at + 1, &end, 10);
        if (end == at + 1 || *end)
            return false;
        at = end;
    }
    while (ret->count > 0 && ret->digits[ret->count - 1] == '0')
        ret->count--;
    return at == text + word.len;
}

static bool is_same_number(struct slice a, struct slice b)
{
    struct decimal x, y;
    if (!read_decimal(a, &x) || !read_decimal(b, &y) || x.count != y.count)
        return false;
    return x.count == 0 ||
           (x.is_negative == y.is_negative && x.exponent == y.exponent && memcmp(x.digits, y.digits, x.count) == 0);
}

/* ---- words ------------------------------------------------------------------------------------- */

static bool is_blank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static struct slice trim(struct slice text)
{
    while (text.len > 0 && is_blank(text.data[0]))
        text = slice_of(text.data + 1, text.len - 1);
    while (text.len > 0 && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

/* The next word; empty at the end. */
static struct slice take_word(struct slice *text)
{
    *text = trim(*text);
    size_t len = 0;
    while (len < text->len && !is_blank(text->data[len]))
        len++;
    struct slice word = slice_of(text->data, len);
    *text = slice_of(text->data + len, text->len - len);
    return word;
}

static bool is_alike(enum checker checker, double tolerance, struct slice expected, struct slice given)
{
    double p, q;
    if (slice_equal(expected, given))
        return true;
    if (checker == CHECKER_LINES)
        return is_same_number(expected, given);
    return checker == CHECKER_FLOATS && read_number(expected, &p) && read_number(given, &q) && is_near(p, q, tolerance);
}

static bool words_match(enum checker checker, double tolerance, struct slice expected, struct slice given)
{
    for (;;) {
        struct slice a = take_word(&expected), b = take_word(&given);
        if (a.len == 0 || b.len == 0)
            return a.len == b.len;
        if (!is_alike(checker, tolerance, a, b))
            return false;
    }
}

/* ---- lines -------------------------------------------------------------------------------------- */

static struct slice take_line(struct slice *text)
{
    const uint8_t *end = memchr(text->data, '\n', text->len);
    size_t len = end ? (size_t)(end - text->data) : text->len;
    struct slice line = slice_of(text->data, len);
    *text = end ? slice_of(end + 1, text->len - len - 1) : slice_of(NULL, 0);
    return line;
}

static bool lines_match(struct slice expected, struct slice given)
{
    expected = trim(expected);
    given = trim(given);
    if (expected.len == 0 || given.len == 0)
        return expected.len == given.len;
    while (expected.data && given.data) {
        struct slice a = trim(take_line(&expected)), b = trim(take_line(&given));
        if (!slice_equal(a, b) && !words_match(CHECKER_LINES, 0, a, b))
            return false;
    }
    return !expected.data && !given.data;
}

static bool is_exact(struct slice expected, struct slice given)
{
    while (expected.len > 0 && expected.data[expected.len - 1] == '\n')
        expected.len--;
    while (given.len > 0 && given.data[given.len - 1] == '\n')
        given.len--;
    return slice_equal(expected, given);
}

bool checker_accepts(enum checker checker, double tolerance, struct slice expected, struct slice given)
{
    switch (checker) {
    case CHECKER_EXACT: return is_exact(expected, given);
    case CHECKER_LINES: return lines_match(expected, given);
    case CHECKER_PROGRAM: return false; /* its own to say */
    case CHECKER_WORDS:
    case CHECKER_FLOATS: break;
    }
    return words_match(checker, tolerance, expected, given);
}

/* ---- values ------------------------------------------------------------------------------------- */

static bool is_numeric(const json_t *value) { return json_is_number(value) || json_is_boolean(value); }

static double number_of(const json_t *value)
{
    return json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
}

/* A whole number and a real one are equal where the real one is whole and that number exactly. */
static bool is_equal(const json_t *a, const json_t *b)
{
    if (json_is_real(a) && !json_is_real(b))
        return is_equal(b, a);
    if (!json_is_integer(a) || !json_is_real(b))
        return json_is_integer(a) && json_is_integer(b) ? json_integer_value(a) == json_integer_value(b)
                                                        : number_of(a) == number_of(b);
    const double real = json_real_value(b);
    return real == floor(real) && fabs(real) < 0x1p63 && (json_int_t)real == json_integer_value(a);
}

static bool numbers_match(double tolerance, const json_t *a, const json_t *b)
{
    return is_equal(a, b) || (tolerance > 0 && is_near(number_of(a), number_of(b), tolerance));
}

static bool values_match(double tolerance, const json_t *a, const json_t *b, int levels);

static bool lists_match(double tolerance, const json_t *a, const json_t *b, int levels)
{
    size_t i;
    json_t *one;
    if (json_array_size(a) != json_array_size(b))
        return false;
    json_array_foreach((json_t *)(uintptr_t)a, i,
                       one) if (!values_match(tolerance, one, json_array_get(b, i), levels)) return false;
    return true;
}

static bool objects_match(double tolerance, const json_t *a, const json_t *b, int levels)
{
    const char *name;
    json_t *one;
    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach((json_t *)(uintptr_t)a, name,
                        one) if (!values_match(tolerance, one, json_object_get(b, name), levels)) return false;
    return true;
}

static bool values_match(double tolerance, const json_t *a, const json_t *b, int levels)
{
    if (levels == 0 || !b)
        return false;
    if (is_numeric(a) && is_numeric(b))
        return numbers_match(tolerance, a, b);
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_array(a))
        return lists_match(tolerance, a, b, levels - 1);
    return json_is_object(a) ? objects_match(tolerance, a, b, levels - 1) : json_equal(a, b) == 1;
}

bool checker_accepts_value(enum checker checker, double tolerance, const json_t *expected, const json_t *given)
{
    const double within = checker == CHECKER_FLOATS ? tolerance : 0;
    if (values_match(within, expected, given, LEVELS_MAX))
        return true;
    return json_array_size(expected) == 1 && values_match(within, json_array_get(expected, 0), given, LEVELS_MAX);
}
